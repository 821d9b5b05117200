"""The linear priority and its plans in plain Python: what linear_kernel.py and plan_features.py are held against."""

from __future__ import annotations

from math import log, log10, sqrt

from schedlab.studies.batch.jobs import Jobs, Machine
from schedlab.studies.batch.rules import MOST_DAYS, LinearPriority, positive_request
from schedlab.studies.batch.simulator.plain import Cluster
from schedlab.studies.batch.simulator.scores import CANDIDATES, planning_orders


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
