"""Compiled form of plain.textbook_starts: EASY and conservative backfilling, one pass at each time at which jobs end or arrive."""

from __future__ import annotations

import numpy as np
from numba import njit

from schedlab.studies.batch.kernel_cluster import COUNT, FREE, occupy, release, score


@njit(cache=True, error_model="numpy")
def textbook_starts(columns, order, running, conservative):
    """Fill running.start with the start time of each job."""
    count = len(columns.submit)
    queue = np.empty(count, dtype=np.int64)
    waiting, arrived, clock = 0, 0, columns.submit[0]
    while waiting or arrived < count:
        if arrived:
            earliest = running.end[running.by_end[0]] if running.size[COUNT] else np.inf
            clock = max(clock, min(earliest, columns.submit[arrived] if arrived < count else np.inf))
        while running.size[COUNT] and running.end[running.by_end[0]] <= clock:
            release(running, columns)
        while arrived < count and columns.submit[arrived] <= clock:
            _join(queue, waiting, order, arrived)
            waiting += 1
            arrived += 1
        if order.power:
            _sort(queue, waiting, columns, order, clock)
        if conservative:
            waiting = _conservative_pass(queue, waiting, columns, running, clock)
        else:
            waiting = _easy_pass(queue, waiting, columns, running, clock)


@njit(cache=True, error_model="numpy")
def _join(queue, size, order, job):
    """Put an arrival into the queue: by its rank, or at the end where the queue is sorted at each pass."""
    low = size
    if order.power == 0:
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if order.rank[queue[middle]] < order.rank[job]:
                low = middle + 1
            else:
                high = middle
        for place in range(size, low, -1):
            queue[place] = queue[place - 1]
    queue[low] = job


@njit(cache=True, error_model="numpy")
def _sort(queue, size, columns, order, clock):
    """Order the queue by the scores of this time, ties by the order of submission."""
    jobs = np.sort(queue[:size])
    scores = np.empty(size)
    for place in range(size):
        scores[place] = score(columns, order, jobs[place], clock)
    queue[:size] = jobs[np.argsort(scores, kind="mergesort")]


@njit(cache=True, error_model="numpy")
def _easy_pass(queue, size, columns, running, clock):
    """Start what EASY starts now; return how many jobs still wait."""
    begun = 0
    while begun < size and columns.nodes[queue[begun]] <= running.size[FREE]:
        occupy(running, columns, queue[begun], clock)
        begun += 1
    if begun == size:
        return 0
    kept = 0
    if running.size[FREE] == 0 or size - begun == 1:
        for place in range(begun, size):
            queue[kept] = queue[place]
            kept += 1
        return kept
    shadow, extra = _reservation(columns, running, queue[begun], clock)
    for place in range(begun, size):
        job = queue[place]
        if place > begun and columns.nodes[job] <= running.size[FREE]:
            if clock + columns.requested[job] <= shadow:
                occupy(running, columns, job, clock)
                continue
            if columns.nodes[job] <= extra:
                extra -= columns.nodes[job]
                occupy(running, columns, job, clock)
                continue
        queue[kept] = job
        kept += 1
    return kept


@njit(cache=True, error_model="numpy")
def _reservation(columns, running, head, clock):
    """(shadow time, nodes that the head leaves free then); a job that has used up its request counts as ending in one second."""
    free, place, shadow = running.size[FREE], 0, clock
    while place < running.size[COUNT]:
        job = running.by_request[place]
        expected = max(running.expected[job], clock + 1.0)
        if free >= columns.nodes[head] and expected > shadow:
            break
        shadow = expected
        free += columns.nodes[job]
        place += 1
    return shadow, free - columns.nodes[head]


@njit(cache=True, error_model="numpy")
def _conservative_pass(queue, size, columns, running, clock):
    """Plan every job in order of the queue, start those whose place is now; return how many jobs still wait."""
    least = np.empty(size + 1, dtype=np.int64)  # smallest job from each place of the queue on
    least[size] = np.iinfo(np.int64).max
    for place in range(size - 1, -1, -1):
        least[place] = min(least[place + 1], columns.nodes[queue[place]])
    times, free, steps = _profile(columns, running, clock, 2 * size)
    kept = 0
    for place in range(size):
        job = queue[place]
        if free[0] >= least[place]:  # else no further job can start now, and nothing else of the plan is kept
            begin, steps = _reserve(times, free, steps, columns.nodes[job], max(columns.requested[job], 1.0))
            if begin == clock:
                occupy(running, columns, job, clock)
                continue
        queue[kept] = job
        kept += 1
    return kept


@njit(cache=True, error_model="numpy")
def _profile(columns, running, clock, room):
    """(times, free nodes from each time on, number of steps) if all running jobs end as expected, with room for more steps."""
    count = running.size[COUNT]
    times, free = np.empty(count + 1 + room), np.empty(count + 1 + room, dtype=np.int64)
    times[0], free[0], steps = clock, running.size[FREE], 1
    for place in range(count):
        job = running.by_request[place]
        expected = max(running.expected[job], clock + 1.0)
        if expected > times[steps - 1]:
            times[steps], free[steps] = expected, free[steps - 1]
            steps += 1
        free[steps - 1] += columns.nodes[job]
    return times, free, steps


@njit(cache=True, error_model="numpy")
def _reserve(times, free, steps, nodes, length):
    """Reserve nodes at the earliest time at which they are free for a length; return (that time, number of steps)."""
    first = 0
    while True:
        last = first
        while last < steps and times[last] < times[first] + length and free[last] >= nodes:
            last += 1
        if last == steps or times[last] >= times[first] + length:
            break
        first = last + 1
    begin, end = times[first], times[first] + length
    if last == steps or times[last] > end:
        for place in range(steps, last, -1):
            times[place], free[place] = times[place - 1], free[place - 1]
        times[last], free[last] = end, free[last - 1]
        steps += 1
    for place in range(first, last):
        free[place] -= nodes
    return begin, steps
