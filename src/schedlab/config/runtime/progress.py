"""The console of a run. When a job ends, it shows a line with the number of finished and of all jobs, the job's time,
and an estimate of the remaining time. A terminal also shows a line with the current state of the run.

This module reads Snakemake's log records, whose attribute `event` names their subject, without importing Snakemake; the
Snakefile attaches it to Snakemake's handler. Snakemake's own log file of a run is still complete.
"""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

import psutil

# Events that Snakemake logs for each job, replaced here by one line. Errors, warnings and the table of jobs are shown
# unchanged.
HIDDEN = frozenset({"job_info", "job_started", "group_info", "progress", "shellcmd"})
CHATTER = ("Select jobs to execute",)
SHORT = ("{done}/{total} done, {running} running", ", ", "CPU {cpu:.0f} %, memory {used:.1f}/{whole:.1f} GB")
SHORTEST = ("{done}/{total}, {running} running", ", ", "CPU {cpu:.0f} %, {used:.0f}/{whole:.0f} GB")
FORMS = (  # of the line of a terminal, the longest first: columns of the bar, jobs, words before the time left, load
    (
        20,
        "{done} of {total} jobs done, {running} running",
        ", about ",
        "CPU {cpu:.0f} %, memory {used:.1f} of {whole:.1f} GB",
    ),
    (20, *SHORT),
    (10, *SHORT),
    (10, *SHORTEST),
    (5, *SHORTEST),
    (2, *SHORTEST),
)
ERASE = "\r\033[K"  # returns to the beginning of the terminal's line and erases it


@dataclass
class _Running:
    """A started job: its workflow rule, its name, and its start (seconds of the clock)."""

    rule: str
    name: str
    since: float


class JobLines(logging.Formatter):
    """Formats records as `usual` does, except the end of a job: `[ 2/14] learn toy/hill/seed-0: 3 s, about 2 min left`.

    idle   returns the workflow rules that run nothing (targets); estimates ignore them
    keep   is called with the state of the run (`state`) whenever it changes
    clock  returns monotonic seconds
    """

    def __init__(
        self,
        usual: logging.Formatter,
        idle: Callable[[], Collection[str]],
        keep: Callable[[Mapping[str, Any]], None] = lambda state: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self.usual, self.idle, self.keep, self.clock = usual, idle, keep, clock
        self.failed: list[dict[str, Any]] = []
        self.total, self.done = 0, 0
        self.began: float | None = None
        self.running: dict[object, _Running] = {}
        self.waiting: Counter[str] = Counter()
        self.times: dict[str, list[float]] = defaultdict(list)
        self.line: LiveLine | None = None
        self.lock = threading.RLock()  # another thread draws the line

    def filter(self, record: logging.LogRecord) -> bool:
        """Process a record; return whether it is shown."""
        with self.lock:
            return self._note(record)

    def _note(self, record: logging.LogRecord) -> bool:
        event = str(getattr(record, "event", None) or "")
        if event == "run_info":
            self._plan(vars(record)["stats"])
        elif event == "job_info":
            self._start(record)
        elif event == "job_error":
            self._fail(record)
        return event not in HIDDEN and not str(record.msg).startswith(CHATTER)

    def format(self, record: logging.LogRecord) -> str:
        with self.lock:
            text = self._text(record)
        # Snakemake prints neither an empty text nor "None"
        return ERASE + text if self.line and self.line.shown and text not in ("", "None", None) else text

    def _text(self, record: logging.LogRecord) -> str:
        job = vars(record).get("job_id")
        if str(getattr(record, "event", "")) != "job_finished" or job not in self.running:
            return self.usual.format(record)
        return self._end(self.running.pop(job))

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the last job ends; None if no job has ended yet.

        A job is expected to take the mean time of its workflow rule (of all rules if none of its jobs has ended). The
        number of parallel jobs is expected to stay the same.
        """
        ended = [seconds for times in self.times.values() for seconds in times]
        if not ended or self.began is None:
            return None
        now, mean = self.clock(), sum(ended) / len(ended)
        expected = {rule: sum(times) / len(times) for rule, times in self.times.items()}
        work = sum(count * expected.get(rule, mean) for rule, count in self.waiting.items())
        under_way = [
            (now - job.since, expected.get(job.rule, mean)) for job in self.running.values() if job.rule in self.waiting
        ]
        work -= sum(min(spent, usual) for spent, usual in under_way)
        busy = sum(ended) + sum(spent for spent, _ in under_way)
        return work * (now - self.began) / busy if busy > 0 else 0.0

    def state(self) -> dict[str, Any]:
        """Return the state of the run: the numbers of all and of finished jobs, the running jobs with their seconds,
        the failed ones with their log files, and the remaining seconds (None: unknown).
        """
        with self.lock:
            return self._state()

    def _state(self) -> dict[str, Any]:
        now = self.clock()
        running = [{"job": job.name, "seconds": now - job.since} for job in self.running.values()]
        numbers = {"total": self.total, "done": self.done, "seconds_left": self.seconds_left()}
        return {**numbers, "running": running, "failed": self.failed}

    def _plan(self, stats: Mapping[str, int]) -> None:
        self.total = stats["total"]
        self.waiting = Counter(
            {rule: count for rule, count in stats.items() if rule != "total" and rule not in self.idle()}
        )
        self.keep(self.state())  # otherwise that of the run before would stay until the first job starts

    def _start(self, record: Any) -> None:
        now = self.clock()
        self.began = now if self.began is None else self.began
        self.running[record.jobid] = _Running(record.rule_name, job_name(record.rule_name, record.wildcards), now)
        self.keep(self.state())

    def _fail(self, record: Any) -> None:
        job = self.running.pop(vars(record).get("jobid"), None)
        if job is not None:  # Snakemake reports a failure twice
            self.failed.append({"job": job.name, "logs": [str(file) for file in vars(record).get("log") or ()]})
            self.keep(self.state())

    def _end(self, job: _Running) -> str:
        self.done += 1
        if job.rule in self.waiting:
            self.waiting[job.rule] -= 1
            self.times[job.rule].append(self.clock() - job.since)
        line = f"[{self.done:>{len(str(self.total))}}/{self.total}] {job.name}: {duration(self.clock() - job.since)}"
        left = self.seconds_left() if self.done < self.total else None
        self.keep(self.state())
        return line if left is None else f"{line}, about {duration(left)} left"


class LiveLine:
    """The last line of a terminal, drawn again every `pause` seconds: a bar, the numbers of finished, running and
    failed jobs, the remaining time, and the load of the machine. Nothing is drawn before the first job, or if the
    stream is not a terminal.

    state  returns the state of the run (JobLines.state)
    lock   held while other text is written to the stream, such as the lock of a handler
    """

    def __init__(
        self, stream: TextIO, state: Callable[[], Mapping[str, Any]], lock: Any = None, pause: float = 1.0
    ) -> None:
        self.stream, self.state, self.pause = stream, state, pause
        self.lock = lock or threading.RLock()
        self.shown = False
        self.ended = threading.Event()
        if is_live_terminal(stream):
            threading.Thread(target=self._draw_again, daemon=True).start()

    def _draw_again(self) -> None:
        while not self.ended.wait(self.pause):
            with self.lock:
                if not self.ended.is_set():
                    self.draw()

    def draw(self) -> None:
        """Draw the line with the present state of the run."""
        values = self.state()
        if values["total"]:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write(ERASE + live_text(values, psutil.cpu_percent(), psutil.virtual_memory(), width))
            self.stream.flush()
            self.shown = True

    def end(self) -> None:
        """Erase the line for good."""
        with self.lock:
            self.ended.set()
            if self.shown:
                self.stream.write(ERASE)
                self.stream.flush()
                self.shown = False


def is_live_terminal(stream: TextIO) -> bool:
    """Return whether a line of a stream can be overwritten."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def live_text(values: Mapping[str, Any], cpu: float, memory: Any, width: int) -> str:
    """Return the state of a run in one line: the longest form that fits in `width` columns, else the shortest one, cut.

    values  the state (JobLines.state); cpu: load of the machine's processors in percent; memory: as returned by psutil
    """
    numbers = {"done": values["done"], "total": values["total"], "running": len(values["running"]), "cpu": cpu}
    numbers |= {"used": (memory.total - memory.available) / 1e9, "whole": memory.total / 1e9}
    failed = f", {len(values['failed'])} failed" if values["failed"] else ""
    left = "" if values["seconds_left"] is None else f"{duration(values['seconds_left'])} left"
    text = ""
    for columns, jobs, about, load in FORMS:
        bar = f"[{'#' * (columns * values['done'] // values['total']):.<{columns}}]"
        text = f"{bar} {jobs}{failed}{about if left else ''}{left}; {load}".format(**numbers)
        if len(text) <= width:
            return text
    return text[:width]


def job_name(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return a job's workflow rule and object: 'learn toy/hill/seed-0'."""
    of = "/".join(f"seed-{value}" if key == "seed" else str(value) for key, value in wildcards.items())
    return f"{rule} {of}".rstrip()


def duration(seconds: float) -> str:
    """Return seconds in words, rounded to a useful precision: '3 s', '2 min', '1 h 20 min'."""
    if seconds < 90:
        return f"{round(seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
