"""Learners without a network: the best constant sequence, a bandit over sequences, and the nearest scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.learning.checkpoints import read_checkpoint, write_checkpoint
from schedlab.studies.adaptation.decisions import Decision
from schedlab.studies.adaptation.learners.settings import BanditSettings, NoSettings
from schedlab.studies.adaptation.problem import AdaptationProblem
from schedlab.studies.adaptation.rules import SequencePolicy
from schedlab.studies.adaptation.simulator.table import DecisionTree

_SEQUENCE = "adaptation-sequence"
_NEAREST = "adaptation-nearest"


def _trained_on(problems: Mapping[str, AdaptationProblem], spec: PolicySpec) -> dict[str, np.ndarray]:
    """Scenario -> rewards of its training units (units, sequences); UserError where their sequences differ in kind."""
    names = dict.fromkeys(name for phase in spec.train_on for name in phase.scenarios)
    _one_tree([problems[name] for name in names])
    return {name: problems[name].view.subset(problems[name].rows("train")).reward for name in names}


def _all_looked_up(rewards: Mapping[str, np.ndarray]) -> Budget:
    """The budget of a learner that looks up every training of the tables."""
    return Budget(trainings=sum(reward.size for reward in rewards.values()))


def _one_tree(problems: list[AdaptationProblem]) -> DecisionTree:
    trees = {problem.tree for problem in problems}
    if len(trees) != 1:
        kinds = sorted(f"{tree.actions} actions in {tree.decisions} decisions" for tree in trees)
        what = f"one sequence cannot serve all training scenarios: {kinds}"
        raise UserError(what, where="train_on", expected="one kind of sequence")
    return trees.pop()


class ConstantLearner:
    """The sequence with the best mean reward over the training scenarios: what a policy that sees nothing can learn."""

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Write the best constant sequence; nothing is random."""
        del seed
        validate(NoSettings, spec.params)
        rewards = _trained_on(problems, spec)
        mean = np.mean([reward.mean(0) for reward in rewards.values()], axis=0)
        best = int(mean.argmax())
        budget = _all_looked_up(rewards)
        for name, reward in rewards.items():
            curve("reward", float(reward.mean(0)[best]), step=0, scenario=name, trainings=budget.trainings)
        _write_sequence(paths.checkpoint, problems[next(iter(rewards))].tree, best)
        return budget

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> SequencePolicy:
        """Return the policy that takes the learned sequence."""
        meta = read_checkpoint(checkpoint, _SEQUENCE).meta
        _check_tree(meta, problem, checkpoint)
        return SequencePolicy(str(meta["sequence"]))


class BanditLearner(ConstantLearner):
    """UCB1 over sequences: as blind as the best constant one, but it pays for each look at the tables."""

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Pull arms, each on a training unit drawn at random; write the arm with the best mean.

        A pull is an episode; the same sequence on the same unit is one training, however often it is pulled.
        """
        validate(BanditSettings, spec.params)
        rewards = _trained_on(problems, spec)
        arms = _Arms(next(iter(rewards.values())).shape[1], generator(seed, "bandit"))
        tree = problems[spec.train_on[0].scenarios[0]].tree
        seen, budget = {name: np.zeros(reward.shape, bool) for name, reward in rewards.items()}, Budget()
        for number, phase in enumerate(spec.train_on):
            settings = validate(BanditSettings, {**spec.params, **phase.params})
            units = [pair for name in phase.scenarios for pair in zip(rewards[name], seen[name], strict=True)]
            for first in range(0, phase.steps, settings.record_every):
                count = min(settings.record_every, phase.steps - first)
                pulled = [arms.pull(units, settings.exploration) for _ in range(count)]
                budget.episodes += count
                budget.decisions += count * tree.decisions
                budget.trainings = sum(int(looked_up.sum()) for looked_up in seen.values())
                at: dict[str, Any] = dict.fromkeys(("step", "episode", "update"), first + count)
                at |= {"phase": number, "scenario": "+".join(phase.scenarios)}
                curve("reward", float(np.mean(pulled)), **at, **asdict(budget))
        _write_sequence(paths.checkpoint, tree, arms.best())
        return budget


class _Arms:
    """What UCB1 remembers of its arms; rewards are brought to 0..1 by the range seen so far."""

    def __init__(self, arms: int, stream: np.random.Generator) -> None:
        self.count, self.total, self.stream = np.zeros(arms), np.zeros(arms), stream
        self.order = stream.permutation(arms)
        self.low, self.high = np.inf, -np.inf

    def pull(self, units: list[tuple[np.ndarray, np.ndarray]], exploration: float) -> float:
        """Choose an arm, look its reward up on a unit drawn at random, mark, remember and return it.

        units: (rewards, whether they were looked up), each (sequences,).
        """
        pulls = int(self.count.sum())
        if pulls < len(self.count):
            arm = int(self.order[pulls])
        else:
            width = np.sqrt(2 * np.log(pulls) / self.count)
            arm = int((self.total / self.count + exploration * max(self.high - self.low, 0.0) * width).argmax())
        rewards, looked_up = units[self.stream.integers(len(units))]
        reward, looked_up[arm] = float(rewards[arm]), True
        self.count[arm] += 1
        self.total[arm] += reward
        self.low, self.high = min(self.low, reward), max(self.high, reward)
        return reward

    def best(self) -> int:
        """Return the arm with the best mean among those pulled."""
        with np.errstate(invalid="ignore"):
            return int(np.nan_to_num(self.total / self.count, nan=-np.inf).argmax())


class NearestLearner:
    """Remembers the best sequence of each scenario; acts as in the one whose first decision is nearest in time."""

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Write the times and best sequences; nothing is random."""
        del seed
        validate(NoSettings, spec.params)
        known: list[dict[str, Any]] = []
        rewards = _trained_on(problems, spec)
        budget = _all_looked_up(rewards)
        for name, reward in rewards.items():
            problem, mean = problems[name], reward.mean(0)
            best = int(mean.argmax())
            start = float(problem.view.time_left[list(problem.rows("train")), 0].mean())
            part, sequence = start / problem.setup.total_time, problem.tree.sequences[best]
            known.append({"part_left": part, "sequence": sequence, "scenario": name})
            curve("reward", float(mean[best]), step=0, scenario=name, trainings=budget.trainings)
        tree = _one_tree([problems[entry["scenario"]] for entry in known])
        write_checkpoint(
            paths.checkpoint, {"kind": _NEAREST, "actions": tree.actions, "decisions": tree.decisions, "known": known}
        )
        return budget

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> NearestPolicy:
        """Return the policy that looks its scenario up by time."""
        meta = read_checkpoint(checkpoint, _NEAREST).meta
        _check_tree(meta, problem, checkpoint)
        return NearestPolicy([(float(entry["part_left"]), str(entry["sequence"])) for entry in meta["known"]])


class NearestPolicy(SequencePolicy):
    """Takes the sequence of the known scenario whose part of the budget left at the first decision is nearest."""

    def __init__(self, known: list[tuple[float, str]]) -> None:
        super().__init__(known[0][1])
        self._known = known

    def decide(self, decision: Decision) -> np.ndarray:
        """Return probability one for the next action; the first decision of a unit chooses the sequence."""
        if self._next == 0:
            part = decision.time_left / decision.total_time
            self.sequence = min(self._known, key=lambda entry: abs(entry[0] - part))[1]
        return super().decide(decision)


def _write_sequence(path: Path, tree: DecisionTree, chosen: int) -> None:
    meta = {"kind": _SEQUENCE, "actions": tree.actions, "decisions": tree.decisions, "sequence": tree.sequences[chosen]}
    write_checkpoint(path, meta)


def _check_tree(meta: Mapping, problem: AdaptationProblem, path: Path) -> None:
    found = (meta.get("actions"), meta.get("decisions"))
    if found != (problem.tree.actions, problem.tree.decisions):
        what = f"the policy takes {found[1]} decisions among {found[0]} actions"
        expected = f"{problem.tree.decisions} among {problem.tree.actions}, as scenario {problem.name} has"
        raise UserError(what, where=str(path), expected=expected, remedy="learn it on scenarios like this one")
