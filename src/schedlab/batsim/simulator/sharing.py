"""The sharing of hosts and links by parallel tasks: SimGrid's L07 model by progressive filling.

A task has one rate of progress (1/s); on resource r it uses `weight_r * rate` of the capacity. All rates grow from 0:
in each round, every active task grows by the smallest of its equal shares of the remaining capacities, and it stops
when one of its resources is used up or its bound (one core, a link that is not shared) is reached. `fill_reference`
defines the rule, `fill` computes the same with arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

EXHAUSTED = 1e-9  # a resource with at most this share of its capacity left is used up
NO_MORE = 1e-13  # rates that grow by less than this share of themselves are settled
_FEW = 3  # up to so many tasks, `fill_reference` is faster than arrays


def fill_reference(
    tasks: Sequence[Mapping[int, float]], bounds: Sequence[float], capacity: Mapping[int, float]
) -> list[float]:
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


def fill(
    resources: Sequence[np.ndarray], weights: Sequence[np.ndarray], bounds: Sequence[float], capacity: np.ndarray
) -> Sequence[float]:
    """Return the rates of tasks like `fill_reference`; a task is an array of resource numbers and an array of its
    weights on them.
    """
    if len(resources) == 1:
        shares = capacity[resources[0]] / weights[0]
        return [min(bounds[0], float(shares.min()) if len(shares) else math.inf)]
    if len(resources) <= _FEW:
        tasks = [
            dict(zip(numbers.tolist(), amounts.tolist(), strict=True))
            for numbers, amounts in zip(resources, weights, strict=True)
        ]
        return fill_reference(
            tasks, bounds, {number: float(capacity[number]) for weights_of in tasks for number in weights_of}
        )
    used, numbers = np.unique(np.concatenate(resources), return_inverse=True)
    sizes = np.array([len(numbers_of) for numbers_of in resources])
    rates: list[float] = _fill_rounds(
        sizes, numbers, np.concatenate(weights), np.asarray(bounds, np.float64), capacity[used]
    ).tolist()
    return rates


def _fill_rounds(
    sizes: np.ndarray, numbers: np.ndarray, weights: np.ndarray, bounds: np.ndarray, capacity: np.ndarray
) -> np.ndarray:
    """Return the rates (tasks,) by the rounds of `fill_reference`; task t uses the next `sizes[t]` of the resources
    `numbers`, with as many `weights`.
    """
    rates = np.where(sizes > 0, 0.0, bounds)
    left, count = capacity.copy(), len(capacity)
    active = (bounds > 0) & (sizes > 0)
    entries = np.repeat(active, sizes)
    tasks, sizes, numbers, weights = np.flatnonzero(active), sizes[active], numbers[entries], weights[entries]
    while len(tasks):
        starts = np.cumsum(sizes) - sizes
        shares = left / np.maximum(np.bincount(numbers, minlength=count), 1)
        increments = np.minimum(np.minimum.reduceat(shares[numbers] / weights, starts), bounds[tasks] - rates[tasks])
        rates[tasks] += increments
        left -= np.bincount(numbers, weights * np.repeat(increments, sizes), minlength=count)
        if not (increments > NO_MORE * rates[tasks]).any():
            break
        meets_end = np.logical_or.reduceat((left <= EXHAUSTED * capacity)[numbers], starts)
        stays = ~meets_end & (rates[tasks] < bounds[tasks] * (1 - EXHAUSTED))
        entries = np.repeat(stays, sizes)
        tasks, sizes, numbers, weights = tasks[stays], sizes[stays], numbers[entries], weights[entries]
    return rates
