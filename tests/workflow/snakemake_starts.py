"""Starts of Snakemake from a process that has imported it: most of a dry run's time is that import.

Each start is a fork, with the working directory, the output and the exit of a process of its own. As a program: the
process that forks. A line of standard input is a start; lines of standard output are the number of its process, then
its status.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

IMPORTED = (
    *("snakemake.cli", "snakemake.api", "snakemake.workflow", "snakemake.report", "snakemake.storage"),
    *("docutils.core", "jsonschema", "nbformat", "omegaconf", "requests", "smart_open", "yte"),
)
OF_THE_TEST = "PYTEST_CURRENT_TEST"


class Starts:
    """Runs Snakemake. The first start in an environment is a new process, as some have but one."""

    def __init__(self) -> None:
        self._forking: dict[frozenset[tuple[str, str]], subprocess.Popen[bytes] | None] = {}
        atexit.register(self.end)

    def end(self) -> None:
        """End the processes that fork."""
        for forking in filter(None, self._forking.values()):
            forking.stdin.close()
            forking.wait()

    def run(self, command: Sequence[str], folder: Path, seconds: float | None) -> tuple[int, str]:
        """Run `python -m snakemake ...` in a folder for at most some seconds; returns the status and what was printed
        to standard output, then to standard error.
        """
        environment = frozenset((name, value) for name, value in os.environ.items() if name != OF_THE_TEST)
        if environment not in self._forking or list(command[:3]) != [sys.executable, "-m", "snakemake"]:
            self._forking.setdefault(environment, None)
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
            return done.returncode, done.stdout + done.stderr
        forking = self._forking[environment]
        if forking is None:
            program = [sys.executable, __file__]
            forking = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
            self._forking[environment] = forking
        sys.audit("subprocess.Popen", command[0], list(command), str(folder), None)  # for who counts processes
        with tempfile.TemporaryDirectory() as scratch:
            printed = [Path(scratch, name) for name in ("out", "err")]
            asked = {"words": list(command[3:]), "folder": str(folder), "printed": list(map(str, printed))}
            forking.stdin.write(f"{json.dumps(asked)}\n".encode())
            number = int(forking.stdout.readline())
            if not select.select([forking.stdout], [], [], seconds)[0]:
                os.kill(number, signal.SIGKILL)
                forking.stdout.readline()
                raise subprocess.TimeoutExpired(list(command), seconds)
            status = int(forking.stdout.readline())
            return status, "".join(file.read_text() for file in printed)


def wait_for_a_start() -> Mapping[str, object]:
    """Fork at each line of standard input; returns in the fork, with what the line says."""
    for line in iter(sys.stdin.buffer.raw.readline, b""):
        number = os.fork()
        if not number:
            return json.loads(line)
        os.write(1, f"{number}\n".encode())
        status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        os.write(1, f"{status}\n".encode())
    os._exit(0)


def begin(asked: Mapping[str, object]) -> None:
    """Make of a fork what `python -m snakemake` would be in its folder."""
    os.chdir(asked["folder"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, name in zip((1, 2), asked["printed"], strict=True):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), stream)
    sys.path[0] = asked["folder"]
    sys.argv = [importlib.util.find_spec("snakemake.__main__").origin, *asked["words"]]


if __name__ == "__main__":
    for imported in IMPORTED:
        with suppress(ModuleNotFoundError):
            importlib.import_module(imported)
    begin(wait_for_a_start())
    sys.modules["snakemake.cli"].main()
