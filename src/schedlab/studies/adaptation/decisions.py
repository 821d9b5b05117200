"""The decisions of a policy: the facts that it observes, the growth actions, and the probability of each action."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.network.architecture import Architecture
from schedlab.studies.adaptation.simulator.table import DIGITS, DecisionTree

if TYPE_CHECKING:
    from schedlab.config.contract import Unit


@dataclass(frozen=True)
class GrowthAction:
    """One way to grow: insert a layer behind a deepenable block, or multiply its channels by `factor`.

    bn: insert a batch norm with the layer; None: if the block has one.
    """

    block: int
    operation: Literal["deepen", "widen"] = "deepen"
    bn: bool | None = None
    factor: float = 2.0

    def apply(self, architecture: Architecture) -> Architecture:
        """Return the grown architecture. Raises UserError if it has no such block."""
        if self.operation == "deepen":
            return architecture.deepened(self.block, self.bn)
        return architecture.widened(self.block, self.factor)


@dataclass(frozen=True)
class Decision:
    """The facts that a policy may use for a decision.

    architecture           the current network
    time_left, total_time  seconds of the budget left, and in total
    actions                the growth actions; doing nothing is one further action, the last
    slope                  increase of the validation accuracy per epoch; None: not recorded
    """

    architecture: Architecture
    time_left: float
    total_time: float
    actions: tuple[GrowthAction, ...]
    slope: float | None = None


class ActByDeciding:
    """Adds `act` to a policy with `decide`: `act` returns the most probable action, the first among equals.

    A `stochastic` policy is scored by the exact expectation of `decide` over all sequences. Any other policy may count
    its decisions since `reset`. A policy that reads `decision.slope` sets `reads_slope = True`, so that a real run asks
    it during the training.
    """

    stochastic = False

    def reset(self, unit: Unit) -> None:
        """Prepare for the next unit; by default there is nothing to do."""

    def decide(self, decision: Decision) -> np.ndarray:
        """Return the probability of each action."""
        raise NotImplementedError

    def act(self, observation: Decision, mask: Any = None) -> int:
        """Return the most probable action of a decision; every action is always valid."""
        del mask
        return int(np.argmax(self.decide(observation)))


def check_actions(actions: int, expected: int, where: str = "") -> None:
    """Raise UserError if a policy has another number of actions than a scenario."""
    if actions != expected:
        remedy = "learn it on such scenarios, or with head: blocks, which takes any number"
        what = f"the policy chooses among {actions} actions"
        raise UserError(what, where=where, expected=f"{expected} actions", remedy=remedy)


def certain(action: int, actions: int) -> np.ndarray:
    """Return probabilities that are one for an action and zero for the others."""
    probabilities = np.zeros(actions)
    probabilities[action] = 1.0
    return probabilities


def architectures(
    tree: DecisionTree, original: Architecture, actions: Sequence[GrowthAction], back: Sequence[bool] | None = None
) -> tuple[Architecture, ...]:
    """Return the architecture of the network at each prefix of the tree; equal ones are the same object.

    back: for each prefix, whether all its actions have been undone by then because resources were taken away
    """
    made: dict[str, Architecture] = {"": original}
    same: dict[Architecture, Architecture] = {original: original}
    for state, prefix in enumerate(tree.prefixes[1:], 1):
        before, action = made[prefix[:-1]], DIGITS.index(prefix[-1])
        grown = before if action == len(actions) else actions[action].apply(before)
        if back is not None and back[state]:
            grown = original
        made[prefix] = same.setdefault(grown, grown)
    return tuple(made[prefix] for prefix in tree.prefixes)


def sequence_probabilities(tree: DecisionTree, probabilities: np.ndarray) -> np.ndarray:
    """Return the probability of each sequence from those of the actions in each state (states, actions)."""
    return probabilities[tree.states, tree.choices].prod(-1)
