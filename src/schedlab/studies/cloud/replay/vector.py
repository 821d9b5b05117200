"""The vectorised replay environment: many training jobs in one process, advanced together by array operations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from schedlab.config.errors import UserError
from schedlab.learning.vector_envs import gathered, place_generators
from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.legacy import LegacySettings
from schedlab.studies.cloud.model.allocation import PAPER_ACTIONS
from schedlab.studies.cloud.replay.env import ENVIRONMENT, MOST_FAILURES, weights_of
from schedlab.studies.cloud.replay.observe import (
    COST,
    COST_MET,
    COST_SEVERITY,
    EPOCH_TIME,
    MET,
    PROGRESS,
    SEVERITY,
    TIME,
    TIME_LEFT,
    TIME_MET,
    TIME_SEVERITY,
    component_numbers,
)
from schedlab.studies.cloud.replay.replay import SECONDS, Replay
from schedlab.studies.cloud.replay.sla import ITEMS
from schedlab.studies.cloud.replay.state import SIZE


class CloudReplayVectorEnv(VectorEnv):
    """N environments in parallel. Number i of seed s behaves exactly like CloudReplayEnv with seed s + i.

    Observations (N, 26 or 21) float32, actions (N,), rewards (N,) float64; `action_masks` is (N, actions). A job that
    ends is replaced by a new one in the same step: `final_obs` and `final_info` (its scores) describe its end. Only the
    scalar reward, with fixed or adapted weights, and intervals that are shares of the training and are not interrupted
    are supported; raises UserError for others.
    """

    def __init__(
        self, replay: Replay, num_envs: int = 1, preference: str = "balanced", seed: int | None = None
    ) -> None:
        settings = replay.scenario.environment
        if num_envs < 1:
            raise UserError(f"{num_envs} environments", where="num_envs", expected="at least 1")
        if (legacy := replay.scenario.legacy) != LegacySettings():
            defects = ", ".join(name for name, on in legacy.model_dump().items() if on)
            raise UserError(
                f"defects of the published program are on ({defects})",
                where=f"{ENVIRONMENT}: legacy",
                remedy="step single environments, or switch them off",
            )
        for reason, remedy in {
            "intervals are stretches of time": "`interval` in epochs" if replay.span else "",
            "spot instances are interrupted": "instances on demand" if replay.hazard.any() else "",
        }.items():
            if remedy:
                what = f"{reason}, so that jobs side by side do not end together"
                remedy = f"step single environments (stock learners do), or take {remedy}"
                raise UserError(what, where=ENVIRONMENT, remedy=remedy)
        self.num_envs, self.replay, self.settings = num_envs, replay, settings
        self.weights, self.preference = weights_of(preference), preference
        self.metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}
        every, self._keep = range(replay.lattice.following.shape[1]), replay.lattice.keep
        self.actions = np.array(PAPER_ACTIONS if settings.space == "paper9" else every)
        self._components = component_numbers(settings.space)
        size = len(self._components) if self._components else SIZE
        self.single_observation_space = gym.spaces.Box(0.0, 1.0, (size,), np.float32)
        self.single_action_space = gym.spaces.Discrete(len(self.actions))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        tables, grid = replay.tables, replay.lattice
        self._rows = np.stack([tables.rows[False], tables.rows[True]])
        self._severity, self._met = (
            np.array([values[False], values[True]]) for values in (tables.severity, tables.met)
        )
        self._following = grid.following[:, self.actions]
        self._allowed = replay.allowed[:, self.actions]
        self._allowed[:, self.actions == self._keep] |= ~self._allowed.any(axis=1, keepdims=True)
        self._gpus = grid.allocations[:, 0]
        self.constraints = replay.constraints
        items = len(self.constraints.items)
        self.multipliers = np.full(items, self.constraints.settings.multiplier)
        self.excess, self.added_excess = np.zeros((num_envs, items)), np.zeros((num_envs, items))
        self._seed = seed
        self._rngs: list[np.random.Generator] = []
        self._totals = {
            name: np.zeros(num_envs)
            for name in ("time", "cost", "waste", "gpu_hours", "severity", "restarts", "failures", "met")
        }
        self.here, self.interval = np.zeros(num_envs, dtype=np.int64), np.zeros(num_envs, dtype=np.int64)
        self.price_factor = np.ones(num_envs)
        self._observed = np.zeros((num_envs, SIZE), np.float32)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Submit every job again; the first reset uses the seed given at construction. `options={"preference": name}`
        changes the preference. Raises UserError for an unknown preference.
        """
        if options and "preference" in options:
            self.weights, self.preference = weights_of(options["preference"]), options["preference"]
        seed = self._seed if seed is None else seed
        self._seed = None
        self._rngs = place_generators(seed, self._rngs, self.num_envs)
        self._begin(np.arange(self.num_envs))
        return self._observation(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Take an action, a whole number, in every job and train for an interval. Raises UserError before any job is
        advanced.
        """
        replay, totals, before = self.replay, self._totals, self.here
        here = self.here = replay.cut_to_slots(self.interval, self._following[before, self._checked(actions)])
        changed, fits = here != before, replay.fits[here]
        seconds = np.where(fits, replay.seconds[self.interval, here] * self._noise(fits), self.settings.out_of_memory)
        seconds = seconds + np.where(changed, replay.restart, 0.0)
        dollars = seconds * (replay.price[here] * self.price_factor) / SECONDS
        waste = np.where(fits, (1.0 - replay.busy[here]) / replay.intervals, 0.0)
        self.interval = self.interval + fits
        gpu_hours = self._gpus[here] * seconds / SECONDS
        added = {
            "time": seconds,
            "cost": dollars,
            "waste": waste,
            "gpu_hours": gpu_hours,
            "restarts": changed,
            "failures": ~fits,
        }
        for name, more in added.items():
            totals[name] += more
        self._see(seconds, fits)
        self._broken(fits / replay.intervals)
        weights = self._weights()
        rewards = (
            weights["time"] * (-seconds / replay.time_ref)
            + weights["cost"] * (-dollars / replay.cost_ref)
            - weights["resource"] * waste
            - self.added_excess @ self.multipliers
        )
        ended = self.interval >= replay.intervals
        cut = (totals["failures"] >= MOST_FAILURES) & ~ended
        final: dict[str, Any] = {}
        if (over := np.flatnonzero(ended | cut)).size:
            observed = self._observation()
            endings = {
                place: {"final_obs": observed[place], "final_info": {"scores": self.scores(place)}}
                for place in over.tolist()
            }
            final = gathered(endings, self.num_envs)
            self._begin(over)
        return self._observation(), rewards, ended, cut, final

    def _checked(self, actions: np.ndarray) -> np.ndarray:
        """Return the actions after checking that there is one for each job; NumPy would broadcast a single one, and
        take a negative one from the end.
        """
        given, most = np.asarray(actions), len(self.actions) - 1
        whole = given.shape == (self.num_envs,) and given.dtype.kind in "iu"
        if not whole or given.min() < 0 or given.max() > most:
            what = f"actions of shape {given.shape} and type {given.dtype}" + (
                f", {given.min()} to {given.max()}" if whole else ""
            )
            raise UserError(what, where=ENVIRONMENT, expected=f"{self.num_envs} whole numbers from 0 to {most}")
        return given

    def _broken(self, shares: np.ndarray) -> None:
        """Update the excess over each constraint, (N, k), and its increase. shares: shares of the training that were
        done, (N,).
        """
        if self.constraints.items:
            totals = self.constraints.excess(self._totals["time"], self._totals["cost"])
            steady = self.excess + self.constraints.steady[self.here] * shares[:, None]
            now = np.where(totals > 0.0, totals, steady)
            self.added_excess, self.excess = now - self.excess, now

    def action_masks(self) -> np.ndarray:
        """Return True for each action after which the job has enough memory and, if `constraints` are masked, can still
        keep them, (N, actions); if there is none, for the one that keeps the allocation.
        """
        if not self.constraints.items or not self.constraints.settings.masked:
            return self._allowed[self.here]
        totals = self._totals
        mask = self.constraints.mask(self.here, self.interval, totals["time"], totals["cost"], self.price_factor)
        mask = mask[:, self.actions]
        mask[:, self.actions == self._keep] |= ~mask.any(axis=1, keepdims=True)
        return mask

    def scores(self, place: int) -> dict[str, float]:
        """Return the scores so far of the episode at one place, as CloudReplayEnv.scores does."""
        total = {name: float(values[place]) for name, values in self._totals.items()}
        found = {
            "objective": self.replay.objective(self.weights, total["time"], total["cost"], total["waste"]),
            **{name: total[name] for name in ("time", "cost", "gpu_hours", "waste")},
            "sla_met": total["met"],
            "severity": total["severity"] / total["time"] if total["time"] else 0.0,
            "restarts": total["restarts"],
            "out_of_memory": total["failures"],
        }
        if self.constraints.items:
            met = self._observed[place, MET].tolist()
            kept = all(met[ITEMS.index(item)] for item in self.constraints.items)
            found |= {"limits_kept": float(kept), "excess": float(self.excess[place].sum())}
        return found

    def _weights(self) -> Mapping[str, float | np.ndarray]:
        """Return the weights of the preference, adapted to the violations at each place if set
        (reward.adapted_weights).
        """
        if not self.settings.adaptive:
            return self.weights
        raw = self._leaning()
        whole = sum(raw.values())
        return {name: value / whole for name, value in raw.items()}

    def _leaning(self) -> dict[str, np.ndarray]:
        """Return the weights shifted towards violated service levels at each place, before normalisation."""
        late, dear, _, _, idle_gpus, idle_cores = self._observed[:, SEVERITY].astype(float).T
        severities = {"time": late, "cost": dear, "resource": (idle_gpus + idle_cores) / 2.0}
        return {
            name: weight * np.exp(self.settings.adaptive * severities[name]) for name, weight in self.weights.items()
        }

    def _begin(self, places: np.ndarray) -> None:
        self.here[places], self.interval[places], self.price_factor[places] = self.replay.lattice.start, 0, 1.0
        for values in self._totals.values():
            values[places] = 0.0
        self.excess[places] = 0.0
        self._totals["met"][places] = len(ITEMS)
        self._observed[places] = self.replay.tables.first

    def _noise(self, fits: np.ndarray) -> np.ndarray | float:
        """Return factors on times, and update the random walk of prices, with each job's generator in the order of
        CloudReplayEnv.
        """
        sigma, walk = self.settings.time_noise, self.settings.price_walk
        if not sigma and not walk:
            return 1.0
        factors = np.ones(self.num_envs)
        for place, rng in enumerate(self._rngs):
            if sigma and fits[place]:
                factors[place] = math.exp(sigma * rng.standard_normal() - sigma * sigma / 2)
            if walk:
                self.price_factor[place] *= math.exp(walk * rng.standard_normal())
        return factors

    def _see(self, seconds: np.ndarray, fits: np.ndarray) -> None:
        """Update the state vectors, the number of met service levels and the severities after an interval."""
        sla, totals, kind = self.replay.sla, self._totals, fits.astype(np.int64)
        observed = self._rows[kind, self.here]
        progress = self.interval / self.replay.intervals
        late, dear = _excess(totals["time"], sla.time_max), _excess(totals["cost"], sla.cost_max)
        left = np.divide(totals["time"] * (1.0 - progress), progress, out=np.zeros(self.num_envs), where=progress > 0)
        filled = {
            PROGRESS: progress,
            TIME: _share(totals["time"], sla.time_max),
            COST: _share(totals["cost"], sla.cost_max),
            TIME_MET: late <= 0.0,
            COST_MET: dear <= 0.0,
            TIME_SEVERITY: late,
            COST_SEVERITY: dear,
            TIME_LEFT: _share(left, sla.time_max),
            EPOCH_TIME: _share(seconds / self.settings.interval, sla.time_max),
        }
        for column, values in filled.items():
            observed[:, column] = values
        totals["severity"] += (self._severity[kind, self.here] + late + dear) * seconds
        totals["met"] = self._met[kind, self.here] + (late <= 0.0) + (dear <= 0.0)
        self._observed = observed

    def _observation(self) -> np.ndarray:
        return self._observed[:, self._components] if self._components else self._observed.copy()


def _share(values: np.ndarray, limit: float) -> np.ndarray:
    """Return values as shares of a limit, at most 1; for a limit of 0, 0 or 1."""
    return np.minimum(1.0, values / limit) if limit > 0 else (values > 0).astype(float)


def _excess(values: np.ndarray, limit: float) -> np.ndarray:
    """Return the severities of values that should be at most the limit."""
    if limit <= 0:
        return (values > limit).astype(float)
    return np.where(values <= limit, 0.0, np.minimum(1.0, (values - limit) / limit))


def make(
    replay: Replay | None = None, num_envs: int = 1, preference: str = "balanced", seed: int | None = None
) -> CloudReplayVectorEnv:
    """Return the vectorised environment of a replay; without one, of the example (`example.example_replay`)."""
    if replay is None:
        replay = example_replay()
    return CloudReplayVectorEnv(replay, num_envs, preference, seed)
