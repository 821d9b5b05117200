"""What the compiled kernels share: running jobs in order of their ends, nodes, and the columns of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.jobs import Jobs, Machine, Prefill
from schedlab.studies.batch.rules import Priority

Array = np.ndarray


class Columns(NamedTuple):
    """The n jobs of a window followed by the k of a prefill; times in s. submit (n,), the rest (n + k,)."""

    submit: np.ndarray
    run: np.ndarray
    requested: np.ndarray
    nodes: np.ndarray


class Order(NamedTuple):
    """The order of the queue: power 0: by `rank` (n,) and its inverse `job_at` (n,); else by a score of the clock.

    most_wait: s after which a waiting job precedes all that were submitted later (textbook.bounded_score); inf: never
    """

    rank: np.ndarray
    job_at: np.ndarray
    scale: np.ndarray
    weight: np.ndarray
    power: int
    most_wait: float


class Scan(NamedTuple):
    """The order of backfilling: FCFS, BY_KEY (keys (n,): requested time, times nodes or not), or BY_RULE.

    linear: what writes the scores where the power of the order is WRITTEN (scores.Linear)
    """

    by: int
    keys: np.ndarray
    linear: Any


class Keys(NamedTuple):
    """The order of backfilling alone, as in Scan: a kernel that is called often gets no more arrays than it reads."""

    by: int
    keys: np.ndarray


WRITTEN = -1  # the power of an order whose scores stand in `weight`, written anew at each decision
FCFS, BY_KEY, BY_RULE = 0, 1, 2


class Running(NamedTuple):
    """Running jobs and free nodes.

    by_end, by_request   running jobs by end and by start + requested time, ties in order of their start
    start, end, expected (n + k,) s; expected is start + requested
    begun (n + k,)       jobs in the order in which they started, those of a prefill first
    size                 (3,): running jobs, free nodes, jobs begun
    owner (nodes,)       the job on each node, -1: none; empty where nodes are not distinguished
    held, first          the nodes of job j: held[first[j] : first[j] + nodes[j]]
    """

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


COUNT, FREE, BEGUN = 0, 1, 2


def columns_of(jobs: Jobs, prefill: Prefill) -> Columns:
    """Return the arrays that the kernels read."""
    parts = (jobs, prefill.jobs)
    run, requested, nodes = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("run", "requested", "nodes")
    )
    # Copies, because kernels are compiled again for arrays that are read-only.
    return Columns(np.array(jobs.submit), run, requested, nodes)


def order_of(priority: Priority, most_wait: float, first: Array | None = None) -> Order:
    """Return the arrays of a priority; most_wait: as in Order; first: as in Priority.ranks."""
    rank = priority.ranks(first) if priority.power == 0 else np.empty(0, dtype=np.int64)
    job_at = np.argsort(rank)
    return Order(rank, job_at, np.asarray(priority.scale), np.asarray(priority.weight), priority.power, most_wait)


def running_of(columns: Columns, prefill: Prefill, machine: Machine, *, track: bool) -> Running:
    """Return the machine with the jobs of the prefill on it."""
    size = len(columns.nodes)
    arrays = (
        *(np.empty(size, dtype=np.int64) for _ in range(2)),
        *(np.full(size, np.nan) for _ in range(3)),
        np.empty(size, dtype=np.int64),
        np.array([0, machine.nodes, 0], dtype=np.int64),
        np.full(machine.nodes if track else 0, -1, dtype=np.int64),
        np.empty(int(columns.nodes.sum()) if track else 0, dtype=np.int64),
        np.cumsum(columns.nodes) - columns.nodes,
    )
    running = Running._make(arrays)
    for place, began in enumerate(prefill.start):
        occupy(running, columns, len(columns.submit) + place, began)
    return running


def uncounted(function: Callable) -> Callable:
    """Compile a function that allocates no array, without counting references to arrays, whose owners outlive it.

    Counting at each use of a named tuple of arrays would take most of the time: a rule over 10,000 jobs, eight times as
    long. A function that does allocate is refused when it is compiled.
    """
    return compiled(function, error_model="numpy", _nrt=False)


def counted(function: Callable) -> Callable:
    """Compile a function that allocates arrays and is called by an uncounted one, whose way would be taken over."""
    return compiled(function, error_model="numpy", _nrt=True)


@uncounted
def insert(order: Array, low: int, size: int, key: Array, job: int) -> None:
    """Put a job into order[low:size], which is sorted by key; after those of the same key."""
    high = size
    while low < high:
        middle = (low + high) // 2
        if key[order[middle]] <= key[job]:
            low = middle + 1
        else:
            high = middle
    for place in range(size, low, -1):
        order[place] = order[place - 1]
    order[low] = job


@uncounted
def remove(order: Array, size: int, job: int) -> None:
    """Take a job out of order[:size]."""
    place = 0
    while order[place] != job:
        place += 1
    for later in range(place, size - 1):
        order[later] = order[later + 1]


@uncounted
def occupy(running: Running, columns: Columns, job: int, start: float) -> None:
    """Start a job that fits."""
    running.start[job] = start
    running.end[job] = start + columns.run[job]
    running.expected[job] = start + columns.requested[job]
    insert(running.by_end, 0, running.size[COUNT], running.end, job)
    insert(running.by_request, 0, running.size[COUNT], running.expected, job)
    running.begun[running.size[BEGUN]] = job
    running.size[BEGUN] += 1
    running.size[COUNT] += 1
    running.size[FREE] -= columns.nodes[job]
    if len(running.owner):
        node, place, last = 0, running.first[job], running.first[job] + columns.nodes[job]
        while place < last:
            if running.owner[node] < 0:
                running.owner[node] = job
                running.held[place] = node
                place += 1
            node += 1


@uncounted
def release(running: Running, columns: Columns) -> None:
    """End the running job that ends first, of equals the first."""
    job = running.by_end[0]
    remove(running.by_end, running.size[COUNT], job)
    remove(running.by_request, running.size[COUNT], job)
    running.size[COUNT] -= 1
    running.size[FREE] += columns.nodes[job]
    if len(running.owner):
        for place in range(running.first[job], running.first[job] + columns.nodes[job]):
            running.owner[running.held[place]] = -1


@uncounted
def score(columns: Columns, order: Order, job: int, clock: float) -> float:
    """The score of a waiting job: its rank, rules.Priority.at of the clock, or what was written at the decision."""
    if order.power == 0:
        return float(order.rank[job])
    if order.power == WRITTEN:
        return order.weight[job]
    ratio = (clock - columns.submit[job]) / order.scale[job]
    return -(ratio * ratio * ratio if order.power == 3 else ratio) * order.weight[job]
