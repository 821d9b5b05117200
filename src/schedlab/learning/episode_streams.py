"""The training units of a phase as Gymnasium environments that run one episode after another, in an order that depends
on the seed.

An environment cannot be stored. Therefore an interrupted episode is stored as its unit, its seed and the actions taken.
A Gymnasium environment that is reset with a seed repeats an episode exactly, so the episode is continued by taking its
actions again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.contract import Policy, Problem, Unit
from schedlab.config.seeds import derive_seed, generator


@dataclass(frozen=True)
class Finished:
    """A finished episode: the unscaled sum of its rewards, and the number of its decisions."""

    scenario: str
    total: float
    length: int


def play(env: gym.Env, policy: Policy, unit: Unit) -> tuple[float, int]:
    """Run a unit's episode under a policy; return the sum of the rewards and the number of decisions."""
    policy.reset(unit)
    (observation, _), total, decisions, over = env.reset(seed=unit.seed), 0.0, 0, False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy.act(observation, mask_of(env)))
        total, decisions, over = total + float(reward), decisions + 1, terminated or truncated
    return total, decisions


def mask_of(env: gym.Env) -> np.ndarray | None:
    """Return True for each action that is valid now; None if the environment has no masks."""
    return env.get_wrapper_attr("action_masks")() if env.has_wrapper_attr("action_masks") else None


@dataclass
class EpisodeStream:
    """The numbered episodes of a phase, and the environments in which they run.

    Each round contains every unit once, in a new order. An environment is created when its unit is first used, and
    kept.

    `finished`: episodes that ended since this list was last emptied; `ended`: number of all ended episodes.
    """

    problems: Mapping[str, Problem]
    scenarios: Sequence[str]
    seed: int
    following: int = 0
    ended: int = 0
    finished: list[Finished] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.choices: list[tuple[str, Unit]] = [
            (scenario, unit) for scenario in self.scenarios for unit in self.problems[scenario].units("train")
        ]
        self._idle: dict[tuple[str, str], list[gym.Env]] = {}
        self._round: tuple[int, np.ndarray] = (-1, np.zeros(0, int))

    def next_number(self) -> int:
        """Return the number of the episode to begin next."""
        self.following += 1
        return self.following - 1

    def unit_of(self, number: int) -> tuple[str, Unit]:
        """Return scenario and unit of an episode."""
        turn, place = divmod(number, len(self.choices))
        if self._round[0] != turn:
            self._round = (turn, generator(self.seed, "unit-order", turn).permutation(len(self.choices)))
        return self.choices[int(self._round[1][place])]

    def borrow(self, scenario: str, unit: Unit) -> gym.Env:
        """Return an unused environment of the unit, creating one if necessary."""
        idle = self._idle.setdefault((scenario, unit.id), [])
        if idle:
            return idle.pop()
        return stepped(self.problems[scenario], unit, derive_seed(self.seed, "environment", unit.id))

    def give_back(self, scenario: str, unit: Unit, env: gym.Env) -> None:
        """Store an environment for the next episode of the unit."""
        self._idle[scenario, unit.id].append(env)


def stepped(problem: Problem, unit: Unit, seed: int) -> gym.Env:
    """Return the environment of a unit. Raises RuntimeError if the problem has none."""
    env = problem.env(unit, seed)
    if env is None:
        raise RuntimeError(f"unit {unit.id} has no environment")
    return env


def not_repeated(stream: EpisodeStream, episode: int) -> RuntimeError:
    """Return the error for an environment that does not repeat an episode, so that a job cannot be resumed in it."""
    scenario, unit = stream.unit_of(episode)
    fault = "the environment does not repeat an episode from its seed and actions"
    return RuntimeError(f"scenario {scenario}, unit {unit.id}: {fault}")


class StreamEnv(gym.Env):
    """Runs the episodes of a stream, a new one at each reset. A seed given to `reset` is ignored. Info is empty."""

    def __init__(
        self, stream: EpisodeStream, reward_scale: float, spaces: tuple[gym.Space[Any], gym.Space[Any]] | None = None
    ) -> None:
        self.stream, self.reward_scale = stream, reward_scale
        if spaces is not None:
            self.observation_space, self.action_space = spaces
        self.number, self.total = -1, 0.0
        self.actions: list[np.ndarray] = []
        self._place: tuple[str, Unit] | None = None
        self.env: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the stream's next episode."""
        del seed, options
        return self.begin(self.stream.next_number()), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action in the episode."""
        self.actions.append(np.array(action))
        observation, reward, terminated, truncated, _ = self.env.step(action)
        self.total += float(reward)
        if terminated or truncated:
            assert self._place is not None
            self.stream.finished.append(Finished(self._place[0], self.total, len(self.actions)))
            self.stream.ended += 1
        return observation, float(reward) * self.reward_scale, terminated, truncated, {}

    def action_masks(self) -> np.ndarray:
        """Return True for each action that is valid now."""
        return np.asarray(self.env.get_wrapper_attr("action_masks")(), bool)

    def take_up(self, number: int, actions: np.ndarray) -> Any:
        """Continue the episode `number` by taking these actions again, and return the observation after them."""
        observation = self.begin(number)
        for action in actions:
            self.actions.append(np.array(action))
            observation, reward, _, _, _ = self.env.step(action)
            self.total += float(reward)
        return observation

    def begin(self, number: int) -> Any:
        """Begin the episode with a number, and return its first observation."""
        if self._place is not None:
            self.stream.give_back(*self._place, self.env)
        self.number, self.actions, self.total = number, [], 0.0
        self._place = self.stream.unit_of(number)
        self.env = self.stream.borrow(*self._place)
        return self.env.reset(seed=derive_seed(self.stream.seed, "episode", number))[0]
