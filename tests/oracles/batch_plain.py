"""The rules of the simulator in plain Python: what the compiled kernels are compared with.

`Blocking` has the rules of RLScheduler (Zhang et al., SC20); `textbook_starts` those of EASY (Lifka, "The
ANL/IBM SP scheduling system", JSSPP 1995) and of conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6),
2001), one pass a time; `LinearScore` is the linear priority and its plans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import log, log10, sqrt

from schedlab.studies.batch.compat.nan_order import BlockingSimulation, Cluster
from schedlab.studies.batch.jobs import Jobs, Machine, Prefill
from schedlab.studies.batch.rules import MOST_DAYS, LinearPriority, positive_request
from schedlab.studies.batch.simulator.scores import CANDIDATES, planning_orders

Score = Callable[[int, float], float]  # (job, clock) -> score


class Blocking(BlockingSimulation):
    """A blocking simulation that may wait without a choice, and backfills in the order of any score.

    scan    the order in which jobs are looked at when they are backfilled, by a score; None: in order of submission
    """

    scan: Score | None = None

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

    def _backfill_order(self) -> list[int]:
        order, clock = super()._backfill_order(), self.clock
        return sorted(sorted(order), key=lambda job: self.scan(job, clock)) if self.scan else order


def run_rule(simulation: BlockingSimulation, score: Score) -> list[float]:
    """Return the start time of each job of the window when the waiting job of the lowest score is always chosen."""
    while not simulation.done:
        clock = simulation.clock
        simulation.queue = sorted(simulation.queue, key=lambda job: (score(job, clock), simulation.submit[job], job))
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


class LinearScore:
    """The score (job, clock) -> number of a policy in a simulation, lowest first; reads the simulation as it is when
    called.
    """

    def __init__(self, policy: LinearPriority, jobs: Jobs, machine: Machine, cluster: Cluster) -> None:
        self.policy, self.cluster, self.processors = policy, cluster, machine.processors
        self.request, self.procs = positive_request(jobs).tolist(), jobs.procs.tolist()
        self.orders = planning_orders(jobs).tolist()

    def __call__(self, job: int, clock: float) -> float:
        """Return the score of a waiting job."""
        total = 0.0
        for weight, feature in zip(self.policy.weights.tolist(), self.features(job, clock), strict=True):
            total += weight * feature
        return -total

    def features(self, job: int, clock: float) -> list[float]:
        """Return the numbers that linear.FEATURES names."""
        request, procs, wait = self.request[job], self.procs[job], clock - self.cluster.submit[job]
        share, delay = procs / self.processors, self._delay(job, clock)
        excess = plain_excess(self, clock)[job] if self.policy.plans else 1.0
        return [
            log(request) / 10,
            log(procs) / 5,
            share,
            share * log(request) / 10,
            share * sqrt(request) / 100,
            log(1 + wait) / 10,
            log(1 + wait / request) / 5,
            min(wait / 86400, MOST_DAYS),
            1.0 if delay == 0 else 0.0,
            log(1 + delay) / 10,
            log10(0.001 + excess) / 3 + 1,
            excess,
        ]

    def _delay(self, job: int, clock: float) -> float:
        """Seconds until the job fits if running ones end as requested (one that has used up its request: in one
        second).
        """
        free, need, end = len(self.cluster.idle), self.cluster.nodes[job], clock
        for other in sorted(self.cluster.running, key=self.cluster.expected_end):
            if free >= need:
                break
            free += self.cluster.nodes[other]
            end = max(self.cluster.expected_end(other), clock + 1)
        return end - clock


def plain_excess(score: LinearScore, clock: float) -> dict[int, float]:
    """Return the excess of each waiting job (plan_features.py)."""
    queues = [[job for job in order if job in score.cluster.queue] for order in score.orders]
    base = 0.0
    for job in queues[0]:
        base += _bounded_slowdown(score, job, clock)
    costs: dict[int, float] = {}
    for queue in queues:
        for head in queue[:CANDIDATES]:
            cost = _cost(score, [head, *(job for job in queue if job != head)], clock, base)
            costs[head] = min(cost, costs.get(head, cost))
    least = min(costs.values())
    return {job: min(costs[job] / least - 1, 1.0) if job in costs else 1.0 for job in queues[0]}


def _cost(score: LinearScore, queue: list[int], clock: float, base: float) -> float:
    """`base`, the cost if all started now, and what each job's delay adds, in the order of the plan."""
    cluster, time, cost = score.cluster, clock, base
    free = len(cluster.idle)
    ends = [(max(cluster.expected_end(job), clock + 1), cluster.nodes[job]) for job in cluster.running]
    for job in queue:
        while free < cluster.nodes[job]:
            ends.sort()
            time, nodes = ends.pop(0)
            free += nodes
        free -= cluster.nodes[job]
        ends.append((time + score.request[job], cluster.nodes[job]))
        cost += _bounded_slowdown(score, job, time) - _bounded_slowdown(score, job, clock)
    return cost


def _bounded_slowdown(score: LinearScore, job: int, start: float) -> float:
    request = score.request[job]
    return max(1.0, (start - score.cluster.submit[job] + request) / max(request, 10.0))
