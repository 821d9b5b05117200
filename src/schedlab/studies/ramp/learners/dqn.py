"""The paper's learner on the ramp study: a DQN that chooses valid actions only, or whose invalid actions reject the
job.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from schedlab.config.contract import Unit
from schedlab.learning.prioritised_dqn.learner import PrioritisedDQNLearner, QPolicy, vector_reader
from schedlab.studies.ramp.learners.graph_network import GraphReader
from schedlab.studies.ramp.learners.settings import RampDQNSettings
from schedlab.studies.ramp.learners.stock import RampLearner

REJECT = 0


class RampDQNLearner(RampLearner, PrioritisedDQNLearner):
    """The prioritised DQN on the ramp study's scenarios."""

    def __init__(self) -> None:
        super().__init__(RampDQNSettings, _reader)

    def acting(self, policy: QPolicy, settings: Any, problem: Any) -> Any:
        """Return the learned policy with its observation."""
        return super().acting(RejectingPolicy(policy), settings, problem)


class RejectingPolicy:
    """A policy that rejects the job where the network chooses an invalid action."""

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
