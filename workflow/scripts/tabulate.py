"""Bring the simulated replicates of a scenario, or the published record, into one table."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.adaptation.prepare import tabulate

    job = snakemake  # noqa: F821
    tabulate(Path(job.input.config), [Path(path) for path in job.input.runs], Path(job.output.table))
    write_origin(job, Path(job.output.table).with_suffix(".provenance.json"))
