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
from schedlab.studies.cloud.replay.replay import SECONDS, Replay, straight_courses, towards

CELLS = 200  # grid cells per decision of the slowest allocation; rounding costs at most one cell per decision
# Maximum number of decisions on the slowest allocation; the time to compute the plan grows with it.
MOST_DECISIONS = 100
NEAR = 1e-9  # of a cell: progress nearer than this to a grid point counts as on it; of a limit: an excess is rounding
ROUNDS = 60  # rounds of multipliers for a plan that keeps constraints
GAP = 1e-4  # relative distance to the bound below which a plan counts as the best
SLOWER = 0.97  # factor on the steps of the multipliers from round to round


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
    `interval_seconds`, see `best_timed_plan`. weights: of time, cost and resource. Where there are constraints,
    see `best_kept_plan`.
    """
    if replay.span:
        return best_timed_plan(replay, weights)
    if replay.constraints.items:
        return best_kept_plan(replay, weights).plan
    costs, restarts = replay.step_costs(weights)
    return Plan(*replay.best_ways(costs, restarts, replay.allowed))


@dataclass(frozen=True)
class KeptPlan:
    """A plan that keeps the constraints, and the bound on the objective of all plans that do."""

    plan: Plan
    bound: float


def best_kept_plan(replay: Replay, weights: Mapping[str, float]) -> KeptPlan:
    """Return the best plan found that keeps the constraints of a job without noise, by Lagrangian relaxation: time and
    cost get multipliers, each set of which backward induction solves (Polyak's steps), and the best plan among those
    that keep the limits and the constant allocations is taken. The bound shows how much better an unknown plan can be.
    Raises UserError where none is found.

    Sources: Fisher, "The Lagrangian relaxation method", 1981; Polyak, "Minimization of unsmooth functionals", 1969.
    """
    limits, start = replay.constraints, replay.lattice.start
    costs, restarts = replay.step_costs(weights)
    names = [limits.items[place] for place in limits.totals]
    rates = {"time": np.ones(len(replay.price)), "cost": replay.price / SECONDS}
    shares = np.array([rates[name] / limits.limits[name] for name in names]).reshape(len(names), len(replay.price))
    value = kept_objectives(replay, weights)
    best, least, bound = int(value.argmin()), float(value.min()), -np.inf
    numbers = np.arange(len(value))
    actions = np.tile(towards(replay, numbers, np.full(len(value), best)), (replay.intervals, 1))
    multipliers, pace = np.zeros(len(names)), 1.0
    for _ in range(ROUNDS):
        more = multipliers @ shares
        found, values = replay.best_ways(costs + replay.seconds * more, restarts + replay.moving * more, limits.allowed)
        bound = max(bound, float(values[0, start] - multipliers.sum()))
        objective = float(followed(replay, found, costs, restarts)[0, start])
        seconds = replay.seconds
        sums = [followed(replay, found, seconds * rate, replay.moving * rate)[0, start] for rate in shares]
        over = np.array(sums) - 1.0
        if (over <= NEAR).all() and objective < least:
            actions, least = found, objective
        if least - bound <= GAP * abs(bound) or not len(names):
            break
        step = (
            pace
            * (min(least, 2.0 * abs(bound) + bound) - values[0, start] + multipliers.sum())
            / max(float(over @ over), NEAR)
        )
        multipliers, pace = np.maximum(0.0, multipliers + step * over), pace * SLOWER
    if not np.isfinite(least):
        what = f"no plan was found that meets {limits.totals_in_words()}"
        where = f"scenario {replay.scenario.name}: constraints.keep"
        raise UserError(what, where=where, remedy="loosen a limit in `sla`")
    return KeptPlan(Plan(actions, followed(replay, actions, costs, restarts)), min(bound, least))


def followed(replay: Replay, actions: np.ndarray, costs: np.ndarray, restarts: np.ndarray) -> np.ndarray:
    """Return the sum of costs under given actions from each interval and allocation to the end, (E + 1, n)."""
    numbers = np.arange(len(replay.lattice))
    values = np.zeros((replay.intervals + 1, len(numbers)))
    for interval in range(replay.intervals - 1, -1, -1):
        there = replay.cut_to_slots(interval, replay.lattice.following[numbers, actions[interval]])
        values[interval] = costs[interval, there] + values[interval + 1, there]
        values[interval] += np.where(there != numbers, restarts[there], 0.0)
    return values


def objective_of_staying(replay: Replay, weights: Mapping[str, float]) -> np.ndarray:
    """Return the objective of going straight to each allocation and staying there, (n,).

    It is infinite if the memory of the allocation does not suffice, or if the job ends before the allocation is
    reached.
    """
    if replay.span:
        return timed_objective_of_staying(replay, weights)
    costs, restarts = replay.step_costs(weights)
    total, here = np.where(replay.fits, 0.0, np.inf), np.empty(0)
    for interval, here, changed in straight_courses(replay):
        total += costs[interval, here] + np.where(changed, restarts[here], 0.0)
    return np.where(here == np.arange(len(total)), total, np.inf)


def kept_objectives(replay: Replay, weights: Mapping[str, float]) -> np.ndarray:
    """Return the objective of going straight to each allocation and staying there, (n,); infinite where that breaks a
    constraint, with noise where it breaks one too probably.
    """
    value, limits = objective_of_staying(replay, weights), replay.constraints
    if not limits.items:
        return value
    time, cost = totals_of_staying(replay)
    of_time, of_cost = limits.margin(replay.intervals)
    over = limits.excess(time * of_time, cost * of_cost).max(axis=1) > NEAR
    return np.where(over | ~limits.keeps, np.inf, value)


def totals_of_staying(replay: Replay) -> tuple[np.ndarray, np.ndarray]:
    """Return time (s) and cost ($) of going straight to each allocation and staying there, (n,) each."""
    only = dict.fromkeys(("time", "cost", "resource"), 0.0)
    time, cost = (objective_of_staying(replay, only | {name: 1.0}) for name in ("time", "cost"))
    return time * replay.time_ref, cost * replay.cost_ref


def best_constant(replay: Replay, weights: Mapping[str, float]) -> int:
    """Return the number of the allocation that is best to go to and stay on; of equal ones, the lowest number. If none
    keeps the constraints, for example by a wrong model, return the one whose largest excess is smallest.
    """
    value = kept_objectives(replay, weights)
    if np.isfinite(value).any():
        return int(value.argmin())
    limits, value = replay.constraints, objective_of_staying(replay, weights)
    time, cost = totals_of_staying(replay)
    worst = np.where(np.isfinite(time), (limits.excess(time, cost) + limits.steady).max(axis=1), np.inf)
    return int(np.where(worst <= worst.min() + NEAR, value, np.inf).argmin())


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
