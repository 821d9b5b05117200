"""Conservative backfilling (Mu'alem and Feitelson 2001): every job has a reservation, and none is ever moved later by another."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from batsim.batsim import Job

from schedlab.batsim.schedulers.job_columns import JobColumns
from schedlab.batsim.schedulers.queue_scheduler import QueueScheduler


class Availability:
    """How many hosts are free from now on: a step function of time.

    `free[i]` holds from `times[i]` until `times[i + 1]`, the last for ever.

    times   ascending dates in s, shape (steps,); the first is the present
    free    numbers of hosts, shape (steps,)
    """

    def __init__(self, now: float, hosts: int) -> None:
        self.times = np.array([now])
        self.free = np.array([hosts])

    def advance(self, now: float) -> None:
        """Forget what lies before `now`."""
        past = int(self.times.searchsorted(now, side="right")) - 1
        if past > 0:
            self.times, self.free = self.times[past:], self.free[past:]
        self.times[0] = now

    def earliest(self, hosts: int, duration: float) -> float:
        """Return the first date from which `hosts` hosts are free for `duration` seconds on end; infinity where there is none."""
        short = (self.free < hosts).nonzero()[0]
        if not len(short):
            return float(self.times[0])
        ends = np.append(self.times[short], np.inf)  # of the stretches before, between and after the steps with too few hosts
        begins = np.full(len(ends), self.times[0])
        after = short + 1
        begins[1:] = self.times[np.minimum(after, len(self.times) - 1)]
        if after[-1] == len(self.times):
            begins[-1] = np.inf
        wide = (begins + duration <= ends) & (begins < np.inf)
        return float(begins[wide.argmax()]) if wide.any() else np.inf

    def occupy(self, begin: float, end: float, hosts: int) -> None:
        """Take hosts for a stretch of time; a negative number gives them back."""
        first, last = self._step(begin), self._step(end)
        self.free[first:last] -= hosts

    def most_free(self, begin: float, end: float) -> int:
        """Return the largest number of hosts that is free at any moment of a stretch of time."""
        first = max(int(self.times.searchsorted(begin, side="right")) - 1, 0)
        return int(self.free[first : int(self.times.searchsorted(end))].max())

    def join_equal_steps(self) -> None:
        """Drop steps at which nothing changes."""
        changes = np.append(True, self.free[1:] != self.free[:-1])
        self.times, self.free = self.times[changes], self.free[changes]

    def _step(self, date: float) -> int:
        """Return the index of the step that begins at `date`, after making one where there is none."""
        if date <= self.times[0]:
            return 0
        at = int(self.times.searchsorted(date))
        if at == len(self.times) or self.times[at] != date:
            self.times = np.insert(self.times, at, date)
            self.free = np.insert(self.free, at, self.free[at - 1])
        return at


class Conservative(QueueScheduler):
    """Give each job on arrival the earliest reservation that moves no other; bring reservations forward when a job ends early.

    A job starts at its reservation or before. Where machines are withdrawn, all reservations are made anew in the order of arrival.
    """

    needs_walltime: ClassVar = "by which conservative backfilling reserves hosts"

    def onSimulationBegins(self) -> None:
        """Begin with an empty queue and an empty plan."""
        super().onSimulationBegins()
        self.waiting = JobColumns(("hosts", "walltime", "start"))  # in the order of arrival
        self.plan = Availability(self.bs.time(), self.hosts)
        self._ends: dict[str, float] = {}
        self._opened: list[tuple[float, float]] = []  # stretches in which hosts were given back
        self._stale = False

    def enqueue(self, job: Job) -> None:
        """Put the job last; `schedule` reserves hosts for it."""
        self.waiting.insert(len(self.waiting), job, (job.requested_resources, job.requested_time, np.inf))

    def ended(self, job: Job) -> None:
        """Give the rest of an ended job's stretch back to the plan."""
        end = self._ends.pop(job.id)
        if end > self.bs.time():
            self.plan.occupy(self.bs.time(), end, -self.usable(job))
            self._opened.append((self.bs.time(), end))

    def capacity_changed(self) -> None:
        """Note that the plan counts machines that are gone, or lacks some that are back."""
        super().capacity_changed()
        self._stale = True

    def schedule(self) -> None:
        """Bring reservations forward, reserve for those who have none, start those whose time has come."""
        now = self.bs.time()
        if self._stale:
            self._plan_anew(now)
        self.plan.advance(now)
        if self._opened:
            self.plan.join_equal_steps()
            self._bring_forward()
        for at in (self.waiting.row("start") == np.inf).nonzero()[0]:
            self._reserve(at)
        self._stale = False
        self._start_due(now)

    def _reserve(self, at: int) -> None:
        hosts, walltime, start = self.waiting.table()[:, at]
        start = self.plan.earliest(hosts, walltime)
        self.waiting.row("start")[at] = start
        if start < np.inf:
            self.plan.occupy(start, start + walltime, int(hosts))

    def _bring_forward(self) -> None:
        """Move reservations, in the order of arrival, to earlier dates that early ends have opened, until none can move.

        A reservation is taken out and made anew: its old place is free, so it cannot become later. Only a job that would fit into a
        stretch where hosts were given back, and that is planned behind the stretch's begin, can move; a job that moves opens another
        stretch. At the end each reservation begins now or where some other job ends, and that end will wake the scheduler.
        """
        hosts, walltimes, starts = self.waiting.table()
        while self._opened:
            begin, end = self._opened.pop(0)
            at, room = -1, self.plan.most_free(begin, end)
            while True:
                may_move = (hosts[at + 1 :] <= room) & (starts[at + 1 :] > begin) & (starts[at + 1 :] < np.inf)
                ahead = int(may_move.argmax()) if may_move.size else 0
                if not may_move.size or not may_move[ahead]:
                    break
                at += 1 + ahead
                start = float(starts[at])
                self.plan.occupy(start, start + walltimes[at], -int(hosts[at]))
                self._reserve(at)
                if starts[at] < start:
                    self._opened.append((start, start + float(walltimes[at])))
                    room = self.plan.most_free(begin, end)

    def _plan_anew(self, now: float) -> None:
        self.plan = Availability(now, self.hosts - len(self.unavailable))
        self._opened.clear()
        for job_id, end in self._ends.items():
            self.plan.occupy(now, end, self.usable(self.bs.jobs[job_id]))
        self.waiting.row("start")[:] = np.inf

    def _start_due(self, now: float) -> None:
        """Start the jobs whose reservation begins; one whose hosts are reported free late starts when they are."""
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
