"""The rules as policies of a scenario: their settings, and what they draw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.rules import CAPS, PARAMETRIC, PLAIN_RULES, Decision, Rule, is_possible
from schedlab.studies.ramp.scenario import LARGEST_DEGREE

if TYPE_CHECKING:
    from schedlab.studies.ramp.problem import RampProblem
    from schedlab.studies.ramp.simulator.simulation import Simulation


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
    """Return what is wrong with a rule's number where an empty cluster has blocks for `degrees` (rising), else None."""
    key, number = _number(name, params)
    if is_possible(name, number, degrees):
        return None
    expected = f"one of {', '.join(map(str, degrees))}{', or more' if name in CAPS else ''}"
    return UserError(f"no job can be split {number} ways on this cluster", where=f"{where}.{key}", expected=expected)


def _number(name: str, params: Mapping[str, Any]) -> tuple[str, int]:
    """The number of shards that a parametric rule goes by, with its key."""
    key = "cap" if name in CAPS else "degree"
    return key, getattr(validate(RULE_SETTINGS[name], params), key)


RULE_SETTINGS: dict[str, type[Settings]] = {"sip_ml": CapSettings, "fixed": FixedSettings}
RULE_MAKERS: dict[str, Callable[..., RulePolicy]] = {
    **{name: partial(_plain_rule, name) for name in PLAIN_RULES},
    **{name: partial(_parametric, name) for name in RULE_SETTINGS},
}
