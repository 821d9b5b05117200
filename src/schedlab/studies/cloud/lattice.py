"""The allocations that actions can reach from a start: a lattice, since each resource moves on its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedlab.studies.cloud.allocation import ACTIONS, STEPS, Allocation, ResourceConfig, changes


@dataclass(frozen=True)
class Lattice:
    """n allocations by number.

    allocations  (n, 3): GPUs, cores, GB              axes     the values of each resource, rising
    following    (n, 27) int64: the allocation's number after each action              start  number of the start
    """

    axes: tuple[tuple[float, ...], ...]
    allocations: np.ndarray
    following: np.ndarray
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
        near = (
            min(axis, key=lambda have, value=value: (abs(have - value), have)) for axis, value in zip(self.axes, allocation, strict=True)
        )
        return self.number(Allocation(*near))

    def steps_between(self, here: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Return how many steps lie from allocations to others in each resource, with their sign; shape (..., 3)."""
        sizes = [len(axis) for axis in self.axes]
        at, to = (np.stack(np.unravel_index(np.asarray(numbers), sizes), axis=-1) for numbers in (here, there))
        return to - at


def lattice(start: Allocation, limits: ResourceConfig, steps: tuple[int, int, int] = STEPS) -> Lattice:
    """Return the allocations reachable from a start within limits; a step that would pass a limit ends on it.

    steps: what an action moves of each resource; one of step 0 stays.
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
    found = Lattice(tuple(axes), values, following, 0)
    return Lattice(found.axes, values, following, found.number(start))


def _reachable(start: float, step: int, least: float, most: float) -> tuple[float, ...]:
    """Values of one resource that steps lead to."""
    found, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        for way in (-step, step):
            there = max(least, min(here + way, most))
            if there not in found:
                found.add(there)
                waiting.append(there)
    return tuple(sorted(found))
