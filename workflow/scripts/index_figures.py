"""List the figures of every study in plots/<scale>/INDEX.md."""

from schedlab.config.job_log import job_log

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.figures.index import write_index

    job = snakemake  # noqa: F821
    write_index(Path(job.output[0]).parent)
