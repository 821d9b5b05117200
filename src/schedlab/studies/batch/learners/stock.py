"""The stock learners of the batch study: own networks and observations, selected windows, a cloned start."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.learning.job import LearningJob
from schedlab.learning.stock.learner import StableBaselinesLearner
from schedlab.studies.batch.env.env import best_row
from schedlab.studies.batch.env.layouts import layout_seen
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.learners.cloning import cloned_parameters
from schedlab.studies.batch.learners.stock_policy import queue_policy
from schedlab.studies.batch.learners.stock_settings import STOCK_SETTINGS, NetworkSettings
from schedlab.studies.batch.learners.training_windows import TrainingProblem

if TYPE_CHECKING:
    import gymnasium as gym

    from schedlab.learning.stock.policy import StockPolicy


class BatchStockLearner(StableBaselinesLearner):
    """An algorithm of Stable-Baselines3 on the batch study's scenarios; the actions of DDPG are the weights of a linear
    priority.
    """

    def __init__(self, algorithm: str) -> None:
        kind = STOCK_SETTINGS[algorithm]
        super().__init__(algorithm, kind, queue_policy if issubclass(kind, NetworkSettings) else None)

    def seen(self, problem: Any, settings: Any) -> Any:
        """Return the problem with the observations, rewards and windows of these settings."""
        return TrainingProblem(problem, settings, weights=self.algorithm == "ddpg")

    def first_parameters(
        self, problems: Mapping[str, Any], spaces: tuple[gym.Space, gym.Space], settings: Any, job: LearningJob
    ) -> Mapping[str, np.ndarray]:
        """Return parameters that imitate a rule, if the settings name one."""
        if getattr(settings, "clone_rule", None) is None:
            return {}
        return cloned_parameters(list(problems.values()), spaces, settings, job)

    def acting(self, policy: Any, settings: Any, problem: Any) -> Any:
        """Return the learned policy, with the settings of its observations."""
        del problem
        return (LearnedWeights if self.algorithm == "ddpg" else LearnedPolicy)(policy, settings.environment)


class LearnedPolicy:
    """A learned policy that chooses rows. `environment`: what it sees."""

    def __init__(self, policy: StockPolicy, environment: EnvironmentSettings) -> None:
        self.policy, self.environment = policy, environment

    def reset(self, unit: Unit) -> None:
        """Begin a window."""
        self.policy.reset(unit)

    def act(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """Return the row to choose."""
        return int(self.policy.act(observation, mask))


class LearnedWeights(LearnedPolicy):
    """A learned policy that gives the weights of a linear priority."""

    def act(self, observation: np.ndarray, mask: np.ndarray) -> int:
        """Return the row of the highest weighted sum."""
        layout = layout_seen(self.environment, len(observation))
        return best_row(layout, observation, mask, np.asarray(self.policy.act(observation), dtype=np.float32))


LEARNERS = {name: partial(BatchStockLearner, name) for name in STOCK_SETTINGS}
