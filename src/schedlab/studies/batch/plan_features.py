"""What planning the present queue says of each waiting job: compiled form of linear_plain.plain_excess.

For each of the rules PLANNED_BY and each of the first CANDIDATES jobs of its order: that job comes first, the rest of the queue follows in
that order, each blocks the machine until it fits, all end as requested, nothing arrives. The cost of a plan is the sum of bounded
slowdowns. A job's excess is the cost of its best plan over that of the best plan of all, minus 1, at most 1.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from schedlab.studies.batch.jobs import SHORT, Jobs
from schedlab.studies.batch.rules import area, priority

PLANNED_BY = ("sjf", "smallest", "f1", "area")
CANDIDATES = 8


def planning_orders(jobs: Jobs) -> np.ndarray:
    """Return the jobs in the order of each of PLANNED_BY, (4, n) int64; ties in the order of the jobs."""
    scores = [area(jobs) if rule == "area" else priority(rule, jobs).score for rule in PLANNED_BY]
    return np.stack([np.argsort(score, kind="stable") for score in scores])


@njit(cache=True, error_model="numpy")
def excess_costs(columns, request, orders, running, jobs, clock, excess):
    """Write the excess of each waiting job of `jobs`, 0 to 1; 1 for what no plan begins with."""
    count = len(jobs)
    first, last = jobs.min(), jobs.max()
    waits = np.zeros(last - first + 1, dtype=np.bool_)
    for job in jobs:
        waits[job - first] = True
        excess[job] = np.inf
    now = np.empty(last - first + 1)  # bounded slowdown if started now
    queue = np.empty(count, dtype=np.int64)
    ends, freed = np.empty(running.size[0] + count), np.empty(running.size[0] + count, dtype=np.int64)
    base, least = 0.0, np.inf
    for rule in range(len(orders)):
        size = 0
        for job in orders[rule]:
            if first <= job <= last and waits[job - first]:
                queue[size] = job
                size += 1
        if rule == 0:
            for job in queue:
                now[job - first] = max(1.0, (clock - columns.submit[job] + request[job]) / max(request[job], SHORT))
                base += now[job - first]
        for place in range(min(size, CANDIDATES)):
            cost = _cost(columns, request, running, queue, place, clock, now, first, base, 2.0 * least, ends, freed)
            least = min(least, cost)
            excess[queue[place]] = min(excess[queue[place]], cost)
    for job in jobs:
        excess[job] = min(excess[job] / least - 1.0, 1.0)


@njit(cache=True, error_model="numpy")
def _cost(columns, request, running, queue, head, clock, now, first, base, most, ends, freed):
    """The cost of the plan that begins with queue[head]; anything above `most` where it is more."""
    size = running.size[0]
    for place in range(size):
        job = running.by_request[place]
        ends[place], freed[place] = max(running.expected[job], clock + 1.0), columns.nodes[job]
    free, time, done, cost = running.size[1], clock, 0, base
    for step in range(len(queue)):
        job = queue[head] if step == 0 else queue[step - 1] if step <= head else queue[step]
        while free < columns.nodes[job]:
            time = ends[done]
            free += freed[done]
            done += 1
        free -= columns.nodes[job]
        if time > clock:
            cost += max(1.0, (time - columns.submit[job] + request[job]) / max(request[job], SHORT)) - now[job - first]
            if cost > most:
                break
        end, place = time + request[job], size
        while place > done and ends[place - 1] > end:
            ends[place], freed[place] = ends[place - 1], freed[place - 1]
            place -= 1
        ends[place], freed[place] = end, columns.nodes[job]
        size += 1
    return cost
