"""Oracles of a scenario without noise: the best plan by dynamic programming, and the best allocation to go to and stay
on.

Both begin with the start allocation and pay for every change. With `interval_seconds`, decisions are made at equal
distances of time, and the progress of the training depends on all earlier decisions. Progress is then a second state of
the dynamic programme, rounded up to a grid. The resulting objective is a lower bound; each decision rounds by at most
one cell of the grid (CELLS). See docs/reference/cloud_model.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.replay.replay import Replay, towards

CELLS = 200  # of the grid per decision of the slowest allocation; rounding costs at most one cell per decision
MOST_DECISIONS = 100  # of the slowest allocation; the plan's effort grows with it
NEAR = 1e-9  # of a cell: progress nearer than this to a grid point counts as on it


@dataclass(frozen=True)
class Plan:
    """The best action in each interval and on each allocation (`actions`, int64 (E, n)), and the objective from there
    on (`values`, (E + 1, n)).
    """

    actions: np.ndarray
    values: np.ndarray

    def action(self, here: int, progress: float) -> int:
        """Return the action on an allocation after `progress` intervals of training."""
        return int(self.actions[int(progress), here])


def best_plan(replay: Replay, weights: Mapping[str, float]) -> Plan | TimedPlan:
    """Return the plan with the smallest objective, by backward induction over intervals and allocations. Of equal
    actions, the lowest is taken.

    The plan is exact if intervals are shares of the training, because the objective is then a sum over intervals. With
    `interval_seconds`, see `best_timed_plan`. weights: of time, cost and resource.
    """
    if replay.span:
        return best_timed_plan(replay, weights)
    costs, restarts = replay.step_costs(weights)
    following, n = replay.lattice.following, len(replay.lattice)
    values = np.zeros((replay.intervals + 1, n))
    actions = np.zeros((replay.intervals, n), dtype=np.int64)
    for interval in range(replay.intervals - 1, -1, -1):
        there = replay.cut_to_slots(interval, following)
        extra = np.where(there != np.arange(n)[:, None], restarts[there], 0.0)
        onward = np.where(replay.allowed, (costs[interval] + values[interval + 1])[there] + extra, np.inf)
        actions[interval] = onward.argmin(axis=1)
        values[interval] = onward[np.arange(n), actions[interval]]
    return Plan(actions, values)


def objective_of_staying(replay: Replay, weights: Mapping[str, float]) -> np.ndarray:
    """Return the objective of going straight to each allocation and staying there, (n,).

    It is infinite if the memory of the allocation does not suffice, or if the job ends before the allocation is
    reached.
    """
    if replay.span:
        return timed_objective_of_staying(replay, weights)
    costs, restarts = replay.step_costs(weights)
    target = np.arange(len(replay.lattice))
    here = np.full(len(target), replay.lattice.start)
    total = np.where(replay.fits, 0.0, np.inf)
    for interval in range(replay.intervals):
        there = replay.cut_to_slots(interval, replay.lattice.following[here, towards(replay, here, target)])
        total += costs[interval, there] + np.where(there != here, restarts[there], 0.0)
        here = there
    return np.where(here == target, total, np.inf)


def best_constant(replay: Replay, weights: Mapping[str, float]) -> int:
    """Return the number of the allocation with the best objective of going there and staying; of equal ones, the
    lowest.
    """
    return int(objective_of_staying(replay, weights).argmin())


@dataclass(frozen=True)
class TimedPlan:
    """The best plan with `interval_seconds`. values (G + 1, n): its objective from each progress (a grid from 0 to 1)
    and allocation on.
    """

    replay: Replay
    weights: Mapping[str, float]
    values: np.ndarray

    def action(self, here: int, progress: float) -> int:
        """Return the action on an allocation after `progress` intervals of training; of equal actions, the lowest."""
        onward = _onward(self.replay, self.weights, self.values, progress)
        there = self.replay.lattice.following[here]
        return int(np.where(self.replay.allowed[here], onward[(there != here).astype(int), there], np.inf).argmin())


def best_timed_plan(replay: Replay, weights: Mapping[str, float]) -> TimedPlan:
    """Return the plan with the smallest objective with `interval_seconds`. Raises UserError if there are too many
    decisions.
    """
    decisions = math.ceil(replay.clock[-1][replay.fits].max() / replay.span)
    if decisions > MOST_DECISIONS:
        least = replay.clock[-1][replay.fits].max() / MOST_DECISIONS
        what = f"the training takes up to {decisions} decisions, too many for the best plan"
        raise UserError(what, where="environment.interval_seconds", expected=f"{math.ceil(least)} or more")
    points, n = CELLS * decisions, len(replay.lattice)
    values = np.zeros((points + 1, n))
    there = replay.lattice.following
    changed = (there != np.arange(n)[:, None]).astype(int)
    for point in range(points - 1, -1, -1):
        onward = _onward(replay, weights, values, replay.intervals * point / points)
        values[point] = np.where(replay.allowed, onward[changed, there], np.inf).min(axis=1)
    return TimedPlan(replay, weights, values)


def _onward(replay: Replay, weights: Mapping[str, float], values: np.ndarray, progress: float) -> np.ndarray:
    """Return the objective from `progress` (intervals) on if each allocation is kept (first row), or changed to (second
    row, with a restart), (2, n).
    """
    points, n = len(values) - 1, len(replay.lattice)
    rate = replay.rate(weights)
    found = []
    span = float(replay.span or 0.0)
    for restart in (0.0, replay.restart):
        reached, taken = replay.after(np.arange(n), np.full(n, progress), np.full(n, span - restart))
        waste = (1.0 - replay.busy) * (reached - progress) / replay.intervals
        ahead = np.minimum(np.ceil(reached / replay.intervals * points - NEAR).astype(np.int64), points)
        found.append((taken + restart) * rate + weights["resource"] * waste + values[ahead, np.arange(n)])
    return np.where(replay.fits, np.stack(found), np.inf)


def timed_objective_of_staying(replay: Replay, weights: Mapping[str, float]) -> np.ndarray:
    """Return the exact objective of going straight to each allocation and staying there with `interval_seconds`, (n,).

    It is infinite if the memory of the allocation does not suffice, or if the job ends before the allocation is
    reached.
    """
    rate = replay.rate(weights)
    target = np.arange(len(replay.lattice))
    here, progress = np.full(len(target), replay.lattice.start), np.zeros(len(target))
    found = np.where(replay.fits, 0.0, np.inf)
    while (going := progress < replay.intervals).any():
        there = np.where(going, replay.lattice.following[here, towards(replay, here, target)], here)
        restart = np.where(there != here, replay.restart, 0.0)
        reached, taken = replay.after(there, progress, replay.span - restart)
        waste = (1.0 - replay.busy[there]) * (reached - progress) / replay.intervals
        found += np.where(going, (taken + restart) * rate[there] + weights["resource"] * waste, 0.0)
        here, progress = there, np.where(going, reached, progress)
    return np.where(here == target, found, np.inf)
