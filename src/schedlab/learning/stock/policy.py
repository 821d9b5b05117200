"""Policies of Stable-Baselines3, created without their algorithms, and how learned ones act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3 import A2C, DDPG, DQN, PPO
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings
from schedlab.config.seeds import generator
from schedlab.learning.adam import TorchAdam
from schedlab.learning.environments import told
from schedlab.learning.networks import ACTIVATIONS
from schedlab.learning.seeding import torch_stream
from schedlab.learning.stock.settings import OnPolicySettings, StockSettings

ALGORITHMS: dict[str, type[BaseAlgorithm]] = {
    "ppo": PPO,
    "maskable_ppo": MaskablePPO,
    "a2c": A2C,
    "dqn": DQN,
    "ddpg": DDPG,
}
# A policy class, or the library's name of one, and its keyword arguments.
PolicyParts = tuple[str | type[BasePolicy], dict[str, Any]]
MakePolicy = Callable[
    [Any, gym.Space[Any], gym.Space[Any]], PolicyParts
]  # (settings, observation space, action space) -> parts


def layered_policy(
    settings: StockSettings, observation_space: gym.Space[Any], action_space: gym.Space[Any]
) -> PolicyParts:
    """Return Stable-Baselines3's policy of fully connected layers for any of the algorithms' settings."""
    del action_space
    name = "MultiInputPolicy" if isinstance(observation_space, gym.spaces.Dict) else "MlpPolicy"
    layers: Any = list(settings.net_arch)
    keywords: dict[str, Any] = {"activation_fn": ACTIVATIONS[settings.activation]}
    if isinstance(settings, OnPolicySettings):
        critic = settings.net_arch if settings.critic_net_arch is None else settings.critic_net_arch
        layers = {"pi": layers, "vf": list(critic)}
        keywords["ortho_init"] = settings.ortho_init
    return name, {"net_arch": layers, **keywords}


def policy_parts(
    algorithm: str, make: MakePolicy, settings: Settings, spaces: tuple[gym.Space[Any], gym.Space[Any]]
) -> PolicyParts:
    """Return the policy's class and keyword arguments, with names resolved. For DDPG they include the single critic,
    which otherwise only the algorithm would set.

    The optimiser is Adam if the study names none; A2C with RMSprop creates its own.
    """
    found, keywords = make(settings, *spaces)
    policy_class = ALGORITHMS[algorithm].policy_aliases[found] if isinstance(found, str) else found
    given: dict[str, Any] = {"n_critics": 1} if algorithm == "ddpg" else {}
    if not getattr(settings, "use_rms_prop", False):
        given["optimizer_class"] = TorchAdam
    return policy_class, given | keywords


def build_policy(parts: PolicyParts, spaces: tuple[gym.Space[Any], gym.Space[Any]]) -> BasePolicy:
    """Return a policy that only acts. Its parameters are arbitrary, and no random stream changes."""
    with torch_stream(0, "stable-baselines", "build"):
        return fresh_policy(parts, spaces)


def fresh_policy(parts: PolicyParts, spaces: tuple[gym.Space[Any], gym.Space[Any]]) -> BasePolicy:
    """Return a policy without an optimiser, whose first parameters are drawn from torch's generator in its present
    state.
    """
    policy_class, keywords = parts
    make: Any = policy_class
    return make(*spaces, lambda _: 0.0, **{**keywords, "optimizer_class": _NoOptimizer, "optimizer_kwargs": {}})


class _NoOptimizer:
    """Takes the place of a policy's optimiser: creating one of torch's imports its compiler, which takes 1.2 CPU
    seconds in every process.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        del arguments, keywords


class StockPolicy:
    """A learned policy that respects masks. `stochastic`: it draws its actions, from a generator that is reset for each
    unit.
    """

    def __init__(self, algorithm: str, policy: BasePolicy, acting: str = "greedy") -> None:
        self.algorithm, self.policy, self.stochastic = algorithm, policy, acting == "sample"
        self._discrete = isinstance(policy.action_space, gym.spaces.Discrete)
        self._rng = generator(0, "policy-act")
        policy.set_training_mode(False)

    def reset(self, unit: Unit) -> None:
        """Begin a unit."""
        self._rng = generator(unit.seed, "policy-act")

    @torch.no_grad()
    def act(self, observation: Any, mask: Any = None) -> Any:
        """Return an action: a number that the mask (actions,) allows, or a vector within its bounds."""
        if not self._discrete:
            return self._vector(self._tensor(observation))
        if not self.stochastic:
            return int(np.argmax(self._scores(observation, mask)))
        chances = self.probabilities(observation, mask)
        return int(np.flatnonzero(self._rng.random() * chances.sum() < chances.cumsum())[0])

    @torch.no_grad()
    def probabilities(self, observation: Any, mask: Any = None) -> np.ndarray:
        """Return the probability of each action, (actions,) float64, if actions are drawn; for DQN, 1 for the action
        with the highest value.
        """
        scores = self._scores(observation, mask)
        if self.algorithm == "dqn":
            highest: np.ndarray = np.arange(len(scores)) == np.argmax(scores)
            return highest.astype(float)
        chances: np.ndarray = np.exp(scores - scores.max())
        chances /= chances.sum()
        return chances

    def _tensor(self, observation: Any) -> Any:
        return self.policy.obs_to_tensor(observation)[0]

    def _scores(self, observation: Any, mask: Any) -> np.ndarray:
        """Return the log-probabilities (DQN: values) of the actions, (actions,) float64; -inf for masked actions."""
        tensor = self._tensor(observation)
        if self.algorithm == "dqn":
            found = self.policy.q_net(tensor)
        elif self.algorithm == "maskable_ppo":
            found = self.policy.get_distribution(tensor, action_masks=mask).distribution.logits
        else:
            found = self.policy.get_distribution(tensor).distribution.logits
        scores: np.ndarray = found[0].cpu().double().numpy()
        return scores if mask is None else np.where(np.asarray(mask, bool), scores, -np.inf)

    def _vector(self, tensor: Any) -> np.ndarray:
        space, policy = self.policy.action_space, self.policy
        if self.algorithm == "ddpg":
            return np.asarray(policy.unscale_action(policy.actor(tensor)[0].cpu().numpy()))
        normal = policy.get_distribution(tensor).distribution
        drawn = normal.mean[0].cpu().numpy()
        if self.stochastic:
            noise = normal.stddev[0].cpu().numpy() * self._rng.standard_normal(drawn.shape)
            drawn = (drawn + noise).astype(drawn.dtype)
        return np.asarray(np.clip(drawn.reshape(space.shape), space.low, space.high))


def check_actions(algorithm: str, action: Any, masked: bool, where: str, scenario: str) -> None:
    """Raise UserError if an algorithm cannot choose actions of this space; `masked`: whether the environment has
    masks.
    """
    discrete, box = isinstance(action, gym.spaces.Discrete), isinstance(action, gym.spaces.Box)
    numbered, here = discrete and action.start == 0, f"scenario '{scenario}'"
    unbounded = box and not (np.isfinite(action.low).all() and np.isfinite(action.high).all())
    needs_numbers, cannot = algorithm in ("dqn", "maskable_ppo"), f"cannot choose {told(action)} of {here}"
    vectors, any_of = "actions that are vectors", "actions numbered from 0, or vectors"
    for wrong, what, expected, remedy in (
        (algorithm == "maskable_ppo" and not masked, f"{here} has no action masks", "action_masks()", "use ppo"),
        (needs_numbers and not discrete, f"{algorithm} {cannot}", "numbered actions", "use ppo, a2c or ddpg"),
        (algorithm == "ddpg" and not box, f"ddpg {cannot}", vectors, "use ppo, maskable_ppo, a2c or dqn"),
        (not numbered and not box, f"a stock learner {cannot}", any_of, ""),
        (unbounded, f"the actions of {here} have no bounds", "vectors within finite bounds", ""),
    ):
        if wrong:
            raise UserError(what, where=where, expected=expected, remedy=remedy)
