"""Rules: fixed policies that learn nothing, and the oracle that reads the table it is scored by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.studies.adaptation.decisions import ActByDeciding, Decision, certain
from schedlab.studies.adaptation.problem import AdaptationProblem
from schedlab.studies.adaptation.simulator.table import DIGITS


class AlwaysSettings(Settings):
    """The rule that takes the same action at every decision."""

    action: int = setting(doc="number of the action, from 0; the last does nothing", ge=0)


class SequenceSettings(Settings):
    """The rule that takes a fixed sequence of actions."""

    sequence: str = setting(doc="one digit for each decision, as in '011'", min_length=1)


class SequencePolicy(ActByDeciding):
    """Takes the actions of one sequence in order, whatever the time and the architecture."""

    def __init__(self, sequence: str) -> None:
        self.sequence, self._next = sequence, 0

    def reset(self, unit: Unit) -> None:
        """Start again at the first action."""
        del unit
        self._next = 0

    def decide(self, decision: Decision) -> np.ndarray:
        """Return probability one for the next action of the sequence."""
        action = DIGITS.index(self.sequence[self._next])
        self._next += 1
        return certain(action, len(decision.actions) + 1)


class OraclePolicy(SequencePolicy):
    """Takes the best sequence of the unit that it is tested on, which no policy can know: the ceiling."""

    def __init__(self, problem: AdaptationProblem) -> None:
        super().__init__(problem.tree.nothing)
        self._problem = problem

    def reset(self, unit: Unit) -> None:
        """Read the unit's table."""
        super().reset(unit)
        best = int(self._problem.view.reward[self._problem.row(unit)].argmax())
        self.sequence = self._problem.tree.sequences[best]


class RandomPolicy(ActByDeciding):
    """Takes every action with the same probability; scored by its exact expectation."""

    stochastic = True

    def decide(self, decision: Decision) -> np.ndarray:
        """Return equal probabilities."""
        actions = len(decision.actions) + 1
        return np.full(actions, 1 / actions)


def never(params: Mapping[str, Any], problem: AdaptationProblem, seed: int) -> SequencePolicy:
    """Return the rule that never grows."""
    del seed
    validate(NoSettings, params)
    return SequencePolicy(problem.tree.nothing)


def always(params: Mapping[str, Any], problem: AdaptationProblem, seed: int) -> SequencePolicy:
    """Return the rule that takes the same action at every decision."""
    del seed
    action = validate(AlwaysSettings, params).action
    if action >= problem.tree.actions:
        raise UserError(
            f"there is no action {action}", where="rule always: action", expected=f"0 to {problem.tree.actions - 1}"
        )
    return SequencePolicy(DIGITS[action] * problem.tree.decisions)


def sequence(params: Mapping[str, Any], problem: AdaptationProblem, seed: int) -> SequencePolicy:
    """Return the rule that takes a given sequence of actions."""
    del seed
    chosen = validate(SequenceSettings, params).sequence
    problem.tree.index(chosen)
    return SequencePolicy(chosen)


def random(params: Mapping[str, Any], problem: AdaptationProblem, seed: int) -> RandomPolicy:
    """Return the rule that draws every action with the same probability."""
    del seed, problem
    validate(NoSettings, params)
    return RandomPolicy()


def exhaustive(params: Mapping[str, Any], problem: AdaptationProblem, seed: int) -> OraclePolicy:
    """Return the oracle: the best of all sequences on each unit."""
    del seed
    validate(NoSettings, params)
    return OraclePolicy(problem)


RULES: dict[str, Callable[[Mapping[str, Any], AdaptationProblem, int], ActByDeciding]] = {
    "never": never,
    "always": always,
    "sequence": sequence,
    "random": random,
    "exhaustive": exhaustive,
}
RULE_SETTINGS: dict[str, type[Settings]] = {
    "never": NoSettings,
    "always": AlwaysSettings,
    "sequence": SequenceSettings,
    "random": NoSettings,
    "exhaustive": NoSettings,
}
