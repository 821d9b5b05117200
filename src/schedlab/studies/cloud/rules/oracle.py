"""Oracles of a noiseless scenario: the best plan by dynamic programming, and the best allocation to move to and stay
on.

Both start where the scenario starts and pay for every change. Where decisions come at equal distances of time, progress
depends on all decisions before: it is a second state of the plan, rounded up to a grid, so that the objective is a
lower bound, by at most one cell a decision (CELLS). See docs/reference/cloud_model.md.
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
    """The best action in each interval and allocation, (E, n) int64; objective from there on, (E + 1, n)."""

    actions: np.ndarray
    values: np.ndarray

    def action(self, here: int, progress: float) -> int:
        """Return the action on an allocation after so many intervals of training."""
        return int(self.actions[int(progress), here])


def best_plan(replay: Replay, weights: Mapping[str, float]) -> Plan | TimedPlan:
    """Return the plan of the smallest objective, by backward induction over intervals and allocations; ties: the lowest
    action. Exact for the objective, which is a sum over intervals, where these are shares of the training; see
    `best_timed_plan` for stretches of time. weights: of time, cost and resource.
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

    Infinite where its memory does not suffice, and where the job ends before it is reached.
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
    """Return the number of the allocation that is best to go to and stay on; ties: the lowest number."""
    return int(objective_of_staying(replay, weights).argmin())


@dataclass(frozen=True)
class TimedPlan:
    """The best plan's objective from progress (a grid of 0 to 1, its first axis) and allocation on, (G + 1, n)."""

    replay: Replay
    weights: Mapping[str, float]
    values: np.ndarray

    def action(self, here: int, progress: float) -> int:
        """Return the action on an allocation after so many intervals of training; ties: the lowest action."""
        onward = _onward(self.replay, self.weights, self.values, progress)
        there = self.replay.lattice.following[here]
        return int(np.where(self.replay.allowed[here], onward[(there != here).astype(int), there], np.inf).argmin())


def best_timed_plan(replay: Replay, weights: Mapping[str, float]) -> TimedPlan:
    """Return the plan of the smallest objective. Raises UserError where decisions are too many."""
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
    """The objective from `progress` (intervals) on if each allocation is kept, or newly taken, next, (2, n)."""
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
    """Return the objective of going straight to each allocation and staying there, (n,); exact.

    Infinite where its memory does not suffice, and where the job ends before it is reached.
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
