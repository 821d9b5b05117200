"""The replay environments: an episode is a training job, a step an action and the interval after it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.errors import UserError, did_you_mean
from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.model.allocation import PAPER_ACTIONS, Allocation, action_at
from schedlab.studies.cloud.replay.observe import (
    COST,
    COST_MET,
    COST_SEVERITY,
    EPOCH_TIME,
    PROGRESS,
    SEVERITY,
    TIME,
    TIME_LEFT,
    TIME_MET,
    TIME_SEVERITY,
    component_numbers,
    first_state,
)
from schedlab.studies.cloud.replay.replay import SECONDS, Replay
from schedlab.studies.cloud.replay.reward import (
    PREFERENCES,
    Transition,
    adapted_weights,
    preference_weights,
    reference_reward,
    require_preference,
)
from schedlab.studies.cloud.replay.sla import ITEMS
from schedlab.studies.cloud.replay.state import COMPONENTS, SIZE, share_of_limit

ENVIRONMENT = "schedlab/CloudReplay-v0"
OBJECTIVES = ("time", "cost", "resource", "sla")
GPU_UTIL, CPU_UTIL = COMPONENTS.index("gpu_util"), COMPONENTS.index("cpu_util")
MOST_FAILURES = 100  # number of intervals with too little memory after which an episode is truncated


def weights_of(preference: str) -> dict[str, float]:
    """Return the weights of time, cost and resource of a preference: a name, or weights of cost, time and resource as
    in `0.1:0.1:0.8`. Raises UserError for any other text.
    """
    if (found := preference_weights(preference)) is None:
        remedy = did_you_mean(str(preference), PREFERENCES)
        what = (
            f"there is no preference {preference!r}, and it is no weights of cost, time and resource with the sum 1, "
            "as in 0.1:0.1:0.8"
        )
        raise UserError(what, where=ENVIRONMENT, remedy=remedy)
    cost, time, resource = found
    return {"time": time, "cost": cost, "resource": resource}


def scores_of(episode: Any, met: int) -> dict[str, float]:
    """Return the scores of an episode so far, replayed or live, without those of constraints. met: number of service
    levels that are met now.
    """
    return {
        "objective": episode.objective(),
        "time": episode.time,
        "cost": episode.cost,
        "gpu_hours": episode.gpu_hours,
        "waste": episode.waste,
        "sla_met": float(met),
        "severity": episode.severity / episode.time if episode.time else 0.0,
        "restarts": float(episode.restarts),
        "out_of_memory": float(episode.failures),
    }


class CloudReplayEnv(gym.Env[np.ndarray, Any]):
    """Change GPUs, cores and memory of a training job, or its instance, before each interval of its training.

    Observation: float32 vector of state.COMPONENTS (without those of memory in the space `paper9`). Actions: 27
    (`paper9`: 9; with `instances`, 0 keeps the instance and k moves to offer k - 1); `action_masks` marks those after
    which the job has enough memory and, with masked `constraints`, can still keep them. An action applies to the next
    interval, which is a share of the training or, with `interval_seconds`, a length of time; a change costs a restart.
    A spot instance may be interrupted: the interval then ends at once, without progress, and the next one begins with
    a restart on any offer.

    Reward: minus the increase of the objective J = w_t T / T_ref + w_c C / C_ref + w_r (1 - use), and minus the
    increase of the excess over each constraint times its multiplier (`multipliers`, (k,), which a learner may change);
    or the published reward. The episode is terminated when the training is done, and truncated after MOST_FAILURES
    intervals with too little memory. `info`: `record` (the interval as a row of a log), `objectives` (see OBJECTIVES)
    and, at the end, `scores`.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012  (as Gymnasium declares it)

    def __init__(
        self, replay: Replay, preference: str = "balanced", seed: int | None = None, render_mode: str | None = None
    ) -> None:
        self.replay, self.preference, self.render_mode = replay, preference, render_mode
        self.settings = replay.scenario.environment
        self.weights = weights_of(preference)
        self.legacy = replay.scenario.legacy
        if self.legacy.reward:
            require_preference(preference, f"{ENVIRONMENT}, published reward")
        every = range(replay.lattice.following.shape[1])
        self.actions = PAPER_ACTIONS if self.settings.space == "paper9" else tuple(every)
        self._components = component_numbers(self.settings.space)
        self._tables = replay.tables
        self._seed = seed
        self.constraints = replay.constraints
        self.multipliers = np.full(len(self.constraints.items), self.constraints.settings.multiplier)
        size = len(self._components) if self._components else SIZE
        self.observation_space = gym.spaces.Box(0.0, 1.0, (size,), np.float32)
        self.action_space = gym.spaces.Discrete(len(self.actions))
        self._begin()

    def _begin(self) -> None:
        self.here, self.decisions, self.failures, self.restarts = self.replay.lattice.start, 0, 0, 0
        self.progress: float = 0  # in intervals
        self.time = self.cost = self.gpu_hours = self.waste = self.severity = 0.0
        self.price_factor, self.met = 1.0, len(ITEMS)
        self.interrupted, self.interruptions = False, 0
        self.excess = self.added_excess = np.zeros(len(self.constraints.items))
        self.throughputs: tuple[float, ...] = ()
        self.vector = self._tables.first.copy()
        self._state = first_state(self.replay) if self.legacy.in_state else None

    @property
    def allocation(self) -> Allocation:
        """The current allocation of the job."""
        return Allocation(*self._tables.allocations[self.here])

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Submit the job again; the first reset uses the seed given at construction. `options={"preference": name}`
        changes the preference. Raises UserError for an unknown preference.
        """
        super().reset(seed=self._seed if seed is None else seed)
        self._seed = None
        if options and "preference" in options:
            self.weights, self.preference = weights_of(options["preference"]), options["preference"]
        self._begin()
        return self._observation(), {"allocation": self.allocation._asdict()}

    def step(self, action: int) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        """Take an action and train for an interval. Raises UserError for an invalid action."""
        if self.progress >= self.replay.intervals:
            raise RuntimeError("the training is done: call reset")
        before = self.here
        self.here = self._tables.following[before][action_at(self.actions, action)]
        if self.settings.slots:
            self.here = int(self.replay.cut_to_slots(self.interval, self.here))
        changed = self.here != before or self.interrupted
        fits = self._tables.fits[self.here]
        restart = self.replay.restart if changed else 0.0
        seconds, gained = self._train(restart) if fits else (self.settings.out_of_memory + restart, 0)
        seconds, gained = self._undisturbed(seconds, gained)
        dollars = seconds * self._price() / SECONDS
        waste = (1.0 - self._tables.busy[self.here]) / self.replay.intervals * gained
        self.time, self.cost, self.waste = self.time + seconds, self.cost + dollars, self.waste + waste
        self.gpu_hours += self._tables.allocations[self.here][0] * seconds / SECONDS
        self.progress, self.decisions = self.progress + gained, self.decisions + 1
        self.failures, self.restarts = self.failures + (not fits), self.restarts + changed
        self.throughputs = (*self.throughputs[-1:], self._tables.throughput[self.here] if fits else 0.0)
        compliance = self._see(seconds, fits, gained)
        share = gained / self.replay.intervals
        parts = (-seconds / self.replay.time_ref, -dollars / self.replay.cost_ref, -waste, compliance * share)
        objectives = dict(zip(OBJECTIVES, parts, strict=True))
        self.added_excess = self._broken(share)
        done = self.progress >= self.replay.intervals
        info: dict[str, Any] = {
            "record": self._record(seconds, fits, gained),
            "objectives": objectives,
            "changed": changed,
            "interrupted": self.interrupted,
        }
        cut = self.failures >= MOST_FAILURES and not done
        if done or cut:
            info["scores"] = self.scores()
        return self._observation(), self._reward(objectives, before, compliance), done, cut, info

    def _broken(self, share: float) -> np.ndarray:
        """Update the excess over each constraint and return its increase, (k,). share: share of the training that was
        done.
        """
        if not self.constraints.items:
            return self.excess
        totals = self.constraints.excess(np.array([self.time]), np.array([self.cost]))[0]
        now = np.where(totals > 0.0, totals, self.excess + self.constraints.steady[self.here] * share)
        added, self.excess = now - self.excess, now
        return added

    @property
    def interval(self) -> int:
        """The number of intervals that are done."""
        return int(self.progress)

    def _train(self, restart: float) -> tuple[float, float]:
        """Return the time of the training until the next decision, with noise and restart, s, and its progress in
        intervals.
        """
        sigma, factor = self.settings.time_noise, 1.0
        if sigma:
            factor = math.exp(sigma * self.np_random.standard_normal() - sigma * sigma / 2)
        if self.replay.span is None:
            return self._tables.seconds[self.interval][self.here] * factor + restart, 1
        wanted = np.array([(self.replay.span - restart) / factor])
        reached, taken = self.replay.after(np.array([self.here]), np.array([float(self.progress)]), wanted)
        return float(taken[0]) * factor + restart, float(reached[0]) - self.progress

    def _undisturbed(self, seconds: float, gained: float) -> tuple[float, float]:
        """Return the time and the progress of an interval of some length; if the instance is interrupted before its
        end, the time until then, and no progress.
        """
        hazard, self.interrupted = self._tables.hazard[self.here], False
        if hazard and (until := self.np_random.exponential(1.0 / hazard)) < seconds:
            self.interrupted, self.interruptions = True, self.interruptions + 1
            return until, 0
        return seconds, gained

    def _price(self) -> float:
        """Return the present price of the allocation, $/h, with the random walk of the settings."""
        if self.settings.price_walk:
            self.price_factor *= math.exp(self.settings.price_walk * self.np_random.standard_normal())
        return self._tables.price[self.here] * self.price_factor

    def _record(self, seconds: float, fits: bool, gained: float) -> dict[str, float]:
        """Return the interval as a row of a log; times in s, money in $, memory in GB, utilisation in percent."""
        epochs = self.settings.interval
        epoch_time = seconds / (epochs * (gained or 1))
        totals = {
            "epoch": self.progress * epochs,
            "total_epochs": self.replay.scenario.job.epochs,
            "epoch_time": epoch_time,
        }
        return {**totals, "time_so_far": self.time, "cost_so_far": self.cost, **self._tables.measured(self.here, fits)}

    def _see(self, seconds: float, fits: bool, gained: float) -> float:
        """Update the state vector after an interval and return the share of service levels that are met."""
        sla, tables, intervals = self.replay.sla, self._tables, self.replay.intervals
        vector = tables.rows[fits][self.here].copy()
        progress = self.progress / intervals
        late, dear = _excess(self.time, sla.time_max), _excess(self.cost, sla.cost_max)
        vector[PROGRESS] = progress
        vector[TIME], vector[COST] = share_of_limit(self.time, sla.time_max), share_of_limit(self.cost, sla.cost_max)
        vector[TIME_MET], vector[COST_MET] = late <= 0.0, dear <= 0.0
        vector[TIME_SEVERITY], vector[COST_SEVERITY] = late, dear
        vector[TIME_LEFT] = share_of_limit(self.time * (1.0 - progress) / progress, sla.time_max) if progress else 0.0
        vector[EPOCH_TIME] = share_of_limit(seconds / (self.settings.interval * (gained or 1)), sla.time_max)
        if self._state is not None:
            self._state.update(self._record(seconds, fits, gained))
            vector = self._state.vector()
        self.vector = vector
        self.severity += (tables.severity[fits][self.here] + late + dear) * seconds
        self.met = tables.met[fits][self.here] + (late <= 0.0) + (dear <= 0.0)
        return self.met / len(ITEMS)

    def _reward(self, objectives: Mapping[str, float], before: int, compliance: float) -> Any:
        weights, vector = self.weights, self.vector
        if self.legacy.reward:
            tables = self._tables
            step = Transition(
                price_before=tables.price[before],
                price_after=tables.price[self.here],
                throughputs=self.throughputs,
                gpu_count=tables.allocations[self.here][0],
                gpu_util=float(vector[GPU_UTIL]),
                cpu_util=float(vector[CPU_UTIL]),
                compliance=compliance,
                changed=self.here != before,
            )
            return reference_reward(self.preference, step).total
        if self.settings.adaptive:
            late, dear, _, _, idle_gpus, idle_cores = vector[SEVERITY].tolist()
            severities = {"time": late, "cost": dear, "resource": (idle_gpus + idle_cores) / 2.0}
            weights = adapted_weights(weights, severities, self.settings.adaptive)
        gained = sum(weight * objectives[name] for name, weight in weights.items())
        return gained - float(self.added_excess @ self.multipliers) if self.constraints.items else gained

    def objective(self) -> float:
        """Return J so far, with the present weights of the preference."""
        return self.replay.objective(self.weights, self.time, self.cost, self.waste)

    def penalised(self) -> float:
        """Return J so far plus the excess over each constraint times the multiplier of the scenario."""
        return self.objective() + self.constraints.settings.multiplier * float(self.excess.sum())

    def scores(self) -> dict[str, float]:
        """Return the scores of the episode so far; if there are constraints, also whether all are kept."""
        found = scores_of(self, self.met)
        if self.replay.scenario.instances is not None:
            found["interruptions"] = float(self.interruptions)
        if self.constraints.items:
            state = dict(zip(COMPONENTS, self.vector.tolist(), strict=True))
            kept = all(state[f"{item}_met"] for item in self.constraints.items)
            found |= {"limits_kept": float(kept), "excess": float(self.excess.sum())}
        return found

    def kept_actions(self) -> np.ndarray:
        """Return True for each action after which the constraints can still be kept (Constraints.mask)."""
        here, interval = np.array([self.here]), np.array([self.interval])
        spent, factor = (np.array([self.time]), np.array([self.cost])), np.array([self.price_factor])
        return self.constraints.mask(here, interval, *spent, factor)[0]

    def action_masks(self) -> np.ndarray:
        """Return True for each action after which the job has enough memory and, if `constraints` are masked, can still
        keep them; if there is none, for the one that keeps the allocation.
        """
        if self.constraints.items and self.constraints.settings.masked:
            mask = self.kept_actions()[list(self.actions)]
        else:
            mask = self._tables.allowed[self.here][list(self.actions)]
        if not mask.any():
            mask[self.actions.index(self.replay.lattice.keep)] = True
        return mask

    def render(self) -> str:
        """Return progress, allocation, time and money as a line of text."""
        gpus, cores, memory = self.allocation
        held = f"{gpus} GPUs, {cores} cores, {memory:g} GB"
        return f"interval {self.progress:g} of {self.replay.intervals}: {held}; {self.time:.0f} s, ${self.cost:.2f}"

    def _observation(self) -> np.ndarray:
        return self.vector[self._components] if self._components else self.vector


class MoCloudReplayEnv(CloudReplayEnv):
    """The same environment with a reward for each of OBJECTIVES: -dt / T_ref, -d$ / C_ref, -waste, service
    levels met.
    """

    def __init__(
        self, replay: Replay, preference: str = "balanced", seed: int | None = None, render_mode: str | None = None
    ) -> None:
        super().__init__(replay, preference, seed, render_mode)
        self.reward_space = gym.spaces.Box(-np.inf, np.inf, (len(OBJECTIVES),), np.float32)
        self.reward_dim = len(OBJECTIVES)

    def _reward(self, objectives: Mapping[str, float], before: int, compliance: float) -> np.ndarray:
        del before, compliance
        return np.array([objectives[name] for name in OBJECTIVES], dtype=np.float32)


def _excess(value: float, limit: float) -> float:
    """Return the severity of a value that should be at most the limit."""
    return 0.0 if value <= limit else min(1.0, (value - limit) / limit) if limit > 0 else 1.0


def make(
    replay: Replay | None = None, preference: str = "balanced", seed: int | None = None, render_mode: str | None = None
) -> CloudReplayEnv:
    """Return the environment of a replay; without one, of the example (`example.example_replay`)."""
    return CloudReplayEnv(replay or example_replay(), preference, seed, render_mode)


def make_vector_reward(
    replay: Replay | None = None, preference: str = "balanced", seed: int | None = None, render_mode: str | None = None
) -> MoCloudReplayEnv:
    """Return the environment with a vector of rewards; without a replay, that of the example."""
    return MoCloudReplayEnv(replay or example_replay(), preference, seed, render_mode)
