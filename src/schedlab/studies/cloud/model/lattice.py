"""The allocations that actions can reach from a start: a lattice, because each resource changes independently; or the
offers of instance types, each of which an action reaches at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from schedlab.config.errors import UserError, did_you_mean
from schedlab.studies.cloud.model.allocation import (
    ACTIONS,
    KEEP,
    STEPS,
    Allocation,
    ResourceConfig,
    action_of,
    changes,
    describe,
)
from schedlab.studies.cloud.model.instances import Offer


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
    keep: int = KEEP

    def __len__(self) -> int:
        return len(self.allocations)

    def describe(self, action: int) -> str:
        """Return an action in words."""
        return describe(action)

    def away(self, action: int) -> np.ndarray:
        """Return the number of steps by which each action differs from one, (27,)."""
        return np.abs(np.array([changes(other) for other in range(ACTIONS)]) - changes(action)).sum(axis=1)

    def ways_to(self, here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the actions towards other allocations, int64 of the shape of `here`: the direct ones, and those that
        give GPUs back and take memory first.
        """
        steps = self.steps_to(here, there)
        gpus, cores, memory = np.moveaxis(steps, -1, 0)
        careful = np.stack([np.minimum(gpus, 0), cores, np.maximum(memory, 0)], axis=-1)
        return _numbers(steps), _numbers(careful)

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


@dataclass(frozen=True)
class OfferGrid:
    """n offers of instance types as allocations. Action 0 keeps the instance, action k moves to offer k - 1."""

    offers: tuple[Offer, ...]
    start: int
    keep: int = 0

    def __len__(self) -> int:
        return len(self.offers)

    @cached_property
    def allocations(self) -> np.ndarray:
        """(n, 3): GPUs, cores, GB."""
        return np.array([offer.allocation for offer in self.offers], float)

    @cached_property
    def following(self) -> np.ndarray:
        """(n, n + 1) int64: the offer's number after each action."""
        numbers = np.arange(len(self))
        return np.column_stack([numbers, np.tile(numbers, (len(self), 1))])

    def describe(self, action: int) -> str:
        """Return an action in words."""
        return f"Move to {self.offers[action - 1].name}" if action else "No change of the instance"

    def away(self, action: int) -> np.ndarray:
        """Return 0 for an action and 1 for all others, (n + 1,)."""
        return (np.arange(len(self) + 1) != action).astype(int)

    def ways_to(self, here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the actions that move to other offers, int64 of the shape of `here`."""
        return (np.where(np.asarray(here) == there, 0, np.asarray(there) + 1),)

    def nearest(self, allocation: Allocation) -> int:
        """Return the number of the offer with the nearest number of GPUs, then of cores, then GB; of equal ones, the
        first.
        """
        away = np.abs(self.allocations - np.array(allocation, float))
        return int(np.lexsort(away.T[::-1])[0])


Grid = Lattice | OfferGrid


def _numbers(steps: np.ndarray) -> np.ndarray:
    """Return the actions of steps (..., 3), each -1, 0 or 1."""
    return np.asarray(action_of(tuple(np.moveaxis(steps, -1, 0))))


def offer_grid(offers: Sequence[Offer], start: str) -> OfferGrid:
    """Return offers as allocations; the job begins on the type `start`, on demand (empty: on the first one). Raises
    UserError for an unknown type.
    """
    names = [None if offer.spot else offer.type.type for offer in offers]
    if start and start not in names:
        remedy = did_you_mean(start, [name for name in names if name])
        raise UserError(f"there is no instance type {start!r}", where="instances.start", remedy=remedy)
    return OfferGrid(tuple(offers), names.index(start) if start else 0)


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
