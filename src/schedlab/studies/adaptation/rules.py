"""Rules: fixed policies that learn nothing, and the oracle, which reads the table by which it is scored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.studies.adaptation.decisions import ActByDeciding, Decision, certain
from schedlab.studies.adaptation.problem import AdaptationProblem
from schedlab.studies.adaptation.simulator.table import DIGITS


class AlwaysSettings(Settings):
    """The rule that takes the same action at every decision."""

    action: int = setting(doc="number of the action, from 0; the last action does nothing", ge=0)


class SequenceSettings(Settings):
    """The rule that takes a fixed sequence of actions."""

    sequence: str = setting(doc="one digit for each decision, as in '011'", min_length=1)


class OracleSettings(Settings):
    """The oracle that takes the best sequence of each unit."""

    metric: Literal["reward", "validation_loss", "validation_accuracy", "test_loss", "test_accuracy"] = setting(
        "reward", doc="score by which sequences are compared: the scenario's reward, or a column of the table"
    )


class SequencePolicy(ActByDeciding):
    """Takes the actions of one sequence in order, regardless of the time and the architecture."""

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
    """Takes the best sequence of the unit on which it is tested, which no policy can know: an upper bound in its
    metric.
    """

    def __init__(self, problem: AdaptationProblem, metric: str = "reward") -> None:
        super().__init__(problem.tree.nothing)
        self._problem, values = problem, {"reward": problem.view.reward, **problem.view.metrics}
        if metric not in values:
            what = f"the table has no column '{metric}'"
            raise UserError(what, where="rule exhaustive: metric", expected=", ".join(values))
        self._values = -values[metric] if metric.endswith("loss") else values[metric]

    def reset(self, unit: Unit) -> None:
        """Read the best sequence of the unit from the table, and start again at its first action."""
        super().reset(unit)
        best = int(self._values[self._problem.row(unit)].argmax())
        self.sequence = self._problem.tree.sequences[best]


class RandomPolicy(ActByDeciding):
    """Takes every action with the same probability. Its score is the exact expectation."""

    stochastic = True

    def decide(self, decision: Decision) -> np.ndarray:
        """Return equal probabilities."""
        actions = len(decision.actions) + 1
        return np.full(actions, 1 / actions)


def _always(values: AlwaysSettings, problem: AdaptationProblem) -> SequencePolicy:
    if values.action >= problem.tree.actions:
        expected = f"0 to {problem.tree.actions - 1}"
        raise UserError(f"there is no action {values.action}", where="rule always: action", expected=expected)
    return SequencePolicy(DIGITS[values.action] * problem.tree.decisions)


def _sequence(values: SequenceSettings, problem: AdaptationProblem) -> SequencePolicy:
    problem.tree.index(values.sequence)
    return SequencePolicy(values.sequence)


# name -> (settings, function (settings, problem) -> rule)
_MADE: dict[str, tuple[type[Settings], Callable[[Any, AdaptationProblem], ActByDeciding]]] = {
    "never": (NoSettings, lambda _, problem: SequencePolicy(problem.tree.nothing)),
    "always": (AlwaysSettings, _always),
    "sequence": (SequenceSettings, _sequence),
    "random": (NoSettings, lambda _values, _problem: RandomPolicy()),
    "exhaustive": (OracleSettings, lambda values, problem: OraclePolicy(problem, values.metric)),
}
RULE_SETTINGS = {name: settings for name, (settings, _) in _MADE.items()}


def _maker(name: str) -> Callable[[Mapping[str, Any], AdaptationProblem, int], ActByDeciding]:
    settings, make = _MADE[name]
    return lambda params, problem, _seed: make(validate(settings, params), problem)


RULES = {name: _maker(name) for name in _MADE}
