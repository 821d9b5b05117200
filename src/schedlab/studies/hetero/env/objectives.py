"""The value of a state of the cluster, per second, under each objective. All are rewards: more is better.

See docs/reference/hetero_model.md. Two objectives were broken in HDeepRM and are defined here instead:

avg_utilization   number of busy cores; its integral is the core time in use (core-seconds)
edp               minus power times the number of jobs in the system; its integral is minus the sum over jobs of the
                  energy consumed while the job is in the system
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schedlab.studies.hetero.simulator.resources import JobRequest, ResourceModel


@dataclass(slots=True)
class Load:
    """Jobs in the system: their number, and the sum of 1 / requested time over them (1/s)."""

    jobs: int = 0
    urgency: float = 0.0

    def enter(self, job: JobRequest) -> None:
        """Count a submitted job."""
        self.jobs += 1
        self.urgency += 1.0 / job.time

    def leave(self, job: JobRequest) -> None:
        """Count a job that ended. If the system is then empty, the sum is exactly 0."""
        self.jobs -= 1
        self.urgency = self.urgency - 1.0 / job.time if self.jobs else 0.0


Objective = Callable[[ResourceModel, Load], float]

OBJECTIVES: dict[str, Objective] = {
    "avg_job_slowdown": lambda model, load: -load.urgency,
    "avg_job_completion": lambda model, load: -float(load.jobs),
    "avg_utilization": lambda model, load: float(model.busy_cores),
    "makespan": lambda model, load: model.gflops,
    "energy_consumption": lambda model, load: -model.power,
    "edp": lambda model, load: -model.power * load.jobs,
}
