"""Join the scores and curves of a study and sum them up with their uncertainty."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.files import file_hash
    from schedlab.config.runtime.provenance import require_made_by_their_parts, write_origin
    from schedlab.stages.summarise import summarise

    job = snakemake  # noqa: F821
    details: dict[str, list[Path]] = {}
    for folder in map(Path, job.input.details):
        for table in sorted(folder.glob("*.parquet")):
            details.setdefault(table.stem, []).append(table)
    curves = [Path(path) for path in job.input.curves]
    require_made_by_their_parts(curves)
    summarise(
        Path(job.input.config),
        [Path(path) for path in job.input.scores],
        curves,
        details,
        Path(job.output.summary).parent,
        [Path(path) for path in job.input.origins],
    )
    tables = [Path(path) for path in job.output if path.endswith(".parquet")]
    hashes = {path.name: file_hash(path) for path in tables}
    write_origin(job, tables[0].with_name("tables.provenance.json"), hashes=hashes)
