"""Rules that choose how far a job may be split, the published baselines and fixed degrees, and their settings.

See docs/reference/ramp_model.md. A rule is a function (decision) -> action; 0 rejects.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError, did_you_mean, nearest
from schedlab.config.plugins import load_class
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.scenario import LARGEST_DEGREE
from schedlab.studies.ramp.simulator.jobs import Job

if TYPE_CHECKING:
    from schedlab.studies.ramp.problem import RampProblem
    from schedlab.studies.ramp.simulator.simulation import Simulation


@dataclass(frozen=True, eq=False)
class Decision:
    """A waiting job and its actions.

    mask    int16[most + 1], 1 for a valid action
    random  generator for rules that draw
    """

    job: Job
    mask: np.ndarray
    random: np.random.Generator

    @property
    def valid(self) -> list[int]:
        """Valid actions that accept the job, in ascending order."""
        return (np.flatnonzero(self.mask[1:]) + 1).tolist()


Rule = Callable[[Decision], int]


def sequential(decision: Decision) -> int:
    """Return 1, with which no op is split; 0 if it is not valid."""
    return 1 if decision.mask[1] else 0


def smallest(decision: Decision) -> int:
    """Return 2 if it is valid, else the smallest valid degree (published as `min`); 0 if there is none."""
    valid = decision.valid
    return (2 if len(valid) > 1 and 2 in valid else valid[0]) if valid else 0


def para_max(decision: Decision) -> int:
    """Return the largest valid degree: maximum parallelisation."""
    return max(decision.valid, default=0)


def at_random(decision: Decision) -> int:
    """Return a valid degree, drawn uniformly."""
    return int(decision.random.choice(decision.valid)) if decision.valid else 0


def capped(cap: int) -> Rule:
    """Return the rule SiP-ML: the largest valid degree, but at most `cap`. If that is not valid, the job is
    rejected.
    """

    def rule(decision: Decision) -> int:
        degree = min(cap, para_max(decision))
        return degree if degree and decision.mask[degree] else 0

    return rule


def fixed(degree: int) -> Rule:
    """Return the rule that chooses `degree`, or the largest valid degree below it."""

    def rule(decision: Decision) -> int:
        return max((action for action in decision.valid if action <= degree), default=0)

    return rule


def para_min(decision: Decision) -> int:
    """Return the smallest valid degree of at least 1 / beta, which the job needs to meet its limit; if there is none,
    the largest valid degree.
    """
    needed = math.ceil(decision.job.sequential_time / decision.job.time_limit)
    valid = decision.valid
    return min((action for action in valid if action >= needed), default=max(valid, default=0))


PLAIN_RULES: dict[str, Rule] = {  # that have no settings
    "sequential": sequential,
    "smallest": smallest,
    "para_max": para_max,
    "para_min": para_min,
    "random": at_random,
}
RULES: dict[str, Rule] = {
    **PLAIN_RULES,
    "sip_ml": capped(16),
    **{f"fixed_{degree}": fixed(degree) for degree in (1, 2, 4, 6, 8, 16)},
}
PARAMETRIC: dict[str, Callable[[int], Rule]] = {"fixed": fixed, "sip_ml": capped}  # with a number behind their name
CAPS = ("sip_ml",)  # those whose number may exceed every degree and then has no effect
# how names of learned policies begin
LEARNED = ("table", "rollouts", "linear", "network", "afterstate", "ppo", "a2c", "dqn", "apex")
DEGREE = "(?=.{1,9}$)0*[1-9][0-9]*"  # above 0, at most nine digits
ALIASES = {  # names of the published system
    "none": "sequential",
    "no_parallelism": "sequential",
    "min": "smallest",
    "min_parallelism": "smallest",
    "max": "para_max",
    "max_parallelism": "para_max",
    "acceptable_jct": "para_min",
    "random_parallelism": "random",
    "sipml": "sip_ml",
}


def takes_cap(name: str) -> bool:
    """Return whether the published agent of this name has a parameter for the maximum number of shards."""
    return name.lower().replace("_", "").startswith("sipml")


def is_possible(head: str, degree: int, degrees: Sequence[int]) -> bool:
    """Return whether a rule can use its parameter on a cluster with blocks for `degrees` (ascending).

    If it cannot, `fixed` would always choose the next smaller degree, and `sip_ml` would reject jobs.
    """
    return degree in degrees or (head in CAPS and degree > degrees[-1])


def rule_named(name: str, where: str = "policy") -> Rule:
    """Return a rule by its name here or in the published system, fixed_<degree>, or sip_ml_<cap>. Raises UserError."""
    known = ALIASES.get(name.lower(), name.lower())
    if known in RULES:
        return RULES[known]
    head, _, degree = known.rpartition("_")
    if head in PARAMETRIC and re.fullmatch(DEGREE, degree):
        return PARAMETRIC[head](int(degree))
    if known.split("-")[0] in LEARNED:
        what = f"'{name}' is a learned policy, no rule"
        remedy = "`snakemake --cores all ramp` learns and evaluates those of its scenarios"
        raise UserError(what, where=where, expected=f"one of {', '.join(RULES)}", remedy=remedy)
    published = ALIASES if nearest(known, ALIASES) else ()  # not listed unless the name resembles one
    raise UserError(f"there is no rule '{name}'", where=where, remedy=did_you_mean(known, [*RULES, *published]))


class CapSettings(Settings):
    """The rule `sip_ml`: as many shards as are valid, at most a cap."""

    cap: int = setting(16, doc="maximum number of shards of an op", ge=1, le=LARGEST_DEGREE)


class FixedSettings(Settings):
    """The rule `fixed`: the same number of shards for every job."""

    degree: int = setting(doc="number of shards of an op, or the largest valid number below", ge=1, le=LARGEST_DEGREE)


@dataclass
class RulePolicy:
    """A rule that reads the job and the mask. Its random stream depends on its seed and the seed of the unit."""

    rule: Rule
    seed: int

    def reset(self, unit: Unit) -> None:
        """Begin the random stream of an episode."""
        self.random = generator(self.seed, "ramp", "rule", unit.seed)

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int:
        """Return the number of shards for the waiting job; 0 rejects it."""
        return self.rule(Decision(simulation.cluster.queue[0], mask, self.random))


def _plain_rule(name: str, params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
    del problem
    validate(NoSettings, params)
    return RulePolicy(PLAIN_RULES[name], seed)


def _parametric(name: str, params: Mapping[str, Any], problem: RampProblem, seed: int) -> RulePolicy:
    if (mistake := degree_mistake(name, params, problem.simulation.degrees)) is not None:
        raise mistake
    return RulePolicy(PARAMETRIC[name](_number(name, params)[1]), seed)


def degree_mistake(
    name: str, params: Mapping[str, Any], degrees: Sequence[int], where: str = "params"
) -> UserError | None:
    """Return the error of a rule's parameter on a cluster with blocks for `degrees` (ascending), or None if it is
    valid.
    """
    key, number = _number(name, params)
    if is_possible(name, number, degrees):
        return None
    expected = f"one of {', '.join(map(str, degrees))}{', or more' if name in CAPS else ''}"
    return UserError(f"no job can be split {number} ways on this cluster", where=f"{where}.{key}", expected=expected)


def _number(name: str, params: Mapping[str, Any]) -> tuple[str, int]:
    """Return key and value of a rule's parameter, its number of shards."""
    key = "cap" if name in CAPS else "degree"
    return key, getattr(validate(RULE_SETTINGS[name], params), key)


def own_rule(target: str) -> Callable[..., Any]:
    """Return the class of a user's rule, with `reset` and either `decide` or `act`. Raises UserError."""
    found = load_class(target, "rule", ("reset",))
    return found if callable(getattr(found, "decide", None)) else load_class(target, "rule")


RULE_SETTINGS: dict[str, type[Settings]] = {"sip_ml": CapSettings, "fixed": FixedSettings}
RULE_MAKERS: dict[str, Callable[..., RulePolicy]] = {
    **{name: partial(_plain_rule, name) for name in PLAIN_RULES},
    **{name: partial(_parametric, name) for name in RULE_SETTINGS},
}
