"""Check the logs of a training job, and write the rows that its step times are fitted to."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.cloud.prepare import ingest_logs

    job = snakemake  # noqa: F821
    output = job.output
    ingest_logs(Path(job.input.config), Path(output.steps), Path(output.cores), Path(output.report))
    write_origin(job, Path(output.report).with_name("provenance.json"))
