"""What a decision of the environment is rewarded with. Source: specification of the ramp study, section 12."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.graphs.statistics import throughput
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.simulator.simulation import Simulation

THROUGHPUTS = {
    "compute_throughput": "mean_compute_throughput",
    "cluster_throughput": "mean_cluster_throughput",
    "demand_throughput": "mean_demand_total_throughput",
}


class Rewards:
    """The reward that settings name, in the jobs and on the cluster of a simulation."""

    def __init__(self, settings: EnvironmentSettings, simulation: Simulation) -> None:
        self.settings = settings
        pool, topology = simulation.pool, simulation.topology
        self._longest, self._shortest = pool.most_sequential_time, pool.least_sequential_time
        self._most = 1.0
        if settings.of_most:
            self._most = topology.num_workers * max(throughput(graph).max() for graph in pool.graphs)
            if settings.reward != "compute_throughput":
                self._most += topology.num_workers * topology.channel_bandwidth * topology.channels

    def of(self, job: Job, duration: float | None, steps: Sequence[Mapping[str, Any]]) -> float:
        """Return the reward of a decision.

        duration  s, None where the job was blocked
        steps     statistics of the cluster's steps from the decision on to the next
        """
        settings = self.settings
        if settings.reward == "acceptance":
            return settings.success if duration is not None else settings.failure
        if settings.reward in THROUGHPUTS:
            value = sum(step[THROUGHPUTS[settings.reward]] for step in steps) / max(len(steps), 1) / self._most
        else:
            value = (
                self._completion_time(job, duration) if settings.reward == "jct" else self._objectives(job, duration)
            )
            value = settings.sign * (1 / value if settings.inverse and value else value)
        return math.copysign(math.log10(1 + abs(value)), value) if settings.logarithm else float(value)

    def _completion_time(self, job: Job, duration: float | None) -> float:
        settings, whole = self.settings, job.sequential_time
        failed = whole if settings.failure_time is None else settings.failure_time
        over = {"one": 1.0, "sequential": whole, "failure": whole * settings.failure_factor}[settings.jct_over]
        return (failed * settings.failure_factor if duration is None else duration) / over

    def _objectives(self, job: Job, duration: float | None) -> float:
        whole, span = job.sequential_time, self._longest - self._shortest
        if duration is not None:
            return duration / whole
        return self.settings.failure_factor * ((whole - self._shortest) / span + 1 if span > 0 else 1.0)
