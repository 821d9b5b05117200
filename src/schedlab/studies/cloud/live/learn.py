"""Learns a policy for a real job in its replay, and runs policies in environments."""

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
    """One step of an episode: the action, and the result.

    objectives   values of env.OBJECTIVES, not weighted
    uncertainty  mean over the actions of the standard deviation of their probabilities
    state        all 26 components of the state after the step
    policy_used  preference whose policy acted
    """

    action: int
    reward: float
    record: Mapping[str, Any]
    objectives: Mapping[str, float]
    uncertainty: float
    state: np.ndarray
    policy_used: str


@dataclass(frozen=True)
class Learned:
    """A learned policy and its episode in the replay.

    objective      objective of this episode
    best           objective of the best plan in the replay
    best_constant  objective of the best constant allocation in the replay
    """

    policy: Policy | None
    preference: str
    course: list[EpisodeStep]
    objective: float
    best: float
    best_constant: float


class _LiveProblem(CloudProblem):
    """A problem with a given replay, which was made from measurements instead of a scenario."""

    def __init__(self, replay: Replay) -> None:
        step = replay.scenario.job.step
        assert step is not None, "live.model pins it"
        super().__init__(replay.scenario, step.parameters(), {})
        self.replay = replay  # instead of one made from the scenario


def unit_of(preference: str) -> Unit:
    """Return the unit of an episode with a preference."""
    return preference_unit(0, preference, "test", 0)


def learn(replay: Replay, preference: str, rl: Mapping[str, Any], folder: Path) -> Learned:
    """Learn a policy for a preference in the replay, and run an episode with it there.

    rl      learner (a name of the study), episodes, seed, and params of the learner
    folder  folder in which the policy is stored as policy.zip
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
    """The policy that never changes the allocation."""

    def reset(self, unit: Unit) -> None:
        """Begin an episode; nothing is stored."""

    def act(self, observation: Any, mask: Any) -> int:
        """Return the action that changes nothing."""
        del observation, mask
        return KEEP


def stay(replay: Replay, preference: str, seed: int) -> Learned:
    """Return the episode that stays on the start allocation of the replay; nothing is learned."""
    return replace(_walked(_Staying(), replay, preference, seed), policy=None)


def _walked(policy: Policy, replay: Replay, preference: str, seed: int) -> Learned:
    """Return a policy with its episode in the replay."""
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
    """Run an episode with the actions that a policy chooses, and return its steps. `note` is called with the `info` of
    each step.
    """
    policy.reset(unit)
    observation, _ = env.reset(seed=seed)
    taken, over = list[EpisodeStep](), False
    while not over:
        mask = env.action_masks()
        action = int(policy.act(observation, mask))
        doubt = uncertainty(policy, observation, mask, derive_seed(seed, "dropout", len(taken)))
        observation, reward, done, cut, info = env.step(action)
        note(info)
        after = doubt, env.vector.copy(), getattr(policy, "acting", env.preference)
        taken.append(EpisodeStep(env.actions[action], float(reward), info["record"], info["objectives"], *after))
        over = done or cut
    return taken


def uncertainty(policy: Policy, observation: np.ndarray, mask: np.ndarray, seed: int) -> float:
    """Return the uncertainty of a policy: the standard deviation of the probability of each action over PASSES with
    dropout after the hidden layers, averaged over the actions; NaN if it is unknown, because the policy offers no such
    passes.
    """
    if hasattr(policy, "uncertainty"):
        return float(policy.uncertainty(observation, mask))
    return policy.added_uncertainty(observation, mask, seed) if hasattr(policy, "added_uncertainty") else float("nan")
