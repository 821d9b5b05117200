"""Learns to run a real job on its replay, and runs the learned policy through an environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import LearnPaths, Phase, Policy, PolicySpec, Unit
from schedlab.config.plugins import load_object
from schedlab.config.seeds import derive_seed
from schedlab.studies.cloud.learners.settings import LEARNERS, STOCK
from schedlab.studies.cloud.live.env import CloudLiveEnv
from schedlab.studies.cloud.model.allocation import KEEP
from schedlab.studies.cloud.problem import CloudProblem, preference_unit
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.replay import Replay
from schedlab.studies.cloud.rules.oracle import best_plan, objective_of_staying

NAME = "live"


@dataclass(frozen=True)
class EpisodeStep:
    """One step of an episode: the observations before and after it, the action, and the result.

    objectives   of env.OBJECTIVES, before weights          uncertainty  mean over actions of the deviation of their
                 probabilities
    state        all 26 components after it                 policy_used  the preference whose policy acted
    """

    action: int
    reward: float
    record: Mapping[str, Any]
    objectives: Mapping[str, float]
    observation: np.ndarray
    uncertainty: float
    state: np.ndarray
    policy_used: str


@dataclass(frozen=True)
class Learned:
    """A learned policy, its run in the model, and the best plan there.

    objective, best, best_constant  objectives of the policy's course, of the best plan and of the best constant
      allocation
    """

    policy: Policy | None
    preference: str
    course: list[EpisodeStep]
    objective: float
    best: float
    best_constant: float


class _LiveProblem(CloudProblem):
    """A problem whose replay was measured, not configured."""

    def __init__(self, replay: Replay) -> None:
        step = replay.scenario.job.step
        assert step is not None, "live.model pins it"
        super().__init__(replay.scenario, step.parameters(), {})
        self.replay = replay  # instead of one made from the scenario


def unit_of(preference: str) -> Unit:
    """Return the unit that stands for a run of this preference."""
    return preference_unit(0, preference, "test", 0)


def learn(replay: Replay, preference: str, rl: Mapping[str, Any], folder: Path) -> Learned:
    """Learn a policy for a preference and run it through the replay.

    rl      learner (a name of the study), episodes, seed, params of the learner
    folder  where the policy is kept as policy.zip
    """
    problem = _LiveProblem(replay)
    learner = load_object(LEARNERS[rl["learner"]])()
    steps = rl["episodes"] * (replay.intervals if rl["learner"] in STOCK else 1)  # stock learners count decisions
    phase = Phase((NAME,), steps)
    spec = PolicySpec(NAME, "learned", rl["learner"], dict(rl["params"]), (rl["seed"],), (phase,))
    paths = LearnPaths(None, folder / "policy.zip", folder / "learning")
    learner.learn({NAME: problem}, spec, rl["seed"], paths, lambda *point, **place: None)
    return _walked(learner.load(paths.checkpoint, problem), replay, preference, rl["seed"])


class _Staying:
    """The policy that keeps the first allocation."""

    def reset(self, unit: Unit) -> None:
        """Nothing is remembered."""

    def act(self, observation: Any, mask: Any) -> int:
        """Return the action that changes nothing."""
        del observation, mask
        return KEEP


def stay(replay: Replay, preference: str, seed: int) -> Learned:
    """Return the course that stays on the replay's first allocation, without learning."""
    return replace(_walked(_Staying(), replay, preference, seed), policy=None)


def _walked(policy: Policy, replay: Replay, preference: str, seed: int) -> Learned:
    """A policy with its course by the model."""
    env = CloudReplayEnv(replay, preference)
    course = walk(policy, env, unit_of(preference), seed)
    weights = weights_of(preference)
    constant = float(objective_of_staying(replay, weights).min())
    best = float(best_plan(replay, weights).values[0, replay.lattice.start])
    return Learned(policy, preference, course, env.objective(), best, constant)


def walk(
    policy: Policy,
    env: CloudReplayEnv | CloudLiveEnv,
    unit: Unit,
    seed: int,
    note: Callable[[Mapping[str, Any]], None] = lambda info: None,
) -> list[EpisodeStep]:
    """Run an episode with a policy's most probable actions; `note` is called with each step's `info`."""
    policy.reset(unit)
    observation, _ = env.reset(seed=seed)
    taken, over = list[EpisodeStep](), False
    while not over:
        mask = env.action_masks()
        action = int(policy.act(observation, mask))
        doubt = uncertainty(policy, observation, mask, derive_seed(seed, "dropout", len(taken)))
        observation, reward, done, cut, info = env.step(action)
        note(info)
        used = getattr(policy, "acting", env.preference)
        after = observation.copy(), doubt, env.vector.copy(), used
        taken.append(EpisodeStep(env.actions[action], float(reward), info["record"], info["objectives"], *after))
        over = done or cut
    return taken


def uncertainty(policy: Policy, observation: np.ndarray, mask: np.ndarray, seed: int) -> float:
    """Return the mean over actions of the standard deviation of their probabilities over PASSES with dropout after
    hidden layers, which the policy itself draws or which are drawn for it; NaN, which is unknown, for one without.
    """
    if hasattr(policy, "uncertainty"):
        return float(policy.uncertainty(observation, mask))
    return policy.added_uncertainty(observation, mask, seed) if hasattr(policy, "added_uncertainty") else float("nan")
