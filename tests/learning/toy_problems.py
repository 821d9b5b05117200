"""Small environments to learn on, and problems over them: each episode is a few decisions that hang from the seed of
its reset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from schedlab.config.contract import LearnPaths, Phase, PolicySpec, Unit


class MaskedBandit(gym.Env):
    """Five decisions among four arms; the observation shows the best one, and a mask forbids another. Forbidden arms
    cost 1.
    """

    def __init__(self, shift: int = 0) -> None:
        self.observation_space = gym.spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = gym.spaces.Discrete(4)
        self.shift, self.forbidden = shift, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.left = 5
        return self._deal(), {}

    def step(self, action):
        if not self.action_masks()[action]:
            self.forbidden += 1
        reward = 1.0 if action == self.best else -1.0 if not self.action_masks()[action] else 0.0
        self.left -= 1
        return self._deal(), reward, self.left == 0, False, {}

    def action_masks(self) -> np.ndarray:
        mask = np.ones(4, bool)
        mask[(self.best + 1 + self.other) % 4] = False
        return mask

    def _deal(self) -> np.ndarray:
        self.best, self.other = int(self.np_random.integers(4)), int(self.np_random.integers(3))
        shown = np.zeros(4, np.float32)
        shown[(self.best + self.shift) % 4] = 1.0
        return shown


class NoMask(gym.Wrapper):
    """An environment without its masks."""

    def has_wrapper_attr(self, name: str) -> bool:
        return name != "action_masks" and super().has_wrapper_attr(name)


class Balance(gym.Env):
    """A cart that drifts; a push to the left or right a decision. 1 for each decision within bounds; at most 20, then
    it is cut off.
    """

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-4.0, 4.0, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.state, self.steps = self.np_random.uniform(-0.4, 0.4, 2).astype(np.float32), 0
        return self.state.copy(), {}

    def step(self, action):
        place, speed = self.state
        speed = speed + 0.4 * (2 * int(action) - 1) + 0.3 * place + self.np_random.normal(0, 0.05)
        self.state = np.array([place + 0.3 * speed, speed], np.float32)
        self.steps += 1
        return self.state.copy(), 1.0, bool(abs(self.state[0]) > 1.0), self.steps == 20, {}


class Target(gym.Env):
    """Three decisions: name the number that is shown, between -2 and 2."""

    def __init__(self) -> None:
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gym.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.left = 3
        return self._show(), {}

    def step(self, action):
        reward = -float((action[0] - self.shown) ** 2)
        self.left -= 1
        return self._show(), reward, self.left == 0, False, {}

    def _show(self) -> np.ndarray:
        self.shown = float(self.np_random.uniform(-1, 1))
        return np.array([self.shown], np.float32)


class InDict(gym.ObservationWrapper):
    """The observation in two named parts."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        whole = env.observation_space
        self.observation_space = gym.spaces.Dict(
            {
                "first": gym.spaces.Box(whole.low[:1], whole.high[:1]),
                "rest": gym.spaces.Box(whole.low[1:], whole.high[1:]),
            }
        )

    def observation(self, observation: np.ndarray) -> dict[str, np.ndarray]:
        return {"first": observation[:1], "rest": observation[1:]}


class Several:
    """A problem of some units a split, all in environments of one kind."""

    def __init__(self, make: Callable[[], gym.Env], units: int = 3) -> None:
        self.make, self.count, self.made = make, units, []

    def units(self, split: str) -> list[Unit]:
        first = {"train": 0, "validation": 100, "test": 200}[split]
        return [
            Unit(f"{split}-{number}", "episode", split, f"{split}-{number}", first + number)
            for number in range(self.count)
        ]

    def env(self, unit: Unit, seed: int) -> gym.Env:
        del seed
        self.made.append((unit.id, env := self.make()))
        return env


def learn(
    learner: Any, problem: Any, folder: Any, *phases: int | Phase, seed: int = 0, start: Any = None, **params: Any
) -> Any:
    """Learn on a problem, or on problems by scenario; return (checkpoint, points of the curves by place)."""
    problems = problem if isinstance(problem, dict) else {"one": problem}
    spec = PolicySpec(
        "toy",
        "learned",
        learner.algorithm,
        params,
        train_on=tuple(phase if isinstance(phase, Phase) else Phase(tuple(problems), phase) for phase in phases),
    )
    paths, points = LearnPaths(start, folder / "policy.zip", folder / "progress"), {}

    def curve(metric: str, value: float, **place: Any) -> None:
        place["of"] = tuple(place.get("of", {}).items())
        points[metric, tuple(sorted(place.items()))] = value

    try:
        learner.learn(problems, spec, seed, paths, curve)
    except KeyboardInterrupt:
        return None, points
    return paths.checkpoint, points


def mean_return(policy: Any, problem: Any, split: str = "test") -> float:
    """Mean sum of rewards over the units of a split."""
    totals = []
    for unit in problem.units(split):
        env = problem.env(unit, 0)
        policy.reset(unit)
        (observation, _), over, total = env.reset(seed=unit.seed), False, 0.0
        while not over:
            mask = env.get_wrapper_attr("action_masks")() if env.has_wrapper_attr("action_masks") else None
            observation, reward, terminated, truncated, _ = env.step(policy.act(observation, mask))
            total, over = total + reward, terminated or truncated
        totals.append(total)
    return float(np.mean(totals))
