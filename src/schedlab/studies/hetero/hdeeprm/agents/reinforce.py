"""REINFORCE (Williams 1992): actions that were followed by larger returns become more probable."""

from __future__ import annotations

import torch
from torch import nn

from schedlab.studies.hetero.hdeeprm.agent import PolicyLearningAgent


class Reinforce(PolicyLearningAgent):
    """A layer of `hidden` units on the observation, three more, and a probability for each action."""

    def __init__(self, gamma: float, hidden: int, action_size: int, observation_size: int) -> None:
        super().__init__(gamma)
        layers = [nn.Linear(observation_size, hidden), nn.LeakyReLU()]
        for _ in range(3):
            layers += [nn.Linear(hidden, hidden), nn.LeakyReLU()]
        self.policy = nn.Sequential(*layers, nn.Linear(hidden, action_size), nn.Softmax(dim=-1))

    def forward_policy(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of the actions."""
        return self.policy(observation)
