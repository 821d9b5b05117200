"""The rules as policies of a scenario: their settings, and what they draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import RuleMaker, Unit
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.lp_bound import LpBound
from schedlab.studies.ramp.rules import PLAIN_RULES, Decision, Rule, capped, fixed
from schedlab.studies.ramp.settings import LARGEST_DEGREE

if TYPE_CHECKING:
    from schedlab.studies.ramp.simulation import Simulation


class CapSettings(Settings):
    """The rule `sip_ml`."""

    cap: int = setting(16, doc="most shards of an op", ge=1, le=LARGEST_DEGREE)


class FixedSettings(Settings):
    """The rule `fixed`."""

    degree: int = setting(doc="shards of an op, or as far below as is valid", ge=1, le=LARGEST_DEGREE)


@dataclass
class RulePolicy:
    """A rule that reads the job and the mask; what it draws hangs from its seed and the unit's."""

    rule: Rule
    seed: int

    def reset(self, unit: Unit) -> None:
        """Begin the random stream of an episode."""
        self.random = generator(self.seed, "ramp", "rule", unit.seed)

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int:
        """Return the number of shards for the waiting job; 0 rejects it."""
        return self.rule(Decision(simulation.waiting, mask, self.random))


def _plain_rule(name: str, params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
    del problem
    validate(NoSettings, params)
    return RulePolicy(PLAIN_RULES[name], seed)


def _capped(params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
    del problem
    return RulePolicy(capped(validate(CapSettings, params).cap), seed)


def _fixed(params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
    del problem
    return RulePolicy(fixed(validate(FixedSettings, params).degree), seed)


def _bound(params: Mapping[str, Any], problem: Any, seed: int) -> LpBound:
    del seed
    validate(NoSettings, params)
    return LpBound(problem)


RULE_MAKERS: dict[str, RuleMaker] = {
    **{name: partial(_plain_rule, name) for name in PLAIN_RULES},
    "sip_ml": _capped,
    "fixed": _fixed,
    "lp_bound": _bound,
}
RULE_SETTINGS: dict[str, type[Settings]] = {"sip_ml": CapSettings, "fixed": FixedSettings}
