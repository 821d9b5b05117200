"""Draw every figure of a study."""

from schedlab.config.job_log import job_log, one_thread

one_thread()
with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.stages.draw import draw

    job = snakemake  # noqa: F821
    draw(
        Path(job.input.config),
        Path(job.input.summary).parent,
        {scenario: {name: Path(path) for name, path in files.items()} for scenario, files in job.params.inputs.items()},
        Path(job.output.index).parent,
    )
