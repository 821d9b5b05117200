# The console of a run: a line for each job that ends (schedlab.config.runtime.progress). Snakemake's own messages stay
# in dry runs, with --verbose, and if another logger plugin writes to the console.
from snakemake.logging import logger

from schedlab.config.runtime.progress import JobLines


def show_job_lines():
    """Show these lines on Snakemake's console; its log file is not changed."""
    for console in (handler for handler in logger.handlers if handler.name == "DefaultStreamHandler"):
        if isinstance(console.formatter, JobLines):
            return  # of another run of this sweep
        lines = JobLines(console.formatter, idle=lambda: {rule.name for rule in workflow.rules if rule.norun})
        console.addFilter(lines.filter)
        console.setFormatter(lines)


if workflow.is_main_process and not workflow.output_settings.dryrun and not workflow.output_settings.verbose:
    show_job_lines()
