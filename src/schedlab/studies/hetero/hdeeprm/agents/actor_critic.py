"""Advantage actor-critic: like REINFORCE, but with returns relative to the critic's estimate."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from schedlab.studies.hetero.hdeeprm.agent import PolicyLearningAgent, ValueLearningAgent, batch


class ActorCritic(PolicyLearningAgent, ValueLearningAgent):
    """Actor (probabilities) and critic (value) share the first layer; each has three further layers of `hidden`
    units.
    """

    def __init__(self, gamma: float, hidden: int, action_size: int, observation_size: int) -> None:
        super().__init__(gamma)
        self.shared = nn.Sequential(nn.Linear(observation_size, hidden), nn.LeakyReLU())
        self.actor = head(hidden, action_size)
        self.critic = head(hidden, 1)

    def forward_policy(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of the actions."""
        return self.actor(self.shared(observation)).softmax(-1)

    def forward_value(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the critic's value."""
        return self.critic(self.shared(observation))

    def decide(self, observation: np.ndarray) -> int:
        """Store the critic's value, then return the actor's action."""
        state = batch(observation)
        self.save_value(self.forward_value(state))
        return self.get_action(self.forward_policy(state))

    def loss(self) -> torch.Tensor:
        """Return the sum of the actor's loss on advantages and the critic's loss on returns."""
        returns = self.transform_rewards()
        advantages = [value - expected.item() for value, expected in zip(returns, self.values, strict=True)]
        return torch.cat(self.policy_loss(advantages)).sum() + torch.stack(self.value_loss(returns)).sum()


def head(hidden: int, outputs: int) -> nn.Sequential:
    """Return three layers of `hidden` units and the output."""
    layers = [part for _ in range(3) for part in (nn.Linear(hidden, hidden), nn.LeakyReLU())]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))
