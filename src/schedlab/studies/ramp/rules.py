"""Rules that choose how far a job may be split: the published baselines and fixed degrees.

Source: specification of the ramp study, sections 8 and 15. A rule is a function (decision) -> action; 0 rejects the
  job.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.config.errors import UserError, did_you_mean, nearest
from schedlab.studies.ramp.simulator.jobs import Job


@dataclass(frozen=True, eq=False)
class Decision:
    """A waiting job and its actions. mask: int16[most + 1], 1 for a valid action; random: for rules that draw."""

    job: Job
    mask: np.ndarray
    random: np.random.Generator

    @property
    def valid(self) -> list[int]:
        """Valid actions that accept the job, in ascending order."""
        return (np.flatnonzero(self.mask[1:]) + 1).tolist()


Rule = Callable[[Decision], int]


def sequential(decision: Decision) -> int:
    """Whole: one shard an op."""
    return 1 if decision.mask[1] else 0


def smallest(decision: Decision) -> int:
    """Split two ways, or not at all where only that is valid (published as `min`)."""
    valid = decision.valid
    return (2 if len(valid) > 1 and 2 in valid else valid[0]) if valid else 0


def para_max(decision: Decision) -> int:
    """As far as is valid: maximum parallelisation."""
    return max(decision.valid, default=0)


def at_random(decision: Decision) -> int:
    """Any valid number of shards, all alike."""
    return int(decision.random.choice(decision.valid)) if decision.valid else 0


def capped(cap: int) -> Rule:
    """Return the rule SiP-ML: as far as is valid, at most `cap`; a cap that is not valid itself rejects the job."""

    def rule(decision: Decision) -> int:
        degree = min(cap, para_max(decision))
        return degree if degree and decision.mask[degree] else 0

    return rule


def fixed(degree: int) -> Rule:
    """Return the rule that splits `degree` ways, or as far below as is valid."""

    def rule(decision: Decision) -> int:
        return max((action for action in decision.valid if action <= degree), default=0)

    return rule


def para_min(decision: Decision) -> int:
    """As little as the job's limit asks for: the smallest valid degree of at least 1 / beta, else the largest."""
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
CAPS = ("sip_ml",)  # of them, those whose number may lie beyond every degree: then it caps nothing
# how names of learned policies begin
LEARNED = ("table", "rollouts", "linear", "network", "afterstate", "ppo", "a2c", "dqn", "apex")
LONGEST_DEGREE = 9  # digits
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
    """Return whether the agent of this name is the one that has a parameter, the largest number of shards."""
    return name.lower().replace("_", "").startswith("sipml")


def is_possible(head: str, degree: int, degrees: Sequence[int]) -> bool:
    """Return whether a parametric rule of a number is what its name says on a cluster with blocks for `degrees`
    (rising).

    Another number would run as the next below (fixed) or reject every job (sip_ml).
    """
    return degree in degrees or (head in CAPS and degree > degrees[-1])


def rule_named(name: str, where: str = "policy") -> Rule:
    """Return a rule by its name here or in the published system, fixed_<degree>, or sip_ml_<cap>. Raises UserError."""
    known = ALIASES.get(name.lower(), name.lower())
    if known in RULES:
        return RULES[known]
    head, _, degree = known.rpartition("_")
    if (
        head in PARAMETRIC
        and degree.isascii()
        and degree.isdecimal()
        and len(degree) <= LONGEST_DEGREE
        and int(degree) > 0
    ):
        return PARAMETRIC[head](int(degree))
    if known.split("-")[0] in LEARNED:
        what, remedy = (
            f"'{name}' is a learned policy, no rule",
            "`snakemake --cores all ramp` learns and evaluates those of its scenarios",
        )
        raise UserError(what, where=where, expected=f"one of {', '.join(RULES)}", remedy=remedy)
    published = ALIASES if nearest(known, ALIASES) else ()  # they are not listed beside ours
    raise UserError(f"there is no rule '{name}'", where=where, remedy=did_you_mean(known, [*RULES, *published]))
