"""The console of a run: one line for each job that ends, with the number of jobs done and in all, its time, and an
estimate of the remaining time; in a terminal also a line that shows how far the run is now.

It reads the records that Snakemake logs (`event` says what a record is about) without knowing Snakemake; the Snakefile
attaches it to Snakemake's handler. The log file that Snakemake keeps of a run still holds everything.
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

# Told for each job by Snakemake, and said here in one line; errors, warnings and the table of jobs pass as they are.
HIDDEN = frozenset({"job_info", "job_started", "group_info", "progress", "shellcmd"})
CHATTER = ("Select jobs to execute",)
BAR = 20  # columns of the bar
ERASE = "\r\033[K"  # what a terminal shows in its line


@dataclass
class _Running:
    """A job that has been started: its workflow rule, its name, and when (seconds of the clock)."""

    rule: str
    name: str
    since: float


class JobLines(logging.Formatter):
    """Formats records as `usual` does, except that of a job's end: `[ 2/14] learn toy/hill/seed-0: 3 s, about 2 min
    left`.

    idle   gives the workflow rules that run nothing (targets); they take no time and count for no estimate
    keep   gets the state of the run (`state`) whenever it changes
    clock  seconds that only grow
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
        self.lock = threading.RLock()  # the line is drawn by a thread of its own

    def filter(self, record: logging.LogRecord) -> bool:
        """Take note of a record; return whether it is shown."""
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
        # Snakemake writes neither an empty text nor "None"
        return ERASE + text if self.line and self.line.shown and text not in ("", "None", None) else text

    def _text(self, record: logging.LogRecord) -> str:
        job = vars(record).get("job_id")
        if str(getattr(record, "event", "")) != "job_finished" or job not in self.running:
            return self.usual.format(record)
        return self._end(self.running.pop(job))

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the last job ends; None where nothing has ended yet.

        A job takes what those of its workflow rule took (of any where none has ended), and as many go on at once as
        have up to now.
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
        """Return the state of the run: jobs in all and done, those under way with their seconds, those that failed with
        their log files, and the seconds that are left (None: unknown).
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

    def _start(self, record: Any) -> None:
        now = self.clock()
        self.began = now if self.began is None else self.began
        self.running[record.jobid] = _Running(record.rule_name, job_name(record.rule_name, record.wildcards), now)
        self.keep(self.state())

    def _fail(self, record: Any) -> None:
        job = self.running.pop(vars(record).get("jobid"), None)
        if job is not None:  # Snakemake says it twice
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
    """The last line of a terminal, drawn again every `pause` seconds: a bar, jobs done, running and failed, the time
    left, and how busy the machine is. Nothing is drawn before the first job, and where the stream is no terminal.

    state  gives the state of the run (JobLines.state)
    lock   what is held while something else is written to the stream, as the lock of a handler
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
        """Draw the line as the run is now."""
        values = self.state()
        if values["total"]:
            text = live_text(values, psutil.cpu_percent(), psutil.virtual_memory())
            self.stream.write(ERASE + text[: shutil.get_terminal_size().columns - 1])
            self.stream.flush()
            self.shown = True

    def end(self) -> None:
        """Erase the line; it is not drawn again."""
        with self.lock:
            self.ended.set()
            if self.shown:
                self.stream.write(ERASE)
                self.stream.flush()
                self.shown = False


def is_live_terminal(stream: TextIO) -> bool:
    """Return whether a line of a stream can be drawn again."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def live_text(values: Mapping[str, Any], cpu: float, memory: Any) -> str:
    """Return the state of a run in one line.

    values  the state (JobLines.state); cpu: percent of the machine's processors that are busy; memory: as of psutil
    """
    filled = BAR * values["done"] // values["total"]
    parts = [f"{values['done']} of {values['total']} jobs done", f"{len(values['running'])} running"]
    parts += [f"{len(values['failed'])} failed"] if values["failed"] else []
    parts += [f"about {duration(values['seconds_left'])} left"] if values["seconds_left"] is not None else []
    used, whole = memory.total - memory.available, memory.total
    return (
        f"[{'#' * filled:.<{BAR}}] {', '.join(parts)}; CPU {cpu:.0f} %, memory {used / 1e9:.1f} of {whole / 1e9:.1f} GB"
    )


def job_name(rule: str, wildcards: Mapping[str, str]) -> str:
    """Return a job's workflow rule and object: 'learn toy/hill/seed-0'."""
    of = "/".join(f"seed-{value}" if key == "seed" else str(value) for key, value in wildcards.items())
    return f"{rule} {of}".rstrip()


def duration(seconds: float) -> str:
    """Return seconds in words, rounded to what matters: '3 s', '2 min', '1 h 20 min'."""
    if seconds < 90:
        return f"{round(seconds)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
