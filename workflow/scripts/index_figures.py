"""List the figures of every study in plots/<scale>/INDEX.md, and what they rest on in results/<scale>/manifest.json."""

from schedlab.config.runtime.job_log import job_log

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.evaluation.manifest import write_manifest
    from schedlab.figures.index import write_index

    job = snakemake  # noqa: F821
    write_index(Path(job.output.index).parent, [Path(path) for path in job.input.headlines])
    write_manifest(Path(), Path(job.output.manifest).parent.name)
