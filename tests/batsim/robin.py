"""Stands in for robin, the tool with which Batsim's own tests start `batsim` and a scheduler and wait for both."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import suite_schedulers

from schedlab.cli.main import main

COMMAND = [sys.executable, "-c", "import sys; from schedlab.cli.main import batsim; sys.exit(batsim())"]
SIMULATION_LIMIT, AFTER_SUCCESS = 30.0, 10.0  # s, robin's


@dataclass(frozen=True)
class Ended:
    """How `batsim` and the scheduler ended (`scheduler`: empty where well), and what `batsim` logged."""

    status: int
    scheduler: str
    log: str

    def messages(self, direction: str = "Sending") -> Iterator[dict[str, Any]]:
        """The messages in the log, which stand there between quotes as Batsim writes them."""
        for line in self.log.splitlines():
            if f"] {direction} '" in line:
                yield json.loads(line.split(f"] {direction} '", 1)[1].removesuffix("'"))

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The data of all events of a kind that were sent to the scheduler."""
        return [event["data"] for said in self.messages() for event in said["events"] if event["type"] == kind]


def in_processes(
    folder: Path,
    arguments: Sequence[str],
    scheduler: Sequence[str] | None,
    limit: float = SIMULATION_LIMIT,
    after_success: float = AFTER_SUCCESS,
    batsim: Sequence[str] = COMMAND,
) -> Ended:
    """Start both, wait for the end of both, and fail where one ends badly, the whole takes longer than `limit` seconds,
    or one takes longer than `after_success` seconds once the other has ended well. Both are ended on leaving.
    """
    commands = [[*batsim, *arguments], *([list(scheduler)] if scheduler else [])]
    with contextlib.ExitStack() as started:
        processes, logs = [], []
        for number, command in enumerate(commands):
            logs.append(folder / f"log{number}")
            output = started.enter_context(logs[-1].open("wb"))
            processes.append(subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT))
            started.callback(processes[-1].wait)
            started.callback(processes[-1].kill)
        end = time.monotonic() + limit
        statuses: list[int | None] = [None] * len(processes)
        while None in statuses and not any(statuses):
            if time.monotonic() > end:
                break
            time.sleep(0.01)
            before, statuses = statuses, [process.poll() for process in processes]
            if 0 in statuses and 0 not in before:
                end = min(end, time.monotonic() + after_success)
    said = [log.read_text(errors="replace") for log in logs]
    ended_badly = len(processes) > 1 and statuses[1] != 0
    failure = f"status {statuses[1]}: {said[1][-2000:]}" if ended_badly else ""
    return Ended(-1 if statuses[0] is None else statuses[0], failure, said[0])


def in_threads(folder: Path, arguments: Sequence[str], scheduler: str | None, options: dict[str, Any]) -> Ended:
    """The same in this process, the scheduler in a thread and at a real socket: some thousandths of a second each."""
    failure: list[str] = []
    stop = threading.Event()
    endpoint = f"ipc://{folder}/s"

    def converse() -> None:
        try:
            suite_schedulers.converse(endpoint, str(scheduler), options, f"{folder}/sched", stop)
        except suite_schedulers.Stopped:
            failure.append("batsim left")
        except BaseException as error:  # what ended the scheduler is looked at by the test
            failure.append(f"{type(error).__name__}: {error}")

    thread = threading.Thread(target=converse, daemon=True)
    if scheduler is not None:
        thread.start()
    lines = _Lines()
    logger = logging.getLogger("schedlab.cli.batsim")
    logger.addHandler(lines)
    try:
        limit = ["-s", endpoint, "--scheduler-limit", "10"]
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            status = main(["sim", "batsim", *arguments, *limit])
    finally:
        logger.removeHandler(lines)
    if scheduler is not None:
        thread.join(AFTER_SUCCESS if status == 0 else 0.0)
        stop.set()
        thread.join(AFTER_SUCCESS)
    refused = [line for line in errors.getvalue().splitlines() if line.startswith("error: ")]
    return Ended(status, "; ".join(failure), "\n".join(lines.lines) + "\n" + "\n".join(refused))


class _Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
