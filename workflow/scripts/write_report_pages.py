"""Write the pages that the report has beside the figures."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.stages.interactive import interactive_page
    from schedlab.stages.report import benchmarks_page, claims_page, results_page, start_page

    job = snakemake  # noqa: F821
    folders = {name: Path(path).parent for name, path in zip(job.params.studies, job.input.summaries, strict=True)}
    ledgers = {Path(path).stem: Path(path) for path in job.input.claims}
    for name, target in zip(job.params.studies, job.output.results, strict=True):
        results_page(job.params.scale, folders[name], Path(target))
    claims_page(ledgers, Path(job.output.claims))
    benchmarks_page(Path(job.log[0]).parents[1], Path(job.output.benchmarks))  # all results of the scale
    interactive_page(job.params.scale, folders, Path(job.output.interactive))
    start_page(job.params.scale, folders, job.params.asked, ledgers, Path(job.output.start))
