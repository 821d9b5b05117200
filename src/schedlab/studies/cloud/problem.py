"""One scenario: its training job run under a policy for each preference, and scored against the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from schedlab.config.contract import Metric, Outcome, Policy, Scalar, Split, Unit
from schedlab.config.seeds import derive_seed
from schedlab.studies.cloud.model.step_time import StepModel
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.episode_tables import seen_values, step_tables
from schedlab.studies.cloud.replay.observe import component_numbers
from schedlab.studies.cloud.replay.replay import Replay, make_replay
from schedlab.studies.cloud.replay.state import COMPONENTS
from schedlab.studies.cloud.scenario import CloudScenario

METRICS = (
    Metric("regret", "-", "lower", headline=True, label="regret: 0 the best plan, 1 random actions"),
    Metric("objective", "-", "lower", label="weighted time, cost and waste"),
    Metric("time", "s", "lower", label="training time"),
    Metric("cost", "$", "lower", label="cost of the training"),
    Metric("gpu_hours", "h", "lower", label="GPU hours"),
    Metric("waste", "fraction", "lower", label="unused share of GPUs and cores"),
    Metric("sla_met", "items", "higher", label="service levels met in the end, of 6"),
    Metric("severity", "-", "lower", label="severity of violations, mean over time"),
    Metric("restarts", "changes", "lower", label="changes of the allocation"),
    Metric("uncertainty", "-", "lower", label="uncertainty of the actions, Monte-Carlo dropout"),
    Metric("out_of_memory", "intervals", "lower", label="intervals that ran out of memory"),
)

UNIT_KIND = "preference"


def preference_unit(root: int, preference: str, split: Split, number: int) -> Unit:
    """Return the unit of one run of a preference. root: seed that its noise derives from."""
    name = f"{preference}-{split}-{number:02d}"
    facts: dict[str, Scalar] = {"preference": preference, "number": number}
    return Unit(name, UNIT_KIND, split, name, derive_seed(root, "run", name), facts)


def preference_of(unit: Unit) -> str:
    """Return the preference that a unit is about."""
    return str(unit.facts["preference"])


class CloudProblem:
    """Implements the contract's Problem. Units are the preferences, each run as often as `replicates` says.

    oracle  preference -> {dynamic, static, random}: objectives of the oracles and of random actions (mean), of the job
            without noise
    """

    metrics = METRICS

    def __init__(self, scenario: CloudScenario, model: StepModel, oracle: Mapping[str, Mapping[str, float]]) -> None:
        self.scenario, self.model, self.oracle = scenario, model, oracle

    @cached_property
    def replay(self) -> Replay:
        """The scenario laid out."""
        return make_replay(self.scenario, self.model)

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the preferences with their runs, each with noise of its own."""
        found = []
        for preference in self.scenario.preferences:
            for number in range(getattr(self.scenario.replicates, split)):
                found.append(preference_unit(self.scenario.seed, preference, split, number))
        return found

    def env(self, unit: Unit, seed: int) -> CloudReplayEnv:
        """Return the environment of a unit's preference."""
        return CloudReplayEnv(self.replay, preference_of(unit), seed)

    def component_names(self) -> list[str]:
        """Return the names of what is observed."""
        numbers = component_numbers(self.scenario.environment.space)
        return [COMPONENTS[number] for number in numbers] if numbers else list(COMPONENTS)

    def step_costs(self, preference: str) -> tuple[np.ndarray, np.ndarray]:
        """Return what the objective of a preference grows by (replay.Replay.step_costs)."""
        return self.replay.step_costs(weights_of(preference))

    def rollout(self, policy: Policy, unit: Unit) -> Outcome:
        """Run the job under a policy: a rule of ours looks at the environment, any other policy at its vector and mask.

        The regret is the distance to the oracle's objective as a share of that of random actions; left out where both
        are the same.
        """
        env = self.env(unit, unit.seed)
        policy.reset(unit)
        observation, _ = env.reset(seed=unit.seed)
        rows, spreads, over = list[dict[str, Any]](), list[float](), False
        while not over:
            if hasattr(policy, "choose"):
                action = env.actions.index(policy.choose(env))
            else:
                mask = env.action_masks()
                action = int(policy.act(observation, mask))
                if hasattr(policy, "uncertainty"):
                    spreads.append(policy.uncertainty(observation, mask))
            observation, reward, done, cut, info = env.step(action)
            key = {"episode": 0, "step": len(rows), "epoch": info["record"]["epoch"]}
            values = seen_values(info["record"], env.actions[action], float(reward), info["objectives"], env.vector)
            said = {
                "uncertainty": spreads[-1] if spreads else float("nan"),
                "policy_used": getattr(policy, "acting", env.preference),
            }
            rows.append({**key, **values, **said})
            over = done or cut
        scores = env.scores()
        if spreads:
            scores["uncertainty"] = float(np.mean(spreads))
        reference = self.oracle[preference_of(unit)]
        if (span := reference["random"] - reference["dynamic"]) > 1e-12:
            scores["regret"] = (scores["objective"] - reference["dynamic"]) / span
        return Outcome(scores, details=step_tables(rows, env.preference))
