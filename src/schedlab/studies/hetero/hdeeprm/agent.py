"""Base classes of user agents, which `schedlab hetero launch -a FILE.py` runs.

The names and methods are HDeepRM's, so that agents written for it run unchanged. Each episode makes an instance of the
class with (gamma, hidden, action_size, observation_size). At each decision it calls observe, decide and alter, and
after it rewarded; while the agent learns, the episode ends with a call of loss. The parameters carry over from episode
to episode. See docs/reference/hetero_launch.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import nn

from schedlab.learning.policy_gradient import discounted, standardised


class Environment(Protocol):
    """The current decision, as an agent can use it."""

    action_size: int
    observation_size: int

    def observation(self) -> np.ndarray:
        """Return the state, (observation_size,) float32; call it once for each decision."""

    def mask(self) -> np.ndarray | None:
        """Return True for each action that can be taken now, (action_size,) bool; None if all can."""

    def step(self, action: int) -> None:
        """Take an action, once for each decision."""

    def reward(self) -> float:
        """Return the reward of the last action."""


class Agent(nn.Module):
    """An agent that decides; a subclass defines `decide`.

    acting   "sample" while it learns, otherwise "greedy" or "sample" as in the options
    rewards  of its actions in this episode, in order
    mask     of the decision that is due, as `Environment.mask` returns it
    """

    def __init__(self, gamma: float = 0.99, hidden: int = 0, action_size: int = 0, observation_size: int = 0) -> None:
        super().__init__()
        self.gamma, self.hidden, self.action_size, self.observation_size = gamma, hidden, action_size, observation_size
        self.acting = "sample"
        self.rewards: list[float] = []
        self.mask: np.ndarray | None = None

    def observe(self, environment: Environment) -> np.ndarray:
        """Read the environment; the result is passed to `decide`."""
        self.mask = environment.mask()
        return environment.observation()

    def decide(self, observation: np.ndarray) -> int:
        """Return the number of an action."""
        raise NotImplementedError(f"{type(self).__name__} has no method decide")

    def alter(self, action: int, environment: Environment) -> None:
        """Take the action."""
        environment.step(action)

    def rewarded(self, environment: Environment) -> None:
        """Receive the reward of the last action."""
        self.rewards.append(environment.reward())


class LearningAgent(Agent):
    """An agent whose `loss` is minimised by a step of Adam at the end of each episode."""

    def loss(self) -> torch.Tensor:
        """Return the loss of the episode, a tensor of one number that depends on the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no method loss")

    def transform_rewards(self) -> list[float]:
        """Return the discounted returns of the episode's decisions; if there are several, they are standardised."""
        return standardised(discounted(self.rewards, self.gamma)).tolist()


class PolicyLearningAgent(LearningAgent):
    """An agent that learns the probabilities of the actions by REINFORCE and draws actions by them; a subclass defines
    `forward_policy`.

    log_probs            of the actions taken in this episode, each (1,), in order
    first_probabilities  of the episode's first decision, (action_size,); None before it
    """

    def __init__(self, gamma: float = 0.99, hidden: int = 0, action_size: int = 0, observation_size: int = 0) -> None:
        super().__init__(gamma, hidden, action_size, observation_size)
        self.log_probs: list[torch.Tensor] = []
        self.first_probabilities: list[float] | None = None

    def forward_policy(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of the actions, (1, action_size), for an observation (1, observation_size)."""
        raise NotImplementedError(f"{type(self).__name__} has no method forward_policy")

    def decide(self, observation: np.ndarray) -> int:
        """Return an action drawn by its probability."""
        return self.get_action(self.process(observation))

    def process(self, observation: np.ndarray) -> torch.Tensor:
        """Return the probabilities of the actions, (1, action_size): by `forward_policy` or, if the subclass does not
        define it, by the `forward` of an agent for HDeepRM 0.3.
        """
        own = type(self).forward_policy is not PolicyLearningAgent.forward_policy
        return self.forward_policy(batch(observation)) if own else self(observation)

    def forward(self, observation: np.ndarray) -> torch.Tensor:
        """Return the probabilities of the actions, (1, action_size): HDeepRM 0.3 has this instead of `process`."""
        return self.forward_policy(batch(observation))

    def get_action(self, probabilities: torch.Tensor) -> int:
        """Draw an action (greedy: the most probable) and store its log-probability. Raises ValueError if the
        probabilities are not finite, negative or all 0.
        """
        chances = probabilities.reshape(-1)
        if self.mask is not None:
            allowed = chances * torch.from_numpy(self.mask)
            chances = allowed / allowed.sum()
        if not (torch.isfinite(chances).all() and (chances >= 0).all() and chances.sum() > 0):
            raise ValueError(f"probabilities of actions are {[round(value, 4) for value in chances.tolist()]}")
        if self.first_probabilities is None:
            self.first_probabilities = chances.tolist()
        action = chances.argmax().reshape(1) if self.acting == "greedy" else torch.multinomial(chances, 1)
        self.save_log_prob(torch.log(chances[action]))
        return int(action)

    def save_log_prob(self, log_prob: torch.Tensor) -> None:
        """Store the log-probability (1,) of the action taken."""
        self.log_probs.append(log_prob)

    def policy_loss(self, returns: Sequence[float]) -> list[torch.Tensor]:
        """Return a loss (1,) for each decision, which is smaller if probable actions have large returns (or
        advantages).
        """
        return [-log_prob * value for log_prob, value in zip(self.log_probs, returns, strict=True)]

    def loss(self) -> torch.Tensor:
        """Return the sum of the losses of the policy."""
        return torch.cat(self.policy_loss(self.transform_rewards())).sum()


class ValueLearningAgent(LearningAgent):
    """An agent that learns the value of a state; a subclass defines `forward_value`.

    values  of the states in this episode, each (1, 1), in order
    """

    def __init__(self, gamma: float = 0.99, hidden: int = 0, action_size: int = 0, observation_size: int = 0) -> None:
        super().__init__(gamma, hidden, action_size, observation_size)
        self.values: list[torch.Tensor] = []

    def forward_value(self, observation: torch.Tensor) -> torch.Tensor:
        """Return the value (1, 1) of an observation (1, observation_size)."""
        raise NotImplementedError(f"{type(self).__name__} has no method forward_value")

    def process(self, observation: np.ndarray) -> torch.Tensor:
        """Return the value of a state, (1, 1)."""
        return self.forward_value(batch(observation))

    forward = process  # its name in HDeepRM 0.3

    def save_value(self, value: torch.Tensor) -> None:
        """Store the value (1, 1) of the current state."""
        self.values.append(value)

    def value_loss(self, returns: Sequence[float]) -> list[torch.Tensor]:
        """Return the smooth L1 distance of each state's value from its return."""
        pairs = zip(self.values, returns, strict=True)
        return [nn.functional.smooth_l1_loss(value, torch.full_like(value, target)) for value, target in pairs]

    def loss(self) -> torch.Tensor:
        """Return the sum of the losses of the values."""
        return torch.stack(self.value_loss(self.transform_rewards())).sum()


def batch(observation: np.ndarray) -> torch.Tensor:
    """Return an observation as a batch of one, (1, observation_size) float32."""
    return torch.from_numpy(np.asarray(observation, np.float32))[None]
