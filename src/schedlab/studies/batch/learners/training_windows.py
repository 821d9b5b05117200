"""A scenario as a stock learner uses it, with its own observations, rewards and training windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.contract import Split, Unit
from schedlab.config.errors import UserError
from schedlab.studies.batch.env.env import BatchEnv, BatchWeightsEnv
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import window
from schedlab.studies.batch.learners.adversary import Adversary, AdversaryEnv
from schedlab.studies.batch.learners.stock_settings import AdversarySettings, TrainingWindows
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.rules import require_rule
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.simulator.stepper import score_of
from schedlab.studies.batch.windows import first_job


class TrainingProblem:
    """A problem whose training units are those with windows to learn on; each episode draws one of their
    windows.

    weights  actions are the weights of a linear priority instead of rows
    """

    def __init__(self, problem: BatchProblem, settings: TrainingWindows, *, weights: bool = False) -> None:
        self.problem, self.settings, self.weights = problem, settings, weights
        require_rule(settings.keep_rule, "learner.keep_rule")
        self._adversary: Adversary | None = None

    @cached_property
    def _good(self) -> set[int] | None:
        """The starts to keep, None: all. Found where something is learned: to load a policy needs none."""
        return None if self.settings.keep_windows == "all" else self._starts_to_keep()

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the windows of a part; of the training part, those with at least one selected start."""
        units = self.problem.units(split)
        return [unit for unit in units if len(self._starts(unit))] if split == "train" else units

    def env(self, unit: Unit, seed: int) -> gym.Env:
        """Return the environment of a unit. In training, each episode draws its start, and the jobs that already run,
        again.
        """
        training = unit.split == "train" and self.settings.training_starts == "any"
        environment = self.settings.environment
        if unit.split == "validation" and self.settings.validate_by != "reward":
            environment = environment.model_copy(
                update={"reward": "episodic", "measure": self.settings.validate_by, "users": "none"}
            )
        longest = self.settings.longest_window if training else None
        task = self.problem.task(self._starts(unit), environment, None if training else unit.seed, longest)
        env = (BatchWeightsEnv if self.weights else BatchEnv)(task, seed)
        if unit.split != "train" or not isinstance(self.settings, AdversarySettings) or not self.settings.expert_share:
            return env
        if self._adversary is None:
            self._adversary = Adversary(self, self.settings, seed)
        return AdversaryEnv(env, self._adversary)

    def take_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return (values, arrays) of what is learned here besides the policy: the adversary, once it exists."""
        return ({}, {}) if self._adversary is None else self._adversary.take_state()

    def put_state(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what `take_state` returned."""
        if values and isinstance(self.settings, AdversarySettings):
            # Environments hold the one there is.
            self._adversary = self._adversary or Adversary(self, self.settings, values["seed"])
            self._adversary.put_state(values, arrays)

    def _starts(self, unit: Unit) -> Sequence[int]:
        start = first_job(unit)
        if unit.split != "train":
            return [start]
        if self.settings.training_starts == "apart":
            starts = range(start, start + 1)
        else:
            length = self.problem.scenario.windows.length
            longest = self.settings.longest_window or length
            starts = range(start, min(start + length, self.problem.part("train")[1] - longest + 1))
        return starts if self._good is None else [start for start in starts if start in self._good]

    def _starts_to_keep(self) -> set[int]:
        """The starts to keep of the whole training part. Raises UserError where none is left."""
        settings, length = self.settings, self.problem.scenario.windows.length
        first, end = self.problem.part("train")
        starts = np.arange(first, end - length + 1)
        values = rule_values(self.problem, settings.keep_rule)
        low, high = settings.keep_range
        if settings.keep_windows == "median":
            low, high = float(np.median(values)), float(np.nextafter(2 * values.mean(), np.inf))
        kept = set(starts[(values > low) & (values < high)].tolist())
        apart = settings.training_starts == "apart"
        if not kept or (apart and not any(first_job(unit) in kept for unit in self.problem.units("train"))):
            where = f"scenario {self.problem.scenario.name}: learner.keep_windows"
            what = f"no training window lies between {low:.4g} and {high:.4g}"
            expected = f"{values.min():.4g} to {values.max():.4g}"
            raise UserError(what, where=where, expected=expected, remedy="widen keep_range, or keep all")
        return kept


@lru_cache(maxsize=4)  # of the scenarios and rules of one job; a problem that is kept holds its whole trace
def rule_values(problem: BatchProblem, rule: str) -> np.ndarray:
    """Return the mean bounded slowdown under a rule of the window that begins at each training job, on an empty
    machine.
    """
    scenario, (first, end) = problem.scenario, problem.part("train")
    length, plain = scenario.windows.length, EnvironmentSettings()
    backfill, order, kill = scenario.backfill, scenario.backfill_order, scenario.kill
    values = []
    for start in range(first, end - length + 1):
        jobs = window(problem.jobs, problem.machine, start, length)
        schedule = simulate(jobs, problem.machine, rule, backfill, backfill_order=order, kill=kill)
        values.append(score_of(schedule, problem.machine, plain))
    return np.array(values)
