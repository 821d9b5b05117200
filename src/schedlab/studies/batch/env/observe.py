"""Compiled observations: the waiting jobs that are observed, and the numbers of the layouts (layouts.py)."""

from __future__ import annotations

from math import ceil, log, log10
from typing import Any

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.env.layouts import (
    CEILING,
    DISSERTATION,
    FEATURES,
    LARGEST_RATIO,
    LONGEST,
    LONGEST_QUEUE,
    RLSCHEDULER,
    SHORTLIST,
)
from schedlab.studies.batch.jobs import UNKNOWN_REQUEST
from schedlab.studies.batch.rules import DAY, MOST_DAYS
from schedlab.studies.batch.simulator.blocking import ARRIVED, WAITING
from schedlab.studies.batch.simulator.cluster import COUNT, FREE, Array, uncounted
from schedlab.studies.batch.simulator.decision_kernel import Window, choices

EMPTY, NOOP = -1, -2  # rows that hold no job
LONGEST_WAIT = 43200.0  # s; what the published layouts divide waits by
RLSCHEDULER_TOP, DISSERTATION_TOP = CEILING["rlscheduler"], CEILING["dissertation"]


@compiled(error_model="numpy")
def fill_rows(window: Window, orders: Array, terms: Any, state: Array, stamp: Array, rows: Array) -> int:
    """Write the job of each row (EMPTY: none; NOOP: waiting, after the last job); return the number of rows
    with a job.

    orders  (rules, J): the jobs by each rule that a long queue is cut by; terms.shuffled: which of them is shuffled
    (-1: none)
    state   (1,) uint64, of the random numbers; stamp (J,) int64: room
    All jobs in order of submission, or, of a longer queue and in the layout shortlist, the best by each rule in turn,
    each job once.
    """
    size, jobs, random = len(rows), window.jobs, terms.shuffled
    found = choices(window, jobs)
    shown = min(found, size)
    if found > size or (found and terms.layout == SHORTLIST):
        stamp[:] = 0
        for job in jobs[:found]:
            stamp[job] = 1
        if random >= 0:
            orders[random, :found] = jobs[:found]
            _shuffle(orders[random, :found], state)
        _take_in_turn(orders, stamp, rows[:shown])
    else:
        rows[:found] = jobs[:found]
    rows[shown:] = EMPTY
    if terms.noop_seconds > 0 and found < size:
        rows[found] = NOOP
    return shown


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
    elif terms.layout == SHORTLIST:
        _shortlist(window, fixed, rows, found, out)
    elif terms.layout == RLSCHEDULER:
        _rlscheduler(window, fixed, rows, found, out)
    elif terms.layout == DISSERTATION:
        _dissertation(window, fixed, rows, found, job_ids, terms.largest_id, out)


@compiled(error_model="numpy")
def _rlscheduler(window: Window, fixed: Array, rows: Array, found: int, out: Array) -> None:
    nodes, submit = window.columns.nodes, window.columns.submit
    clock, free = window.queue.clock[0], window.running.size[FREE]
    width = len(out) // len(rows)  # 9 with the column of fairness, which show_fairness writes
    for row in range(found):
        job, at = rows[row], width * row
        out[at] = min((clock - submit[job]) / LONGEST_WAIT, RLSCHEDULER_TOP)
        for place in range(6):
            out[at + 1 + place] = fixed[job, place]
        out[at + width - 1] = RLSCHEDULER_TOP if nodes[job] <= free else 1e-5
    for row in range(found, len(rows)):
        at = width * row
        out[at] = 0.0
        out[at + 1 : at + width - 1] = 1.0
        out[at + width - 1] = 0.0
    if found < len(rows) and rows[found] == NOOP:
        out[width * found] = 1.0
        if window.queue.counts[ARRIVED] == len(submit):
            out[width * found + width - 1] = 1.0


@compiled(error_model="numpy")
def show_fairness(user: Array, total: Array, started: Array, rows: Array, found: int, out: Array) -> None:
    """Write RLScheduler's feature of fairness: 1 - the mean score of the user's started jobs / the largest mean of a
    user; 1 if the user is unknown or no job of the user has started.

    user  (J,): numbers of users, -1: unknown     total, started  (users,): sums of scores, and numbers of jobs
    """
    largest = 0.0
    for one in range(len(total)):
        if started[one]:
            largest = max(largest, total[one] / started[one])
    width = len(out) // len(rows)
    for row in range(found):
        one, value = user[rows[row]], 1.0
        if one >= 0 and started[one] and largest > 0:
            value = 1.0 - total[one] / started[one] / largest
        out[width * row + width - 2] = value


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
    """log_delay: when the nodes are free if nothing else starts."""
    nodes, requested, submit = window.columns.nodes, window.columns.requested, window.columns.submit
    clock, free = window.queue.clock[0], window.running.size[FREE]
    width = 6 + fixed.shape[1] + (2 if len(excess) else 0)
    freed, log_delays = _releases(window, 10.0)
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
    _machine(free, freed, log_delays, (len(out) - at - 1) // 2, out[at:])


@compiled(error_model="numpy")
def _shortlist(window: Window, fixed: Array, rows: Array, found: int, out: Array) -> None:
    """Every number lies between 0 and 1, but for the -1 of the row for waiting."""
    nodes, requested, submit = window.columns.nodes, window.columns.requested, window.columns.submit
    clock, free = window.queue.clock[0], window.running.size[FREE]
    freed, log_delays = _releases(window, LONGEST)
    for row in range(found):
        job, at = rows[row], 8 * row
        for place in range(3):
            out[at + place] = fixed[job, place]
        since = clock - submit[job]
        request = requested[job] if requested[job] > 0 else UNKNOWN_REQUEST
        out[at + 3] = min(log(1.0 + since) / LONGEST, 1.0)
        out[at + 4] = min(log(1.0 + since / request) / LARGEST_RATIO, 1.0)
        fits = nodes[job] <= free
        out[at + 5] = 1.0 if fits else 0.0
        out[at + 6] = 0.0 if fits else min(log_delays[_first_at_least(freed, nodes[job])], 1.0)
        out[at + 7] = 1.0
    out[8 * found : 8 * len(rows)] = 0.0
    if found < len(rows) and rows[found] == NOOP:
        out[8 * found + 7] = -1.0
    at = 8 * len(rows)
    _machine(free, freed, np.minimum(log_delays, 1.0), (len(out) - at - 2) // 2, out[at:])
    out[len(out) - 1] = min(log(1.0 + window.queue.counts[WAITING]) / LONGEST_QUEUE, 1.0)


@compiled(error_model="numpy")
def _releases(window: Window, scale: float) -> tuple[Array, Array]:
    """Return for the running jobs, in the order of their expected ends: the nodes that are free by then, and
    ln(1 + s until then) / scale. An overdue job counts as ending in a second.
    """
    by_request, expected = window.running.by_request, window.running.expected
    clock, total, count = window.queue.clock[0], window.running.size[FREE], window.running.size[COUNT]
    freed, log_delays = np.empty(count, dtype=np.int64), np.empty(count)
    for place in range(count):
        total += window.columns.nodes[by_request[place]]
        freed[place] = total
        log_delays[place] = log(1.0 + max(expected[by_request[place]] - clock, 1.0)) / scale
    return freed, log_delays


@compiled(error_model="numpy")
def _machine(free: int, freed: Array, log_delays: Array, quantiles: int, out: Array) -> None:
    """Write the free share of the machine; then, for each quantile of the expected ends, when it is, and the share that
    is free by then.
    """
    count = len(freed)
    total = freed[count - 1] if count else free
    out[0] = free / total
    for step in range(quantiles):
        place = ceil((step + 1) * count / quantiles) - 1
        out[1 + 2 * step] = log_delays[place] if count else 0.0
        out[2 + 2 * step] = freed[place] / total if count else 1.0


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
