"""What planning the present queue says of each waiting job: compiled form of linear_plain.plain_excess.

For each of the rules PLANNED_BY and each of the first CANDIDATES jobs of its order: that job comes first, the rest of the queue follows in
that order, each blocks the machine until it fits, all end as requested, nothing arrives. The cost of a plan is the sum of bounded
slowdowns. A job's excess is the cost of its best plan over that of the best plan of all, minus 1, at most 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.compiled import compiled
from schedlab.studies.batch.jobs import SHORT, Jobs
from schedlab.studies.batch.rules import area, priority

PLANNED_BY = ("sjf", "smallest", "f1", "area")
CANDIDATES = 8
COUNT, FREE = 0, 1  # of kernel_cluster.Running.size


def planning_orders(jobs: Jobs) -> np.ndarray:
    """Return the jobs in the order of each of PLANNED_BY, (4, n) int64; ties in the order of the jobs."""
    scores = [area(jobs) if rule == "area" else priority(rule, jobs).score for rule in PLANNED_BY]
    return np.stack([np.argsort(score, kind="stable") for score in scores])


class _Queue(NamedTuple):
    """The queue that is planned: its jobs in the order of a rule, and by job - first the bounded slowdown if started now, their sum `base`.

    ends, freed: room for the ends of running and planned jobs and the nodes that become free then
    """

    jobs: np.ndarray
    now: np.ndarray
    first: int
    base: float
    ends: np.ndarray
    freed: np.ndarray


@compiled(error_model="numpy")
def excess_costs(columns, request, orders, running, jobs, clock, excess):
    """Write the excess of each waiting job of `jobs` (in order of submission), 0 to 1; 1 for what no plan begins with."""
    first, last = jobs[0], jobs[-1]
    now = np.zeros(last - first + 1)  # 0: does not wait
    for job in jobs:
        now[job - first] = max(1.0, (clock - columns.submit[job] + request[job]) / max(request[job], SHORT))
        excess[job] = np.inf
    room = running.size[COUNT] + len(jobs)
    order, ends, freed = np.empty(len(jobs), dtype=np.int64), np.empty(room), np.empty(room, dtype=np.int64)
    base, least = 0.0, np.inf
    for rule in range(len(orders)):
        size = 0
        for job in orders[rule]:
            if first <= job <= last and now[job - first] > 0:
                order[size] = job
                size += 1
        if rule == 0:
            for job in order:
                base += now[job - first]
        queue = _Queue(order, now, first, base, ends, freed)
        for place in range(min(size, CANDIDATES)):
            cost = _cost(columns, request, running, queue, place, clock, 2.0 * least)
            least = min(least, cost)
            excess[order[place]] = min(excess[order[place]], cost)
    for job in jobs:
        excess[job] = min(excess[job] / least - 1.0, 1.0)


@compiled(error_model="numpy")
def _cost(columns, request, running, queue, head, clock, most):
    """The cost of the plan that begins with queue.jobs[head]; anything above `most` where it is more."""
    ends, freed, size = queue.ends, queue.freed, running.size[COUNT]
    for place in range(size):
        job = running.by_request[place]
        ends[place], freed[place] = max(running.expected[job], clock + 1.0), columns.nodes[job]
    free, time, done, cost = running.size[FREE], clock, 0, queue.base
    for step in range(len(queue.jobs)):
        job = queue.jobs[head] if step == 0 else queue.jobs[step - 1] if step <= head else queue.jobs[step]
        while free < columns.nodes[job]:
            time = ends[done]
            free += freed[done]
            done += 1
        free -= columns.nodes[job]
        if time > clock:
            cost += max(1.0, (time - columns.submit[job] + request[job]) / max(request[job], SHORT)) - queue.now[job - queue.first]
            if cost > most:
                break
        end, place = time + request[job], size
        while place > done and ends[place - 1] > end:
            ends[place], freed[place] = ends[place - 1], freed[place - 1]
            place -= 1
        ends[place], freed[place] = end, columns.nodes[job]
        size += 1
    return cost
