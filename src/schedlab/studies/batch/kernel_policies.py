"""kernel_blocking.blocking_starts for what is no fixed order: scores that are written at each decision, other orders of backfilling."""

from __future__ import annotations

import numpy as np
from numba import njit

from schedlab.studies.batch.kernel_blocking import (
    ARRIVED,
    WAITING,
    Queue,
    arrive,
    backfill_by_submission,
    begin,
    event,
    order_ties,
    preferred,
    shadow_time,
)
from schedlab.studies.batch.kernel_cluster import BY_AREA, FCFS, FREE, WRITTEN, score
from schedlab.studies.batch.linear_kernel import write_scores


@njit(cache=True, error_model="numpy")
def policy_blocking_starts(columns, order, scan, running, backfill):
    """Fill running.start with the start time of each job."""
    count = len(columns.submit)
    queue = Queue(
        np.empty(count if order.power == 0 else 0, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.zeros(count, dtype=np.bool_),
        np.zeros(5, dtype=np.int64),
        np.array([columns.submit[0]]),
    )
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
                elif running.size[FREE] and queue.counts[WAITING] > 1:
                    _backfill_by(queue, columns, order, scan, running, shadow)
            event(queue, columns, running)
        begin(queue, columns, running, job)
        while not queue.counts[WAITING] and queue.counts[ARRIVED] < count:
            event(queue, columns, running)


@njit(cache=True, error_model="numpy")
def _backfill_by(queue, columns, order, scan, running, shadow):
    """Start what fits and ends before the shadow time as requested, in order of area or of the scores of this time."""
    jobs, clock = _waiting(queue), queue.clock[0]
    keys = np.empty(len(jobs))
    if scan.by != BY_AREA and order.power == WRITTEN:
        write_scores(columns, scan.linear, running, jobs, clock)
    for place in range(len(jobs)):
        keys[place] = scan.area[jobs[place]] if scan.by == BY_AREA else score(columns, order, jobs[place], clock)
    for place in np.argsort(keys, kind="mergesort"):
        job = jobs[place]
        if columns.nodes[job] <= running.size[FREE] and clock + columns.requested[job] < shadow:
            begin(queue, columns, running, job)


@njit(cache=True, error_model="numpy")
def _waiting(queue):
    """The waiting jobs in order of submission."""
    return np.flatnonzero(queue.waits[: queue.counts[ARRIVED]])
