"""Get entries of the catalogue of data."""

from schedlab.config.runtime.job_log import job_log

with job_log(snakemake.log[0]) as console:  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.download import get_all

    job = snakemake  # noqa: F821
    get_all(Path(job.params.conf), job.params.entries, console)
