"""Learners of Stable-Baselines3 and sb3-contrib in the environments of any study: PPO (with or without masks), A2C,
DQN, DDPG.

A study names `schedlab.learning.stock.learner:LEARNERS[ppo]` and `ALGORITHM_SETTINGS["ppo"]`, so that importing the
study loads neither torch nor Stable-Baselines3.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec, Problem
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, write_checkpoint
from schedlab.learning.environments import EnvironmentLearner, common_spaces, first_environment, told_spaces
from schedlab.learning.job import LearningJob
from schedlab.learning.seeding import use_one_thread
from schedlab.learning.settings import phase_settings
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

    from schedlab.learning.environments import Spaces

KIND = "stable-baselines"


class StableBaselinesLearner(EnvironmentLearner):
    """Learns with an algorithm of Stable-Baselines3 on the training units of problems. The steps of a phase are
    decisions. An interrupted and resumed job gives the same bytes.

    algorithm     ppo, maskable_ppo, a2c, dqn or ddpg
    settings      type of the settings, if a study adds keys (a subclass of the algorithm's settings; added keys have
                  the same values in all phases)
    make_policy   a study's own network: (settings, observation space, action space) -> a policy class of
                  Stable-Baselines3 and its keyword arguments; None: fully connected layers. It is called when learning
                  and when loading.
    """

    kind = KIND
    settings: type[StockSettings]

    def __init__(
        self, algorithm: str, settings: type[StockSettings] | None = None, make_policy: MakePolicy | None = None
    ) -> None:
        self.algorithm, self.settings = algorithm, settings or ALGORITHM_SETTINGS[algorithm]
        self.make_policy = make_policy or layered_policy

    def learn(
        self, problems: Mapping[str, Problem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase, each with a new optimiser (and buffer), write the selected parameters, and return
        the budget used.

        Raises UserError if the algorithm cannot choose the actions, if a mask is missing, if scenarios have different
        spaces, if a scenario has no environment or no validation units, if a phase changes the policy itself, and if
        learning diverges.
        """
        use_one_thread()
        self.check(problems, spec)
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

    def read(self, checkpoint: Path) -> Checkpoint:
        """Return a checkpoint of this algorithm. Raises UserError for another algorithm."""
        kept = super().read(checkpoint)
        if kept.meta["algorithm"] != self.algorithm:
            what = f"the policy was learned with {kept.meta['algorithm']}"
            raise UserError(what, where=str(checkpoint), expected=self.algorithm)
        return kept

    def policy(self, kept: Checkpoint, settings: Any, spaces: Spaces) -> StockPolicy:
        """Return the policy of a checkpoint."""
        policy = build_policy(policy_parts(self.algorithm, self.make_policy, settings, spaces), spaces)
        load_module(policy, kept.group("policy"), kept.path)
        return StockPolicy(self.algorithm, policy, getattr(settings, "acting", "greedy"))

    def first_parameters(
        self,
        problems: Mapping[str, Problem],
        spaces: Spaces,
        settings: StockSettings,
        job: LearningJob,
    ) -> Mapping[str, np.ndarray]:
        """Return the parameters, by name, with which learning begins without a parent; empty: those drawn from the
        seed.

        A study's learner may override this method. It derives the parameters from the job's seed and adds the cost to
        the job's budget.
        """
        del problems, spaces, settings, job
        return {}


def _padding(env: gym.Env) -> np.ndarray | None:
    """Return the padding of the environment's observations, if it has one."""
    return env.get_wrapper_attr("padding") if env.has_wrapper_attr("padding") else None


LEARNERS = {name: partial(StableBaselinesLearner, name) for name in ALGORITHM_SETTINGS}
