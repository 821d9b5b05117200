"""Many windows side by side, each decided job by job: compiled rules between one decision and the next.

Where the chosen job blocks (`none`, `legacy`) a decision is blocking.choose. In the textbook's modes a pass takes place
whenever jobs end or arrive; it asks for decisions as long as one may start a job:
`easy`       jobs start as chosen; the first that does not fit becomes the head, then those beside it are offered
`conservative`  jobs are planned as they are chosen, and start where their place is now
Choosing the job of the lowest score each time gives the start times of the whole-window kernels under that score.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.simulator.blocking import ARRIVED, LISTED, WAITING, Queue, arrive, begin, choose, event
from schedlab.studies.batch.simulator.cluster import (
    BY_KEY,
    BY_RULE,
    COUNT,
    FREE,
    Array,
    Columns,
    Order,
    Running,
    occupy,
    release,
    uncounted,
)
from schedlab.studies.batch.simulator.textbook import may_backfill, profile, reservation, reserve

NONE, LEGACY, EASY, CONSERVATIVE = range(4)  # backfilling
HEAD, EXTRA, STEPS = range(3)  # of Pass.numbers


class Pass(NamedTuple):
    """One pass of a textbook's mode.

    numbers  (3,): the head (-1: none yet), nodes that it leaves, steps of the plan
    shadow   (1,): when the head starts at the latest, s
    planned  (n,): jobs that have a place in the plan
    times, free  the plan: nodes that are free from each time on
    """

    numbers: np.ndarray
    shadow: np.ndarray
    planned: np.ndarray
    times: np.ndarray
    free: np.ndarray


class Window(NamedTuple):
    """One of the windows: views on Windows. jobs (J,): room."""

    columns: Columns
    order: Order
    queue: Queue
    running: Running
    passing: Pass
    jobs: np.ndarray
    keys: np.ndarray
    backfill: int
    scan: int
    least: float


class Windows(NamedTuple):
    """N windows of up to J jobs, prefills among them; the first axis of every array is the window.

    length, prefilled (N,)  jobs of the window, and what already runs (its jobs follow those of the window)
    submit .. nodes (N, J)  as in cluster.Columns; least (N,): the smallest requested time, at most 0
    rank (N, J)             order in which jobs of one submit time are backfilled (`legacy`); jobs (N, J): room
    keys (N, J)             keys of backfilling by them , else (N, 0); scan: as in cluster.Scan
    others                  as in cluster.Running, blocking.Queue and Pass
    """

    length: np.ndarray
    prefilled: np.ndarray
    least: np.ndarray
    submit: np.ndarray
    run: np.ndarray
    requested: np.ndarray
    nodes: np.ndarray
    rank: np.ndarray
    ranks: np.ndarray
    by_end: np.ndarray
    by_request: np.ndarray
    start: np.ndarray
    end: np.ndarray
    expected: np.ndarray
    begun: np.ndarray
    size: np.ndarray
    owner: np.ndarray
    held: np.ndarray
    first: np.ndarray
    listed: np.ndarray
    waits: np.ndarray
    counts: np.ndarray
    clock: np.ndarray
    numbers: np.ndarray
    shadow: np.ndarray
    planned: np.ndarray
    times: np.ndarray
    free: np.ndarray
    jobs: np.ndarray
    keys: np.ndarray
    backfill: int
    scan: int


def windows_of(number: int, jobs: int, nodes: int, held: int, backfill: int, scan: int) -> Windows:
    """Return room for windows of up to `jobs` jobs; held: most nodes of one window's jobs, 0: not distinguished."""
    room = 3 * jobs + 1 if backfill == CONSERVATIVE else 0
    shapes: dict[str, tuple[type, int]] = {
        **dict.fromkeys(("submit", "run", "requested", "start", "end", "expected"), (np.float64, jobs)),
        **dict.fromkeys(
            ("nodes", "rank", "by_end", "by_request", "begun", "first", "listed", "jobs"), (np.int64, jobs)
        ),
        **dict.fromkeys(("waits", "planned"), (np.bool_, jobs)),
        "ranks": (np.uint64, 0),
        "size": (np.int64, 3),
        "owner": (np.int64, nodes if held else 0),
        "held": (np.int64, held),
        "counts": (np.int64, 5),
        "clock": (np.float64, 1),
        "numbers": (np.int64, 3),
        "shadow": (np.float64, 1),
        "times": (np.float64, room),
        "free": (np.int64, room),
        "keys": (np.float64, jobs if scan == BY_KEY else 0),
    }
    arrays: dict[str, Any] = {name: np.zeros((number, size), dtype=kind) for name, (kind, size) in shapes.items()}
    whole = {"length": np.int64, "prefilled": np.int64, "least": np.float64}
    return Windows(
        **{name: np.zeros(number, dtype=kind) for name, kind in whole.items()}, **arrays, backfill=backfill, scan=scan
    )


@compiled(inline="always")
def window_at(windows: Windows, place: int) -> Window:
    """The views on one window."""
    count = windows.length[place]
    size = count + windows.prefilled[place]
    columns = Columns(
        windows.submit[place, :count],
        windows.run[place, :size],
        windows.requested[place, :size],
        windows.nodes[place, :size],
    )
    rank = windows.rank[place]
    unread = windows.shadow[place]  # the order is by rank
    order = Order(rank, rank, unread, unread, np.int64(0), np.inf)  # type: ignore[arg-type]
    queue = Queue(
        windows.ranks[place], windows.listed[place], windows.waits[place], windows.counts[place], windows.clock[place]
    )
    running = Running(
        windows.by_end[place],
        windows.by_request[place],
        windows.start[place],
        windows.end[place],
        windows.expected[place],
        windows.begun[place],
        windows.size[place],
        windows.owner[place],
        windows.held[place],
        windows.first[place],
    )
    passing = Pass(
        windows.numbers[place], windows.shadow[place], windows.planned[place], windows.times[place], windows.free[place]
    )
    return Window(
        columns,
        order,
        queue,
        running,
        passing,
        windows.jobs[place],
        windows.keys[place],
        windows.backfill,
        windows.scan,
        windows.least[place],
    )


@uncounted
def open_window(windows: Windows, place: int, nodes: int, began: Array) -> None:
    """Begin a window whose jobs are written: the prefill runs since `began` (k,) s, and the first decision is due."""
    window = window_at(windows, place)
    columns, queue, running = window.columns, window.queue, window.running
    size = windows.length[place] + windows.prefilled[place]
    least, first = 0.0, 0
    for job in range(size):
        least = min(least, columns.requested[job])
        running.first[job] = first
        first += columns.nodes[job]
    windows.least[place] = least
    running.start[:] = np.nan
    running.size[:] = 0
    running.size[FREE] = nodes
    running.owner[:] = -1
    queue.waits[:] = False
    queue.counts[:] = 0
    queue.clock[0] = columns.submit[0]
    for number in range(len(began)):
        occupy(running, columns, windows.length[place] + number, began[number])
    if windows.backfill in (NONE, LEGACY):
        arrive(queue, columns)
    else:
        _draw(columns, queue, running)
        _begin_pass(window)
        _settle(window)


@uncounted
def done(window: Window) -> bool:
    """Return whether every job of the window has started."""
    return window.queue.counts[WAITING] == 0 and window.queue.counts[ARRIVED] == len(window.columns.submit)


@uncounted
def choices(window: Window, found: Array) -> int:
    """Write the jobs that may be chosen now, in order of submission, into found (J,); return their number."""
    compact(window.queue)
    listed, waiting = window.queue.listed, window.queue.counts[LISTED]
    nodes, requested, planned = window.columns.nodes, window.columns.requested, window.passing.planned
    head, extra = window.passing.numbers[HEAD], window.passing.numbers[EXTRA]
    clock, shadow, free = window.queue.clock[0], window.passing.shadow[0], window.running.size[FREE]
    beside = window.backfill == EASY and head >= 0
    planning = window.backfill == CONSERVATIVE
    count = 0
    for place in range(waiting):
        job = listed[place]
        if beside and (job == head or not may_backfill(nodes[job], requested[job], clock, free, shadow, extra)):
            continue
        if planning and planned[job]:
            continue
        found[count] = job
        count += 1
    return count


@uncounted
def decide(window: Window, job: int) -> None:
    """Choose an allowed job, and continue to the next decision or to the end."""
    columns, queue, running, passing = window.columns, window.queue, window.running, window.passing
    if window.backfill in (NONE, LEGACY):
        choose(queue, columns, window.order, running, job, window.least, window.backfill == LEGACY, window.keys)
        return
    numbers, clock = passing.numbers, queue.clock[0]
    if window.backfill == CONSERVATIVE:
        length = max(columns.requested[job], 1.0)
        start, numbers[STEPS] = reserve(passing.times, passing.free, numbers[STEPS], columns.nodes[job], length)
        passing.planned[job] = True
        if start == clock:
            begin(queue, columns, running, job)
    elif numbers[HEAD] >= 0:
        _begin_beside(window, job)
    elif columns.nodes[job] <= running.size[FREE]:
        begin(queue, columns, running, job)
    else:
        numbers[HEAD] = job
        passing.shadow[0], numbers[EXTRA] = reservation(columns, running, job, clock)
        if window.scan != BY_RULE:
            _fill_beside(window)
    _settle(window)


@uncounted
def _fill_beside(window: Window) -> None:
    """Start what EASY starts beside the head in the order of `scan`, as textbook.py does of whole windows."""
    while True:
        best, lowest = -1, np.inf
        for job in window.jobs[: choices(window, window.jobs)]:
            key = window.keys[job] if window.scan == BY_KEY else float(job)
            if best < 0 or key < lowest:
                best, lowest = job, key
        if best < 0:
            return
        _begin_beside(window, best)


@uncounted
def _begin_beside(window: Window, job: int) -> None:
    """Start a job beside the head."""
    if window.queue.clock[0] + window.columns.requested[job] > window.passing.shadow[0]:
        window.passing.numbers[EXTRA] -= window.columns.nodes[job]
    begin(window.queue, window.columns, window.running, job)


@uncounted
def may_wait(window: Window) -> bool:
    """Return whether time would pass if no job were chosen."""
    return window.running.size[COUNT] > 0 or window.queue.counts[ARRIVED] < len(window.columns.submit)


@uncounted
def wait(window: Window, seconds: float) -> None:
    """Choose no job for this time, or until the next arrival or end. Only if `may_wait`."""
    columns, queue, running = window.columns, window.queue, window.running
    arrived, later = queue.counts[ARRIVED], queue.clock[0] + seconds
    arrival = columns.submit[arrived] if arrived < len(columns.submit) else np.inf
    earliest = running.end[running.by_end[0]] if running.size[COUNT] else np.inf
    if window.backfill in (NONE, LEGACY):
        if arrived == len(columns.submit):
            queue.clock[0] = later
            event(queue, columns, running)
        elif later < arrival and later < earliest:
            queue.clock[0] = later
        else:
            event(queue, columns, running)
        return
    if later < min(arrival, earliest):
        queue.clock[0] = later
    else:
        _advance(columns, queue, running)
    _begin_pass(window)
    _settle(window)


@uncounted
def _settle(window: Window) -> None:
    """Let time go on, in a textbook's mode, until a job may start, or the window is over."""
    while not done(window) and not _matters(window):
        _advance(window.columns, window.queue, window.running)
        _begin_pass(window)


@uncounted
def _matters(window: Window) -> bool:
    """Return whether some choice may start a job now."""
    nodes = window.columns.nodes
    free = window.passing.free[0] if window.backfill == CONSERVATIVE else window.running.size[FREE]
    found = False
    for job in window.jobs[: choices(window, window.jobs)]:
        found |= nodes[job] <= free
    return found


@uncounted
def _begin_pass(window: Window) -> None:
    """Begin a pass; jobs that started are taken off the list."""
    queue, passing = window.queue, window.passing
    passing.numbers[HEAD] = -1
    compact(queue)
    if window.backfill == CONSERVATIVE:
        for place in range(queue.counts[LISTED]):
            passing.planned[queue.listed[place]] = False
        passing.numbers[STEPS] = profile(window.columns, window.running, queue.clock[0], passing.times, passing.free)


@uncounted
def compact(queue: Queue) -> None:
    """Remove jobs that have started from the list."""
    listed, waits, size, kept = queue.listed, queue.waits, queue.counts[LISTED], 0
    for place in range(size):
        job = listed[place]
        listed[kept] = job
        kept += waits[job]
    queue.counts[LISTED] = kept


@uncounted
def _advance(columns: Columns, queue: Queue, running: Running) -> None:
    """Go to the next time at which a job ends or arrives, and let all that do so end and arrive."""
    arrived = queue.counts[ARRIVED]
    arrival = columns.submit[arrived] if arrived < len(columns.submit) else np.inf
    earliest = running.end[running.by_end[0]] if running.size[COUNT] else np.inf
    queue.clock[0] = max(queue.clock[0], min(arrival, earliest))
    _draw(columns, queue, running)


@uncounted
def _draw(columns: Columns, queue: Queue, running: Running) -> None:
    """Let end and arrive what does so by now."""
    while running.size[COUNT] and running.end[running.by_end[0]] <= queue.clock[0]:
        release(running, columns)
    while queue.counts[ARRIVED] < len(columns.submit) and columns.submit[queue.counts[ARRIVED]] <= queue.clock[0]:
        arrive(queue, columns)
