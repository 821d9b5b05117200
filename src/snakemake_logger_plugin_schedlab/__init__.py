"""A logger plugin of Snakemake, which imports packages of such a name before it looks at the words of its command.

Where the Snakefile is schedlab's, the words after `--config` are checked here: with a key that is no plain word
Snakemake would end in a traceback. `--logger schedlab` writes messages as they are to standard error.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from snakemake_interface_logger_plugins.base import LogHandlerBase


class LogHandler(LogHandlerBase):
    """Writes each message as a line of standard error."""

    writes_to_stream = True
    writes_to_file = has_filter = has_formatter = needs_rulegraph = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        print(self.format(record), file=sys.stderr)


def check(command: Sequence[str]) -> None:
    """End the process with one sentence where a command is Snakemake's, in a folder of schedlab, and wrong."""
    program, words = Path(command[0]), command[1:]
    is_snakemake = program.name == "snakemake" or program.parts[-2:] == ("snakemake", "__main__.py")
    if not is_snakemake or "--mode" in words:  # a job of a run that has been looked at
        return
    from schedlab.cli.run import check_words, is_of_schedlab
    from schedlab.config.errors import UserError

    try:
        if is_of_schedlab(words):
            check_words(words)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


check(sys.argv)
