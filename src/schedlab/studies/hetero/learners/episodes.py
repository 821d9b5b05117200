"""Episodes that an agent took by draws from its own probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.learners.networks import AgentNetwork, log_probabilities


@dataclass
class EpisodeRecord:
    """What an agent saw, could do, did, when (s), and got: a row or entry a decision."""

    observations: list[np.ndarray] = field(default_factory=list)
    masks: list[np.ndarray] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)


def sample_episode(env: HeteroEnv, network: AgentNetwork, seed: int, number: int) -> EpisodeRecord:
    """Run an episode by sampled actions; episode `number` of a seed is always the same for the same parameters."""
    record, over = EpisodeRecord(), False
    rng = generator(seed, "policy-sample", number)
    observation, info = env.reset(seed=derive_seed(seed, "episode", number))
    while not over:
        mask = env.action_masks()
        action = draw(probabilities(network, observation, mask), rng)
        record.observations.append(observation)
        record.masks.append(mask)
        record.actions.append(action)
        record.times.append(info["time"])
        observation, reward, over, _, info = env.step(action)
        record.rewards.append(reward)
    return record


@torch.no_grad()
def probabilities(network: AgentNetwork, observation: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the probability of each action, (actions,) float64; that of a masked one is 0."""
    logits = network(torch.from_numpy(observation)[None])[0]
    return log_probabilities(logits, torch.from_numpy(mask)[None])[0].double().exp().numpy()


def draw(chances: np.ndarray, rng: np.random.Generator) -> int:
    """Return an action by its chance; each draw takes one number from the generator."""
    reached = np.flatnonzero(rng.random() * chances.sum() < chances.cumsum())
    return int(reached[0])
