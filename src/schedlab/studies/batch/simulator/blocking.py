"""Compiled blocking simulation: the chosen job blocks all others, with or without the published backfilling."""

from __future__ import annotations

from math import frexp
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.simulator.cluster import (
    BY_KEY,
    COUNT,
    FCFS,
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
    uncounted,
)
from schedlab.studies.batch.simulator.scores import write_scores


class Queue(NamedTuple):
    """Waiting jobs and the clock.

    ranks    a bit for each rank of a waiting job, started ones among them (unused where no rule chooses)
    listed   jobs in order of submission, started ones among them        waits (n,)  whether a job waits
    counts   (5,): arrived, waiting, length of listed, arrivals whose ranks are marked, first word of ranks with a bit
    clock    (1,) s
    """

    ranks: np.ndarray
    listed: np.ndarray
    waits: np.ndarray
    counts: np.ndarray
    clock: np.ndarray


ARRIVED, WAITING, LISTED, TAKEN, WORD = 0, 1, 2, 3, 4


NO_KEYS = np.empty(0)  # keys of `choose`: backfill in order of submission


def queue_of(columns: Columns) -> Queue:
    """Return the empty queue of a window."""
    count = len(columns.submit)
    return Queue(
        np.zeros(count // 64 + 1, dtype=np.uint64),
        np.empty(count, dtype=np.int64),
        np.zeros(count, dtype=np.bool_),
        np.zeros(5, dtype=np.int64),
        columns.submit[:1].copy(),
    )


@uncounted
def blocking_starts(
    queue: Queue, columns: Columns, order: Order, running: Running, backfill: bool, keys: Array
) -> None:
    """Fill running.start with the start time of each job if the waiting job with the lowest score is always chosen."""
    least = least_request(columns)
    arrive(queue, columns)
    while queue.counts[WAITING]:
        choose(queue, columns, order, running, preferred(queue, columns, order), least, backfill, keys)


@compiled(error_model="numpy")
def policy_blocking_starts(
    queue: Queue, columns: Columns, order: Order, scan: Scan, running: Running, backfill: bool
) -> None:
    """The same with scores that are written at each decision, and jobs backfilled in the order of `scan`."""
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
                elif scan.by == BY_KEY:
                    backfill_by_key(queue, columns, running, shadow, scan.keys)
                elif running.size[FREE] and queue.counts[WAITING] > 1:
                    _backfill_by_score(queue, columns, order, scan, running, shadow)
            event(queue, columns, running)
        begin(queue, columns, running, job)
        while not queue.counts[WAITING] and queue.counts[ARRIVED] < count:
            event(queue, columns, running)


@compiled(error_model="numpy")
def _backfill_by_score(
    queue: Queue, columns: Columns, order: Order, scan: Scan, running: Running, shadow: float
) -> None:
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
def _waiting(queue: Queue) -> np.ndarray:
    """The waiting jobs in order of submission."""
    return np.flatnonzero(queue.waits[: queue.counts[ARRIVED]])


@uncounted
def least_request(columns: Columns) -> float:
    """The smallest requested time, at most 0: it may be unknown, which the published rule counts as -1 s."""
    least = 0.0
    for job in range(len(columns.requested)):
        least = min(least, columns.requested[job])
    return least


@uncounted
def choose(
    queue: Queue, columns: Columns, order: Order, running: Running, job: int, least: float, backfill: bool, keys: Array
) -> None:
    """Start a waiting job as soon as it fits and continue to the next decision.

    keys  (n,) whose smallest is backfilled first; empty: in order of submission
    """
    if columns.nodes[job] > running.size[FREE]:
        if backfill:
            _drain(queue, columns, order, running, job, least, keys)
        else:
            while columns.nodes[job] > running.size[FREE]:
                event(queue, columns, running)
    begin(queue, columns, running, job)
    while not queue.counts[WAITING] and queue.counts[ARRIVED] < len(columns.submit):
        event(queue, columns, running)


@uncounted
def begin(queue: Queue, columns: Columns, running: Running, job: int) -> None:
    """Start a waiting job that fits."""
    queue.waits[job] = False
    queue.counts[WAITING] -= 1
    occupy(running, columns, job, queue.clock[0])


@uncounted
def _drain(queue: Queue, columns: Columns, order: Order, running: Running, job: int, least: float, keys: Array) -> None:
    shadow = shadow_time(columns, running, job)
    order_ties(queue, columns, order)
    while columns.nodes[job] > running.size[FREE]:
        if queue.clock[0] + least < shadow:  # else nobody can end before it
            if len(keys):
                backfill_by_key(queue, columns, running, shadow, keys)
            else:
                backfill_by_submission(queue, columns, running, shadow)
        event(queue, columns, running)


@uncounted
def order_ties(queue: Queue, columns: Columns, order: Order) -> None:
    """Put listed jobs of one submit time in the order of their scores, in which the published queue is sorted."""
    kept = 0
    for place in range(queue.counts[LISTED]):
        job = queue.listed[place]
        if not queue.waits[job]:
            continue
        to = kept
        kept += 1
        while (
            to > 0
            and columns.submit[queue.listed[to - 1]] == columns.submit[job]
            and _before(queue, columns, order, job, to - 1)
        ):
            queue.listed[to] = queue.listed[to - 1]
            to -= 1
        queue.listed[to] = job
    queue.counts[LISTED] = kept


@uncounted
def _before(queue: Queue, columns: Columns, order: Order, job: int, place: int) -> bool:
    """Return whether the rule prefers a job to the one at a place of the list."""
    other = queue.listed[place]
    if order.power == 0:
        return order.rank[job] < order.rank[other]
    ours, theirs = score(columns, order, job, queue.clock[0]), score(columns, order, other, queue.clock[0])
    return ours < theirs or (ours == theirs and job < other)


@uncounted
def backfill_by_submission(queue: Queue, columns: Columns, running: Running, shadow: float) -> None:
    """Start what fits and ends before the shadow time as requested, in order of submission; close the gaps."""
    kept, clock = 0, queue.clock[0]
    for place in range(queue.counts[LISTED]):
        job = queue.listed[place]
        if not queue.waits[job]:
            continue
        if columns.nodes[job] <= running.size[FREE] and clock + columns.requested[job] < shadow:
            begin(queue, columns, running, job)
        else:
            queue.listed[kept] = job
            kept += 1
    queue.counts[LISTED] = kept


@uncounted
def backfill_by_key(queue: Queue, columns: Columns, running: Running, shadow: float, keys: Array) -> None:
    """The same in order of keys (n,), ties in order of submission; what cannot start now cannot start later."""
    clock = queue.clock[0]
    while True:
        best = -1
        for place in range(queue.counts[LISTED]):
            job = queue.listed[place]
            if (
                not queue.waits[job]
                or columns.nodes[job] > running.size[FREE]
                or clock + columns.requested[job] >= shadow
            ):
                continue
            if best < 0 or keys[job] < keys[best] or (keys[job] == keys[best] and job < best):
                best = job
        if best < 0:
            return
        begin(queue, columns, running, best)


@uncounted
def shadow_time(columns: Columns, running: Running, job: int) -> float:
    """Return when the job would fit if all jobs ended as requested; jobs with equal ends are ordered by their
    requests.
    """
    by_end, expected, count = running.by_end, running.expected, running.size[COUNT]
    for place in range(1, count):
        other, to = by_end[place], place
        while (
            to > 0 and running.end[by_end[to - 1]] == running.end[other] and expected[by_end[to - 1]] > expected[other]
        ):
            by_end[to] = by_end[to - 1]
            to -= 1
        by_end[to] = other
    free, place = running.size[FREE], -1
    while free < columns.nodes[job]:
        place += 1
        free += columns.nodes[running.by_request[place]]
    return expected[running.by_request[place]]


@uncounted
def event(queue: Queue, columns: Columns, running: Running) -> None:
    """Process one arrival or one release; of two at the same time the arrival comes first."""
    arrived = queue.counts[ARRIVED]
    arrival = columns.submit[arrived] if arrived < len(columns.submit) else np.inf
    earliest = running.end[running.by_end[0]] if running.size[COUNT] else np.inf
    if arrived < len(columns.submit) and arrival <= earliest:
        arrive(queue, columns)
    else:
        queue.clock[0] = max(queue.clock[0], earliest)
        release(running, columns)


@uncounted
def arrive(queue: Queue, columns: Columns) -> None:
    """Let the next job arrive, no earlier than those before it; it is listed by its own submit time."""
    job, place = queue.counts[ARRIVED], queue.counts[LISTED]
    queue.clock[0] = max(queue.clock[0], columns.submit[job])
    queue.waits[job] = True
    while place > 0 and columns.submit[queue.listed[place - 1]] > columns.submit[job]:
        queue.listed[place] = queue.listed[place - 1]
        place -= 1
    queue.listed[place] = job
    for place in (ARRIVED, WAITING, LISTED):
        queue.counts[place] += 1


@uncounted
def preferred(queue: Queue, columns: Columns, order: Order) -> int:
    """The waiting job of the lowest score, the first of several."""
    if order.power == 0:
        while queue.counts[TAKEN] < queue.counts[ARRIVED]:
            _push(queue, order.rank[queue.counts[TAKEN]])
            queue.counts[TAKEN] += 1
        while True:
            job = order.job_at[_pop(queue)]
            if queue.waits[job]:
                return job
    best, lowest, kept = -1, np.inf, 0
    for place in range(queue.counts[LISTED]):
        job = queue.listed[place]
        if not queue.waits[job]:
            continue
        queue.listed[kept] = job
        kept += 1
        found = score(columns, order, job, queue.clock[0])
        if best < 0 or found < lowest or (found == lowest and _earlier(columns, job, best)):
            best, lowest = job, found
    queue.counts[LISTED] = kept
    return best


@uncounted
def _earlier(columns: Columns, job: int, other: int) -> bool:
    submit = columns.submit
    return submit[job] < submit[other] or (submit[job] == submit[other] and job < other)


@uncounted
def _push(queue: Queue, rank: int) -> None:
    queue.ranks[rank // 64] |= np.uint64(1) << np.uint64(rank % 64)
    queue.counts[WORD] = min(queue.counts[WORD], rank // 64)


@uncounted
def _pop(queue: Queue) -> int:
    word = queue.counts[WORD]
    while queue.ranks[word] == 0:
        word += 1
    queue.counts[WORD] = word
    bits = queue.ranks[word]
    queue.ranks[word] = bits & (bits - np.uint64(1))
    return 64 * word + frexp(float(bits & (~bits + np.uint64(1))))[1] - 1  # the lowest bit is a power of two
