"""An ordered list of jobs with the numbers that decide on them in NumPy arrays, so that a pass over thousands of jobs
takes microseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class JobColumns:
    """A list of jobs, and a table with a row for each named number, in the same order.

    `jobs[i]` belongs to column i of `table()`; rows are in the order of the names given, all float64.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self.jobs: list[Any] = []
        self._rows = {name: row for row, name in enumerate(names)}
        self._values = np.empty((len(names), 64))

    def __len__(self) -> int:
        return len(self.jobs)

    def table(self) -> np.ndarray:
        """Return the numbers of all jobs, shape (names, jobs), as a view that is valid until the next insertion or
        removal.
        """
        return self._values[:, : len(self.jobs)]

    def row(self, name: str) -> np.ndarray:
        """Return one number of all jobs, shape (jobs,), as a view."""
        return self._values[self._rows[name], : len(self.jobs)]

    def insert(self, at: int, job: Any, numbers: tuple[float, ...]) -> None:
        """Insert a job at position `at`."""
        count = len(self.jobs)
        if count == self._values.shape[1]:
            self._values = np.concatenate([self._values, np.empty_like(self._values)], axis=1)
        if at < count:
            self._values[:, at + 1 : count + 1] = self._values[:, at:count]
        self._values[:, at] = numbers
        self.jobs.insert(at, job)

    def remove(self, at: int) -> Any:
        """Remove and return the job at position `at`."""
        count = len(self.jobs)
        if at < count - 1:
            self._values[:, at : count - 1] = self._values[:, at + 1 : count]
        return self.jobs.pop(at)

    def reorder(self, order: np.ndarray) -> None:
        """Put the jobs into the given order of their positions, shape (jobs,)."""
        self._values[:, : len(self.jobs)] = self.table()[:, order]
        self.jobs = [self.jobs[position] for position in order]
