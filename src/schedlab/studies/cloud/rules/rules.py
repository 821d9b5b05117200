"""Rules that allocate without learning, in the same environment as learned policies, and the oracles.

A rule reads the environment itself (`choose`), not its observation vector. See docs/reference/cloud_model.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.config.seeds import generator
from schedlab.studies.cloud.model.allocation import KEEP, Allocation, action_of
from schedlab.studies.cloud.model.analyser import default_prediction
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.replay import affordable, towards
from schedlab.studies.cloud.replay.reward import PREFERENCES
from schedlab.studies.cloud.rules.bayesian import BayesianRule, BayesianSettings, make_bayesian
from schedlab.studies.cloud.rules.guides import Source, guides
from schedlab.studies.cloud.rules.oracle import best_constant, best_plan
from schedlab.studies.cloud.rules.suggestions import options

if TYPE_CHECKING:
    from schedlab.studies.cloud.problem import CloudProblem


class FixedSettings(Settings):
    """The rule `fixed`: one constant allocation."""

    gpu_count: int = setting(doc="number of GPUs", unit="GPUs", ge=1)
    cpu_count: int = setting(doc="CPU cores", unit="cores", ge=1)
    memory_gb: int = setting(doc="memory", unit="GB", ge=1)


class ThresholdSettings(Settings):
    """The rule `threshold`: a cloud autoscaler that follows the utilisation of the GPUs."""

    high: float = setting(
        90.0, doc="utilisation above which a GPU is added if the time limit is at risk", unit="%", gt=0, le=100
    )
    low: float = setting(40.0, doc="utilisation below which a GPU is released", unit="%", ge=0, le=100)
    cooldown: int = setting(2, doc="minimum intervals between changes", unit="intervals", ge=0)


class HorizontalSettings(Settings):
    """The rule `horizontal`: the number of GPUs that reaches a target utilisation (formula of Kubernetes' horizontal
    autoscaler).
    """

    target: float = setting(80.0, doc="target utilisation", unit="%", gt=0, le=100)
    cooldown: int = setting(2, doc="minimum intervals between changes", unit="intervals", ge=0)


class FittedSettings(Settings):
    """The rule `fitted_constant`: the best constant allocation by a model fitted to a few measurements."""

    source: Source = setting(
        "historical",
        doc="measurements: `historical`: logs of three earlier runs; `baseline`: probes of one interval "
        "on 1 to 8 GPUs; `similar`: the logs as the published predictor reads them",
    )


@dataclass
class CloudRule:
    """A rule: `decide` returns the action, given the rule and the environment. `memory` is emptied for each unit."""

    decide: Callable[[CloudRule, CloudReplayEnv], int]
    settings: Any
    problem: CloudProblem
    seed: int
    guarded: bool = True
    memory: dict[str, Any] = field(default_factory=dict)

    def reset(self, unit: Unit) -> None:
        """Forget the previous unit."""
        self.memory = {"unit": unit}

    def choose(self, env: CloudReplayEnv) -> int:
        """Return the action in an environment. If the rule's action breaks a constraint of the scenario, return
        the nearest action that keeps it, except for rules that go to a given allocation.
        """
        action = self.decide(self, env)
        if not self.guarded or not env.replay.constraints.items:
            return action
        kept = env.kept_actions()
        if kept[action]:
            return action
        return int(np.where(kept, env.replay.lattice.away(action), np.inf).argmin())

    def remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the value that is stored under a name for this unit; `make` computes it at first use."""
        if name not in self.memory:
            self.memory[name] = make()
        return self.memory[name]


def go_to(env: CloudReplayEnv, target: int) -> int:
    """Return the action that leads towards an allocation, given by its number in the lattice."""
    return (
        int(towards(env.replay, np.int64(env.here), np.int64(target)))
        if env.here != target
        else env.replay.lattice.keep
    )


def _stay(find: Callable[[CloudRule], Allocation]) -> Callable[[CloudRule, CloudReplayEnv], int]:
    """Return the decision that goes to an allocation (the nearest one of the lattice whose memory suffices) and
    stays.
    """

    def decide(rule: CloudRule, env: CloudReplayEnv) -> int:
        return go_to(env, rule.remembered("target", lambda: affordable(env.replay, find(rule))))

    return decide


def _predicted(rule: CloudRule) -> Allocation:
    """Return the published predictor's allocation for a job without a similar log."""
    job = rule.problem.scenario.job
    found = default_prediction({"model_params": job.parameters, "data_size_mb": job.pipeline.dataset_gb * 1000.0})
    return Allocation(found["gpu_count"], found["cpu_count"], found["memory_gb"])


def _fitted(rule: CloudRule, env: CloudReplayEnv) -> int:
    """Go to the allocation that is best for the preference by a model of a few measurements, and stay."""
    return go_to(env, guides(rule.problem, rule.settings.source).targets[env.preference])


def _random(rule: CloudRule, env: CloudReplayEnv) -> int:
    """Take a random action that leaves the memory that the job needs, each with equal probability."""
    draws = rule.remembered("draws", lambda: generator(rule.seed, "random", rule.memory["unit"].id))
    return env.actions[int(draws.choice(np.flatnonzero(env.action_masks())))]


def _threshold(rule: CloudRule, env: CloudReplayEnv) -> int:
    """Add a GPU if the utilisation is above `high` and the time limit is at risk; release one if it is below `low`."""
    if not _cooled(rule, env):
        return KEEP
    use = 100.0 * float(env.replay.performance.gpu_util[env.here])
    late = env.time / env.progress * env.replay.intervals > env.replay.sla.time_max
    return _gpus(rule, env, 1 if use > rule.settings.high and late else -1 if use < rule.settings.low else 0)


def _horizontal(rule: CloudRule, env: CloudReplayEnv) -> int:
    """Change the number of GPUs by one towards ceil(GPUs x utilisation / target)."""
    if not _cooled(rule, env):
        return KEEP
    gpus = env.allocation.gpu_count
    wanted = int(np.ceil(gpus * 100.0 * env.replay.performance.gpu_util[env.here] / rule.settings.target))
    return _gpus(rule, env, int(np.sign(wanted - gpus)))


def _cooled(rule: CloudRule, env: CloudReplayEnv) -> bool:
    """Whether an interval has been measured and the last change was more than `cooldown` decisions ago."""
    cooldown = rule.settings.cooldown
    return env.progress > 0 and env.decisions - rule.memory.get("changed", -cooldown - 1) > cooldown


def _gpus(rule: CloudRule, env: CloudReplayEnv, step: int) -> int:
    """Return the action that adds or releases a GPU, with additional memory if the job would lack it, and remember
    when; KEEP if there is none.
    """
    grid = env.replay.lattice
    for action in (action_of((step, 0, 0)), action_of((step, 0, 1))):
        there = int(env.replay.cut_to_slots(env.interval, grid.following[env.here, action]))
        if env.replay.allowed[env.here, action] and grid.allocations[there, 0] != grid.allocations[env.here, 0]:
            rule.memory["changed"] = env.decisions
            return action
    return KEEP


def _greedy(rule: CloudRule, env: CloudReplayEnv) -> int:
    """Take the action after which the objective would be best by the true model if the allocation then stayed to the
    end.

    The cost of a restart now is considered; later changes are not (goodput-greedy).
    """
    costs, restarts = rule.remembered("costs", lambda: rule.problem.step_costs(env.preference))
    there = env.replay.cut_to_slots(env.interval, env.replay.lattice.following[env.here])
    left = costs[env.interval :].copy()
    left[0] *= 1.0 - (env.progress - env.interval)
    onward = left.sum(axis=0)[there] + np.where(there != env.here, restarts[there], 0.0)
    kept = env.kept_actions() if env.replay.constraints.items else env.replay.allowed[env.here]
    onward = np.where(kept, onward, np.inf)
    keep = env.replay.lattice.keep
    return keep if onward[keep] <= onward.min() else int(onward.argmin())


def _options(_rule: CloudRule, env: CloudReplayEnv) -> int:
    """After each interval, take a step towards the allocation that the published rules of thumb suggest for the
    preference.
    """
    if not env.progress:
        return env.replay.lattice.keep
    limits, sla = env.replay.scenario.resource, env.replay.sla
    offered = options(env.replay.tables.measured(env.here, True), env.allocation, limits, sla.throughput_min)
    preference = env.preference if env.preference in PREFERENCES else "balanced"
    wanted = next(option.allocation for option in offered if option.priority == preference)
    return go_to(env, affordable(env.replay, Allocation(max(wanted.gpu_count, limits.gpu_count_min), *wanted[1:])))


def _oracle_static(rule: CloudRule, env: CloudReplayEnv) -> int:
    """Go to the allocation with the best objective of going there and staying, and stay."""
    return go_to(env, rule.remembered("target", lambda: best_constant(env.replay, env.weights)))


def _oracle_dynamic(rule: CloudRule, env: CloudReplayEnv) -> int:
    """Follow the best plan; in noisy environments, the best plan without noise."""
    return rule.remembered("plan", lambda: best_plan(env.replay, env.weights)).action(env.here, env.progress)


# name -> settings, and the rule's function
_DECISIONS: dict[str, tuple[type[Settings], Callable[[CloudRule, CloudReplayEnv], int]]] = {
    "static_start": (NoSettings, _stay(lambda rule: Allocation(*rule.problem.scenario.start.model_dump().values()))),
    "static_max": (NoSettings, _stay(lambda rule: rule.problem.scenario.resource.most)),
    "static_min": (NoSettings, _stay(lambda rule: rule.problem.scenario.resource.least)),
    "static_default": (NoSettings, _stay(_predicted)),
    "fixed": (FixedSettings, _stay(lambda rule: Allocation(*rule.settings.model_dump().values()))),
    "fitted_constant": (FittedSettings, _fitted),
    "random": (NoSettings, _random),
    "threshold": (ThresholdSettings, _threshold),
    "horizontal": (HorizontalSettings, _horizontal),
    "goodput_greedy": (NoSettings, _greedy),
    "options": (NoSettings, _options),
    "oracle_static": (NoSettings, _oracle_static),
    "oracle_dynamic": (NoSettings, _oracle_dynamic),
}


# these rules choose before the limits are known, or by another model than the scenario's
UNGUARDED = ("static_start", "static_max", "static_min", "static_default", "fixed", "fitted_constant")


def _make(name: str, params: Mapping[str, Any], problem: CloudProblem, seed: int) -> CloudRule:
    settings, decide = _DECISIONS[name]
    return CloudRule(decide, validate(settings, params), problem, seed, name not in UNGUARDED)


RULES: dict[str, Callable[[Mapping[str, Any], CloudProblem, int], CloudRule | BayesianRule]] = {
    **{name: partial(_make, name) for name in _DECISIONS},
    "bayesian": make_bayesian,
}
RULE_SETTINGS: dict[str, type[Settings]] = {
    **{name: settings for name, (settings, _) in _DECISIONS.items()},
    "bayesian": BayesianSettings,
}
