"""The allocations that actions can reach from a start: a lattice, because each resource changes independently."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from schedlab.studies.cloud.model.allocation import ACTIONS, STEPS, Allocation, ResourceConfig, changes


@dataclass(frozen=True)
class Lattice:
    """n allocations by number.

    allocations  (n, 3): GPUs, cores, GB              axes     the values of each resource, rising
    following    (n, 27) int64: the allocation's number after each action              start    number of the start
    first_steps  of each resource, (values, values) int64: the first step, -1, 0 or 1, of the shortest way from one
                 value to another
    """

    axes: tuple[tuple[float, ...], ...]
    allocations: np.ndarray
    following: np.ndarray
    first_steps: tuple[np.ndarray, ...]
    start: int

    def __len__(self) -> int:
        return len(self.allocations)

    def number(self, allocation: Allocation) -> int:
        """Return the number of an allocation of the lattice. Raises ValueError for another one."""
        found = 0
        for axis, value in zip(self.axes, allocation, strict=True):
            found = found * len(axis) + axis.index(value)
        return found

    def nearest(self, allocation: Allocation) -> int:
        """Return the number of the allocation that is nearest to another one, resource by resource."""
        near = [
            axis[int(np.abs(np.asarray(axis) - value).argmin())]
            for axis, value in zip(self.axes, allocation, strict=True)
        ]
        return self.number(Allocation._make(near))

    def steps_to(self, here: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Return the first steps (-1, 0, 1 of each resource) on the shortest paths between allocations, (..., 3)."""
        sizes = [len(axis) for axis in self.axes]
        places = zip(self.first_steps, np.unravel_index(here, sizes), np.unravel_index(there, sizes), strict=True)
        return np.stack([step[at, to] for step, at, to in places], axis=-1)


def lattice(start: Allocation, limits: ResourceConfig, steps: tuple[int, int, int] = STEPS) -> Lattice:
    """Return the allocations that can be reached from a start within limits; a step beyond a limit ends on the limit.

    steps: change of each resource by one action; a resource with step 0 stays constant.
    """
    axes, nexts = [], []
    for value, step, least, most in zip(start, steps, limits.least, limits.most, strict=True):
        axis = _reachable(value, step, least, most)
        axes.append(axis)
        nexts.append([[axis.index(max(least, min(have + way * step, most))) for way in (-1, 0, 1)] for have in axis])
    sizes = [len(axis) for axis in axes]
    grid = np.stack(np.meshgrid(*[np.arange(size) for size in sizes], indexing="ij"), axis=-1).reshape(-1, 3)
    values = np.stack([np.asarray(axis, float)[grid[:, number]] for number, axis in enumerate(axes)], axis=-1)
    following = np.empty((len(grid), ACTIONS), dtype=np.int64)
    for action in range(ACTIONS):
        moved = [np.asarray(nexts[number])[grid[:, number], way + 1] for number, way in enumerate(changes(action))]
        following[:, action] = np.ravel_multi_index(moved, sizes)
    first_steps = tuple(_first_steps(np.array(each)) for each in nexts)
    found = Lattice(tuple(axes), values, following, first_steps, 0)
    return replace(found, start=found.number(start))


def _first_steps(nexts: np.ndarray) -> np.ndarray:
    """Return the first steps on the shortest paths between the values of a resource, given the value after each step,
    (values, 3).

    A step that a limit cuts short reaches values that the way back misses, so that a value in between may not lie on
    the shortest path.
    """
    size = len(nexts)
    distance = np.full((size, size), size)
    np.fill_diagonal(distance, 0)
    for _ in range(size):
        distance = np.minimum(distance, distance[nexts].min(axis=1) + 1)
    first = distance[nexts].argmin(axis=1) - 1
    return np.where(np.eye(size, dtype=bool), 0, first)


def _reachable(start: float, step: int, least: float, most: float) -> tuple[float, ...]:
    """Return the values of one resource that steps can reach."""
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for way in (-step, step):
            there = max(least, min(here + way, most))
            if there not in found:
                found.add(there)
                waiting.append(there)
    return tuple(sorted(found))
