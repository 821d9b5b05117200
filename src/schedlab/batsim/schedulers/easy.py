"""EASY backfilling (Lifka 1995): the first job of the queue has a reservation; others may overtake it if they cannot
delay it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from batsim.batsim import Job

from schedlab.batsim.schedulers.job_columns import JobColumns
from schedlab.batsim.schedulers.priorities import PRIORITIES
from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler
from schedlab.config.errors import UserError, did_you_mean


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
        self.active = JobColumns(("end", "hosts"))  # in the order of their latest ends
        self._ends: dict[str, float] = {}
        self._arrivals = 0
        self._forget_pass()

    def enqueue(self, job: Job) -> None:
        """Insert the job by its score, behind jobs of equal score."""
        numbers = float(job.requested_resources), float(job.requested_time), float(job.submit_time)
        score = float(self.priority.score(*numbers, self.bs.time()))
        at = int(self.waiting.row("score").searchsorted(score, side="right"))
        if at < len(self.waiting):
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
        self._ends[job.id] = end
        at = int(self.active.row("end").searchsorted(end, side="right"))
        self.active.insert(at, job, (end, job.requested_resources))

    def ended(self, job: Job) -> None:
        """Forget an ended job."""
        self._forget_pass()
        at = int(self.active.row("end").searchsorted(self._ends.pop(job.id)))
        while self.active.jobs[at] is not job:
            at += 1
        self.active.remove(at)

    def _reservation(self, needed: int) -> tuple[float, int]:
        """Return the shadow (s) and the number of extra hosts for a first job of `needed` hosts that does not fit now.

        If even the ends of all running jobs do not free enough hosts (machines are unavailable), the shadow is
        infinite: no other job can delay the first one.
        """
        ends = self.active.row("end")
        free = len(self.free) + self._returning().cumsum()
        enough = int(free.searchsorted(needed))
        if enough == len(free):
            return np.inf, 0
        shadow = max(float(ends[enough]), self.bs.time())
        by_then = int(ends.searchsorted(shadow, side="right"))
        return shadow, int(free[by_then - 1]) - needed

    def _returning(self) -> np.ndarray:
        """Return how many hosts each running job frees at its end, shape (running,), without hosts that have become
        unavailable.
        """
        if not self.unavailable:
            return self.active.row("hosts")
        return np.array([self.usable(job) for job in self.active.jobs], float)

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
        at = self._considered
        while self.free and at < len(self.waiting):
            if at == len(self.waiting) - 1:  # one new job, the most frequent case, is faster without arrays
                if not self._may_start(self.waiting.jobs[at], now, shadow, extra):
                    break
            else:
                hosts, walltime = self.waiting.table()[:2, at:]
                may = (hosts <= len(self.free)) & ((now + walltime <= shadow) | (hosts <= extra))
                ahead = int(may.argmax())
                if not may[ahead]:
                    break
                at += ahead
            job = self.waiting.remove(at)
            if now + job.requested_time > shadow:
                extra -= job.requested_resources
            self.start(job)
        self._standing = shadow, extra
        self._considered = len(self.waiting)

    def _may_start(self, job: Job, now: float, shadow: float, extra: int) -> bool:
        hosts: int = job.requested_resources
        ends: float = now + job.requested_time
        return hosts <= len(self.free) and (ends <= shadow or hosts <= extra)

    def _sort_queue(self) -> None:
        self._forget_pass()
        hosts, walltime, submitted, arrived, score = self.waiting.table()
        score[:] = self.priority.score(hosts, walltime, submitted, self.bs.time())
        self.waiting.reorder(np.lexsort((arrived, score)))
