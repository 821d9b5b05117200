"""The best plan where decisions come at equal distances of time, not of training.

How far the training is when a decision is due then depends on all decisions before, so progress is a state of the plan
besides the
allocation. It is rounded up to a grid: each decision is taken to train a little more than it does, and the objective
that is found lies below what can be reached, by at most what that adds up to (CELLS).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.replay.moves import towards
from schedlab.studies.cloud.replay.replay import Replay

CELLS = 200  # of the grid per decision of the slowest allocation; rounding costs at most one cell per decision
MOST_DECISIONS = 100  # of the slowest allocation; the plan's effort grows with it
NEAR = 1e-9  # of a cell: what is nearer to a point of the grid is on it


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
    """Return the plan of the smallest objective. Raises UserError where decisions are too many; weights: of time, cost
    and resource.
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
    """The objective from `progress` (intervals) on if each allocation is kept, or newly taken, for the next decision,
    (2, n).
    """
    points, n = len(values) - 1, len(replay.lattice)
    rate = replay.rate(weights)
    found = []
    for restart in (0.0, replay.restart):
        reached, taken = replay.after(np.arange(n), np.full(n, progress), np.full(n, replay.span - restart))
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
