"""Learners from Stable-Baselines3 and sb3-contrib on the environments of any study: PPO (with masks or without), A2C,
DQN, DDPG.

A study names `schedlab.learning.stock.learner:LEARNERS[ppo]` beside `ALGORITHM_SETTINGS["ppo"]`: its door loads neither
torch nor Stable-Baselines3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Problem
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.learning.checkpoints import grouped, load_module, read_checkpoint, write_checkpoint
from schedlab.learning.job import LearningJob
from schedlab.learning.seeding import use_one_thread
from schedlab.learning.settings import phase_settings
from schedlab.learning.spaces import ANY_SPLIT, common_spaces, first_environment, require_spaces, told_spaces
from schedlab.learning.stock.policy import (
    MakePolicy,
    StockPolicy,
    build_policy,
    check_actions,
    layered_policy,
    policy_parts,
)
from schedlab.learning.stock.run import Setup, StockLearning
from schedlab.learning.stock.settings import ALGORITHM_SETTINGS, StockSettings, phase_mistakes

if TYPE_CHECKING:
    import gymnasium as gym
    import numpy as np

KIND = "stable-baselines"


class StableBaselinesLearner:
    """Learns with a stock algorithm on the training units of problems; a phase's steps are decisions. Resumes bit for
    bit.

    algorithm     ppo, maskable_ppo, a2c, dqn or ddpg
    settings      typed values where a study adds its own (a class on the algorithm's; those added stay the same in all
                  phases)
    make_policy   the hook for a study's own network: (settings, observation space, action space) -> a policy class of
                  Stable-Baselines3 and the keywords that it is made with; None: fully connected layers. Asked when
                  learning and when loading.
    """

    def __init__(
        self, algorithm: str, settings: type[StockSettings] | None = None, make_policy: MakePolicy | None = None
    ) -> None:
        self.algorithm, self.settings, self._make_policy = (
            algorithm,
            settings or ALGORITHM_SETTINGS[algorithm],
            make_policy,
        )

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase, each with a fresh optimiser (and buffer), write the parameters that are kept, and
        return the budget used.

        Raises UserError where the algorithm cannot choose the actions, a mask is missing, scenarios do not fit one
        another, a scenario has nothing to step or nothing to validate on, a phase changes the policy itself, and where
        learning diverges.
        """
        use_one_thread()
        where = f"{spec.name}.yaml: learner"
        settings = phase_settings(self.settings, spec, phase_mistakes)
        seen = {scenario: self.seen(problem, settings[0]) for scenario, problem in problems.items()}
        envs = {scenario: first_environment(scenario, problem, ("train",)) for scenario, problem in seen.items()}
        for scenario, env in envs.items():
            masked = env.has_wrapper_attr("action_masks")
            check_actions(self.algorithm, env.action_space, masked, f"{where}.name", scenario)
        spaces = common_spaces(envs)
        job = LearningJob(
            KIND, [self.algorithm, [each.model_dump(mode="json") for each in settings]], spec, seed, paths, curve
        )
        first = partial(self.first_parameters, seen, spaces, validate(self.settings, spec.params), job)
        padding = _padding(next(iter(envs.values())))
        setup = Setup(self.algorithm, self.make_policy, settings, problems, spaces, self.seen, first, padding)
        learning = StockLearning(job, setup)
        job.run(learning)
        whole = validate(self.settings, spec.params).model_dump(mode="json")
        meta = {"kind": KIND, "algorithm": self.algorithm, "settings": whole, "kept_step": learning.kept_step}
        write_checkpoint(paths.checkpoint, meta | told_spaces(spaces), grouped({"policy": learning.parameters}))
        return job.budget

    def load(self, checkpoint: Path, problem: Problem) -> StockPolicy:
        """Return the learned policy. Raises UserError where it was learned by another algorithm or for other
        observations or actions.
        """
        use_one_thread()
        kept = read_checkpoint(checkpoint, KIND)
        if kept.meta["algorithm"] != self.algorithm:
            raise UserError(
                f"the policy was learned with {kept.meta['algorithm']}", where=str(checkpoint), expected=self.algorithm
            )
        settings = validate(
            self.settings, kept.meta["settings"], lambda path: f"{checkpoint}: settings.{'.'.join(map(str, path))}"
        )
        env = first_environment("to act in", self.seen(problem, settings), ANY_SPLIT)
        spaces = (env.observation_space, env.action_space)
        require_spaces(spaces, kept.meta, str(checkpoint))
        policy = build_policy(policy_parts(self.algorithm, self.make_policy, settings, spaces), spaces)
        load_module(policy, kept.group("policy"), checkpoint)
        return StockPolicy(self.algorithm, policy, getattr(settings, "acting", "greedy"))

    def seen(self, problem: Problem, settings: StockSettings) -> Problem:
        """Return what is learned on where a problem is given: itself. A study's learner may leave out units or show
        something else.
        """
        del settings
        return problem

    def first_parameters(
        self,
        problems: Mapping[str, Problem],
        spaces: tuple[gym.Space[Any], gym.Space[Any]],
        settings: StockSettings,
        job: LearningJob,
    ) -> Mapping[str, np.ndarray]:
        """Return parameters to begin with where no parent gives any, by name; empty: those that the seed gives. For a
        study's learner, which derives them from the job's seed and counts what they need in its budget.
        """
        del problems, spaces, settings, job
        return {}

    @property
    def make_policy(self) -> MakePolicy:
        """The study's hook, or fully connected layers."""
        return layered_policy if self._make_policy is None else self._make_policy


def _padding(env: gym.Env) -> np.ndarray | None:
    """What the environment's observations are where they tell nothing, where it says so."""
    return env.get_wrapper_attr("padding") if env.has_wrapper_attr("padding") else None


LEARNERS = {name: partial(StableBaselinesLearner, name) for name in ALGORITHM_SETTINGS}
