"""How parallel tasks share hosts and links: SimGrid's L07 model by progressive filling.

A task has one rate of progress (1/s); on resource r it uses `weight_r * rate` of the capacity. All rates grow from 0: each round every
active task grows by the least of its equal shares of what is left, and stops where a resource of it is used up or its own bound
(one core, a link that is not shared) is reached. `fill_reference` states the rule, `fill` computes the same with arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

EXHAUSTED = 1e-9  # a resource with less than this share of its capacity left is used up
NO_MORE = 1e-13  # rates that grow by less than this share of themselves are settled
_FEW = 3  # so few tasks are filled by the plain statement: arrays cost more


def fill_reference(tasks: Sequence[Mapping[int, float]], bounds: Sequence[float], capacity: Mapping[int, float]) -> list[float]:
    """Return the rate of each task in 1/s.

    tasks     for each task its positive weight (flop or bytes for the whole task) on each resource that it uses
    bounds    for each task the largest rate that it may have; infinite for none
    capacity  of each resource, in flop/s or bytes/s
    """
    rates = [0.0] * len(tasks)
    left = {resource: capacity[resource] for weights in tasks for resource in weights}
    active = [index for index in range(len(tasks)) if bounds[index] > 0]
    while active:
        users: dict[int, int] = {}
        for index in active:
            for resource in tasks[index]:
                users[resource] = users.get(resource, 0) + 1
        increments = {}
        for index in active:
            shares = [left[resource] / users[resource] / weight for resource, weight in tasks[index].items()]
            increments[index] = min([bounds[index] - rates[index], *shares])
        for index, increment in increments.items():
            rates[index] += increment
            for resource, weight in tasks[index].items():
                left[resource] -= weight * increment
        if all(increment <= NO_MORE * rates[index] for index, increment in increments.items()):
            break
        used_up = {resource for resource in users if left[resource] <= EXHAUSTED * capacity[resource]}
        active = [
            index
            for index in active
            if rates[index] < bounds[index] * (1 - EXHAUSTED) and used_up.isdisjoint(tasks[index]) and tasks[index]
        ]
    return rates


def fill(resources: Sequence[np.ndarray], weights: Sequence[np.ndarray], bounds: Sequence[float], capacity: np.ndarray) -> Sequence[float]:
    """Return the rates of tasks as `fill_reference`; a task is an array of resource numbers and one of its weights on them."""
    if len(resources) == 1:
        shares = capacity[resources[0]] / weights[0]
        return [min(bounds[0], float(shares.min()) if len(shares) else math.inf)]
    if len(resources) <= _FEW:
        tasks = [dict(zip(numbers.tolist(), amounts.tolist(), strict=True)) for numbers, amounts in zip(resources, weights, strict=True)]
        return fill_reference(tasks, bounds, {number: float(capacity[number]) for weights_of in tasks for number in weights_of})
    first = np.zeros(len(resources) + 1, np.int64)
    np.cumsum([len(numbers) for numbers in resources], out=first[1:])
    used, numbers = np.unique(np.concatenate(resources), return_inverse=True)
    return _compiled_rounds()(first, numbers, np.concatenate(weights), np.asarray(bounds, np.float64), capacity[used]).tolist()


def _fill_rounds(first: Any, numbers: Any, weights: Any, bounds: Any, capacity: Any) -> Any:
    """The rounds of `fill_reference`; task t uses resources `numbers[first[t]:first[t + 1]]`."""
    rates = np.zeros(len(bounds))
    left = capacity.copy()
    users = np.zeros(len(capacity), np.int64)
    increments = np.zeros(len(bounds))
    active = np.flatnonzero(bounds > 0)
    count = len(active)
    for task in active[:count]:
        for entry in range(first[task], first[task + 1]):
            users[numbers[entry]] += 1
    while count > 0:
        for task in active[:count]:
            increment = bounds[task] - rates[task]
            for entry in range(first[task], first[task + 1]):
                share = left[numbers[entry]] / users[numbers[entry]] / weights[entry]
                if share < increment:
                    increment = share
            increments[task] = increment
        for task in active[:count]:
            rates[task] += increments[task]
            for entry in range(first[task], first[task + 1]):
                left[numbers[entry]] -= weights[entry] * increments[task]
        grows = False
        for task in active[:count]:
            if increments[task] > NO_MORE * rates[task]:
                grows = True
        if not grows:
            break
        kept = 0
        leaving = np.empty(count, np.int64)
        gone = 0
        for task in active[:count]:
            stays = rates[task] < bounds[task] * (1 - EXHAUSTED) and first[task + 1] > first[task]
            for entry in range(first[task], first[task + 1]):
                if left[numbers[entry]] <= EXHAUSTED * capacity[numbers[entry]]:
                    stays = False
                    break
            if stays:
                active[kept] = task
                kept += 1
            else:
                leaving[gone] = task
                gone += 1
        for task in leaving[:gone]:
            for entry in range(first[task], first[task + 1]):
                users[numbers[entry]] -= 1
        count = kept
    return rates


@cache
def _compiled_rounds() -> Any:
    import numba  # only where several tasks contend: its import takes half a second

    return numba.njit(cache=True)(_fill_rounds)
