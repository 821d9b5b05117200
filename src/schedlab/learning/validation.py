"""Records finished episodes during learning, and validates policies to select the best parameters of a phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.contract import Policy, Problem, Unit
from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import Arrays
from schedlab.learning.episode_streams import Finished, play, stepped
from schedlab.learning.job import LearningJob
from schedlab.learning.settings import ValidationSettings


def record_finished(job: LearningJob, finished: Sequence[Finished], place: Mapping[str, Any]) -> None:
    """Record mean return and length of the episodes that ended since the last point, for each scenario."""
    for scenario in dict.fromkeys(episode.scenario for episode in finished):
        mine = [episode for episode in finished if episode.scenario == scenario]
        means = {
            "return": float(np.mean([episode.total for episode in mine])),
            "episode_length": float(np.mean([episode.length for episode in mine])),
        }
        job.record(means, **{**place, "scenario": scenario})


class Validation:
    """Scores a policy on validation units, and stores the parameters with the best score of a phase.

    best    parameters by name, empty before the first score; best_step: the step of the phase at which they were stored
    passed  number of scores since the best one
    """

    def __init__(
        self, job: LearningJob, problems: Mapping[str, Problem], scenarios: Sequence[str], settings: ValidationSettings
    ) -> None:
        self.job, self.problems, self.scenarios, self.settings = job, problems, scenarios, settings
        self.best: dict[str, np.ndarray] = {}
        self.best_step = self.passed = 0
        self._score = -math.inf
        self._envs: dict[tuple[str, str], gym.Env] = {}

    def judge(self, policy: Policy, parameters: Callable[[], Arrays], place: Mapping[str, Any]) -> None:
        """Score a policy as it will act once learned; store its parameters if its score is better than all before.

        The decisions count in the budget, because they affect which parameters are kept. Raises UserError if a scenario
        has no validation unit.
        """
        scores = []
        for scenario in self.scenarios:
            found = [play(self.env(scenario, unit), policy, unit) for unit in self._units(scenario)]
            self.job.budget.decisions += sum(decisions for _, decisions in found)
            scores.append(float(np.mean([total for total, _ in found])))
            self.job.point("return", scores[-1], **{**place, "scenario": scenario, "split": "validation"})
        if (score := float(np.mean(scores))) > self._score:
            self.best, self._score, self.best_step, self.passed = dict(parameters()), score, place["step"], 0
        else:
            self.passed += 1

    def env(self, scenario: str, unit: Unit) -> gym.Env:
        """Return an environment of the unit that is used for validation only."""
        if (scenario, unit.id) not in self._envs:
            self._envs[scenario, unit.id] = stepped(self.problems[scenario], unit, unit.seed)
        return self._envs[scenario, unit.id]

    def state(self) -> list[float]:
        """Return the state for `load`, as JSON values."""
        return [self._score if self.best else 0.0, self.best_step, self.passed]

    def load(self, state: Sequence[float], best: Arrays) -> None:
        """Restore a state that `state` returned, and the best parameters."""
        self.best, self.best_step, self.passed = dict(best), int(state[1]), int(state[2])
        self._score = state[0] if best else -math.inf

    def _units(self, scenario: str) -> list[Unit]:
        """Return the scored validation units, evenly spaced among all."""
        units = list(self.problems[scenario].units("validation"))
        if not units:
            where, remedy = f"{self.job.spec.name}.yaml: learner.validate_every", "set it to 0"
            raise UserError(f"scenario '{scenario}' has no validation units", where=where, remedy=remedy)
        count = min(self.settings.validation_units or len(units), len(units))
        return [units[place * len(units) // count] for place in range(count)]
