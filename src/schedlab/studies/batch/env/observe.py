"""Compiled observations: the waiting jobs that are observed, and the numbers of the layouts (layouts.py)."""

from __future__ import annotations

from math import ceil, log, log10
from typing import Any

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.env.layouts import CEILING, DISSERTATION, FEATURES, RLSCHEDULER
from schedlab.studies.batch.rules import DAY, MOST_DAYS, UNKNOWN_REQUEST
from schedlab.studies.batch.simulator.blocking import ARRIVED
from schedlab.studies.batch.simulator.cluster import COUNT, FREE, Array, uncounted
from schedlab.studies.batch.simulator.decision_kernel import Window, choices

EMPTY, NOOP = -1, -2  # rows that hold no job
LONGEST_WAIT = 43200.0  # s; what the published layouts divide waits by
RLSCHEDULER_TOP, DISSERTATION_TOP = CEILING["rlscheduler"], CEILING["dissertation"]


@compiled(error_model="numpy")
def fill_rows(window: Window, orders: Array, random: int, state: Array, stamp: Array, rows: Array, noop: bool) -> int:
    """Write the job of each row (EMPTY: none; NOOP: waiting, after the last job); return the number of rows
    with a job.

    orders  (rules, J): the jobs by each rule that a long queue is cut by; random: which of them is shuffled, -1: none
    state   (1,) uint64, of the random numbers; stamp (J,) int64: room
    All jobs in order of submission, or, of a longer queue, the best by each rule in turn, each job once.
    """
    size, jobs = len(rows), window.jobs
    found = choices(window, jobs)
    if found > size:
        stamp[:] = 0
        for job in jobs[:found]:
            stamp[job] = 1
        if random >= 0:
            orders[random, :found] = jobs[:found]
            _shuffle(orders[random, :found], state)
        _take_in_turn(orders, stamp, rows)
        return size
    rows[:found] = jobs[:found]
    rows[found:] = EMPTY
    if noop and found < size:
        rows[found] = NOOP
    return found


@compiled(error_model="numpy")
def _take_in_turn(orders: Array, stamp: Array, rows: Array) -> None:
    """Go through the orders side by side; stamp: 1 may be chosen, 2 taken."""
    places, taken = np.zeros(len(orders), dtype=np.int64), 0
    while True:
        for rule in range(len(orders)):
            while stamp[orders[rule, places[rule]]] == 0:
                places[rule] += 1
            job = orders[rule, places[rule]]
            places[rule] += 1
            if stamp[job] == 1:
                stamp[job] = 2
                rows[taken] = job
                taken += 1
                if taken == len(rows):
                    return


@compiled(error_model="numpy")
def _shuffle(order: Array, state: Array) -> None:
    """Put jobs in random order (splitmix64, Steele et al., OOPSLA 2014; Fisher and Yates)."""
    for place in range(len(order) - 1, 0, -1):
        state[0] += np.uint64(0x9E3779B97F4A7C15)
        mixed = state[0]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
        other = np.int64(mixed % np.uint64(place + 1))
        order[place], order[other] = order[other], order[place]


@compiled(error_model="numpy")
def observe(
    window: Window, terms: Any, fixed: Array, rows: Array, found: int, excess: Array, job_ids: Array, out: Array
) -> None:
    """Write an observation (size,) float32.

    terms: the layout and, for the dissertation's, the largest job id; fixed (n, k): layouts.fixed_columns of the jobs
    of the window; excess (n,): what planning the queue says, (0,) where it is not seen
    """
    if terms.layout == FEATURES:
        _features(window, fixed, rows, found, excess, out)
    elif terms.layout == RLSCHEDULER:
        _rlscheduler(window, fixed, rows, found, out)
    elif terms.layout == DISSERTATION:
        _dissertation(window, fixed, rows, found, job_ids, terms.largest_id, out)


@compiled(error_model="numpy")
def _rlscheduler(window: Window, fixed: Array, rows: Array, found: int, out: Array) -> None:
    nodes, submit = window.columns.nodes, window.columns.submit
    clock, free = window.queue.clock[0], window.running.size[FREE]
    for row in range(found):
        job, at = rows[row], 8 * row
        out[at] = min((clock - submit[job]) / LONGEST_WAIT, RLSCHEDULER_TOP)
        for place in range(6):
            out[at + 1 + place] = fixed[job, place]
        out[at + 7] = RLSCHEDULER_TOP if nodes[job] <= free else 1e-5
    for row in range(found, len(rows)):
        at = 8 * row
        out[at] = 0.0
        out[at + 1 : at + 7] = 1.0
        out[at + 7] = 0.0
    if found < len(rows) and rows[found] == NOOP:
        out[8 * found] = 1.0
        if window.queue.counts[ARRIVED] == len(submit):
            out[8 * found + 7] = 1.0


@compiled(error_model="numpy")
def _dissertation(
    window: Window, fixed: Array, rows: Array, found: int, job_ids: Array, largest_id: float, out: Array
) -> None:
    nodes, submit, owner = window.columns.nodes, window.columns.submit, window.running.owner
    clock, free = window.queue.clock[0], window.running.size[FREE]
    for row in range(found):
        job, at = rows[row], 10 * row
        out[at] = fixed[job, 0]
        out[at + 1] = min((clock - submit[job]) / LONGEST_WAIT, DISSERTATION_TOP)
        for place in range(1, 7):
            out[at + 1 + place] = fixed[job, place]
        out[at + 8] = DISSERTATION_TOP if nodes[job] <= free else 1e-6
        out[at + 9] = 1.0
    for row in range(found, len(rows)):
        at = 10 * row
        out[at : at + 8] = -1.0
        out[at + 8 : at + 10] = 1.0 if rows[row] == NOOP else 0.0
    at = 10 * len(rows)
    for node in range(len(owner)):
        job = owner[node]
        number = job_ids[job] if job >= 0 else -1
        out[at + node] = min(max(number / largest_id, -1.0), 1.0)


@compiled(error_model="numpy")
def _features(window: Window, fixed: Array, rows: Array, found: int, excess: Array, out: Array) -> None:
    """log_delay: when the nodes are free if nothing else starts; an overdue job counts as ending in a second."""
    nodes, requested, submit = window.columns.nodes, window.columns.requested, window.columns.submit
    by_request, expected = window.running.by_request, window.running.expected
    clock, free, count = window.queue.clock[0], window.running.size[FREE], window.running.size[COUNT]
    width = 6 + fixed.shape[1] + (2 if len(excess) else 0)
    freed, log_delays = np.empty(count, dtype=np.int64), np.empty(count)
    total = free
    for place in range(count):
        total += nodes[by_request[place]]
        freed[place] = total
        log_delays[place] = log(1.0 + max(expected[by_request[place]] - clock, 1.0)) / 10.0
    for row in range(found):
        job, at = rows[row], width * row
        for place in range(5):
            out[at + place] = fixed[job, place]
        since = clock - submit[job]
        request = requested[job] if requested[job] > 0 else UNKNOWN_REQUEST
        out[at + 5] = log(1.0 + since) / 10.0
        out[at + 6] = log(1.0 + since / request) / 5.0
        out[at + 7] = min(since / DAY, MOST_DAYS)
        fits = nodes[job] <= free
        out[at + 8] = 1.0 if fits else 0.0
        out[at + 9] = 0.0 if fits else log_delays[_first_at_least(freed, nodes[job])]
        out[at + 10] = 1.0
        for place in range(5, fixed.shape[1]):
            out[at + 6 + place] = fixed[job, place]
        if len(excess):
            out[at + width - 2] = log10(0.001 + excess[job]) / 3.0 + 1.0
            out[at + width - 1] = excess[job]
    out[width * found : width * len(rows)] = 0.0
    if found < len(rows) and rows[found] == NOOP:
        out[width * found + 10] = -1.0
    at = width * len(rows)
    quantiles = (len(out) - at - 1) // 2
    out[at] = free / total
    for step in range(quantiles):
        place = ceil((step + 1) * count / quantiles) - 1
        out[at + 1 + 2 * step] = log_delays[place] if count else 0.0
        out[at + 2 + 2 * step] = freed[place] / total if count else 1.0


@uncounted
def _first_at_least(freed: Array, needed: int) -> int:
    low, high = 0, len(freed) - 1
    while low < high:
        middle = (low + high) // 2
        if freed[middle] < needed:
            low = middle + 1
        else:
            high = middle
    return low
