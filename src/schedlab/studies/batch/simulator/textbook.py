"""Compiled EASY and conservative backfilling, one pass at each time at which jobs end or arrive."""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.simulator.cluster import (
    BY_KEY,
    BY_RULE,
    COUNT,
    FREE,
    WRITTEN,
    Array,
    Columns,
    Keys,
    Order,
    Running,
    Scan,
    counted,
    insert,
    occupy,
    release,
    score,
    uncounted,
)
from schedlab.studies.batch.simulator.scores import write_scores

OVERDUE = 1e100  # times the wait: above what any score is


@compiled(error_model="numpy")
def textbook_starts(columns: Columns, order: Order, scan: Scan, running: Running, conservative: bool) -> None:
    """Fill running.start with the start time of each job."""
    scored = order.power != 0 or scan.by != BY_RULE or order.most_wait < np.inf
    count = len(columns.submit)
    queue = np.empty(count, dtype=np.int64)  # by rank, or, where scores depend on the clock, in order of submission
    scores = np.empty(count if scored else 0)
    room = plan_room(count, len(columns.nodes)) if conservative else 0
    times, free, least = np.empty(room), np.empty(room, dtype=np.int64), np.empty(count + 1, dtype=np.int64)
    _follow(columns, order, scan, running, conservative, queue, scores, (times, free, least))


@uncounted
def _follow(
    columns: Columns,
    order: Order,
    scan: Scan,
    running: Running,
    conservative: bool,
    queue: Array,
    scores: Array,
    plan: tuple[Array, Array, Array],
) -> None:
    """Make a pass at each time at which jobs end or arrive; plan: room for conservative backfilling."""
    times, free, least = plan
    scored = order.power != 0 or scan.by != BY_RULE or order.most_wait < np.inf
    count, waiting, arrived, clock = len(columns.submit), 0, 0, columns.submit[0]
    while waiting or arrived < count:
        if arrived:
            earliest = running.end[running.by_end[0]] if running.size[COUNT] else np.inf
            clock = max(clock, min(earliest, columns.submit[arrived] if arrived < count else np.inf))
        while running.size[COUNT] and running.end[running.by_end[0]] <= clock:
            release(running, columns)
        while arrived < count and columns.submit[arrived] <= clock:
            if scored:
                queue[waiting] = arrived
            else:
                insert(queue, 0, waiting, order.rank, arrived)
            waiting += 1
            arrived += 1
        if smallest_waiting(queue, waiting, columns) > running.size[FREE]:
            continue  # no job can start, and nothing else of a pass is kept
        if order.power == WRITTEN and waiting > 1:
            write_scores(columns, scan.linear, running, queue[:waiting], clock)
        if conservative:
            if scored:
                _sort(queue, waiting, columns, order, clock, scores)
            waiting = _conservative_pass(queue, waiting, columns, running, clock, times, free, least)
            if scored:
                _resort(queue, waiting)
        elif scored:
            waiting = scored_easy_pass(queue, waiting, columns, order, Keys(scan.by, scan.keys), running, clock, scores)
        else:
            waiting = _easy_pass(queue, waiting, columns, running, clock)


@uncounted
def smallest_waiting(queue: Array, size: int, columns: Columns) -> int:
    """Nodes of the smallest waiting job."""
    least = np.iinfo(np.int64).max
    for place in range(size):
        least = min(least, columns.nodes[queue[place]])
    return least


@uncounted
def bounded_score(columns: Columns, order: Order, job: int, clock: float) -> float:
    """Return the score of a waiting job, below that of all others if it has waited for more than `most_wait`; of such
    jobs, the one that has waited longest comes first.
    """
    wait = clock - columns.submit[job]
    return -OVERDUE * wait if wait > order.most_wait else score(columns, order, job, clock)


@counted
def _sort(queue: Array, size: int, columns: Columns, order: Order, clock: float, scores: Array) -> None:
    """Order a queue in order of submission by the scores of this time."""
    for place in range(size):
        scores[place] = bounded_score(columns, order, queue[place], clock)
    queue[:size] = queue[:size][np.argsort(scores[:size], kind="mergesort")]


@counted
def _resort(queue: Array, size: int) -> None:
    """Put a queue in order of submission again."""
    queue[:size].sort()


@uncounted
def may_backfill(nodes: int, requested: float, clock: float, free: int, shadow: float, extra: int) -> bool:
    """Return whether EASY may start a job beside the head: the job fits, and it ends by the shadow time or leaves the
    head's nodes free.
    """
    return nodes <= free and (clock + requested <= shadow or nodes <= extra)


@uncounted
def backfill(columns: Columns, running: Running, job: int, clock: float, shadow: float, extra: int) -> int:
    """Start a job beside the head; return the number of nodes that the head still leaves free."""
    occupy(running, columns, job, clock)
    return extra if clock + columns.requested[job] <= shadow else extra - columns.nodes[job]


@uncounted
def _easy_pass(queue: Array, size: int, columns: Columns, running: Running, clock: float) -> int:
    """Start what EASY starts now, from a queue in its order; return how many jobs still wait."""
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
    shadow, extra = reservation(columns, running, queue[begun], clock)
    for place in range(begun, size):
        job = queue[place]
        if place > begun and may_backfill(
            columns.nodes[job], columns.requested[job], clock, running.size[FREE], shadow, extra
        ):
            extra = backfill(columns, running, job, clock, shadow, extra)
        else:
            queue[kept] = job
            kept += 1
    return kept


@counted
def scored_easy_pass(
    queue: Array,
    size: int,
    columns: Columns,
    order: Order,
    backfilled: Keys,
    running: Running,
    clock: float,
    scores: Array,
) -> int:
    """The same from a queue in order of submission; a full sort of a deep queue would take most of the time."""
    for place in range(size):
        scores[place] = bounded_score(columns, order, queue[place], clock)
    head = -1
    while True:
        best = -1
        for place in range(size):
            if queue[place] >= 0 and (best < 0 or scores[place] < scores[best]):
                best = place
        if best < 0:
            return 0
        if columns.nodes[queue[best]] > running.size[FREE]:
            head = best
            break
        occupy(running, columns, queue[best], clock)
        queue[best] = -1
    shadow, extra = reservation(columns, running, queue[head], clock)
    places = np.empty(size, dtype=np.int64)
    found = 0
    for place in range(size):
        if queue[place] < 0 or place == head:
            continue
        job = queue[place]
        if may_backfill(columns.nodes[job], columns.requested[job], clock, running.size[FREE], shadow, extra):
            places[found] = place
            found += 1
    if backfilled.by == BY_RULE:
        keys = scores[places[:found]]
    else:
        chosen = queue[places[:found]]
        keys = backfilled.keys[chosen] if backfilled.by == BY_KEY else places[:found].astype(np.float64)
    for index in np.argsort(keys, kind="mergesort"):
        place = places[index]
        job = queue[place]
        if may_backfill(columns.nodes[job], columns.requested[job], clock, running.size[FREE], shadow, extra):
            extra = backfill(columns, running, job, clock, shadow, extra)
            queue[place] = -1
    kept = 0
    for place in range(size):
        if queue[place] >= 0:
            queue[kept] = queue[place]
            kept += 1
    return kept


@uncounted
def reservation(columns: Columns, running: Running, head: int, clock: float) -> tuple[float, int]:
    """(shadow time, nodes that the head leaves free then); an overdue job counts as ending in one second."""
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


@uncounted
def _conservative_pass(
    queue: Array, size: int, columns: Columns, running: Running, clock: float, times: Array, free: Array, least: Array
) -> int:
    """Plan every job in order of the queue, start those whose place is now; return how many jobs still wait.

    least  (n + 1,): room for the smallest job from each place of the queue on
    """
    least[size] = np.iinfo(np.int64).max
    for place in range(size - 1, -1, -1):
        least[place] = min(least[place + 1], columns.nodes[queue[place]])
    steps = profile(columns, running, clock, times, free)
    kept = 0
    for place in range(size):
        job = queue[place]
        if free[0] >= least[place]:  # else no further job can start now, and nothing else of the plan is kept
            begin, steps = reserve(times, free, steps, columns.nodes[job], max(columns.requested[job], 1.0))
            if begin == clock:
                occupy(running, columns, job, clock)
                continue
        queue[kept] = job
        kept += 1
    return kept


@uncounted
def plan_room(waiting: int, running: int) -> int:
    """Steps that a plan of so many waiting jobs needs at most; each reservation may add two."""
    return running + 1 + 2 * waiting


@uncounted
def profile(columns: Columns, running: Running, clock: float, times: Array, free: Array) -> int:
    """Write the free nodes from each time on, if all running jobs end as expected; return the number of steps."""
    times[0], free[0], steps = clock, running.size[FREE], 1
    for place in range(running.size[COUNT]):
        job = running.by_request[place]
        expected = max(running.expected[job], clock + 1.0)
        if expected > times[steps - 1]:
            times[steps], free[steps] = expected, free[steps - 1]
            steps += 1
        free[steps - 1] += columns.nodes[job]
    return steps


@uncounted
def reserve(times: Array, free: Array, steps: int, nodes: int, length: float) -> tuple[float, int]:
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
