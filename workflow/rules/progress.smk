# The console of a run: a line for each job that ends (schedlab.config.runtime.progress). Dry runs and --verbose keep
# Snakemake's own words, and so does a console that another logger plugin writes.
from snakemake.logging import logger

from schedlab.config.runtime.progress import JobLines


def show_job_lines():
    """Hang the lines onto Snakemake's console; its log file keeps everything."""
    for console in (handler for handler in logger.handlers if handler.name == "DefaultStreamHandler"):
        if isinstance(console.formatter, JobLines):
            return  # of another run of this sweep
        lines = JobLines(console.formatter, idle=lambda: {rule.name for rule in workflow.rules if rule.norun})
        console.addFilter(lines.filter)
        console.setFormatter(lines)


if workflow.is_main_process and not workflow.output_settings.dryrun and not workflow.output_settings.verbose:
    show_job_lines()
