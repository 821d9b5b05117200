"""The log of one workflow job: everything it prints, its progress, and the traceback of what went wrong."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from schedlab.config.errors import UserError


@contextlib.contextmanager
def job_log(path: Path | str) -> Iterator[None]:
    """Send standard output, standard error and logging of this process to a file; end the process with status 1 on an error.

    A UserError becomes one paragraph on the console, any other error its last line; the log holds the traceback, also of what a UserError
    was made of.
    """
    console = sys.stderr
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with Path(path).open("w", encoding="utf-8", buffering=1) as file:
        handler = logging.StreamHandler(file)
        handler.setFormatter(logging.Formatter("%(message)s"))
        try:
            with _only_handler(handler), contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                yield
        except UserError as error:
            cause = error.__cause__
            while isinstance(cause, UserError):
                cause = cause.__cause__
            if cause is not None:
                traceback.print_exception(cause, file=file)
            print(f"error: {error}", file=file)
            print(f"error: {error}", file=console)
            _leave()
        except Exception as error:
            traceback.print_exc(file=file)
            print(f"error: {type(error).__name__}: {error} (traceback in {path})", file=console)
            _leave()


def inputs_by_scenario(named: Iterable[tuple[str, str]]) -> dict[str, dict[str, Path]]:
    """Return scenario -> input name -> file from a job's inputs, of which those named '<scenario>/<input>' are meant."""
    found: dict[str, dict[str, Path]] = {}
    for scenario, slash, name, path in ((*key.partition("/"), path) for key, path in named):
        if slash:
            found.setdefault(scenario, {})[name] = Path(path)
    return found


def one_thread() -> None:
    """Keep numerical libraries that are not loaded yet on one thread: jobs run side by side, and sums keep their order."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = "1"


@contextlib.contextmanager
def _only_handler(handler: logging.Handler) -> Iterator[None]:
    """Log through one handler, from INFO up; afterwards as before, as its file is closed then."""
    root = logging.getLogger()
    former, level = list(root.handlers), root.level
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.handlers[:] = former
        root.setLevel(level)


def _leave() -> None:
    raise SystemExit(1)
