"""The paper's learner on the ramp study: a DQN that keeps to masks, or whose invalid actions reject the job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Unit
from schedlab.config.schema import validate
from schedlab.learning.checkpoints import read_checkpoint
from schedlab.learning.prioritised_dqn.learner import PrioritisedDQNLearner, QPolicy, vector_reader
from schedlab.studies.ramp.learners.graph_network import GraphReader
from schedlab.studies.ramp.learners.settings import RampDQNSettings
from schedlab.studies.ramp.learners.stock import NetworkPolicy, SeenProblem, require_one_scenario

REJECT = 0


class RampDQNLearner(PrioritisedDQNLearner):
    """The prioritised DQN on the ramp study's scenarios."""

    def __init__(self) -> None:
        super().__init__(RampDQNSettings, _reader)

    def learn(
        self, problems: Mapping[str, Any], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn as in any study. Raises UserError where graphs would have to be those of several scenarios."""
        settings: Any = validate(self.settings, spec.params)
        require_one_scenario(problems, spec, settings)
        return super().learn(problems, spec, seed, paths, curve)

    def seen(self, problem: Any, settings: Any) -> Any:
        """Return the problem as these settings have it."""
        return SeenProblem(problem, settings.environment)

    def load(self, checkpoint: Path, problem: Any) -> Any:
        """Return the learned policy, with what it wants to see."""
        policy = RejectingPolicy(super().load(checkpoint, problem))
        settings: Any = validate(self.settings, read_checkpoint(checkpoint).meta["settings"])
        return NetworkPolicy(policy, settings.environment, problem)


class RejectingPolicy:
    """A network whose choice rejects the job where it is not valid."""

    def __init__(self, policy: QPolicy) -> None:
        self._policy = policy

    def reset(self, unit: Unit) -> None:
        """Begin an episode."""
        self._policy.reset(unit)

    def act(self, observation: Any, mask: np.ndarray) -> int:
        """Return a number of shards that the mask (most + 1,) allows; 0 rejects."""
        action = self._policy.act(observation, mask)
        return action if mask[action] else REJECT


def _reader(settings: Any, space: Any) -> nn.Module:
    if settings.network == "layers":
        return vector_reader(settings, space)
    return GraphReader(space, settings.graph)
