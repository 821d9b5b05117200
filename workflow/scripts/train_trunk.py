"""Train the initial network of a scenario to the end of its budget, keeping its state after every epoch."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.adaptation.prepare import train_trunk

    job = snakemake  # noqa: F821
    device = train_trunk(Path(job.input.config), Path(job.input.data), Path(job.params.store), Path(job.output.trunk))
    write_origin(job, Path(job.output.trunk).with_name("provenance.json"), **device)
