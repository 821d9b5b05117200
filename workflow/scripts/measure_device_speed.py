"""Measure how fast a device learns, for thread counts up to the job's."""

from schedlab.config.runtime.job_log import job_log

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.studies.batch.commands.speed import record_speed

    job = snakemake  # noqa: F821
    record_speed(Path(job.output[0]), job.wildcards.device, job.threads)
