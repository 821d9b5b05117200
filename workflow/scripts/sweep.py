"""Join the tables of the runs of a sweep, and draw them over the swept values."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.stages.sweep import draw, join

    job = snakemake  # noqa: F821
    part, results, plots = Path(job.input.config), Path(job.output.summary).parent, Path(job.output.index).parent
    join(part, job.input.scores, job.input.summary, results)
    draw(part, results, plots)
    write_origin(job, results / "tables.provenance.json", [job.output.scores, job.output.summary])
    write_origin(job, plots / "provenance.json", [*job.output.figures, job.output.index])
