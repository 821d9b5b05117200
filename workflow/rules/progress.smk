# The console of a run: a line for each job that ends, and in a terminal, without --quiet, one that shows how far the
# run is (schedlab.config.runtime.progress). Snakemake's own messages stay in dry runs, with --verbose, and if another
# logger plugin writes to the console. `schedlab status` reads the state of
# the run from .schedlab/status.json.
import atexit
import time
from contextlib import suppress

from snakemake.logging import logger

from schedlab.config.files import write_json
from schedlab.config.runtime.progress import JobLines, LiveLine


def keep_status(state):
    if run_lock.is_held_elsewhere(Path(".schedlab/run.lock")):
        return  # the state there is that of another run; this one is refused when it starts
    with suppress(OSError):  # a full disk ends jobs, not the console
        write_json(Path(".schedlab/status.json"), {"written": time.time(), **state})


def show_job_lines():
    """Show these lines on Snakemake's console; its log file is not changed."""
    for console in (handler for handler in logger.handlers if handler.name == "DefaultStreamHandler"):
        if isinstance(console.formatter, JobLines):
            return  # of another run of this sweep
        idle = lambda: {rule.name for rule in workflow.rules if rule.norun}
        lines = JobLines(console.formatter, idle=idle, keep=keep_status)
        console.addFilter(lines.filter)
        console.setFormatter(lines)
        if not workflow.output_settings.quiet:
            lines.line = LiveLine(console.stream, lines.state, console.lock)
            atexit.register(lines.line.end)


def end_live_line():
    """Erase the line that shows how far the run is: what follows is printed without the handler."""
    for console in logger.handlers:
        if isinstance(console.formatter, JobLines) and console.formatter.line:
            console.formatter.line.end()


if workflow.is_main_process and not workflow.output_settings.dryrun and not workflow.output_settings.verbose:
    show_job_lines()
