"""Compiled decisions by rollouts (rollouts.py): the cost after each first job, and the scores that follow from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.simulator.cluster import COUNT, FREE, Array, Columns, Running, insert
from schedlab.studies.batch.simulator.predictions import Predictor, predict, predicted_end, take_in

HEADS = 8  # jobs of each base's order that are tried first
TRIED, KEPT = 2, 12  # after so many samples only so many of the tries, the cheapest so far, go on
NOBODY = -1
NODES, SAMPLES, DECISIONS = range(3)  # of rollouts.Rollout.shape
DAY = 86400.0
_CLEARLY = 1.0 - 1e-9  # a later try replaces an earlier one only where its cost is lower by more than rounding


class Future(NamedTuple):
    """The waiting jobs, in order of submission, then those that arrive, (n,) each; times in s.

    submit, nodes, run, requested   as in the trace, but run as predicted where the job waits
    predicted, weight   run time and weight as predicted
    key     of the base that plays, lowest first
    """

    submit: np.ndarray
    nodes: np.ndarray
    run: np.ndarray
    requested: np.ndarray
    predicted: np.ndarray
    weight: np.ndarray
    key: np.ndarray


class RunningEnds(NamedTuple):
    """Running jobs by end, from `done` on: ends s, requested ends s, nodes; with room for all of Future."""

    end: np.ndarray
    expected: np.ndarray
    nodes: np.ndarray


@compiled(error_model="numpy")
def base_key(coefficients: Array, machine: int, nodes: int, run: float, weight: float, days: float) -> float:
    """The weighted sum of rollouts.BASE_FEATURES."""
    share, length = nodes / machine, np.log(max(run, 1.0)) / 10.0
    key = coefficients[0] * length + coefficients[1] * np.log(nodes) / 5.0 - coefficients[2] * np.log(weight) / 10.0
    key = key + coefficients[3] * share * length + coefficients[4] * share * np.sqrt(run) / 100.0
    return key + coefficients[5] * days


@compiled(error_model="numpy")
def blocking_cost(
    future: Future, order: Array, head: int, clock: float, free: int, count: int, running: RunningEnds, queue: Array
) -> float:
    """Weighted waits until all have started when `head` comes first and each chosen job blocks until it fits.

    order: the waiting jobs by key; count: running jobs; queue (n,): room; running is used up
    """
    waiting, total = len(order), len(future.submit)
    size, arrived, done, time, cost, job = 0, waiting, 0, clock, 0.0, head
    for other in order:
        if other != head:
            queue[size] = other
            size += 1
    while True:
        while free < future.nodes[job] or job == NOBODY:
            if arrived < total and (done == count or future.submit[arrived] <= running.end[done]):
                time = max(time, future.submit[arrived])
                insert(queue, 0, size, future.key, arrived)
                size += 1
                arrived += 1
            else:
                time = max(time, running.end[done])
                free += running.nodes[done]
                done += 1
            if job == NOBODY and size:
                break
        if job != NOBODY:
            free -= future.nodes[job]
            cost += future.weight[job] * (time - future.submit[job])
            _run(running, done, count, time + future.run[job], time + future.requested[job], future.nodes[job])
            count += 1
        if size == 0 and arrived == total:
            return cost
        job = NOBODY
        if size:
            job = queue[0]
            size -= 1
            for place in range(size):
                queue[place] = queue[place + 1]


@compiled(error_model="numpy")
def easy_cost(
    future: Future, order: Array, head: int, clock: float, free: int, count: int, running: RunningEnds, queue: Array
) -> float:
    """The same with EASY backfilling in the order of the base, `head` before all others (NOBODY: none is)."""
    waiting, total = len(order), len(future.submit)
    size, arrived, done, time, cost = 0, waiting, 0, clock, 0.0
    if head != NOBODY:
        queue[0] = head
        size = 1
    for other in order:
        if other != head:
            queue[size] = other
            size += 1
    while True:
        shadow, extra, kept = np.inf, 0, 0
        for place in range(size):
            job = queue[place]
            starts = future.nodes[job] <= free
            if starts and kept:
                starts = time + future.requested[job] <= shadow or future.nodes[job] <= extra
            if starts:
                if kept and time + future.requested[job] > shadow:
                    extra -= future.nodes[job]
                free -= future.nodes[job]
                cost += future.weight[job] * (time - future.submit[job])
                _run(running, done, count, time + future.run[job], time + future.requested[job], future.nodes[job])
                count += 1
            else:
                if kept == 0:
                    shadow, extra = _reservation(running, done, count, free, time, future.nodes[job])
                queue[kept] = job
                kept += 1
        size = kept
        if size == 0 and arrived == total:
            return cost
        earliest = running.end[done] if done < count else np.inf
        time = max(time, min(earliest, future.submit[arrived] if arrived < total else np.inf))
        while done < count and running.end[done] <= time:
            free += running.nodes[done]
            done += 1
        while arrived < total and future.submit[arrived] <= time:
            insert(queue, 1 if size and queue[0] == head else 0, size, future.key, arrived)
            size += 1
            arrived += 1


@compiled(error_model="numpy")
def _reservation(running: RunningEnds, done: int, count: int, free: int, time: float, nodes: int) -> tuple[float, int]:
    """(time from which so many nodes are free as requested, nodes left then); as textbook.reservation."""
    shadow, last = time, -np.inf
    while free < nodes:
        shadow = np.inf
        for place in range(done, count):
            end = max(running.expected[place], time + 1.0)
            if last < end < shadow:
                shadow = end
        for place in range(done, count):
            if max(running.expected[place], time + 1.0) == shadow:
                free += running.nodes[place]
        last = shadow
    return shadow, free - nodes


@compiled(error_model="numpy")
def _run(running: RunningEnds, done: int, count: int, end: float, expected: float, nodes: int) -> None:
    place = count
    while place > done and running.end[place - 1] > end:
        for column in (running.end, running.expected):
            column[place] = column[place - 1]
        running.nodes[place] = running.nodes[place - 1]
        place -= 1
    running.end[place], running.expected[place], running.nodes[place] = end, expected, nodes


@compiled(error_model="numpy")
def rollout_scores(
    columns: Columns, rollout: Any, easy: bool, running: Running, jobs: Array, clock: float, scores: Array
) -> None:
    """Write the scores of the waiting `jobs`: the head of the best try first, the others in order of its base."""
    predictor, first = rollout.predictor, columns.submit[0]
    take_in(columns, predictor, running, clock)
    for job in jobs:
        predict(predictor, job)
    if rollout.shape[SAMPLES] == 0:
        for job in jobs:
            days = (columns.submit[job] - first) / DAY
            run, weight = predictor.run[job], predictor.weight[job]
            scores[job] = base_key(rollout.bases[0], rollout.shape[NODES], columns.nodes[job], run, weight, days)
        return
    best, head, orders = _best_try(columns, rollout, easy, running, jobs, clock)
    for place in range(len(jobs)):
        scores[jobs[orders[best, place]]] = place + 1.0
    scores[jobs[head]] = 0.0


@compiled(error_model="numpy")
def _best_try(
    columns: Columns, rollout: Any, easy: bool, running: Running, jobs: Array, clock: float
) -> tuple[int, int, Array]:
    """(base, place of the head in `jobs`, orders (bases, waiting)) of the try of the least cost over the samples."""
    waiting, horizon = len(jobs), rollout.gap.shape[1]
    now = _now(columns, rollout.predictor, running, clock)
    count, free = len(now.end), running.size[FREE]
    total = waiting + horizon
    numbers = np.empty((6, total))
    future = Future(
        numbers[0], np.empty(total, dtype=np.int64), numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]
    )
    for place in range(waiting):
        job = jobs[place]
        future.submit[place], future.nodes[place] = columns.submit[job], columns.nodes[job]
        future.requested[place] = columns.requested[job]
        future.run[place] = future.predicted[place] = rollout.predictor.run[job]
        future.weight[place] = rollout.predictor.weight[job]
    bases = len(rollout.bases)
    keys, orders = np.empty((bases, total)), np.empty((bases, waiting), dtype=np.int64)
    for number in range(bases):
        _write_keys(keys[number, :waiting], rollout, number, columns.submit[0], future, 0)
        orders[number] = np.argsort(keys[number, :waiting], kind="mergesort")
    room = RunningEnds(np.empty(count + total), np.empty(count + total), np.empty(count + total, dtype=np.int64))
    queue, tries = np.empty(total, dtype=np.int64), min(HEADS, waiting)
    costs = np.zeros(bases * tries)
    for sample in range(rollout.shape[SAMPLES]):
        if sample == TRIED:
            costs[np.argsort(costs, kind="mergesort")[KEPT:]] = np.inf
        stretch = (rollout.shape[DECISIONS] * rollout.shape[SAMPLES] + sample) % len(rollout.gap)
        _arrive(future, waiting, rollout, stretch, clock)
        for number in range(bases):
            _write_keys(keys[number, waiting:], rollout, number, columns.submit[0], future, waiting)
            future.key[:] = keys[number]
            for place in range(tries):
                if costs[number * tries + place] < np.inf:
                    room.end[:count], room.expected[:count], room.nodes[:count] = now.end, now.expected, now.nodes
                    head = orders[number, place]
                    if easy:
                        cost = easy_cost(future, orders[number], head, clock, free, count, room, queue)
                    else:
                        cost = blocking_cost(future, orders[number], head, clock, free, count, room, queue)
                    costs[number * tries + place] += cost
    rollout.shape[DECISIONS] += 1
    best = 0
    for attempt in range(len(costs)):
        if costs[attempt] < costs[best] * _CLEARLY:
            best = attempt
    return best // tries, orders[best // tries, best % tries], orders


@compiled(error_model="numpy")
def _now(columns: Columns, predictor: Predictor, running: Running, clock: float) -> RunningEnds:
    """The running jobs by predicted end."""
    count = running.size[COUNT]
    now = RunningEnds(np.empty(count), np.empty(count), np.empty(count, dtype=np.int64))
    for place in range(count):
        job = running.by_request[place]
        if job < len(predictor.run):
            predict(predictor, job)
        now.end[place] = predicted_end(predictor, running, job, clock)
        now.expected[place], now.nodes[place] = running.expected[job], columns.nodes[job]
    order = np.argsort(now.end, kind="mergesort")
    return RunningEnds(now.end[order], now.expected[order], now.nodes[order])


@compiled(error_model="numpy")
def _arrive(future: Future, waiting: int, rollout: Any, stretch: int, clock: float) -> None:
    """Write the jobs of a stretch behind those that wait."""
    time = clock
    for step in range(rollout.gap.shape[1]):
        time += rollout.gap[stretch, step]
        place = waiting + step
        future.submit[place], future.nodes[place] = time, rollout.nodes[stretch, step]
        future.run[place], future.requested[place] = rollout.run[stretch, step], rollout.requested[stretch, step]
        future.predicted[place], future.weight[place] = rollout.predicted[stretch, step], rollout.weight[stretch, step]


@compiled(error_model="numpy")
def _write_keys(keys: Array, rollout: Any, number: int, first: float, future: Future, begin: int) -> None:
    """Write the keys of a base for the jobs from `begin` on."""
    machine = rollout.shape[NODES]
    for step in range(len(keys)):
        place = begin + step
        days = (future.submit[place] - first) / DAY
        run, weight = future.predicted[place], future.weight[place]
        keys[step] = base_key(rollout.bases[number], machine, future.nodes[place], run, weight, days)
