"""Failures of nodes, which end the jobs on them, and the attempts of these jobs.

The time until a node fails and the time of its repair are exponential, the simplest law; failures of real clusters come
in bursts more often (Schroeder and Gibson 2010, "A large-scale study of failures in high-performance computing
systems"). Each node draws from a separate stream, so its failures have the same dates under every policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.studies.hetero.simulator.physics import Physics

RESOLUTION, DIGITS = 1e-6, 6  # s, and decimals of dates in messages
MOST_ATTEMPTS = 100  # of a job; then it is given up
MOST_CHANGES = 200_000  # failures and repairs in a run
ATTEMPT = "#"  # between the identifier of a job and the number of its attempt, as in Batsim


class Failures:
    """The failures and repairs of a run, and the jobs that are to be submitted again.

    changes  (node, whether it works now) at the date of the last message
    called   whether the last message contained a call for which `orders` asked
    over     whether no job is left that could be submitted again
    """

    def __init__(self, physics: Physics, nodes: int) -> None:
        settings = physics.settings
        assert settings.mean_time_to_failure is not None
        self._until_failure, self._of_repair = settings.mean_time_to_failure, settings.mean_time_to_repair
        self._streams = [generator(physics.seed, "hetero", "failures", node) for node in range(nodes)]
        self._coming = [(self._after(0.0, node, True), node, False) for node in range(nodes)]
        heapify(self._coming)
        self.changes: list[tuple[int, bool]] = []
        self.called = self.over = False
        self._asked: float | None = None  # date of the call that is still to come
        self._count = 0
        self._given: dict[str, Mapping[str, Any]] = {}  # jobs in the system, as they were submitted
        self._announced: set[str] = set()  # attempts that are not submitted yet

    def begin(self) -> None:
        """Begin to read a message."""
        self.changes, self.called = [], False

    def take_call(self, now: float) -> None:
        """Note a requested call at a date (s); if it is ours, note what fails and what is repaired until then."""
        if self._asked is None or now < self._asked:
            return
        self._asked, self.called = None, True
        while self._coming[0][0] <= now:
            date, node, works = heappop(self._coming)
            heappush(self._coming, (self._after(date, node, works), node, not works))
            self.changes.append((node, works))
        self._count += len(self.changes)
        if self._count > MOST_CHANGES:
            what = f"jobs still wait at {now:g} s, after {MOST_CHANGES} failures and repairs"
            expected = "nodes that work long enough for the jobs"
            raise UserError(what, where="physics.mean_time_to_failure", expected=expected)

    def submitted(self, job: Mapping[str, Any]) -> None:
        """Note a job, or an attempt of one, that has been submitted."""
        self._given[job["id"]] = job
        self._announced.discard(job["id"])

    def forget(self, job_id: str) -> None:
        """Note that a job has ended or is rejected."""
        self._given.pop(job_id, None)

    def next_attempt(self, job_id: str, now: float) -> dict[str, Any] | None:
        """Return the next attempt of a job that a failure ends now (s); None if it has had all its attempts."""
        given = self._given.pop(job_id)
        name, _, number = job_id.partition(ATTEMPT)
        attempts = int(number or 0) + 1
        if attempts >= MOST_ATTEMPTS:
            return None
        again = {**given, "id": f"{name}{ATTEMPT}{attempts}", "subtime": now}
        self._announced.add(again["id"])
        return again

    def orders(self, work_left: bool) -> tuple[float | None, bool]:
        """Return the date (s) of the call to ask for, if any, and whether to report that no job will be submitted
        again; work_left: whether jobs are in the system or will arrive.
        """
        if not work_left and not self._announced:
            first, self.over = not self.over, True
            return None, first
        if self._asked is not None:
            return None, False
        self._asked = self._coming[0][0]
        return self._asked, False

    def _after(self, date: float, node: int, works: bool) -> float:
        """Return the date (s) of a node's next failure, if it works from `date` on, or of its repair."""
        mean = self._until_failure if works else self._of_repair
        return round(date + max(self._streams[node].exponential(mean), RESOLUTION), DIGITS)
