"""Fit the step times of a training job to its logs, or take the pinned ones."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.cloud.prepare import fit_performance

    job = snakemake  # noqa: F821
    logs = [Path(name) for name in job.input[1:]]  # the tables of ingest_logs: step times, core times
    fit_performance(Path(job.input.config), Path(job.output.model), *logs)
    write_origin(job, Path(job.output.model).with_name("provenance.json"))
