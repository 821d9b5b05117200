"""Training jobs and their sources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.graphs.graph import TrainingGraph


@dataclass(frozen=True, eq=False)
class Job:
    """A training job: `steps` identical training steps, to be done within `beta` of the time that one device takes.

    index  number in the simulation; id: number in its pool. Raises UserError for a beta outside (0, 1].
    """

    index: int
    id: int
    graph: TrainingGraph
    steps: int
    beta: float

    def __post_init__(self) -> None:
        """Raise UserError for invalid limits and lengths."""
        where = f"job {self.index} ({self.graph.name})"
        if not 0 < self.beta <= 1:
            raise UserError(f"beta is {self.beta}", where=where, expected="above 0 and at most 1")
        if self.steps < 1:
            raise UserError(f"{self.steps} training steps", where=where, expected="at least 1")

    @property
    def sequential_time(self) -> float:
        """Seconds on one device."""
        return self.steps * self.graph.step_time

    @property
    def time_limit(self) -> float:
        """Longest acceptable job completion time, s."""
        return self.beta * self.sequential_time

    @property
    def demand(self) -> float:
        """Bytes of memory and of deps of the whole job, unsplit."""
        return self.graph.total_memory + self.graph.total_dep_size


class JobSource(Protocol):
    """Interface of a source of jobs for the cluster; the first job arrives at time 0."""

    def draw(self, index: int) -> Job:
        """Return the job that arrives now as number `index` of the simulation."""

    def next_arrival(self, now: float) -> float:
        """Return the time of the arrival after the one at `now`, s; infinity if there is none."""


@dataclass(frozen=True)
class PoolRanges:
    """Smallest and largest value of each attribute over a pool, for observations."""

    ops: tuple[float, float]
    deps: tuple[float, float]
    sequential_time: tuple[float, float]
    time_limit: tuple[float, float]
    beta: tuple[float, float]
    memory: tuple[float, float]
    dep_size: tuple[float, float]
    steps: tuple[float, float]


def pool_ranges(graphs: Sequence[TrainingGraph], members: np.ndarray, betas: np.ndarray, steps: int) -> PoolRanges:
    """Return the ranges over a pool whose job i has graph members[i] (int64) and beta betas[i] (float64)."""
    used = [graphs[number] for number in np.unique(members).tolist()]
    sequential = np.array([graph.step_time for graph in graphs]) * steps
    limits = sequential[members] * betas

    def both(values: Sequence[float] | np.ndarray) -> tuple[float, float]:
        return float(min(values)), float(max(values))

    return PoolRanges(
        ops=both([graph.num_ops for graph in used]),
        deps=both([len(graph.edges) for graph in used]),
        sequential_time=both([sequential[number] for number in np.unique(members).tolist()]),
        time_limit=(float(limits.min()), float(limits.max())),
        beta=(float(betas.min()), float(betas.max())),
        memory=both([graph.total_memory for graph in used]),
        dep_size=both([graph.total_dep_size for graph in used]),
        steps=(float(steps), float(steps)),
    )


class ListedJobs:
    """Jobs at given times, as in a recorded run.

    later  time at which another job would have arrived after the last listed one, s; infinity if there is none
    """

    def __init__(self, jobs: Sequence[Job], times: Sequence[float], later: float = math.inf) -> None:
        if not jobs:
            raise UserError("there are no jobs", where="arrivals", expected="at least one")
        self._jobs = list(jobs)
        self._times = [*times, later]
        self._drawn = 0

    def draw(self, index: int) -> Job:
        """Return the next listed job. Raises UserError after the last."""
        if index >= len(self._jobs):
            raise UserError(f"job {index} is not listed", where="arrivals", expected=f"at least {index + 1} jobs")
        self._drawn = index + 1
        return self._jobs[index]

    def next_arrival(self, now: float) -> float:  # noqa: ARG002
        """Return the listed time of the next job, s."""
        return self._times[self._drawn]


REJECTED = "rejected_by_agent"
NO_PARTITION, NO_PLACEMENT, NO_CHANNEL = "op_partition", "op_placement", "dep_placement"
# parts of an action; the first part that does not handle a job is the cause of its rejection
PARTS = (NO_PARTITION, NO_PLACEMENT, "op_schedule", NO_CHANNEL, "dep_schedule")
TOO_SLOW = "max_acceptable_jct_exceeded"
QUEUE_FULL = "queue_full"
CUT_OFF = "simulation_ended_while_running"
