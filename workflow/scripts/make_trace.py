"""Draw or read the trace of a scenario, clean and cut it."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.batch.study import make_trace

    job = snakemake  # noqa: F821
    make_trace(Path(job.input.config), Path(job.output.trace), Path(job.output.report))
    write_origin(job, Path(job.output.trace).with_name("provenance.json"))
