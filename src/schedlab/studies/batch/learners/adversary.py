"""Learning with an adversary: a discriminator separates an expert's decisions from the policy's, and rewards decisions
like the expert's.

After generative adversarial imitation (Ho and Ermon, NeurIPS 2016) and GARLSched, which the dissertation planned. The
expert of a window is the best of some rules on it. The reward of a decision is

    (1 - a) * reward of the environment + a * -ln(1 - D) / jobs

where D is the discriminator's probability of its being the expert's, jobs are those of a window, and a falls from
`expert_share` to 0. Without the division the second part would be about a hundred times the first over a window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from schedlab.config.contract import Budget
from schedlab.config.seeds import derive_seed, generator
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, module_arrays
from schedlab.learning.networks import layers
from schedlab.learning.seeding import torch_stream
from schedlab.learning.stock.state import load_optimizer, optimizer_arrays
from schedlab.studies.batch.learners.cloning import choices

if TYPE_CHECKING:
    from schedlab.studies.batch.env.env import BatchEnv
    from schedlab.studies.batch.learners.stock_settings import AdversarySettings
    from schedlab.studies.batch.learners.training_windows import TrainingProblem

HIDDEN = (64, 32)
EVERY = 512  # decisions of the policy between two lessons of the discriminator
MINIBATCH = 128  # decisions of the policy in a gradient step, and as many of the expert


class Adversary:
    """The discriminator of one phase of learning, created at the first decision."""

    def __init__(self, problem: TrainingProblem, settings: AdversarySettings, seed: int) -> None:
        self.problem, self.settings, self.seed = problem, settings, seed
        self.decisions = 0
        self.jobs = problem.problem.scenario.windows.length
        self._own: list[np.ndarray] = []
        self._rng = generator(seed, "batch", "adversary")
        self._expert = torch.empty(0)
        self.network: Any = None

    @property
    def share(self) -> float:
        """The discriminator's present share of the reward."""
        return self.settings.expert_share * max(0.0, 1.0 - self.decisions / self.settings.expert_steps)

    def pay(self, decision: np.ndarray | None, reward: float) -> float:
        """Return the reward of a decision (features,) of `describe`, given the environment's reward, and learn from the
        decision.

        None stands for a decision without a choice, of which the expert shows none: nothing can be learned from it.
        """
        share = self.share
        self.decisions += 1
        if share == 0.0 or decision is None:
            return (1.0 - share) * reward
        if self.network is None:
            self._begin()
        with torch.no_grad():
            expert_like = nn.functional.softplus(self.network(torch.from_numpy(decision)))  # -ln(1 - D)
        self._own.append(decision)
        if len(self._own) == EVERY:
            self._learn(torch.from_numpy(np.stack(self._own)))
            self._own = []
        return (1.0 - share) * reward + share * float(expert_like) / self.jobs

    def take_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return (values, arrays) of what was learned; the expert's decisions are derived from the seed again."""
        values = {"seed": self.seed, "decisions": self.decisions, "random": self._rng.bit_generator.state}
        groups = {"own": {str(number): decision for number, decision in enumerate(self._own)}}
        if self.network is not None:
            groups |= {"network": module_arrays(self.network), "optimizer": optimizer_arrays(self._optimizer)}
        return values, grouped(groups)

    def put_state(self, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Restore what `take_state` returned."""
        self.seed, self.decisions = values["seed"], values["decisions"]
        self._rng.bit_generator.state = values["random"]
        kept = Checkpoint({}, arrays)
        own = kept.group("own")
        self._own, self.network = [own[str(number)] for number in range(len(own))], None
        if parameters := kept.group("network"):
            self._begin()
            load_module(self.network, parameters, "the adversary")
            load_optimizer(self._optimizer, kept.group("optimizer"))

    def _begin(self) -> None:
        settings = self.settings
        shown = choices(
            [self.problem], settings.expert_rules, settings.expert_windows, derive_seed(self.seed, "expert"), Budget()
        )
        env: Any = self.problem.env(self.problem.units("train")[0], 0).unwrapped
        self._expert = torch.from_numpy(np.stack([describe(env.layout, *each) for each in zip(*shown, strict=True)]))
        with torch_stream(self.seed, "batch", "adversary"):
            self.network = layers(self._expert.shape[1], HIDDEN, 1)
        self._optimizer = torch.optim.Adam(self.network.parameters(), lr=settings.expert_rate)

    def _learn(self, own: torch.Tensor) -> None:
        for part in torch.from_numpy(self._rng.permutation(len(own))).split(MINIBATCH):
            shown = self._expert[torch.from_numpy(self._rng.integers(len(self._expert), size=len(part)))]
            logits = self.network(torch.cat([own[part], shown])).squeeze(1)
            truth = torch.cat([torch.zeros(len(part)), torch.ones(len(part))])
            loss = nn.functional.binary_cross_entropy_with_logits(logits, truth)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()


class AdversaryEnv(gym.Wrapper):
    """A window in which an adversary gives part of the reward."""

    env: Any

    def __init__(self, env: BatchEnv, adversary: Adversary) -> None:
        super().__init__(env)
        self.adversary = adversary
        self._seen: Any = None

    def reset(self, **keywords: Any) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin a window."""
        observation, info = self.env.reset(**keywords)
        self._seen = observation, self.env.action_masks()
        return observation, info

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Choose a row; the reward is the adversary's in part."""
        observation, mask = self._seen
        decision = describe(self.env.layout, observation, mask, int(action)) if mask.sum() > 1 else None
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._seen = observation, self.env.action_masks()
        return observation, self.adversary.pay(decision, float(reward)), terminated, truncated, info

    def action_masks(self) -> np.ndarray:
        """Return True for each row that may be chosen now (128,)."""
        return self.env.action_masks()


def describe(layout: Any, observation: np.ndarray, mask: np.ndarray, row: int) -> np.ndarray:
    """Return the discriminator's input (2 * columns,) float32: the chosen row, and the mean of the allowed rows."""
    rows, _ = layout.split(observation)
    return np.concatenate([rows[row], rows[mask].mean(axis=0)])
