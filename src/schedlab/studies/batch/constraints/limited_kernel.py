"""Compiled simulation under limits (limits.py): the chosen job blocks, or EASY with reservations of nodes and memory.

Without a limit that binds, the start times are those of blocking.py and textbook.py.
"""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.constraints.limits import Limits
from schedlab.studies.batch.simulator.blocking import ARRIVED, WAITING, Queue, arrive, begin, event
from schedlab.studies.batch.simulator.cluster import (
    BY_KEY,
    BY_RULE,
    COUNT,
    FREE,
    WRITTEN,
    Array,
    Columns,
    Order,
    Running,
    Scan,
    occupy,
    release,
    score,
)
from schedlab.studies.batch.simulator.scores import write_scores
from schedlab.studies.batch.simulator.textbook import bounded_score, smallest_waiting


@compiled(error_model="numpy")
def _sums(limits: Limits, running: Running) -> Array:
    """The sums over the running jobs."""
    sums = np.zeros(len(limits.most), dtype=np.int64)
    for place in range(running.size[COUNT]):
        sums += limits.amount[:, running.by_end[place]]
    return sums


@compiled(error_model="numpy")
def _fits(limits: Limits, sums: Array, job: int, holding: bool) -> bool:
    """Return whether a job stays below the limits that hold jobs, or below those that they wait for."""
    for row in range(len(sums)):
        amount = limits.amount[row, job]
        if limits.holds[row] == holding and amount > 0 and sums[row] + amount > limits.most[row]:
            return False
    return True


@compiled(error_model="numpy")
def limited_blocking_starts(
    queue: Queue, columns: Columns, order: Order, scan: Scan, running: Running, limits: Limits
) -> None:
    """Fill running.start with the start times if the waiting job of the lowest score that no limit holds is always
    chosen, and blocks the others until it fits.
    """
    count = len(columns.submit)
    arrive(queue, columns)
    while queue.counts[WAITING]:
        waiting = np.flatnonzero(queue.waits[: queue.counts[ARRIVED]])
        if order.power == WRITTEN and len(waiting) > 1:
            write_scores(columns, scan.linear, running, waiting, queue.clock[0])
        job, lowest, sums = -1, np.inf, _sums(limits, running)
        for place in range(len(waiting)):
            other = waiting[place]
            if _fits(limits, sums, other, True):
                found = score(columns, order, other, queue.clock[0])
                earlier = job >= 0 and columns.submit[other] < columns.submit[job]
                if job < 0 or found < lowest or (found == lowest and earlier):
                    job, lowest = other, found
        if job < 0:
            event(queue, columns, running)
            continue
        while not _fits(limits, _sums(limits, running), job, False):
            event(queue, columns, running)
        begin(queue, columns, running, job)
        while not queue.counts[WAITING] and queue.counts[ARRIVED] < count:
            event(queue, columns, running)


@compiled(error_model="numpy")
def limited_easy_starts(columns: Columns, order: Order, scan: Scan, running: Running, limits: Limits) -> None:
    """Fill running.start with the start times under EASY, a pass at each time at which jobs end or arrive."""
    count, waiting, arrived, clock = len(columns.submit), 0, 0, columns.submit[0]
    queue = np.empty(count, dtype=np.int64)  # in order of submission
    while waiting or arrived < count:
        if arrived:
            earliest = running.end[running.by_end[0]] if running.size[COUNT] else np.inf
            clock = max(clock, min(earliest, columns.submit[arrived] if arrived < count else np.inf))
        while running.size[COUNT] and running.end[running.by_end[0]] <= clock:
            release(running, columns)
        while arrived < count and columns.submit[arrived] <= clock:
            queue[waiting] = arrived
            waiting += 1
            arrived += 1
        if smallest_waiting(queue, waiting, columns) > running.size[FREE]:
            continue
        if order.power == WRITTEN and waiting > 1:
            write_scores(columns, scan.linear, running, queue[:waiting], clock)
        waiting = _pass(queue[:waiting], columns, order, scan, running, clock, limits)


@compiled(error_model="numpy")
def _pass(
    queue: Array, columns: Columns, order: Order, scan: Scan, running: Running, clock: float, limits: Limits
) -> int:
    """Start what EASY starts now, and close the gaps of the queue; return how many jobs still wait."""
    scores, sums, head = np.empty(len(queue)), _sums(limits, running), -1
    for place in range(len(queue)):
        scores[place] = bounded_score(columns, order, queue[place], clock)
    for place in np.argsort(scores, kind="mergesort"):
        job = queue[place]
        if not _fits(limits, sums, job, True):
            continue
        if not _fits(limits, sums, job, False):
            head = place
            break
        occupy(running, columns, job, clock)
        sums += limits.amount[:, job]
        queue[place] = -1
    if head >= 0:
        keys = scores
        if scan.by == BY_KEY:
            keys = scan.keys[queue]  # those of started jobs, -1, are not read
        elif scan.by != BY_RULE:
            keys = np.arange(len(queue)).astype(np.float64)
        _backfill(queue, columns, running, clock, limits, sums, keys, head)
    kept = 0
    for place in range(len(queue)):
        if queue[place] >= 0:
            queue[kept] = queue[place]
            kept += 1
    return kept


@compiled(error_model="numpy")
def _backfill(
    queue: Array,
    columns: Columns,
    running: Running,
    clock: float,
    limits: Limits,
    sums: Array,
    keys: Array,
    head: int,
) -> None:
    """Start jobs beside the head in the order of keys (waiting,): they fit, and end by the shadow time or leave what
    the head needs then.
    """
    shadow, extra = _reservation(running, clock, limits, sums, queue[head])
    for place in np.argsort(keys, kind="mergesort"):
        job = queue[place]
        if job < 0 or place == head or not (_fits(limits, sums, job, True) and _fits(limits, sums, job, False)):
            continue
        amount = limits.amount[:, job]
        if clock + columns.requested[job] > shadow:
            if ((amount > 0) & (amount > extra)).any():
                continue
            extra -= amount
        occupy(running, columns, job, clock)
        sums += amount
        queue[place] = -1


@compiled(error_model="numpy")
def _reservation(running: Running, clock: float, limits: Limits, sums: Array, head: int) -> tuple[float, Array]:
    """(shadow time, what the head leaves of each sum then), as textbook.reservation."""
    left, shadow = sums.copy(), clock
    for place in range(running.size[COUNT]):
        job = running.by_request[place]
        expected = max(running.expected[job], clock + 1.0)
        if expected > shadow and _fits(limits, left, head, False):
            break
        shadow = expected
        left -= limits.amount[:, job]
    return shadow, limits.most - left - limits.amount[:, head]
