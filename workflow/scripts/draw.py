"""Draw every figure of a study."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import inputs_by_scenario, job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.stages.draw import draw

    job = snakemake  # noqa: F821
    draw(
        Path(job.input.config),
        Path(job.input.summary).parent,
        inputs_by_scenario(job.input.items()),
        Path(job.output.index).parent,
    )
    write_origin(job, Path(job.output.index).with_name("provenance.json"))
