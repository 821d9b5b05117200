"""The decision system as a scheduler of PyBatsim, which answers a real Batsim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batsim.batsim import BatsimScheduler, Job
from procset import ProcSet

from schedlab.studies.hetero.simulator.decisions import DecisionSystem, intervals


class DecisionScheduler(BatsimScheduler):
    """A scheduler that collects a message's events, passes them to the decision system, and lets `act` make the
    decisions that are due.
    """

    def __init__(self, system: DecisionSystem, act: Callable[[DecisionSystem], None]) -> None:
        super().__init__({})
        self.system, self._act = system, act
        self._heard: list[dict[str, Any]] = []

    def onSimulationBegins(self) -> None:
        """Note hosts and profiles."""
        machines = self.bs.machines["compute"]
        self._hear("SIMULATION_BEGINS", {"profiles": self.bs.profiles, "compute_resources": machines})

    def onJobSubmission(self, job: Job) -> None:
        """Note a job; the decision system sees the profiles that PyBatsim keeps."""
        self._hear("JOB_SUBMITTED", {"job_id": job.id, "job": job.json_dict})

    def onJobCompletion(self, job: Job) -> None:
        """Note the end of a job."""
        self._hear("JOB_COMPLETED", {"job_id": job.id})

    def onNoMoreJobsInWorkloads(self) -> None:
        """Note that no job will come any more."""
        self._hear("NOTIFY", {"type": "no_more_static_job_to_submit"})

    def onMachinePStateChanged(self, nodeid: Any, pstate: Any) -> None:
        """Do nothing: the model ordered the change."""

    def onSimulationEnds(self) -> None:
        """Note the end, which completes the last reward."""
        self._hear("SIMULATION_ENDS", {})

    def onNoMoreEvents(self) -> None:
        """Make the decisions that are due, and send the orders to Batsim."""
        self.system.take({"now": self.bs.time(), "events": self._heard})
        self._heard = []
        while self.system.due:
            self._act(self.system)
        orders = self.system.orders()
        if orders.reject:
            self.bs.reject_jobs([self.bs.jobs[job] for job in orders.reject])
        for job_id, hosts in orders.start:
            job = self.bs.jobs[job_id]
            job.allocation = _hosts(hosts)
            self.bs.execute_job(job)
        for pstate, hosts in orders.pstates:
            self.bs.set_resource_state(_hosts(hosts), pstate)

    def _hear(self, kind: str, data: dict[str, Any]) -> None:
        self._heard.append({"type": kind, "data": data})


def _hosts(numbers: list[int]) -> ProcSet:
    return ProcSet.from_str(intervals(numbers))
