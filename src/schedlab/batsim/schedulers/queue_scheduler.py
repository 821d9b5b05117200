"""What our schedulers share: free hosts, starting jobs, jobs that can never run, machines that come and go."""

from __future__ import annotations

from typing import Any, ClassVar

from batsim.batsim import BatsimScheduler, Job
from procset import ProcSet

from schedlab.batsim.schedulers.host_set import HostSet
from schedlab.config.errors import UserError, did_you_mean


class QueueScheduler(BatsimScheduler):
    """A scheduler that keeps arrived jobs in a queue and decides once per message, after all events of it.

    A subclass says in `enqueue` how a job waits and in `schedule` which waiting jobs start now, on the free hosts with
    the lowest ids. Jobs that ask for more hosts than the platform has are rejected on arrival.
    `defaults` are the options that the scheduler knows, with their values; UserError for any other.
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
        """Let an arrived job wait."""
        raise NotImplementedError

    def schedule(self) -> None:
        """Start what can start now."""
        raise NotImplementedError

    def ended(self, job: Job) -> None:
        """Hear that a job has ended, just before its hosts return."""

    def start(self, job: Job) -> None:
        """Start a job now on the free hosts with the lowest ids."""
        job.allocation = self.running[job.id] = self.free.take_lowest(job.requested_resources)
        self.bs.execute_job(job)

    def usable(self, job: Job) -> int:
        """Return how many of a running job's hosts can be used after it: not those that were withdrawn meanwhile."""
        hosts = self.running[job.id]
        return len(_proc_set(hosts) - self.unavailable) if self.unavailable else len(hosts)

    def onSimulationBegins(self) -> None:
        """Take stock of the platform; all hosts are free."""
        self.hosts = self.bs.nb_compute_resources
        self.free = HostSet([(0, self.hosts - 1)])
        self.running: dict[str, HostSet] = {}
        self.unavailable = ProcSet()
        self._something_new = False

    def onJobSubmission(self, job: Job) -> None:
        """Queue an arrived job, or reject it where it can never run."""
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
        """Take the hosts of an ended job back."""
        self.ended(job)
        hosts = self.running.pop(job.id)
        if self.unavailable:
            hosts = _host_set(_proc_set(hosts) - self.unavailable)
        self.free.add(hosts)
        self._something_new = True

    def onNoMoreEvents(self) -> None:
        """Decide, where the message brought anything to decide about."""
        if self._something_new and self.bs.running_simulation:
            self._something_new = False
            self.schedule()

    def onJobsKilled(self, jobs: list[Job]) -> None:
        """Nothing to do: each killed job is also reported as completed."""

    def onRequestedCall(self) -> None:
        """Nothing to do: no scheduler here asks for a call."""

    def onNotifyGenericEvent(self, event_data: dict[str, Any]) -> None:
        """Nothing to do: a user's own events mean nothing to these schedulers."""

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        """Nothing to do: speeds are not known to these schedulers."""

    def onNotifyEventMachineUnavailable(self, machines: ProcSet) -> None:
        """Withdraw machines: jobs on them run on, but none starts there."""
        self.unavailable |= machines
        self.free = _host_set(_proc_set(self.free) - machines)
        self.capacity_changed()

    def onNotifyEventMachineAvailable(self, machines: ProcSet) -> None:
        """Let machines take part again, except those on which a job still runs."""
        returning = machines & self.unavailable
        self.unavailable -= returning
        for hosts in self.running.values():
            returning -= _proc_set(hosts)
        self.free = _host_set(_proc_set(self.free) | returning)
        self.capacity_changed()

    def capacity_changed(self) -> None:
        """Hear that machines went or came."""
        self._something_new = True


def _proc_set(hosts: HostSet) -> ProcSet:
    return ProcSet(*hosts.intervals())


def _host_set(hosts: ProcSet) -> HostSet:
    return HostSet((interval.inf, interval.sup) for interval in hosts.intervals())
