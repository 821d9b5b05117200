"""The networks of HDeepRM's agents (docs/reference/hetero_model.md), and episodes sampled from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import nn

from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.networks import layers
from schedlab.learning.policy_gradient import masked_log_probabilities
from schedlab.learning.seeding import torch_stream
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR

SLOPE = 0.01  # of the leaky rectifier below 0
LAYERS = 3  # number of hidden layers of equal width after the first one


class AgentNetwork(nn.Module):
    """A network from observations (n, size) to the logits of the actions (n, actions) and, with a critic, values (n,).

    The first layer is shared; actor and critic have three more hidden layers each. A leaky rectifier follows every
    layer but the last.

    parts   (parts, actions) of 0 and 1: an action's logit is the sum over its parts, a job and a core policy; None, as
            in HDeepRM: a logit for each action
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
        values = None if self.critic is None else self.critic(inner)[..., 0]
        return logits if self.parts is None else logits @ self.parts, values


def build_network(
    size: int, names: Sequence[str], hidden: int, critic: bool, seed: int, head: str = "actions"
) -> AgentNetwork:
    """Return a network for the named actions, initialised by the seed; head as in PolicyGradientSettings."""
    with torch_stream(seed, "hetero", "network"):
        return AgentNetwork(size, len(names), hidden, critic, parts_of(names) if head == "parts" else None)


def parts_of(names: Sequence[str]) -> torch.Tensor:
    """Return which policies each action consists of, (parts, actions) of 0 and 1; void is a separate part."""
    split = [name.partition(PAIR_SEPARATOR) for name in names]
    made_of = [{("job", job), ("core", core)} if core else {("job", job)} for job, _, core in split]
    return torch.tensor([[float(part in parts) for parts in made_of] for part in sorted(set().union(*made_of))])


def _head(hidden: int, outputs: int) -> nn.Sequential:
    return layers(hidden, (hidden,) * LAYERS, outputs, partial(nn.LeakyReLU, SLOPE))


@dataclass
class EpisodeRecord:
    """The observations, valid actions, actions, dates (s) and rewards of an agent, with a row or entry for each
    decision.
    """

    observations: list[np.ndarray] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


class Sampler(Protocol):
    """Plays episodes by sampled actions; episode `number` of a seed is the same for the same parameters."""

    action_names: tuple[str, ...]

    def sample(self, network: AgentNetwork, seed: int, number: int) -> EpisodeRecord: ...


class Episodes:
    """Samples episodes of an environment."""

    def __init__(self, env: HeteroEnv) -> None:
        self.env, self.action_names = env, env.action_names

    def sample(self, network: AgentNetwork, seed: int, number: int) -> EpisodeRecord:
        """Run and return episode `number` of a seed."""
        record, over = EpisodeRecord(), False
        rng = generator(seed, "policy-sample", number)
        observation, info = self.env.reset(seed=derive_seed(seed, "episode", number))
        while not over:
            mask = self.env.action_masks()
            action = draw(probabilities(network, observation, mask), rng)
            record.observations.append(observation)
            record.masks.append(mask)
            record.actions.append(action)
            record.times.append(info["time"])
            observation, reward, over, _, info = self.env.step(action)
            record.rewards.append(reward)
        return record


@torch.no_grad()
def probabilities(network: AgentNetwork, observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the probability of each action, (actions,) float64; it is 0 for masked actions."""
    logits = network(torch.from_numpy(observation)[None])[0]
    return masked_log_probabilities(logits, torch.from_numpy(mask)[None])[0].double().exp().numpy()


def draw(chances: np.ndarray, rng: np.random.Generator) -> int:
    """Return an action drawn by its probability; each draw takes one number from the generator."""
    reached = np.flatnonzero(rng.random() * chances.sum() < chances.cumsum())
    return int(reached[0])
