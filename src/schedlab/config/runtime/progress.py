"""The console of a run: one line for each job that ends, with the number of jobs done and in all, its time, and an
estimate of the remaining time.

It reads the records that Snakemake logs (`event` says what a record is about) without knowing Snakemake; the Snakefile
attaches it to Snakemake's handler. The log file that Snakemake keeps of a run still holds everything.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

# Told for each job by Snakemake, and said here in one line; errors, warnings and the table of jobs pass as they are.
HIDDEN = frozenset({"job_info", "job_started", "group_info", "progress", "shellcmd"})
CHATTER = ("Select jobs to execute",)


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

    def filter(self, record: logging.LogRecord) -> bool:
        """Take note of a record; return whether it is shown."""
        event = str(getattr(record, "event", None) or "")
        if event == "run_info":
            self._plan(vars(record)["stats"])
        elif event == "job_info":
            self._start(record)
        elif event == "job_error":
            self._fail(record)
        return event not in HIDDEN and not str(record.msg).startswith(CHATTER)

    def format(self, record: logging.LogRecord) -> str:
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
