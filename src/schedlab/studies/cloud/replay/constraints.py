"""Service levels as constraints on a replayed training: the excess over each, the actions after which they can still be
kept, and the limits that no plan can keep.

Time and cost are sums over the training; whether they can still be kept follows from the least sums that remain, which
backward induction gives for several weights of the two (a Lagrangian bound: necessary for each weight, and for time or
cost alone also sufficient). Throughput, memory and use depend on the allocation alone; a training may pass allocations
that break them only on the shortest way to one that does not. See Altman, "Constrained Markov decision processes",
1999.
"""

from __future__ import annotations

import math
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting
from schedlab.studies.cloud.replay.sla import ITEMS, UPPER, judge

if TYPE_CHECKING:
    from schedlab.studies.cloud.replay.replay import Replay

TOTALS = ("time", "cost")
SHARES = 9  # number of weights of time against cost for which the least sum is computed, if both are limited
NEAR = 1e-9  # share of a limit: a smaller excess is rounding
WORDS = {
    "time": "{:.0f} s",
    "cost": "${:.2f}",
    "throughput": "a throughput of {:.0f} samples/s",
    "memory": "{:g} GB in use",
    "gpu_util": "a GPU utilisation of {:.0f} %",
    "cpu_util": "a core utilisation of {:.0f} %",
}


class ConstraintSettings(Settings):
    """Service levels that decisions must keep, and how the environment enforces them."""

    keep: tuple[Literal["time", "cost", "throughput", "memory", "gpu_util", "cpu_util"], ...] = setting(
        (), doc="service levels that are constraints; empty: none, they only affect the scores"
    )
    masked: bool = setting(True, doc="mask actions after which no plan keeps the constraints, by the performance model")
    multiplier: float = setting(
        10.0, doc="loss of reward for an excess as large as the limit; learners may raise and lower it", ge=0, le=1e6
    )
    probability: float = setting(
        0.9,
        doc="probability with which the mask and the planners keep the limits on time and cost if these are noisy",
        gt=0,
        lt=1,
    )


class Constraints:
    """The constraints of a replay with n allocations and E intervals.

    items     the k service levels that are constraints, in the order of ITEMS
    steady    (n, k) severity of each item that depends on the allocation alone; 0 if it is kept, and for time and cost
    keeps     (n,) whether the memory suffices and the allocation keeps the items of `steady`
    distance  (n,) number of actions to the nearest allocation that keeps them; infinite if there is none
    allowed   (n, actions), those that leave enough memory and lead to such an allocation or nearer to one
    """

    def __init__(self, replay: Replay) -> None:
        self.replay, self.settings = replay, replay.scenario.constraints
        self.items = tuple(item for item in ITEMS if item in self.settings.keep)
        self.limits = {item: replay.sla.limit(item) for item in self.items}
        self.totals = [place for place, item in enumerate(self.items) if item in TOTALS]
        found = replay.performance
        self.values = {
            "throughput": found.throughput,
            "memory": found.memory_used,
            "gpu_util": 100.0 * found.gpu_util,
            "cpu_util": 100.0 * found.cpu_util,
        }
        self.steady = np.zeros((len(replay.lattice), len(self.items)))
        for place, item in enumerate(self.items):
            if item in self.values:
                limit = self.limits[item]
                self.steady[:, place] = [judge(item, value, limit).severity for value in self.values[item].tolist()]
        self.keeps = replay.fits & (self.steady.sum(axis=1) == 0.0)
        self.distance = self._distance()
        ahead = self.distance[replay.lattice.following]
        nearer = replay.allowed & ((ahead == 0) | (ahead < self.distance[:, None]))
        self.allowed = np.where(nearer.any(axis=1, keepdims=True), nearer, replay.allowed)

    def _distance(self) -> np.ndarray:
        replay = self.replay
        found = np.where(self.keeps, 0.0, np.inf)
        while True:
            ahead = np.where(replay.allowed, found[replay.lattice.following], np.inf).min(axis=1) + 1.0
            shorter = np.minimum(found, ahead)
            if np.array_equal(shorter, found):
                return found
            found = shorter

    @cached_property
    def shares(self) -> np.ndarray:
        """Weights of time for which the least sum is computed, (W,); the weight of cost is one minus this."""
        if not self.totals:
            return np.empty(0)
        if len(self.totals) == 2:
            return np.linspace(0.0, 1.0, SHARES)
        return np.array([1.0 if "time" in self.items else 0.0])

    @cached_property
    def rates(self) -> np.ndarray:
        """Increase per second of the weighted sum of time and cost, each relative to its limit, (W, n)."""
        hourly = self.replay.price / 3600.0
        time = 1.0 / max(self.limits.get("time", 1.0), 1e-12)
        cost = hourly / max(self.limits.get("cost", 1.0), 1e-12)
        return self.shares[:, None] * time + (1.0 - self.shares[:, None]) * cost

    @cached_property
    def least(self) -> np.ndarray:
        """The least weighted sum from each interval and allocation to the end, (W, E + 1, n)."""
        replay = self.replay
        seconds = np.where(replay.fits, replay.seconds, np.inf)
        ways = [replay.best_ways(seconds * rate, replay.moving * rate, self.allowed)[1] for rate in self.rates]
        return np.array(ways).reshape(len(self.shares), replay.intervals + 1, len(replay.lattice))

    def margin(self, intervals: int | np.ndarray) -> np.ndarray:
        """Return the factors on the mean time and cost of a number of intervals that are not exceeded with the required
        probability, (2, ...). They follow from the noise of times and the random walk of prices, with a normal
        approximation of the sum.
        """
        settings, left = self.replay.scenario.environment, np.maximum(np.asarray(intervals, float), 1.0)
        z = NormalDist().inv_cdf(self.settings.probability)
        noise = (math.exp(settings.time_noise**2) - 1.0) / left
        walk = settings.price_walk**2 * left / 3.0
        return np.maximum(1.0 + z * np.sqrt(np.stack([noise, noise + walk])), 1.0)

    def excess(self, time: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """Return the excess of times (s) and costs ($), (N,), as shares of their limits, (N, k); 0 for the other
        items.
        """
        found = np.zeros((len(time), len(self.items)))
        for place in self.totals:
            value, limit = {"time": time, "cost": cost}[self.items[place]], self.limits[self.items[place]]
            found[:, place] = np.maximum(value / max(limit, 1e-12) - 1.0, 0.0)
        return found

    def mask(
        self, here: np.ndarray, interval: np.ndarray, time: np.ndarray, cost: np.ndarray, factor: np.ndarray
    ) -> np.ndarray:
        """Return True for each action after which a plan can still keep the constraints, (N, actions); if there is
        none, for the actions that break them least.

        here, interval  number of the allocation and of the next interval
        time, cost      spent so far, s and $
        factor          present prices relative to those of the scenario
        """
        replay = self.replay
        allowed = self.allowed[here]
        none = ~allowed.any(axis=1)
        allowed[none, self.replay.lattice.keep] = True
        if not self.totals:
            return allowed
        there = replay.cut_to_slots(interval[:, None], replay.lattice.following[here])
        left = np.minimum(interval, replay.intervals - 1)
        seconds = replay.seconds[left[:, None], there] + np.where(there != here[:, None], replay.moving[there], 0.0)
        of_time, of_cost = self.margin(replay.intervals - left)
        worst = np.full(there.shape, -np.inf)
        for place, share in enumerate(self.shares):
            spent = np.zeros(len(here))
            if "time" in self.items:
                spent = spent + share * time / max(self.limits["time"], 1e-12)
            if "cost" in self.items:
                spent = spent + (1.0 - share) * cost / max(self.limits["cost"], 1e-12)
            ahead = seconds * self.rates[place][there] + self.least[place][left[:, None] + 1, there]
            spread = share * of_time + (1.0 - share) * of_cost * factor
            worst = np.maximum(worst, spent[:, None] + spread[:, None] * ahead - 1.0)
        worst = np.where(allowed, np.maximum(worst, 0.0), np.inf)
        return allowed & (worst <= worst.min(axis=1, keepdims=True) + NEAR)

    def impossible(self) -> str | None:
        """Return why no plan can keep the constraints, with the best values that can be reached; None if one may
        exist.
        """
        replay, reached = self.replay, []
        for item in self.items:
            if item in self.values:
                values = self.values[item][replay.fits]
                best = float(values.min() if item in UPPER else values.max())
                if not judge(item, best, self.limits[item]).met:
                    most = "least" if item in UPPER else "most"
                    reached.append(f"{WORDS[item].format(self.limits[item])} (the {most} is {best:.4g})")
        if reached:
            return f"no allocation has {' or '.join(reached)}"
        steady = " and ".join(WORDS[item].format(self.limits[item]) for item in self.items if item in self.values)
        if not self.keeps.any():
            return f"no allocation has {steady} together"
        start = replay.lattice.start
        if not np.isfinite(self.distance[start]):
            return f"no way leads from the start to an allocation with {steady}"
        if self.totals and (self.least[:, 0, start] > 1.0 + NEAR).any():
            return f"no plan meets {self.totals_in_words()}"
        return None

    def totals_in_words(self) -> str:
        """Return the limits of time and cost with the fastest and the cheapest plan, as in `300 s and $1.00: the
        fastest takes 412 s, the cheapest costs $1.20`.
        """
        replay, start = self.replay, self.replay.lattice.start
        seconds = np.where(replay.fits, replay.seconds, np.inf)
        ends = {}
        for item, rate in (("time", np.ones(len(replay.price))), ("cost", replay.price / 3600.0)):
            ends[item] = float(replay.best_ways(seconds * rate, replay.moving * rate, self.allowed)[1][0, start])
        limits = " and ".join(WORDS[item].format(self.limits[item]) for item in TOTALS if item in self.items)
        fastest, cheapest = (WORDS[item].format(ends[item]) for item in TOTALS)
        return f"{limits}: the fastest takes {fastest}, the cheapest costs {cheapest}"

    def require_possible(self, name: str) -> None:
        """Raise UserError if no plan can keep the constraints. name: of the scenario."""
        if reason := self.impossible():
            remedy = "loosen a limit in `sla`, or leave it out of `constraints.keep`"
            raise UserError(reason, where=f"scenario {name}: constraints.keep", remedy=remedy)
