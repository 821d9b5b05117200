"""One scenario as stages and learners see it: its units, and the outcomes of a policy's decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Metric, Outcome, Split, Unit
from schedlab.config.errors import UserError
from schedlab.config.plugins import load_object
from schedlab.config.seeds import derive_seed
from schedlab.studies.adaptation.decisions import (
    Decision,
    GrowthAction,
    architectures,
    certain,
    check_actions,
    sequence_probabilities,
)
from schedlab.studies.adaptation.network.architecture import Architecture
from schedlab.studies.adaptation.simulator.course import growth_action, growth_actions
from schedlab.studies.adaptation.simulator.ranking import noise_from_tail, reliability, top_probability
from schedlab.studies.adaptation.simulator.table import DIGITS, DecisionTree, view

if TYPE_CHECKING:
    import pandas as pd

    from schedlab.studies.adaptation.scenario import AdaptationScenario

OVERLAPPING = "published, overlapping"  # kind of a replicate for both learning and testing

SCORES = (
    Metric("regret", "reward", "lower", headline=True, label="regret to the best sequence"),
    Metric("reward", "reward", "higher"),
    Metric("validation_log_loss", "nat", "lower", label="validation log loss"),
    Metric("validation_accuracy", "fraction", "higher", label="validation accuracy"),
    Metric("test_log_loss", "nat", "lower", label="test log loss"),
    Metric("test_accuracy", "fraction", "higher", label="test accuracy"),
    Metric("rank", "place", "lower", label="rank among all sequences"),
    Metric("top_probability", "fraction", "higher", label="probability to be truly among the best"),
    Metric("noise", "reward", "lower", label="standard deviation of one result"),
    Metric("reliability", "fraction", "higher", label="share of the variance that is due to the sequence"),
)
_SCORED = {"validation_loss": "validation_log_loss", "test_loss": "test_log_loss"}
_SCORED |= {name: name for name in ("validation_accuracy", "test_accuracy")}


@dataclass(frozen=True)
class ProblemSetup:
    """The facts of a scenario about its decisions, without the table.

    total_time             the budget, s
    actions                growth actions in order; doing nothing is the action after the last one
    metric                 column of the table that is the reward; a loss counts negative
    validation_replicates  replicates of each job, before those for testing, on which rivals are chosen
    test_replicates        number of replicates for testing, the last ones of each job
    top_k                  a sequence counts as among the best if it is one of the k best
    downs                  times at which resources are taken away, s since the start; the network is then the original
    """

    total_time: float
    actions: tuple[GrowthAction, ...]
    decisions: int = 3
    metric: str = "validation_loss"
    validation_replicates: int = 0
    test_replicates: int = 1
    top_k: int = 5
    seed: int = 0
    downs: tuple[float, ...] = ()

    @property
    def tree(self) -> DecisionTree:
        """All sequences of these actions and of doing nothing."""
        return DecisionTree(len(self.actions) + 1, self.decisions)


def setup_of(scenario: AdaptationScenario, original: Architecture) -> ProblemSetup:
    """Return the setup of a typed scenario. Without actions in it, each block of the model may be deepened."""
    metric = {"log_loss": "loss", "accuracy": "accuracy"}[scenario.reward.metric]
    return ProblemSetup(
        total_time=scenario.budget,
        actions=tuple(growth_action(name, scenario.growth) for name in growth_actions(scenario, original)),
        decisions=scenario.decisions,
        metric=f"{scenario.reward.split}_{metric}",
        validation_replicates=scenario.validation_replicates,
        test_replicates=scenario.test_replicates,
        seed=scenario.seed,
        downs=tuple(change.time for change in scenario.changes if change.change == "down"),
    )


def deepening_actions(original: Architecture, bn: bool | None = None) -> tuple[GrowthAction, ...]:
    """Return the actions of the published system: deepen each block once, in order."""
    return tuple(GrowthAction(block, bn=bn) for block in range(original.deepenable_blocks))


@dataclass
class _Answers:
    """The answers of a policy in the states in which it was asked.

    answered  (states, actions) probabilities as answered
    taken     (states, actions) probabilities with which actions are taken: one and zeros for a greedy policy
    reached   states in which the policy was asked, in order
    """

    answered: np.ndarray
    taken: np.ndarray
    reached: list[int]

    @classmethod
    def empty(cls, tree: DecisionTree) -> _Answers:
        shape = (len(tree.prefixes), tree.actions)
        return cls(np.zeros(shape), np.zeros(shape), [])

    def add(self, state: int, probabilities: np.ndarray, greedy: bool) -> None:
        self.answered[state] = probabilities
        self.taken[state] = certain(int(np.argmax(probabilities)), len(probabilities)) if greedy else probabilities
        self.reached.append(state)


class AdaptationProblem:
    """A scenario's simulation table, with the model that grows; implements the contract's Problem.

    Units are replicates; the block of a unit is its job. If a job has a single replicate (as in a published table), it
    serves for learning and for testing, and the unit's kind records this. Raises UserError for a table that does not
    fit the setup.
    """

    def __init__(self, name: str, table: pd.DataFrame, original: Architecture, setup: ProblemSetup) -> None:
        self.name, self.setup, self.tree = name, setup, setup.tree
        self.view = view(table, setup.metric, f"table of {name}", self.tree)
        self.states = architectures(self.tree, original, setup.actions, self._back())
        late = float(self.view.time_left.max())
        if late > setup.total_time:
            expected = f"at most the budget of {setup.total_time:g} s"
            raise UserError(f"the table has {late:g} s left at a decision", where=f"table of {name}", expected=expected)
        self._tail = None
        if len(self.view.units) == 1 and setup.metric == "test_accuracy" and "test_accuracy_last3" in table:
            self._tail = noise_from_tail(table["test_accuracy"].to_numpy(), table["test_accuracy_last3"].to_numpy())
        self._rows = {self._unit_id(row): row for row in range(len(self.view.units))}

    def _back(self) -> list[bool]:
        """Return for each prefix whether resources were taken away between the previous decision and that in it."""
        position = {prefix: state for state, prefix in enumerate(self.tree.prefixes)}
        clock = self.setup.total_time - self.view.time_left[0]
        spans = [(clock[position[prefix[:-1]]], clock[state]) for prefix, state in position.items()]
        return [any(since < down <= until for down in self.setup.downs) for since, until in spans]

    def _unit_id(self, row: int) -> str:
        job, replicate = self.view.units[row]
        return f"job-{job}/replicate-{replicate}"

    def _split(self, job: int) -> dict[Split, list[int]]:
        """Return the positions of a job's replicates by split; if none is held out, learning and testing share all."""
        replicates = [row for row, unit in enumerate(self.view.units) if unit[0] == job]
        validation, test = self.setup.validation_replicates, self.setup.test_replicates
        if validation + test == 0 or len(replicates) == 1:
            return {"train": replicates, "validation": [], "test": replicates}
        learned = len(replicates) - validation - test
        if learned < 1 or test == 0:
            where = f"scenario {self.name}: validation_replicates, test_replicates"
            what = f"{validation} and {test} of {len(replicates)} replicates are for validation and testing"
            raise UserError(what, where=where, expected="at least one to test on, and one left to learn on")
        parts = replicates[:learned], replicates[learned : learned + validation], replicates[learned + validation :]
        return dict(zip(("train", "validation", "test"), parts, strict=True))

    def rows(self, split: Split) -> tuple[int, ...]:
        """Return the positions in the view of the units of a split."""
        jobs = dict.fromkeys(job for job, _ in self.view.units)
        return tuple(row for job in jobs for row in self._split(job)[split])

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the replicates of a split: of each job, the first are for learning and the last for testing."""
        found = []
        for row in self.rows(split):
            job, replicate = self.view.units[row]
            parts = self._split(job)
            kind = OVERLAPPING if parts["train"] == parts["test"] else "replicate"
            seed = derive_seed(self.setup.seed, "unit", job, replicate)
            facts = {"job": job, "replicate": replicate}
            found.append(Unit(self._unit_id(row), kind, split, f"job-{job}", seed, facts))
        return tuple(found)

    def row(self, unit: Unit) -> int:
        """Return a unit's position in the view."""
        if unit.id not in self._rows:
            what = f"there is no unit '{unit.id}'"
            raise UserError(what, where=f"scenario {self.name}", expected=f"one of {', '.join(self._rows)}")
        return self._rows[unit.id]

    def decisions(self, row: int) -> tuple[Decision, ...]:
        """Return the decision at each prefix of the tree in one unit."""
        slope = self.view.slope
        return tuple(
            Decision(
                architecture=architecture,
                time_left=float(self.view.time_left[row, state]),
                total_time=self.setup.total_time,
                actions=self.setup.actions,
                slope=None if slope is None else float(slope[row, state]),
            )
            for state, architecture in enumerate(self.states)
        )

    def env(self, unit: Unit, seed: int) -> Any:
        """Return the Gymnasium environment of one unit."""
        return load_object("schedlab.studies.adaptation.env:AdaptationEnv")(self, (self.row(unit),), seed=seed)

    def rollout(self, policy: Any, unit: Unit) -> Outcome:
        """Return a policy's scores on one unit; those of a random policy are exact expectations over all sequences.

        A policy with `decide` makes each decision itself; any other policy acts on the observations of the environment.
        """
        row = self.row(unit)
        policy.reset(unit)
        answers = self._ask(policy, row) if hasattr(policy, "decide") else self._step(policy, unit)
        weights = sequence_probabilities(self.tree, answers.taken)
        details = {
            "decisions": self._decisions_table(row, answers),
            "sequences": self._sequences_table(row, weights, self._of_parent(policy, row)),
        }
        return Outcome(self._scores(row, weights), details=details)

    def _ask(self, policy: Any, row: int) -> _Answers:
        answers = _Answers.empty(self.tree)
        decisions = self.decisions(row)
        if policy.stochastic:
            for state, decision in enumerate(decisions):
                answers.add(state, self._checked(policy.decide(decision)), greedy=False)
            return answers
        prefix = ""
        for _ in range(self.tree.decisions):
            state = self.tree.prefixes.index(prefix)
            answers.add(state, self._checked(policy.decide(decisions[state])), greedy=True)
            prefix += DIGITS[int(np.argmax(answers.answered[state]))]
        return answers

    def _step(self, policy: Any, unit: Unit) -> _Answers:
        answers = _Answers.empty(self.tree)
        env = self.env(unit, unit.seed)
        observation, _ = env.reset(seed=unit.seed)
        done = False
        while not done:
            state, action = env.state, int(policy.act(observation, env.action_masks()))
            observation, _, done, _, _ = env.step(action)
            answers.add(state, certain(action, self.tree.actions), greedy=True)
        return answers

    def _checked(self, probabilities: np.ndarray) -> np.ndarray:
        check_actions(np.size(probabilities), self.tree.actions, f"scenario {self.name}")
        return np.asarray(probabilities, dtype=float)

    @cached_property
    def _quality(self) -> dict[int, tuple[dict[str, float], np.ndarray]]:
        """Job -> (noise of one result and, with several replicates, reliability; probability of each sequence to be
        among the best).
        """
        found = {}
        for job in dict.fromkeys(job for job, _ in self.view.units):
            results = self.view.reward[[row for row, unit in enumerate(self.view.units) if unit[0] == job]]
            if len(results) > 1:
                parts = reliability(results)
                known = {"noise": parts.sd_residual, "reliability": parts.share}
            elif self._tail is not None:
                known = {"noise": self._tail}
            else:
                continue
            seed = derive_seed(self.setup.seed, "top", job)
            chances = top_probability(results, min(self.setup.top_k, results.shape[1]), seed, known["noise"])
            found[job] = (known, chances)
        return found

    def _scores(self, row: int, weights: np.ndarray) -> dict[str, float]:
        reward = self.view.reward[row]
        scores = {"regret": float(reward.max() - weights @ reward), "reward": float(weights @ reward)}
        scores["rank"] = float(weights @ self.view.ranks(reward))
        for column, name in _SCORED.items():
            if column in self.view.metrics and np.isfinite(self.view.metrics[column][row]).all():
                scores[name] = float(weights @ self.view.metrics[column][row])
        if quality := self._quality.get(self.view.units[row][0]):
            scores |= {**quality[0], "top_probability": float(weights @ quality[1])}
        return scores

    def _decisions_table(self, row: int, answers: _Answers) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for state in answers.reached:
            prefix, answered = self.tree.prefixes[state], answers.answered[state]
            entry = {"decision": len(prefix), "prefix": prefix, "time_left": float(self.view.time_left[row, state])}
            entry["action"] = int(np.argmax(answered))
            rows.append(entry | {f"probability_{action}": float(value) for action, value in enumerate(answered)})
        return pd.DataFrame(rows)

    def _of_parent(self, policy: Any, row: int) -> int | None:
        """Return the number of the sequence that the policy's parent takes; None without a parent."""
        parent = getattr(policy, "parent", None)
        return None if parent is None else int(sequence_probabilities(self.tree, self._ask(parent, row).taken).argmax())

    def _sequences_table(self, row: int, weights: np.ndarray, of_parent: int | None) -> pd.DataFrame:
        import pandas as pd

        likely = np.flatnonzero(weights > 0)
        reward = self.view.reward[row]
        columns: dict[str, Any] = {
            "sequence": [self.tree.sequences[i] for i in likely],
            "probability": weights[likely],
            "reward": reward[likely],
            "regret": reward.max() - reward[likely],
            "rank": self.view.ranks(reward)[likely],
        }
        columns["parent_sequence"] = "" if of_parent is None else self.tree.sequences[of_parent]
        columns["parent_rank"] = float("nan") if of_parent is None else float(self.view.ranks(reward)[of_parent])
        columns |= {name: values[row][likely] for name, values in self.view.metrics.items()}
        return pd.DataFrame(columns)


class Trainings:
    """The trainings that were looked up in tables. Each pair of unit and sequence is one training and counts once.

    seen  scenario -> bool (units, sequences)
    """

    def __init__(self, problems: Mapping[str, AdaptationProblem]) -> None:
        self.seen = {name: np.zeros(problem.view.reward.shape, bool) for name, problem in problems.items()}

    def look_up(self, scenario: str, rows: np.ndarray, sequences: np.ndarray) -> None:
        """Mark the sequences (n,) on the units at `rows` (m,) of a scenario's view."""
        self.seen[scenario][np.ix_(rows, np.unique(sequences))] = True

    @property
    def count(self) -> int:
        """The number of trainings looked up."""
        return sum(int(seen.sum()) for seen in self.seen.values())
