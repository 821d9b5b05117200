"""Conservative backfilling (Mu'alem and Feitelson 2001): every job has a reservation, which no other job ever moves to
a later date.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from batsim.batsim import Job

from schedlab.batsim.schedulers.availability import Availability
from schedlab.batsim.schedulers.job_columns import JobColumns
from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler


class Conservative(QueueScheduler):
    """Conservative backfilling: each job gets on arrival the earliest reservation that moves no other one; reservations
    are brought forward when a job ends early.

    A job starts at its reservation or before. If machines become unavailable or available again, all reservations are
    made again in the order of arrival.
    """

    needs_walltime: ClassVar = "by which conservative backfilling reserves hosts"

    def onSimulationBegins(self) -> None:
        """Begin with an empty queue and an empty plan."""
        super().onSimulationBegins()
        self.waiting = JobColumns(("hosts", "walltime", "start"))  # in the order of arrival
        self.plan = Availability(self.bs.time(), self.hosts)
        self._ends: dict[str, float] = {}
        self._opened: list[tuple[float, float]] = []  # spans in which hosts were freed
        self._stale = False

    def enqueue(self, job: Job) -> None:
        """Append the job; `schedule` reserves hosts for it."""
        self.waiting.insert(len(self.waiting), job, (job.requested_resources, job.requested_time, np.inf))

    def ended(self, job: Job) -> None:
        """Free the rest of an ended job's time in the plan."""
        end = self._ends.pop(job.id)
        if end > self.bs.time():
            self.plan.occupy(self.bs.time(), end, -self.usable(job))
            self._opened.append((self.bs.time(), end))

    def capacity_changed(self) -> None:
        """Note that the plan is out of date, because machines became unavailable or available again."""
        super().capacity_changed()
        self._stale = True

    def schedule(self) -> None:
        """Bring reservations forward, reserve for jobs without a reservation, and start the jobs whose time has
        come.
        """
        now = self.bs.time()
        if self._stale:
            self._plan_anew(now)
        self.plan.advance(now)
        if self._opened:
            # afterwards each reservation begins now or at the end of another job, and this end wakes the scheduler
            self.plan.bring_forward(self._opened, *self.waiting.table())
            self._opened.clear()
        for at in (self.waiting.row("start") == np.inf).nonzero()[0]:
            hosts, walltime, _ = self.waiting.table()[:, at]
            self.waiting.row("start")[at] = self.plan.reserve(int(hosts), float(walltime))
        self._stale = False
        self._start_due(now)

    def _plan_anew(self, now: float) -> None:
        self.plan = Availability(now, self.hosts - len(self.unavailable))
        self._opened.clear()
        for job_id, end in self._ends.items():
            self.plan.occupy(now, end, self.usable(self.bs.jobs[job_id]))
        self.waiting.row("start")[:] = np.inf

    def _start_due(self, now: float) -> None:
        """Start the jobs whose reservation begins; a job whose hosts are reported as free later starts then."""
        started = 0
        for due in (self.waiting.row("start") <= now).nonzero()[0]:
            at = int(due) - started
            job = self.waiting.jobs[at]
            if job.requested_resources > len(self.free):
                continue
            _, walltime, start = self.waiting.table()[:, at]
            if start < now:
                self.plan.occupy(start, start + walltime, -job.requested_resources)
                self.plan.occupy(now, now + walltime, job.requested_resources)
            self._ends[job.id] = now + job.requested_time
            self.waiting.remove(at)
            self.start(job)
            started += 1
