"""Find what the best plan and random actions reach in a scenario."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.cloud.prepare import solve_oracle

    job = snakemake  # noqa: F821
    solve_oracle(Path(job.input.config), Path(job.input.model), Path(job.output.oracle))
    write_origin(job, Path(job.output.oracle).with_suffix(".provenance.json"))
