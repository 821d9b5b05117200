"""The stock learners of the ramp study, with its observations, masks and rewards, and a new episode at every reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Outcome, Policy, PolicySpec, Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.learning.environments import EnvironmentLearner
from schedlab.learning.job import LearningJob
from schedlab.learning.stock.learner import StableBaselinesLearner
from schedlab.learning.stock.policy import layered_policy, policy_parts
from schedlab.studies.ramp.env.encoder import ObservationEncoder
from schedlab.studies.ramp.env.env import RampEnv
from schedlab.studies.ramp.env.settings import EnvironmentSettings
from schedlab.studies.ramp.learners.cloning import cloned_parameters
from schedlab.studies.ramp.learners.graph_network import GraphReader
from schedlab.studies.ramp.learners.settings import STOCK_SETTINGS, RampStockSettings
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.simulator.compiled_kernel import Tables
from schedlab.studies.ramp.simulator.simulation import Simulation

if TYPE_CHECKING:
    import gymnasium as gym

    from schedlab.learning.stock.policy import PolicyParts, StockPolicy


class RampLearner(EnvironmentLearner):
    """Base class of the study's learners whose policies are networks."""

    def check(self, problems: Mapping[str, Any], spec: PolicySpec) -> None:
        """Raise UserError if a policy learns on several scenarios, but needs the graphs or the expert of a single
        one.
        """
        settings: Any = validate(self.settings, spec.params)
        needed = ["graphs"] if settings.network == "graph" else []
        needed += ["an expert"] if getattr(settings, "clone_episodes", 0) else []
        if len(problems) > 1 and needed:
            what, where = f"{' and '.join(needed)} of {len(problems)} scenarios", f"{spec.name}.yaml: train_on"
            raise UserError(what, where=where, expected="one scenario in all phases")

    def seen(self, problem: Any, settings: Any) -> Any:
        """Return the problem with the observation and reward of these settings."""
        return SeenProblem(problem, settings.environment)

    def acting(self, policy: Any, settings: Any, problem: Any) -> Any:
        """Return the learned policy with its observation."""
        return NetworkPolicy(policy, settings.environment, problem)


class RampStockLearner(RampLearner, StableBaselinesLearner):
    """An algorithm of Stable-Baselines3 on the ramp study's scenarios."""

    def __init__(self, algorithm: str) -> None:
        super().__init__(algorithm, STOCK_SETTINGS[algorithm], _network)

    def first_parameters(
        self, problems: Mapping[str, Any], spaces: tuple[gym.Space, gym.Space], settings: Any, job: LearningJob
    ) -> Mapping[str, np.ndarray]:
        """Return parameters that imitate an expert if `clone_episodes` is above 0; else none."""
        if not getattr(settings, "clone_episodes", 0):
            return {}
        parts = policy_parts(self.algorithm, self.make_policy, settings, spaces)
        return cloned_parameters(next(iter(problems.values())), spaces, parts, settings, job)


class SeenProblem:
    """A problem with the observation and reward of the settings; a training unit draws a new episode at every reset."""

    def __init__(self, problem: RampProblem, settings: EnvironmentSettings) -> None:
        self.problem, self.settings = problem, settings

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the episodes of a split; training has a single unit, since every reset draws a new episode."""
        if split == "train":
            return [
                Unit("train", "episode", "train", "train", derive_seed(self.problem.scenario.seed, "ramp", "train"))
            ]
        return self.problem.units(split)

    def env(self, unit: Unit, seed: int) -> RampEnv:
        """Return the environment of a unit."""
        fixed = None if unit.split == "train" else unit.seed
        return RampEnv(
            self.problem.simulation.twin(),
            self.settings,
            seed,
            fixed_episode=fixed,
            tables=known_tables(self.problem, self.settings),
        )

    def rollout(self, policy: StockPolicy, unit: Unit) -> Outcome:
        """Score a policy on an episode."""
        return self.problem.rollout(NetworkPolicy(policy, self.settings, self.problem), unit)


class NetworkPolicy:
    """A learned network with the observation of its settings."""

    def __init__(self, policy: Policy, settings: EnvironmentSettings, problem: RampProblem) -> None:
        self._policy, self._encoder = (
            policy,
            ObservationEncoder(problem.simulation, settings, known_tables(problem, settings)),
        )

    def reset(self, unit: Unit) -> None:
        """Begin an episode."""
        self._policy.reset(unit)

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int:
        """Return the number of shards for the waiting job, or 0 to reject it.

        The arguments are not used: the encoder observes the simulation of the problem, which must be the same.
        """
        del simulation, mask
        encoder, mask = self._encoder, self._encoder.mask()
        return int(
            self._policy.act(encoder.observation(encoder.features(mask), mask, encoder.number()), mask.astype(bool))
        )


def known_tables(problem: RampProblem, settings: EnvironmentSettings) -> Tables | None:
    """Return the durations of a problem's jobs if the observation has them, else None."""
    return problem.compiled[0] if settings.observation == "durations" else None


def _network(settings: RampStockSettings, observation_space: gym.Space, action_space: gym.Space) -> PolicyParts:
    name, keywords = layered_policy(settings, observation_space, action_space)
    if settings.network == "graph":
        keywords |= {"features_extractor_class": GraphReader, "features_extractor_kwargs": {"settings": settings.graph}}
    return name, keywords


LEARNERS = {name: partial(RampStockLearner, name) for name in STOCK_SETTINGS}
