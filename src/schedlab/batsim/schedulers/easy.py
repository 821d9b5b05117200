"""EASY backfilling (Lifka 1995): the first job of the queue has a reservation; others may overtake it if they cannot
delay it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import Any, ClassVar

import numpy as np
from batsim.batsim import Job

from schedlab.batsim.schedulers.job_columns import JobColumns
from schedlab.batsim.schedulers.priorities import PRIORITIES
from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler
from schedlab.config.errors import UserError, did_you_mean

FEW = 16  # so many jobs are considered faster one by one than with arrays


class Easy(QueueScheduler):
    """EASY backfilling with the queue in the order of a priority (option `priority`, default first come first served).

    The first job's reservation is the earliest date (the *shadow*) at which, by the walltimes of the running jobs,
    enough hosts are free for it. Another job may start if it ends by the shadow, or if it takes only hosts that the
    first job does not need then (the *extra* hosts).
    """

    _standing: tuple[float, int] | None

    defaults: ClassVar = {"priority": "fcfs"}
    needs_walltime = "by which EASY backfilling computes the first job's reservation"

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options)
        name = self.options["priority"]
        if name not in PRIORITIES:
            raise UserError(f"unknown priority '{name}' of EASY", remedy=did_you_mean(str(name), PRIORITIES))
        self.priority = PRIORITIES[name]

    def onSimulationBegins(self) -> None:
        """Begin with an empty queue and nothing running."""
        super().onSimulationBegins()
        self.waiting = JobColumns(("hosts", "walltime", "submitted", "arrived", "score"))
        self.active: list[Job] = []  # running jobs in the order of their latest ends
        self._ends: list[float] = []  # these ends, in s
        self._end_of: dict[str, float] = {}
        self._arrivals = 0
        self._forget_pass()

    def enqueue(self, job: Job) -> None:
        """Insert the job by its score, behind jobs of equal score."""
        numbers = float(job.requested_resources), float(job.requested_time), float(job.submit_time)
        score = float(self.priority.score(*numbers, self.bs.time()))
        at, scores = len(self.waiting), self.waiting.row("score")
        if at and not scores[-1] <= score:
            at = int(scores.searchsorted(score, side="right"))
            self._forget_pass()
        self._arrivals += 1
        self.waiting.insert(at, job, (*numbers, self._arrivals, score))

    def schedule(self) -> None:
        """Start jobs from the front while they fit; then start others that cannot delay the first one that is left."""
        if self.priority.ages:
            self._sort_queue()
        while self.waiting.jobs and self.waiting.jobs[0].requested_resources <= len(self.free):
            self.start(self.waiting.remove(0))
            self._forget_pass()
        if len(self.waiting) > 1 and self.free:
            if self._standing is None:
                self._standing = self._reservation(self.waiting.jobs[0].requested_resources)
            self._backfill()

    def start(self, job: Job) -> None:
        """Start a job now and note the latest time at which it ends."""
        super().start(job)
        end = self.bs.time() + job.requested_time
        self._end_of[job.id] = end
        at = bisect_right(self._ends, end)
        self._ends.insert(at, end)
        self.active.insert(at, job)

    def ended(self, job: Job) -> None:
        """Forget an ended job."""
        self._forget_pass()
        at = bisect_left(self._ends, self._end_of.pop(job.id))
        while self.active[at] is not job:
            at += 1
        del self._ends[at], self.active[at]

    def _reservation(self, needed: int) -> tuple[float, int]:
        """Return the shadow (s) and the number of extra hosts for a first job of `needed` hosts that does not fit now.

        If even the ends of all running jobs do not free enough hosts (machines are unavailable), the shadow is
        infinite: no other job can delay the first one.
        """
        free, enough = len(self.free), 0
        for job in self.active:
            free += self.usable(job)
            if free >= needed:
                break
            enough += 1
        else:
            return math.inf, 0
        shadow = max(self._ends[enough], self.bs.time())
        by_then = bisect_right(self._ends, shadow)
        return shadow, free + sum(map(self.usable, self.active[enough + 1 : by_then])) - needed

    def capacity_changed(self) -> None:
        """Note that machines became unavailable or available, so that the first job's reservation changes."""
        super().capacity_changed()
        self._forget_pass()

    def _forget_pass(self) -> None:
        """Let the next pass consider every waiting job.

        Between two calls of this, time only passes and free hosts only become fewer: a job that was refused would be
        refused again.
        """
        self._standing = None  # the first job's reservation: shadow, extra
        self._considered = 1  # number of jobs at the front that were refused

    def _backfill(self) -> None:
        """Walk along the queue behind the first job and start each job that fits and cannot delay it."""
        now = self.bs.time()
        assert self._standing is not None
        shadow, extra = self._standing
        at = self._next_to_start(self._considered, now, shadow, extra)
        while at is not None:
            job = self.waiting.remove(at)
            if now + job.requested_time > shadow:
                extra -= job.requested_resources
            self.start(job)
            at = self._next_to_start(at, now, shadow, extra)
        self._standing = shadow, extra
        self._considered = len(self.waiting)

    def _next_to_start(self, first: int, now: float, shadow: float, extra: int) -> int | None:
        """Return the position of the first job, from `first` on, that fits and cannot delay the reservation."""
        free, jobs = len(self.free), self.waiting.jobs
        if len(jobs) - first <= FEW:
            for at in range(first, len(jobs)):
                hosts = jobs[at].requested_resources
                if hosts <= free and (hosts <= extra or now + jobs[at].requested_time <= shadow):
                    return at
            return None
        wanted, walltime = self.waiting.table()[:2, first:]
        may = (wanted <= free) & ((now + walltime <= shadow) | (wanted <= extra))
        ahead = int(may.argmax())
        return first + ahead if may[ahead] else None

    def _sort_queue(self) -> None:
        self._forget_pass()
        hosts, walltime, submitted, arrived, score = self.waiting.table()
        score[:] = self.priority.score(hosts, walltime, submitted, self.bs.time())
        self.waiting.reorder(np.lexsort((arrived, score)))
