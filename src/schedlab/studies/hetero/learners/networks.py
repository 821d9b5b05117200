"""The networks of HDeepRM's learning agents. Source: specification of the study hetero, section 6."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from schedlab.learning.seeding import torch_stream
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR

SLOPE = 0.01  # of the leaky rectifier below 0
LAYERS = 3  # of equal width, after the first


class AgentNetwork(nn.Module):
    """From observations (n, size) to the logits of the actions (n, actions) and, with a critic, values (n,).

    The first layer is shared; actor and critic have three more each. A leaky rectifier stands after every layer but the
    last.

    parts   (parts, actions) of 0 and 1: the actor has a logit for each part (a job policy, a core policy), and that of
            an action is the sum over its parts; None (published): a logit for each action
    """

    def __init__(self, size: int, actions: int, hidden: int, critic: bool, parts: torch.Tensor | None = None) -> None:
        super().__init__()
        self.first = nn.Linear(size, hidden)
        self.actor = _head(hidden, actions if parts is None else len(parts))
        self.register_buffer("parts", parts, persistent=False)
        self.critic = _head(hidden, 1) if critic else None

    def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return logits and values (None without a critic)."""
        inner = nn.functional.leaky_relu(self.first(observations), SLOPE)
        logits = self.actor(inner)
        return logits if self.parts is None else logits @ self.parts, None if self.critic is None else self.critic(
            inner
        )[..., 0]


def build_network(
    size: int, names: Sequence[str], hidden: int, critic: bool, seed: int, head: str = "actions"
) -> AgentNetwork:
    """Return a network for the named actions whose first parameters hang from the seed alone; head as in
    PolicyGradientSettings.
    """
    with torch_stream(seed, "hetero", "network"):
        return AgentNetwork(size, len(names), hidden, critic, parts_of(names) if head == "parts" else None)


def parts_of(names: Sequence[str]) -> torch.Tensor:
    """Return which job policy and which core policy each action is made of, (parts, actions) of 0 and 1; void is a part
    of its own.
    """
    split = [name.partition(PAIR_SEPARATOR) for name in names]
    made_of = [{("job", job), ("core", core)} if core else {("job", job)} for job, _, core in split]
    return torch.tensor([[float(part in parts) for parts in made_of] for part in sorted(set().union(*made_of))])


def log_probabilities(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of each action (n, actions); a masked one has a probability of 0."""
    return torch.where(masks, logits, torch.finfo(logits.dtype).min).log_softmax(-1)


def _head(hidden: int, outputs: int) -> nn.Sequential:
    layers = [part for _ in range(LAYERS) for part in (nn.Linear(hidden, hidden), nn.LeakyReLU(SLOPE))]
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))
