"""Read a data set, check it, and store its split as arrays."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.adaptation.prepare import check_data

    job = snakemake  # noqa: F821
    check_data(Path(job.input.config), Path(job.output.data), Path(job.output.summary))
    write_origin(job, Path(job.output.data).with_name("provenance.json"))
