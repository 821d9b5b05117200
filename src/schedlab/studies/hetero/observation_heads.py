"""What an agent sees with `observation: heads`: for each job policy, the job that it would start now and whether that job fits.

The published observations tell how the waiting jobs are spread, not which of them a policy takes first, and neither free cores nor when
cores become free; so nothing in them says that an action would start nothing. All numbers are shares; "a against b" is a / (a + b).

For the first job of each job policy but `random`: whether it fits; the logarithm of its requested time; cores; bandwidth a core; time
waited against time requested; where it fits and the shortest job does not, its requested time against the time until the shortest job
has its cores. Then once: free cores; free bandwidth, the mean of the processors; waiting jobs against processors; the time until the
shortest job has its cores against its requested time. Running jobs are expected to take what they asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log1p

import numpy as np

from schedlab.studies.hetero.job_queue import ORDERS, JobQueue
from schedlab.studies.hetero.resources import KB_PER_GB, JobRequest, ResourceModel

PER_HEAD, ONCE = 6, 4


class HeadsObserver:
    """Makes the vector of one model anew for each decision; all numbers lie within 0 and 1.

    limits  requested time (s, max_time) and bandwidth (GB/s, max_mem_bw) that count as 1
    """

    size = PER_HEAD * len(ORDERS) + ONCE

    def __init__(self, model: ResourceModel, limits: Mapping[str, float]) -> None:
        self.model = model
        self._longest, self._widest = log1p(limits["max_time"]), limits["max_mem_bw"] * KB_PER_GB
        self._bandwidth = np.maximum(np.array(model.bandwidth, float), 1.0)

    def touch(self, processors: np.ndarray) -> None:
        """Keep nothing of processors whose state changed."""

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
