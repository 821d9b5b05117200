"""The waiting jobs in the order of each job policy, with the quartiles of what they ask for.

Source: specification of the study hetero, sections 5.1 and 5.2.
"""

from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np

from schedlab.studies.hetero.simulator.resources import JobRequest

# job policy -> the attribute of a job by which it takes the smallest; ties keep the order of submission
ORDERS = {"first": "submitted", "shortest": "time", "smallest": "cores", "low_mem": "memory", "low_mem_bw": "bandwidth"}
JOB_POLICIES = ("random", *ORDERS)
COLUMNS = ("time", "cores", "memory", "bandwidth")  # of the observation
QUARTERS = 4


class JobQueue:
    """Jobs that were submitted and neither started nor rejected."""

    def __init__(self) -> None:
        self._jobs: dict[int, JobRequest] = {}
        self._sorted: dict[str, list[tuple[float, int]]] = {column: [] for column in ORDERS.values()}

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: JobRequest) -> None:
        """Let a job wait."""
        self._jobs[job.order] = job
        for column, entries in self._sorted.items():
            insort(entries, (getattr(job, column), job.order))

    def remove(self, job: JobRequest) -> None:
        """Take a job out."""
        del self._jobs[job.order]
        for column, entries in self._sorted.items():
            del entries[bisect_left(entries, (getattr(job, column), job.order))]

    def named(self, job_id: str) -> JobRequest | None:
        """Return the waiting job of an identifier, None where it does not wait."""
        return next((job for job in self._jobs.values() if job.id == job_id), None)

    def first(self, policy: str, rng: np.random.Generator) -> JobRequest:
        """Return the job that a policy puts first; `random` draws one anew each time."""
        if policy == "random":
            entries = self._sorted["submitted"]
            return self._jobs[entries[int(rng.integers(len(entries)))][1]]
        return self._jobs[self._sorted[ORDERS[policy]][0][1]]

    def head(self, policy: str) -> JobRequest | None:
        """Return the job that a policy other than `random` puts first, None where no job waits."""
        entries = self._sorted[ORDERS[policy]]
        return self._jobs[entries[0][1]] if entries else None

    def quartiles(self, column: str) -> list[float]:
        """Return minimum, quartiles and maximum of a column, interpolated linearly; zeros where no job waits."""
        entries = self._sorted[column]
        if not entries:
            return [0.0] * (QUARTERS + 1)
        found = []
        for number in range(QUARTERS + 1):
            place, rest = divmod(number * (len(entries) - 1), QUARTERS)
            low = entries[place][0]
            found.append(low if not rest else low + (entries[place + 1][0] - low) * rest / QUARTERS)
        return found
