"""The rules of the simulator in plain Python: what the compiled kernels are held against, and what steps one decision
at a time.

`BlockingSimulation` has the rules of RLScheduler (Zhang et al., SC20); `textbook_starts` those of EASY (Lifka, "The
ANL/IBM SP scheduling system", JSSPP 1995) and of conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6),
2001), one pass a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from schedlab.studies.batch.jobs import Jobs, Machine, Prefill

Score = Callable[[int, float], float]  # (job, clock) -> score


class Cluster:
    """Running jobs and free nodes. Jobs are numbered as in the window; those of a prefill follow them."""

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
    """A window in which the chosen job blocks everything until it fits, with or without the published simulator's
    backfilling.

    queue   waiting jobs that were drawn; those submitted at the present time may be missing. Its order is the caller's
            to change: jobs of one submit time are looked at in this order when they are backfilled
    scan    the order in which jobs are looked at when they are backfilled, by a score; None: in order of submission
    clock   s of the trace
    start   when each job started; NaN: not yet
    held    the nodes of each job that has started, the first free ones in index order
    """

    def __init__(
        self, jobs: Jobs, machine: Machine, *, backfill: bool, prefill: Prefill | None = None, scan: Score | None = None
    ) -> None:
        super().__init__(jobs, machine, prefill)
        self.backfill, self.scan = backfill, scan
        self._arrive()

    @property
    def done(self) -> bool:
        """Tell whether every job has started."""
        return not self.queue and self.arrived == self.count

    def choose(self, job: int) -> list[int]:
        """Start a job of the queue as soon as it fits, go on to the next decision, and return all jobs that started, in
        order.

        Raises ValueError for a job that does not wait.
        """
        if job not in self.queue:
            raise ValueError(f"job {job} does not wait in the queue")
        started = [] if self.fits(job) else self._drain(job)
        self.begin(job)
        while not self.queue and self.arrived < self.count:
            self._event()
        return [*started, job]

    @property
    def may_wait(self) -> bool:
        """Tell whether time would go on without a job being chosen."""
        return bool(self.running) or self.arrived < self.count

    def wait(self, seconds: float) -> None:
        """Choose no job for so long; where a job arrives or ends before, or none is left to arrive, only until the next
        event.
        """
        later = self.clock + seconds
        if self.arrived == self.count:
            self.clock = later
            self._event()
        elif later < min([self.submit[self.arrived], *map(self.end, self.running)]):
            self.clock = later
        else:
            self._event()

    def _drain(self, job: int) -> list[int]:
        """Wait until a job fits; return what was backfilled."""
        shadow = self._shadow(job) if self.backfill else -math.inf
        started = []
        while not self.fits(job):
            if self.backfill:
                self.queue.sort(key=lambda waiting: self.submit[waiting])
            for other in self._scanned() if self.backfill else ():
                if self.fits(other) and self.clock + self.requested[other] < shadow:
                    self.begin(other)
                    started.append(other)
            self._event()
        return started

    def _scanned(self) -> list[int]:
        """Return the queue in the order in which jobs are backfilled: that of submission, or of `scan`."""
        clock = self.clock
        return sorted(sorted(self.queue), key=lambda job: self.scan(job, clock)) if self.scan else list(self.queue)

    def _shadow(self, job: int) -> float:
        """When the job would fit if all running ones end as requested. The running jobs stay in this order, which
        decides later ties.
        """
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


def run_rule(simulation: BlockingSimulation, score: Score) -> list[float]:
    """Return the start time of each job of the window when the waiting job of the lowest score is always chosen."""
    while not simulation.done:
        clock = simulation.clock
        simulation.queue = sorted(simulation.queue, key=lambda job: (score(job, clock), simulation.submit[job], job))
        simulation.choose(simulation.queue[0])
    return simulation.start[: simulation.count]


def run_scores(simulation: BlockingSimulation, scores: Sequence[float]) -> list[float]:
    """Return the same for scores (n,) that never change, some of them not a number, as the published simulator does.

    It sorts one list again and again, in place. A score that is not a number is neither below nor above another, so
    that where such a job and those around it come to lie hangs on the order of the list before and on how Python sorts.
    """
    while not simulation.done:
        simulation.queue.sort(key=scores.__getitem__)
        simulation.choose(simulation.queue[0])
    return simulation.start[: simulation.count]


def textbook_starts(
    jobs: Jobs,
    machine: Machine,
    score: Score,
    policy: str,
    prefill: Prefill | None = None,
    *,
    scan: Score | None = None,
    cluster: Cluster | None = None,
) -> list[float]:
    """Return the start times under `easy` or `conservative` backfilling of a queue in the order of scores.

    A pass takes place at each time at which jobs end or arrive, after all of them; nothing but queue and running jobs
    is carried on.
    scan     the order in which EASY looks at jobs behind the first that does not fit; None: that of the scores
    cluster  the empty cluster to fill, for scores that read it
    """
    cluster = cluster or Cluster(jobs, machine, prefill)
    while cluster.queue or cluster.arrived < cluster.count:
        arrival = cluster.submit[cluster.arrived] if cluster.arrived < cluster.count else math.inf
        now = (
            max(cluster.clock, min([arrival, *map(cluster.end, cluster.running)])) if cluster.arrived else cluster.clock
        )
        cluster.clock = now
        for job in [job for job in cluster.running if cluster.end(job) <= now]:
            cluster.release(job)
        while cluster.arrived < cluster.count and cluster.submit[cluster.arrived] <= now:
            cluster.queue.append(cluster.arrived)
            cluster.arrived += 1
        ordered = sorted(cluster.queue, key=lambda job: score(job, now))
        if policy == "easy":
            _easy_pass(cluster, ordered, (lambda job, now=now: scan(job, now)) if scan else ordered.index)
        else:
            _conservative_pass(cluster, ordered)
    return cluster.start[: cluster.count]


def _expected(cluster: Cluster) -> list[tuple[float, int]]:
    """(expected end, nodes) of the running jobs by expected end: one that has used up its request ends in one
    second.
    """
    return sorted((max(cluster.expected_end(job), cluster.clock + 1.0), cluster.nodes[job]) for job in cluster.running)


def _easy_pass(cluster: Cluster, ordered: Sequence[int], scan: Callable[[int], float]) -> None:
    waiting = list(ordered)
    while waiting and cluster.fits(waiting[0]):
        cluster.begin(waiting.pop(0))
    if not waiting:
        return
    head = cluster.nodes[waiting[0]]
    expected = _expected(cluster)
    free = {end: len(cluster.idle) + sum(nodes for other, nodes in expected if other <= end) for end, _ in expected}
    shadow = min(end for end, nodes in free.items() if nodes >= head)
    extra = free[shadow] - head
    for job in sorted(sorted(waiting[1:]), key=scan):
        if not cluster.fits(job):
            continue
        if cluster.clock + cluster.requested[job] <= shadow:
            cluster.begin(job)
        elif cluster.nodes[job] <= extra:
            extra -= cluster.nodes[job]
            cluster.begin(job)


def _conservative_pass(cluster: Cluster, ordered: Sequence[int]) -> None:
    now = cluster.clock
    changes = [(now, len(cluster.idle)), *_expected(cluster)]  # (time, nodes that become free)
    for job in ordered:
        nodes, length = cluster.nodes[job], max(cluster.requested[job], 1.0)
        times = sorted({time for time, _ in changes})
        place = next(time for time in times if _free_throughout(changes, times, time, time + length) >= nodes)
        changes += [(place, -nodes), (place + length, nodes)]
        if place == now:
            cluster.begin(job)


def _free_throughout(changes: Sequence[tuple[float, int]], times: Sequence[float], begin: float, end: float) -> int:
    """The least number of free nodes from begin to before end."""
    inside = [begin, *(time for time in times if begin < time < end)]
    return min(sum(nodes for time, nodes in changes if time <= moment) for moment in inside)
