"""The common base of the built-in schedulers: it manages free hosts, starts jobs, rejects jobs that can never run, and
handles machines that become unavailable.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, ClassVar

from batsim.batsim import BatsimScheduler, Job
from procset import ProcSet

from schedlab.config.errors import UserError, did_you_mean


class HostSet:
    """Host ids as disjoint closed intervals in ascending order; its text is Batsim's notation of a resource set ('0-3 5
    7-9').
    """

    __slots__ = ("_firsts", "_lasts", "_size")

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._size = 0
        for first, last in intervals:
            self._insert([first], [last])

    def __len__(self) -> int:
        return self._size

    def __str__(self) -> str:
        return " ".join([str(a) if a == b else f"{a}-{b}" for a, b in zip(self._firsts, self._lasts, strict=True)])

    def intervals(self) -> list[tuple[int, int]]:
        """Return the (first, last) pairs in ascending order."""
        return list(zip(self._firsts, self._lasts, strict=True))

    def take_lowest(self, count: int) -> HostSet:
        """Remove the `count` lowest ids and return them as a new set. Raises ValueError if there are fewer."""
        if count > self._size:
            raise ValueError(f"{count} hosts asked of {self._size}")
        firsts, lasts = self._firsts, self._lasts
        whole, missing = 0, count
        while missing and (length := lasts[whole] - firsts[whole] + 1) <= missing:
            missing -= length
            whole += 1
        taken = HostSet()
        taken._firsts, taken._lasts, taken._size = firsts[:whole], lasts[:whole], count
        del firsts[:whole], lasts[:whole]
        if missing:
            taken._firsts.append(firsts[0])
            taken._lasts.append(firsts[0] + missing - 1)
            firsts[0] += missing
        self._size -= count
        return taken

    def add(self, other: HostSet) -> None:
        """Add the ids of another set. Raises ValueError if one of them is in the set already."""
        self._insert(other._firsts, other._lasts)

    def _insert(self, new_firsts: list[int], new_lasts: list[int]) -> None:
        firsts, lasts = self._firsts, self._lasts
        for first, last in zip(new_firsts, new_lasts, strict=True):
            at = bisect_left(firsts, first)  # place of the interval to the right; that to the left is at - 1
            left = lasts[at - 1] if at else -2
            right = firsts[at] if at < len(firsts) else last + 2
            if left >= first or right <= last:
                raise ValueError(f"hosts {first}-{last} are in the set already")
            if left == first - 1:
                if right == last + 1:
                    lasts[at - 1] = lasts.pop(at)
                    del firsts[at]
                else:
                    lasts[at - 1] = last
            elif right == last + 1:
                firsts[at] = first
            else:
                firsts.insert(at, first)
                lasts.insert(at, last)
            self._size += last - first + 1


class QueueScheduler(BatsimScheduler):
    """A scheduler that queues arrived jobs and decides once per message, after all its events.

    A subclass defines in `enqueue` how a job waits and in `schedule` which waiting jobs start now, on the free hosts
    with the lowest ids. Jobs that request more hosts than the platform has are rejected on arrival.
    `defaults` are the scheduler's options with their default values. Raises UserError for any other option.
    """

    defaults: ClassVar[dict[str, Any]] = {}
    needs_walltime: ClassVar[str] = ""
    """Why the scheduler cannot work without the jobs' walltimes; empty where it can."""

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        given = dict(options or {})
        super().__init__(given)
        for name in given:
            if name not in self.defaults:
                raise UserError(
                    f"unknown option '{name}' of {type(self).__name__}", remedy=did_you_mean(name, self.defaults)
                )
        self.options: dict[str, Any] = {**self.defaults, **given}

    def enqueue(self, job: Job) -> None:
        """Add an arrived job to the queue."""
        raise NotImplementedError

    def schedule(self) -> None:
        """Start the waiting jobs that can start now."""
        raise NotImplementedError

    def ended(self, job: Job) -> None:
        """Handle the end of a job, just before its hosts are freed."""

    def start(self, job: Job) -> None:
        """Start a job now on the free hosts with the lowest ids."""
        job.allocation = self.running[job.id] = self.free.take_lowest(job.requested_resources)
        self.bs.execute_job(job)

    def usable(self, job: Job) -> int:
        """Return how many of a running job's hosts can be used after it: all but those now unavailable."""
        hosts = self.running[job.id]
        return len(_proc_set(hosts) - self.unavailable) if self.unavailable else len(hosts)

    def onSimulationBegins(self) -> None:
        """Read the number of hosts from the platform and mark all hosts as free."""
        self.hosts = self.bs.nb_compute_resources
        self.free = HostSet([(0, self.hosts - 1)])
        self.running: dict[str, HostSet] = {}
        self.unavailable = ProcSet()
        self._something_new = False

    def onJobSubmission(self, job: Job) -> None:
        """Queue an arrived job, or reject it if it can never run."""
        if job.requested_resources > self.hosts:
            self.bs.reject_jobs([job])
            return
        if self.needs_walltime and not job.requested_time > 0:
            raise UserError(
                f"job '{job.id}' has no walltime, {self.needs_walltime}",
                where=f"scheduler {type(self).__name__}",
                expected="a positive 'walltime' in every job of the workload",
                remedy="add walltimes, or use fcfs or filler, which need none",
            )
        self.enqueue(job)
        self._something_new = True

    def onJobCompletion(self, job: Job) -> None:
        """Free the hosts of an ended job."""
        self.ended(job)
        hosts = self.running.pop(job.id)
        if self.unavailable:
            hosts = _host_set(_proc_set(hosts) - self.unavailable)
        self.free.add(hosts)
        self._something_new = True

    def onNoMoreEvents(self) -> None:
        """Decide, if the message contained an event that may change a decision."""
        if self._something_new and self.bs.running_simulation:
            self._something_new = False
            self.schedule()

    def onJobsKilled(self, jobs: list[Job]) -> None:
        """Do nothing: each killed job is also reported as completed."""

    def onRequestedCall(self) -> None:
        """Do nothing: these schedulers request no calls."""

    def onNotifyGenericEvent(self, event_data: dict[str, Any]) -> None:
        """Do nothing: these schedulers ignore events that a user defines."""

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Do nothing: these schedulers do not consider speeds."""

    def onNotifyEventMachineUnavailable(self, machines: ProcSet) -> None:
        """Withdraw machines: jobs on them continue, but no other job starts there."""
        self.unavailable |= machines
        self.free = _host_set(_proc_set(self.free) - machines)
        self.capacity_changed()

    def onNotifyEventMachineAvailable(self, machines: ProcSet) -> None:
        """Allow machines to be used again, except those on which a job still runs."""
        returning = machines & self.unavailable
        self.unavailable -= returning
        for hosts in self.running.values():
            returning -= _proc_set(hosts)
        self.free = _host_set(_proc_set(self.free) | returning)
        self.capacity_changed()

    def capacity_changed(self) -> None:
        """Handle machines that have become unavailable or available again."""
        self._something_new = True


def _proc_set(hosts: HostSet) -> ProcSet:
    return ProcSet(*hosts.intervals())


def _host_set(hosts: ProcSet) -> HostSet:
    return HostSet((interval.inf, interval.sup) for interval in hosts.intervals())
