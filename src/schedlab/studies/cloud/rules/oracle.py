"""Oracles of a noiseless scenario: the best plan by dynamic programming, and the best allocation to move to and stay
on.

Both start where the scenario starts and pay for every change. Source: specification of the study cloud, B4 and B5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schedlab.studies.cloud.replay.moves import towards
from schedlab.studies.cloud.replay.replay import Replay
from schedlab.studies.cloud.rules.oracle_timed import TimedPlan, best_timed_plan, timed_objective_of_staying


@dataclass(frozen=True)
class Plan:
    """The best action in each interval on each allocation, (E, n) int64, and the objective from there on, (E + 1,
    n).
    """

    actions: np.ndarray
    values: np.ndarray

    def action(self, here: int, progress: float) -> int:
        """Return the action on an allocation after so many intervals of training."""
        return int(self.actions[int(progress), here])


def best_plan(replay: Replay, weights: Mapping[str, float]) -> Plan | TimedPlan:
    """Return the plan of the smallest objective, by backward induction over intervals and allocations; ties: the lowest
    action.

    Exact for the objective, which is a sum over intervals, where these are shares of the training; see `oracle_timed`
    for stretches of
    time. weights: of time, cost and resource.
    """
    if replay.span:
        return best_timed_plan(replay, weights)
    costs, restarts = replay.step_costs(weights)
    following, n = replay.lattice.following, len(replay.lattice)
    values = np.zeros((replay.intervals + 1, n))
    actions = np.zeros((replay.intervals, n), dtype=np.int64)
    for interval in range(replay.intervals - 1, -1, -1):
        there = replay.taken(interval, following)
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
    found = np.where(replay.fits, 0.0, np.inf)
    for interval in range(replay.intervals):
        there = replay.taken(interval, replay.lattice.following[here, towards(replay, here, target)])
        found += costs[interval, there] + np.where(there != here, restarts[there], 0.0)
        here = there
    return np.where(here == target, found, np.inf)


def best_constant(replay: Replay, weights: Mapping[str, float]) -> int:
    """Return the number of the allocation that is best to go to and stay on; ties: the lowest number."""
    return int(objective_of_staying(replay, weights).argmin())
