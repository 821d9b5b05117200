"""The published simulator (RLScheduler; Zhang et al., SC20) in plain Python, for scores some of which are NaN.

Where such a job comes in the order depends on how Python sorts a list in place, which no compiled kernel repeats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from schedlab.studies.batch.jobs import Jobs, Machine, Prefill, Schedule


class Cluster:
    """Running jobs and free nodes. Jobs have their numbers in the window; those of a prefill follow them."""

    def __init__(self, jobs: Jobs, machine: Machine, prefill: Prefill | None = None) -> None:
        self.submit, self.count = jobs.submit.tolist(), len(jobs)
        before = (prefill.jobs,) if prefill is not None else ()
        self.run, self.requested, self.nodes = (
            [value for part in (jobs, *before) for value in getattr(part, name).tolist()]
            for name in ("run", "requested", "nodes")
        )
        self.start: list[float] = [math.nan] * len(self.nodes)
        self.held: list[list[int]] = [[] for _ in self.nodes]
        self.idle = set(range(machine.nodes))
        self.running: list[int] = []
        self.queue: list[int] = []
        self.arrived = 0
        self.clock = self.submit[0]
        for place, began in enumerate(prefill.start.tolist() if prefill is not None else ()):
            self._occupy(self.count + place, began)

    def fits(self, job: int) -> bool:
        return self.nodes[job] <= len(self.idle)

    def end(self, job: int) -> float:
        return self.start[job] + self.run[job]

    def expected_end(self, job: int) -> float:
        return self.start[job] + self.requested[job]

    def begin(self, job: int) -> None:
        self.queue.remove(job)
        self._occupy(job, self.clock)

    def release(self, job: int) -> None:
        self.running.remove(job)
        self.idle.update(self.held[job])

    def _occupy(self, job: int, start: float) -> None:
        self.start[job] = start
        self.held[job] = sorted(self.idle)[: self.nodes[job]]
        self.idle.difference_update(self.held[job])
        self.running.append(job)


class BlockingSimulation(Cluster):
    """A window in which the chosen job blocks all others until it fits, with or without the published
    backfilling.

    queue   waiting jobs; those submitted at the present time may be missing. Jobs of one submit time are backfilled in
            its order, which is the caller's to change
    clock   s of the trace        start  when each job started; NaN: not yet
    held    the nodes of each job that has started, the first free ones in index order
    """

    def __init__(self, jobs: Jobs, machine: Machine, *, backfill: bool, prefill: Prefill | None = None) -> None:
        super().__init__(jobs, machine, prefill)
        self.backfill = backfill
        self._arrive()

    @property
    def done(self) -> bool:
        """Return whether every job has started."""
        return not self.queue and self.arrived == self.count

    def choose(self, job: int) -> list[int]:
        """Start a job of the queue as soon as it fits; return all jobs that started until the next decision, in order.

        Raises ValueError for a job that does not wait.
        """
        if job not in self.queue:
            raise ValueError(f"job {job} does not wait in the queue")
        started = [] if self.fits(job) else self._drain(job)
        self.begin(job)
        while not self.queue and self.arrived < self.count:
            self._event()
        return [*started, job]

    def _drain(self, job: int) -> list[int]:
        """Wait until a job fits; return what was backfilled."""
        shadow = self._shadow(job) if self.backfill else -math.inf
        started = []
        while not self.fits(job):
            for other in self._backfill_order() if self.backfill else ():
                if self.fits(other) and self.clock + self.requested[other] < shadow:
                    self.begin(other)
                    started.append(other)
            self._event()
        return started

    def _backfill_order(self) -> list[int]:
        """Sort the queue by submission, and return the jobs to look at in this order."""
        self.queue.sort(key=lambda waiting: self.submit[waiting])
        return list(self.queue)

    def _shadow(self, job: int) -> float:
        """When the job fits if all end as requested. Running jobs stay in this order, which decides later ties."""
        self.running.sort(key=self.expected_end)
        free = len(self.idle)
        for running in self.running:
            free += self.nodes[running]
            if free >= self.nodes[job]:
                return self.expected_end(running)
        raise AssertionError("a job fits an empty machine")

    def _event(self) -> None:
        """Draw one arrival or one release; an arrival comes first where both happen at one time."""
        self.running.sort(key=self.end)
        earliest = self.end(self.running[0]) if self.running else math.inf
        if self.arrived < self.count and self.submit[self.arrived] <= earliest:
            self._arrive()
        else:
            self.clock = max(self.clock, earliest)
            self.release(self.running[0])

    def _arrive(self) -> None:
        self.clock = max(self.clock, self.submit[self.arrived])
        self.queue.append(self.arrived)
        self.arrived += 1


def f2_schedule(jobs: Jobs, machine: Machine, backfill: bool, prefill: Prefill, track_nodes: bool) -> Schedule:
    """Return the schedule under F2 as published, which takes the root of -1 for a job without a requested time."""
    simulation = BlockingSimulation(jobs, machine, backfill=backfill, prefill=prefill)
    start = np.array(run_scores(simulation, f2_scores(jobs)))
    return Schedule(jobs, start, tuple(map(np.array, simulation.held[: len(jobs)])) if track_nodes else ())


def f2_scores(jobs: Jobs) -> list[float]:
    """Return the published scores of F2 (n,), NaN for a job without a requested time."""
    with np.errstate(divide="ignore", invalid="ignore"):
        roots, submit = np.sqrt(jobs.requested), np.log10(np.maximum(jobs.submit, 0.0))
        return (roots * jobs.procs + 25600.0 * submit).tolist()


def run_scores(simulation: BlockingSimulation, scores: Sequence[float]) -> list[float]:
    """Return the start times under constant scores (n,), some of them NaN, as in the published simulator.

    It sorts one list again and again, in place. A score that is not a number is neither below nor above another, so
    that the place of such a job and of those around it depends on the order before and on how Python sorts.
    """
    while not simulation.done:
        simulation.queue.sort(key=scores.__getitem__)
        simulation.choose(simulation.queue[0])
    return simulation.start[: simulation.count]
