"""The networks of HDeepRM's learning agents. Source: specification of the study hetero, section 6."""

from __future__ import annotations

import torch
from torch import nn

from schedlab.learning.seeding import torch_stream

SLOPE = 0.01  # of the leaky rectifier below 0
LAYERS = 3  # of equal width, after the first


class AgentNetwork(nn.Module):
    """From observations (n, size) to the logits of the actions (n, actions) and, with a critic, values (n,).

    The first layer is shared; actor and critic have three more each. A leaky rectifier stands after every layer but the last.
    """

    def __init__(self, size: int, actions: int, hidden: int, critic: bool) -> None:
        super().__init__()
        self.first = nn.Linear(size, hidden)
        self.actor = _head(hidden, actions)
        self.critic = _head(hidden, 1) if critic else None

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return logits and values (None without a critic)."""
        inner = nn.functional.leaky_relu(self.first(observations), SLOPE)
        return self.actor(inner), None if self.critic is None else self.critic(inner)[..., 0]


def build_network(size: int, actions: int, hidden: int, critic: bool, seed: int) -> AgentNetwork:
    """Return a network whose first parameters hang from the seed alone."""
    with torch_stream(seed, "hetero", "network"):
        return AgentNetwork(size, actions, hidden, critic)


def log_probabilities(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of each action (n, actions); a masked one has a probability of 0."""
    return torch.where(masks, logits, torch.finfo(logits.dtype).min).log_softmax(-1)


def _head(hidden: int, outputs: int) -> nn.Sequential:
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(hidden, hidden), nn.LeakyReLU(SLOPE))]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))
