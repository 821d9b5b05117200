"""Rules: fixed ways to allocate, on the same environment as learned policies, and the oracles.

A rule of ours looks at the environment itself (`choose`), not at its vector. Source: specification of the study cloud,
B4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.config.seeds import generator
from schedlab.studies.cloud.model.allocation import KEEP, Allocation, action_of
from schedlab.studies.cloud.model.analyser import default_prediction
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.replay import towards
from schedlab.studies.cloud.replay.reward import PREFERENCES
from schedlab.studies.cloud.rules.bayesian import BayesianRule, BayesianSettings, make_bayesian
from schedlab.studies.cloud.rules.oracle import best_constant, best_plan
from schedlab.studies.cloud.rules.suggestions import options

if TYPE_CHECKING:
    from schedlab.studies.cloud.problem import CloudProblem


class FixedSettings(Settings):
    """The rule `fixed`: goes to an allocation and stays there."""

    gpu_count: int = setting(doc="GPUs", unit="GPUs", ge=1)
    cpu_count: int = setting(doc="CPU cores", unit="cores", ge=1)
    memory_gb: int = setting(doc="memory", unit="GB", ge=1)


class ThresholdSettings(Settings):
    """The rule `threshold`: the autoscaler of clouds, which follows the utilisation of the GPUs."""

    high: float = setting(
        90.0, doc="utilisation above which a GPU is added, if the time limit is at risk", unit="%", gt=0, le=100
    )
    low: float = setting(40.0, doc="utilisation below which a GPU is given back", unit="%", ge=0, le=100)
    cooldown: int = setting(2, doc="intervals between two changes", unit="intervals", ge=0)


class HorizontalSettings(Settings):
    """The rule `horizontal`: as many GPUs as bring their utilisation to a target, as Kubernetes' horizontal autoscaler
    reckons.
    """

    target: float = setting(80.0, doc="utilisation to reach", unit="%", gt=0, le=100)
    cooldown: int = setting(2, doc="intervals between two changes", unit="intervals", ge=0)


@dataclass
class ChosenAction:
    """A rule as a function of the environment and of `memory`, which is emptied for each unit."""

    decide: Callable[[CloudReplayEnv, dict[str, Any]], int]
    memory: dict[str, Any]

    def reset(self, unit: Unit) -> None:
        """Forget the unit before."""
        self.memory.clear()
        self.memory["unit"] = unit

    def choose(self, env: CloudReplayEnv) -> int:
        """Return the action (of 27) in an environment."""
        return self.decide(env, self.memory)


CloudRuleMaker = Callable[[Mapping[str, Any], "CloudProblem", int], ChosenAction | BayesianRule]


def _rule(decide: Callable[[CloudReplayEnv, dict[str, Any]], int]) -> ChosenAction:
    return ChosenAction(decide, {})


def go_to(env: CloudReplayEnv, target: int) -> int:
    """Return the action that leads towards an allocation of the lattice."""
    return int(towards(env.replay, np.int64(env.here), np.int64(target))) if env.here != target else KEEP


def _at(find: Callable[[CloudProblem], Allocation]) -> CloudRuleMaker:
    """The maker of a rule that goes to one allocation (the nearest of the lattice whose memory suffices) and stays."""

    def make(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
        del seed
        validate(NoSettings, params)
        target = affordable(problem, find(problem))
        return _rule(lambda env, memory: go_to(env, target))

    return make


def affordable(problem: CloudProblem, allocation: Allocation) -> int:
    """Return the number of the nearest allocation, with as much more memory as the job needs there."""
    grid, fits = problem.replay.lattice, problem.replay.fits
    number = grid.nearest(allocation)
    enough = [
        n
        for n in range(number, len(grid))
        if fits[n] and (grid.allocations[n, :2] == grid.allocations[number, :2]).all()
    ]
    return enough[0] if enough else grid.start


def make_fixed(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the rule that goes to a given allocation."""
    del seed
    target = affordable(problem, Allocation(*validate(FixedSettings, params).model_dump().values()))
    return _rule(lambda env, memory: go_to(env, target))


def make_random(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the rule that takes any action that leaves the memory which the job needs, each as likely."""
    del problem
    validate(NoSettings, params)

    def decide(env: CloudReplayEnv, memory: dict[str, Any]) -> int:
        if "rng" not in memory:
            memory["rng"] = generator(seed, "random", memory["unit"].id)
        return env.actions[int(memory["rng"].choice(np.flatnonzero(env.action_masks())))]

    return _rule(decide)


def make_threshold(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the autoscaler: a GPU more above `high` if the time limit is at risk, one fewer below `low`."""
    del problem, seed
    settings = validate(ThresholdSettings, params)

    def decide(env: CloudReplayEnv, memory: dict[str, Any]) -> int:
        use = 100.0 * float(env.replay.performance.gpu_util[env.here])
        if not _cooled(env, memory, settings.cooldown):
            return KEEP
        late = env.time / env.progress * env.replay.intervals > env.replay.sla.time_max
        return _gpus(env, memory, 1 if use > settings.high and late else -1 if use < settings.low else 0)

    return _rule(decide)


def make_horizontal(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the autoscaler that wants ceil(GPUs x utilisation / target) GPUs."""
    del problem, seed
    settings = validate(HorizontalSettings, params)

    def decide(env: CloudReplayEnv, memory: dict[str, Any]) -> int:
        if not _cooled(env, memory, settings.cooldown):
            return KEEP
        gpus = env.allocation.gpu_count
        wanted = int(np.ceil(gpus * 100.0 * env.replay.performance.gpu_util[env.here] / settings.target))
        return _gpus(env, memory, int(np.sign(wanted - gpus)))

    return _rule(decide)


def _cooled(env: CloudReplayEnv, memory: dict[str, Any], cooldown: int) -> bool:
    """Whether an interval was measured and the last change is long enough ago."""
    return env.progress > 0 and env.decisions - memory.get("changed", -cooldown - 1) > cooldown


def _gpus(env: CloudReplayEnv, memory: dict[str, Any], way: int) -> int:
    """The action that adds or takes a GPU (and memory with it, where the job would run out); notes when."""
    grid = env.replay.lattice
    for action in (action_of((way, 0, 0)), action_of((way, 0, 1))):
        there = int(env.replay.cut_to_slots(env.interval, grid.following[env.here, action]))
        if env.replay.allowed[env.here, action] and grid.allocations[there, 0] != grid.allocations[env.here, 0]:
            memory["changed"] = env.decisions
            return action
    return KEEP


def make_greedy(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the rule that takes the neighbour of the best objective if it were kept to the end, as far as the model
    tells. A restart counts; what the next change would bring does not (goodput-greedy).
    """
    del seed
    validate(NoSettings, params)

    def decide(env: CloudReplayEnv, memory: dict[str, Any]) -> int:
        if "costs" not in memory:
            memory["costs"] = problem.step_costs(env.preference)
        costs, restarts = memory["costs"]
        there = env.replay.cut_to_slots(env.interval, env.replay.lattice.following[env.here])
        left = costs[env.interval :].copy()
        left[0] *= 1.0 - (env.progress - env.interval)
        onward = left.sum(axis=0)[there] + np.where(there != env.here, restarts[there], 0.0)
        onward = np.where(env.replay.allowed[env.here], onward, np.inf)
        return KEEP if onward[KEEP] <= onward.min() else int(onward.argmin())

    return _rule(decide)


def make_options(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the published rules of thumb: after each interval a step towards the option of the preference."""
    del seed
    validate(NoSettings, params)

    def decide(env: CloudReplayEnv, memory: dict[str, Any]) -> int:
        del memory
        if not env.progress:
            return KEEP
        limits, sla = env.replay.scenario.resource, env.replay.sla
        metrics = env.replay.tables.measured(env.here, True)
        offered = options(metrics, env.allocation, limits, sla.throughput_min)
        known = env.preference if env.preference in PREFERENCES else "balanced"
        wanted = next(option.allocation for option in offered if option.priority == known)
        return go_to(env, affordable(problem, Allocation(max(wanted.gpu_count, limits.gpu_count_min), *wanted[1:])))

    return _rule(decide)


def make_oracle_static(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the oracle that goes to the allocation which is best to go to and stay on."""
    del problem, seed
    validate(NoSettings, params)

    def decide(env: CloudReplayEnv, memory: dict[str, Any]) -> int:
        if "target" not in memory:
            memory["target"] = best_constant(env.replay, env.weights)
        return go_to(env, memory["target"])

    return _rule(decide)


def make_oracle_dynamic(params: Mapping[str, Any], problem: CloudProblem, seed: int) -> ChosenAction:
    """Return the oracle that follows the best plan; with noise, the plan of the job without it."""
    del problem, seed
    validate(NoSettings, params)

    def decide(env: CloudReplayEnv, memory: dict[str, Any]) -> int:
        if "plan" not in memory:
            memory["plan"] = best_plan(env.replay, env.weights)
        return memory["plan"].action(env.here, env.progress)

    return _rule(decide)


def _predicted(problem: CloudProblem) -> Allocation:
    """What the published predictor says of a job that no log is like."""
    job = problem.scenario.job
    found = default_prediction({"model_params": job.parameters, "data_size_mb": job.pipeline.dataset_gb * 1000.0})
    return Allocation(found["gpu_count"], found["cpu_count"], found["memory_gb"])


RULES: dict[str, CloudRuleMaker] = {
    "static_start": _at(lambda problem: Allocation(*problem.scenario.start.model_dump().values())),
    "static_max": _at(lambda problem: problem.scenario.resource.most),
    "static_min": _at(lambda problem: problem.scenario.resource.least),
    "static_default": _at(_predicted),
    "fixed": make_fixed,
    "random": make_random,
    "threshold": make_threshold,
    "horizontal": make_horizontal,
    "goodput_greedy": make_greedy,
    "options": make_options,
    "bayesian": make_bayesian,
    "oracle_static": make_oracle_static,
    "oracle_dynamic": make_oracle_dynamic,
}
RULE_SETTINGS: dict[str, type[Settings]] = {
    **dict.fromkeys(RULES, NoSettings),
    "fixed": FixedSettings,
    "threshold": ThresholdSettings,
    "horizontal": HorizontalSettings,
    "bayesian": BayesianSettings,
}
