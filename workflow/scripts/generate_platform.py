"""Generate a platform for the simulator, and its resources as JSON."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.hetero.prepare import generate_platform

    job = snakemake  # noqa: F821
    generate_platform(Path(job.input.config), Path(job.output.platform), Path(job.output.resources))
    write_origin(job, Path(job.output.platform).with_name("provenance.json"))
