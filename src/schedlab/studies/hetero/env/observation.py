"""The observations of an agent: the state of the cluster, the distribution of the waiting jobs, and the growth of the
queue.

Order of the numbers (docs/reference/hetero_model.md): for each node, its free memory, followed by the free bandwidth of
each of its processors and, only in `normal`, the speed, the power and the remaining share of the job of each core; then
minimum, quartiles and maximum of the time, cores, memory and bandwidth of the waiting jobs, as shares of the job
limits; last the variation of the queue. `minimal` has no numbers of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log1p
from typing import Literal

import numpy as np

from schedlab.studies.hetero.simulator.resources import (
    COLUMNS,
    KB_PER_GB,
    KB_PER_MB,
    ORDERS,
    JobQueue,
    JobRequest,
    ResourceModel,
)

Kind = Literal["normal", "small", "minimal"]
QUEUE_NUMBERS = 5 * len(COLUMNS) + 1
PER_CORE = 3  # speed, power, remaining share of the job


class Observer:
    """The observation of one model, which is stored and updated where the state has changed.

    limits       divisors of the columns of waiting jobs: max_time (s), max_core, max_mem (MB), max_mem_bw (GB/s)
    sensitivity  relative growth of the queue at which its variation saturates at 0 or 1
    clipped      whether shares of waiting jobs above 1, which exceed the 99th percentile, are cut to 1
    """

    def __init__(
        self, model: ResourceModel, kind: Kind, limits: Mapping[str, float], sensitivity: float, clipped: bool = True
    ) -> None:
        self.model, self.kind, self._sensitivity, self._clipped = model, kind, sensitivity, clipped
        memory, bandwidth = limits["max_mem"] * KB_PER_MB, limits["max_mem_bw"] * KB_PER_GB
        self._limits = (limits["max_time"], limits["max_core"], memory, bandwidth)
        self._number_places()
        self._memory = np.maximum(np.array(model.memory, float), 1.0)
        self._bandwidth = np.maximum(np.array(model.bandwidth, float), 1.0)
        self.last_length = 0
        self._stale: set[int] = set()
        self._vector = np.zeros(self.size, np.float32)
        if self.kind != "minimal":
            self.touch(np.arange(len(self.model.bandwidth)))

    def touch(self, processors: np.ndarray) -> None:
        """Note processors whose state changed."""
        if self.kind != "minimal":
            self._stale.update(processors.tolist())

    def observe(self, queue: JobQueue) -> np.ndarray:
        """Return the vector, (size,) float32, with the variation of the queue since the last call."""
        if self._stale:
            self._update_cluster()
        if self.kind == "normal":
            self._vector[self._core_place + 2] = self.model.remaining()[self.model.served]
        limits = zip(COLUMNS, self._limits, strict=True)
        shares = [value / limit for column, limit in limits for value in queue.quartiles(column)]
        shares = [min(share, 1.0) for share in shares] if self._clipped else shares
        self._vector[-QUEUE_NUMBERS:] = [*shares, self._variation(len(queue))]
        self.last_length = len(queue)
        return self._vector.copy()

    def _variation(self, length: int) -> float:
        """Return the growth of the queue: 0.5 for the same length, 0 or 1 if it shrank or grew by the sensitivity or
        more.
        """
        shorter = min(length, self.last_length)
        if not shorter:
            return 1.0 if length else 0.0 if self.last_length else 0.5
        growth = (length - self.last_length) / shorter
        return min(max((growth + self._sensitivity) / (2 * self._sensitivity), 0.0), 1.0)

    def _number_places(self) -> None:
        """Find the place in the vector of the first number of each node, processor and core."""
        model, place = self.model, 0
        nodes, processors, cores = list[int](), list[int](), list[int]()
        for inside in model.processors_of if self.kind != "minimal" else []:
            nodes.append(place)
            place += 1
            for processor in inside:
                processors.append(place)
                place += 1
                if self.kind == "normal":
                    last = place + PER_CORE * int(model.size[processor])
                    cores += range(place, last, PER_CORE)
                    place = last
        self.size = place + QUEUE_NUMBERS
        places = [np.array(numbers, np.int64) for numbers in (nodes, processors, cores)]
        self._node_place, self._processor_place, self._core_place = places

    def _update_cluster(self) -> None:
        model, vector = self.model, self._vector
        processors = np.array(list(self._stale))
        nodes = np.array(list({model.node_of[number] for number in self._stale}))
        self._stale = set()
        memory = np.array([model.free_memory[number] for number in nodes])
        vector[self._node_place[nodes]] = memory / self._memory[nodes]
        bandwidth = np.array([model.free_bandwidth[number] for number in processors])
        vector[self._processor_place[processors]] = np.maximum(bandwidth, 0) / self._bandwidth[processors]
        if self.kind == "normal":
            cores = model.cores_of(processors)
            state = model.pstate[cores]
            vector[self._core_place[cores]] = model.speed_shares(cores)
            vector[self._core_place[cores] + 1] = np.minimum(model.power_share, 1.0)[state]


PER_HEAD, ONCE = 6, 4


class HeadsObserver:
    """The observation `heads` of one model, computed in full at each decision; all numbers are within 0 and 1.

    limits  requested time (s, max_time) and bandwidth (GB/s, max_mem_bw) that count as 1
    """

    size = PER_HEAD * len(ORDERS) + ONCE

    def __init__(self, model: ResourceModel, limits: Mapping[str, float]) -> None:
        self.model = model
        self._longest, self._widest = log1p(limits["max_time"]), limits["max_mem_bw"] * KB_PER_GB
        self._bandwidth = np.maximum(np.array(model.bandwidth, float), 1.0)

    def touch(self, processors: np.ndarray) -> None:
        """Do nothing: no state of processors is stored."""

    def observe(self, queue: JobQueue) -> np.ndarray:
        """Return the vector, (34,) float32; zeros for the first jobs of an empty queue."""
        model, vector = self.model, np.zeros(self.size, np.float32)
        shortest = queue.head("shortest")
        delay = model.expected_wait(shortest.cores) if shortest else 0.0
        for number, policy in enumerate(ORDERS):
            job = queue.head(policy)
            if job is not None:
                vector[number * PER_HEAD : (number + 1) * PER_HEAD] = self._head(job, delay)
        free = np.maximum(np.array(model.free_bandwidth), 0) / self._bandwidth
        waiting = len(queue) / (len(queue) + len(model.busy))
        late = 1.0 - shortest.time / (delay + shortest.time) if shortest else 0.0
        vector[-ONCE:] = model.free_in_all / model.hierarchy.cores, free.mean(), waiting, late
        return vector

    def _head(self, job: JobRequest, delay: float) -> tuple[float, ...]:
        fits = not self.model.lacks(job)
        waited = self.model.now - job.submitted
        return (
            float(fits),
            min(log1p(job.time) / self._longest, 1.0),
            min(job.cores / self.model.hierarchy.cores, 1.0),
            min(job.bandwidth / self._widest, 1.0),
            waited / (waited + job.time),
            job.time / (job.time + delay) if fits and delay else 0.0,
        )
