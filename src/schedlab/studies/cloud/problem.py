"""One scenario as a problem: its training job is run under a policy for each preference, and scored against the
oracle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
    Metric("limits_kept", "share", "higher", label="runs that keep all constraints"),
    Metric("excess", "-", "lower", label="excess over the constraints, as shares of their limits"),
    Metric("restarts", "changes", "lower", label="changes of the allocation"),
    Metric("uncertainty", "-", "lower", label="uncertainty of the actions, Monte-Carlo dropout"),
    Metric("interruptions", "interruptions", "lower", label="interruptions of spot instances"),
    Metric("out_of_memory", "intervals", "lower", label="intervals that ran out of memory"),
    Metric("time_saved", "%", "higher", label="less training time than on the start allocation, preference time"),
    Metric("cost_saved", "%", "higher", label="less cost than on the start allocation, preference cost"),
    Metric("levels_gained", "%", "higher", label="more service levels met than on the start allocation, balanced"),
    Metric("above_best", "share", "lower", label="objective above that of the best allocation that keeps the limits"),
    Metric("found", "share", "higher", label="jobs for which an allocation at most 5 % above the best was found"),
    Metric("trainings_needed", "trainings", "lower", label="trainings of a job until its allocation was found"),
    Metric("trainings_used", "trainings", "lower", label="trainings of a job that a search used"),
    Metric("hypervolume", "share", "higher", label="hypervolume of the preferences' runs, of the front's"),
    Metric("episodes_needed", "episodes", "lower", label="episodes learned until the regret first was at most .05"),
)

UNIT_KIND, FRONT_KIND = "preference", "front"
ALL = "all"  # the preference of a unit that concerns all of them
NEAR = 0.05  # regret below which a learner counts as near the best plan
SAVED = {"time": ("time_saved", "time"), "cost": ("cost_saved", "cost"), "balanced": ("levels_gained", "sla_met")}


def preference_unit(root: int, preference: str, split: Split, number: int) -> Unit:
    """Return the unit of one run of a preference. root: seed from which its noise is derived."""
    name = f"{preference}-{split}-{number:02d}"
    facts: dict[str, Scalar] = {"preference": preference, "number": number}
    return Unit(name, UNIT_KIND, split, name, derive_seed(root, "run", name), facts)


def preference_of(unit: Unit) -> str:
    """Return the preference of a unit."""
    return str(unit.facts["preference"])


class CloudProblem:
    """Implements the contract's Problem. There are `replicates` units for each preference, and for testing one more,
    which concerns the runs of all preferences together: how much of the front they cover.

    oracle   preference -> {dynamic, static, random}: objectives of the oracles and of random actions (mean), of the job
             without noise
    covered  function from the time (s) and cost ($) of runs, (k, 2), to the share of the front's hypervolume that they
             cover; None: the front is not known
    """

    metrics = METRICS

    def __init__(
        self,
        scenario: CloudScenario,
        model: StepModel,
        oracle: Mapping[str, Mapping[str, float]],
        covered: Callable[[np.ndarray], float] | None = None,
    ) -> None:
        self.scenario, self.model, self.oracle, self.covered = scenario, model, oracle, covered

    @cached_property
    def replay(self) -> Replay:
        """The replay of the scenario."""
        return make_replay(self.scenario, self.model)

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the units of all preferences; each has different noise."""
        found = []
        for preference in self.scenario.preferences:
            for number in range(getattr(self.scenario.replicates, split)):
                found.append(preference_unit(self.scenario.seed, preference, split, number))
        if split == "test" and self.covered is not None:
            unit = preference_unit(self.scenario.seed, ALL, split, 0)
            found.append(replace(unit, kind=FRONT_KIND))
        return found

    def members(self, name: str) -> Mapping[str, CloudProblem]:
        """Return the problems on which a learner trains if this one is named in its `train_on`, by name."""
        return {name: self}

    def env(self, unit: Unit, seed: int) -> CloudReplayEnv:
        """Return the environment of a unit's preference."""
        return CloudReplayEnv(self.replay, preference_of(unit), seed)

    def component_names(self) -> list[str]:
        """Return the names of the components of an observation."""
        numbers = component_numbers(self.scenario.environment.space)
        return [COMPONENTS[number] for number in numbers] if numbers else list(COMPONENTS)

    def step_costs(self, preference: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the increase of a preference's objective (replay.Replay.step_costs)."""
        return self.replay.step_costs(weights_of(preference))

    def regret(self, preference: str, objective: float) -> float | None:
        """Return the distance of an objective to that of the best plan, as a share of that of random actions. None if
        both are equal, and for live runs, which have no best plan. If there are constraints, the best plan keeps them,
        and the objective includes the excess over them (CloudReplayEnv.penalised).
        """
        if not self.oracle:
            return None
        reference = self.oracle[preference]
        span = reference["random"] - reference["dynamic"]
        return (objective - reference["dynamic"]) / span if span > 1e-12 else None

    def rollout(self, policy: Policy, unit: Unit) -> Outcome:
        """Run the job under a policy. Rules of this study get the environment, any other policy the observation and
        mask.

        A unit of all preferences is scored by the share of the front's hypervolume that their runs cover together.
        """
        if self.covered is None or unit.kind != FRONT_KIND:
            return self._run(policy, unit)
        units = [preference_unit(self.scenario.seed, name, unit.split, 0) for name in self.scenario.preferences]
        runs = [self._run(policy, each).scores for each in units]
        points = np.array([[scores["time"], scores["cost"]] for scores in runs])
        return Outcome({"hypervolume": self.covered(points)})

    def _run(self, policy: Policy, unit: Unit) -> Outcome:
        """Run the job for one preference."""
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
            values["action_description"] = env.replay.lattice.describe(env.actions[action])
            rows.append({**key, **values, **said})
            over = done or cut
        scores = env.scores()
        if spreads:
            scores["uncertainty"] = float(np.mean(spreads))
        scores |= self._compared(env, getattr(policy, "episodes_needed", {}))
        return Outcome(scores, details=step_tables(rows, env.preference))

    def _compared(self, env: CloudReplayEnv, needed: Mapping[str, int]) -> dict[str, float]:
        """Return the scores that compare an episode with the best plan and with the start allocation, and the number of
        episodes that the learner needed.
        """
        found, preference, scores = dict[str, float](), env.preference, env.scores()
        if (regret := self.regret(preference, env.penalised())) is not None:
            found["regret"] = regret
        if preference in SAVED:
            metric, of = SAVED[preference]
            change = 100.0 * (scores[of] / self.start[of] - 1.0)
            found[metric] = change if metric == "levels_gained" else -change
        if preference in needed:
            found["episodes_needed"] = float(needed[preference])
        return found

    @cached_property
    def start(self) -> Mapping[str, float]:
        """The scores of staying on the start allocation, without noise."""
        calm = self.scenario.environment.model_copy(update={"time_noise": 0.0, "price_walk": 0.0})
        env = CloudReplayEnv(make_replay(self.scenario.model_copy(update={"environment": calm}), self.model))
        env.reset(seed=0)
        while not any(env.step(env.actions.index(env.replay.lattice.keep))[2:4]):
            pass
        return env.scores()
