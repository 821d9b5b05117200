"""The log of one workflow job: all its output, its progress, the traceback of an error, and what the job cost."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from schedlab.config.errors import UserError, disk_trouble
from schedlab.config.files import write_text
from schedlab.config.runtime import run_lock
from schedlab.config.runtime.provenance import edited_source, keep_code, source_hash


@contextlib.contextmanager
def job_log(path: Path | str) -> Iterator[TextIO]:
    """Send standard output, standard error and logging of this process to a file; end the process with status 1 on an
    error. Yields the console, which is the previous standard error.

    Within a run of the workflow, the process ends when the run ends. If code was edited while the job ran, the log
    contains a warning. For a UserError, and for a disk that is full or cannot be written, the console shows one
    paragraph; for any other error, its last line. The log contains the traceback, for a UserError that of its cause.
    A job that succeeds also writes its cost (`cost_file`).
    """
    console, began = sys.stderr, time.monotonic()
    run_lock.enter_job()
    keep_code()  # before the script imports its modules
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = Path(path).open("w", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed below, where that may fail
    except OSError as error:
        print(f"error: {disk_trouble(error, str(path)) or error}", file=console)
        raise SystemExit(1) from None
    handler = logging.StreamHandler(file)
    handler.setFormatter(logging.Formatter("%(message)s"))
    try:
        with _only_handler(handler), contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
            try:
                yield console
            finally:
                _warn_of_edits()
        _write_cost(cost_file(path), time.monotonic() - began)
    except Exception as error:
        user_error = error if isinstance(error, UserError) else disk_trouble(error, f"the disk of {path}")
        with contextlib.suppress(OSError):  # the log may lie on the disk that is full
            _log_error(error, user_error, file)
        print(f"error: {user_error or f'{type(error).__name__}: {error} (traceback in {path})'}", file=console)
        raise SystemExit(1) from None
    finally:
        with contextlib.suppress(OSError):
            file.close()


def cost_file(log: Path | str) -> Path:
    """Return the file with the cost of the job with this log: benchmarks/NAME.tsv for logs/NAME.log, else NAME.tsv
    beside the log.
    """
    log = Path(log)
    folder = log.parent.with_name("benchmarks") if log.parent.name == "logs" else log.parent
    return folder / f"{log.stem}.tsv"


def _write_cost(file: Path, seconds: float) -> None:
    """Write the cost of this process and its ended children: s and cpu_time in seconds, max_rss in MiB (NA where the
    system is not Linux). It is no output of the job, as it differs from run to run.
    """
    try:
        peak = int(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))[0]) / 1024
    except (OSError, IndexError):
        peak = None
    file.parent.mkdir(parents=True, exist_ok=True)
    memory = "NA" if peak is None else f"{peak:.1f}"
    write_text(file, f"s\tcpu_time\tmax_rss\n{seconds:.2f}\t{sum(os.times()[:4]):.2f}\t{memory}\n")


def _warn_of_edits() -> None:
    """Log a warning if code was edited since the job began: modules imported since then may be old or new."""
    if now := edited_source():
        told = f"source {source_hash()} when it began, {now} now"
        remedy = "delete its outputs and run it again, and edit another checkout while a run goes on"
        print(
            f"warning: the code of schedlab was edited while this job ran ({told}), and its results may be of either; "
            f"{remedy}"
        )


def _log_error(error: Exception, user_error: UserError | None, file: TextIO) -> None:
    """Write the error that ends a job. For a mistake that the user can correct, write one paragraph and the traceback
    of its cause.
    """
    if user_error is None:
        traceback.print_exception(error, file=file)
        return
    cause = error.__cause__
    while isinstance(cause, UserError):
        cause = cause.__cause__
    if cause is not None:
        traceback.print_exception(cause, file=file)
    print(f"error: {user_error}", file=file)


def inputs_by_scenario(named: Iterable[tuple[str, str]]) -> dict[str, dict[str, Path]]:
    """Return scenario -> input name -> file for the inputs of a job that are named '<scenario>/<input>'."""
    found: dict[str, dict[str, Path]] = {}
    for scenario, slash, name, path in ((*key.partition("/"), path) for key, path in named):
        if slash:
            found.setdefault(scenario, {})[name] = Path(path)
    return found


@contextlib.contextmanager
def _only_handler(handler: logging.Handler) -> Iterator[None]:
    """Log through one handler, at level INFO and above. Restore the previous handlers afterwards, because the handler's
    file is then closed.
    """
    root = logging.getLogger()
    former, level = list(root.handlers), root.level
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = former
        root.setLevel(level)
