"""Draw or cut the workloads of a scenario, one a replicate, as Batsim reads them."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.hetero.prepare import trim_workload

    job = snakemake  # noqa: F821
    trim_workload(
        Path(job.input.config), Path(job.input.resources), Path(job.output.workloads), Path(job.output.report)
    )
    write_origin(job, Path(job.output.workloads).with_name("provenance.json"))
