"""kernel_blocking.blocking_starts for what needs more at each decision: scores that are written then, jobs backfilled
in their order.
"""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.simulator.blocking import (
    ARRIVED,
    WAITING,
    arrive,
    backfill_by_key,
    backfill_by_submission,
    begin,
    event,
    order_ties,
    preferred,
    shadow_time,
)
from schedlab.studies.batch.simulator.cluster import BY_AREA, FCFS, FREE, WRITTEN, score
from schedlab.studies.batch.simulator.scores import write_scores


@compiled(error_model="numpy")
def policy_blocking_starts(queue, columns, order, scan, running, backfill):
    """Fill running.start with the start time of each job."""
    count = len(columns.submit)
    arrive(queue, columns)
    while queue.counts[WAITING]:
        if order.power == WRITTEN and queue.counts[WAITING] > 1:
            write_scores(columns, scan.linear, running, _waiting(queue), queue.clock[0])
        job = preferred(queue, columns, order)
        if columns.nodes[job] > running.size[FREE] and backfill:
            shadow = shadow_time(columns, running, job)
            order_ties(queue, columns, order)
        while columns.nodes[job] > running.size[FREE]:
            if backfill:
                if scan.by == FCFS:
                    backfill_by_submission(queue, columns, running, shadow)
                elif scan.by == BY_AREA:
                    backfill_by_key(queue, columns, running, shadow, scan.area)
                elif running.size[FREE] and queue.counts[WAITING] > 1:
                    _backfill_by_score(queue, columns, order, scan, running, shadow)
            event(queue, columns, running)
        begin(queue, columns, running, job)
        while not queue.counts[WAITING] and queue.counts[ARRIVED] < count:
            event(queue, columns, running)


@compiled(error_model="numpy")
def _backfill_by_score(queue, columns, order, scan, running, shadow):
    """Start what fits and ends before the shadow time as requested, in order of the scores of this time."""
    jobs, clock = _waiting(queue), queue.clock[0]
    keys = np.empty(len(jobs))
    if order.power == WRITTEN:
        write_scores(columns, scan.linear, running, jobs, clock)
    for place in range(len(jobs)):
        keys[place] = score(columns, order, jobs[place], clock)
    for place in np.argsort(keys, kind="mergesort"):
        job = jobs[place]
        if columns.nodes[job] <= running.size[FREE] and clock + columns.requested[job] < shadow:
            begin(queue, columns, running, job)


@compiled(error_model="numpy")
def _waiting(queue):
    """The waiting jobs in order of submission."""
    return np.flatnonzero(queue.waits[: queue.counts[ARRIVED]])
