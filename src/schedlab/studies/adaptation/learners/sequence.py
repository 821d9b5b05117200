"""Learners without a network: the best constant sequence, a bandit over sequences, and the nearest scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.learning.checkpoints import Checkpoint, grouped, read_checkpoint, write_checkpoint
from schedlab.learning.job import Learning, LearningJob, Pace
from schedlab.studies.adaptation.decisions import Decision
from schedlab.studies.adaptation.learners.settings import BanditSettings, NoSettings
from schedlab.studies.adaptation.problem import AdaptationProblem, Trainings
from schedlab.studies.adaptation.rules import SequencePolicy
from schedlab.studies.adaptation.simulator.table import DecisionTree

_SEQUENCE = "adaptation-sequence"
_NEAREST = "adaptation-nearest"
SAVE_EVERY = 64  # updates of the bandit between two states that an interrupted job resumes from


def _trained_on(problems: Mapping[str, AdaptationProblem], spec: PolicySpec) -> dict[str, np.ndarray]:
    """Return scenario -> rewards of its training units (units, sequences).

    Raises UserError if the scenarios differ in their numbers of actions or decisions.
    """
    names = dict.fromkeys(name for phase in spec.train_on for name in phase.scenarios)
    _one_tree([problems[name] for name in names])
    return {name: problems[name].view.reward[list(problems[name].rows("train"))] for name in names}


def _table_job(
    kind: str, rewards: Mapping[str, np.ndarray], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
) -> LearningJob:
    """Return the job of a learner without settings or random draws, which looks up every training of the tables."""
    validate(NoSettings, spec.params)
    job = LearningJob(kind, {}, spec, seed, paths, curve)
    job.budget.trainings = sum(reward.size for reward in rewards.values())
    return job


def _one_tree(problems: list[AdaptationProblem]) -> DecisionTree:
    trees = {problem.tree for problem in problems}
    if len(trees) != 1:
        kinds = sorted(f"{tree.actions} actions in {tree.decisions} decisions" for tree in trees)
        what = f"one sequence cannot serve all training scenarios: {kinds}"
        raise UserError(what, where="train_on", expected="one kind of sequence")
    return trees.pop()


class ConstantLearner:
    """Learns the sequence with the best mean reward over the training scenarios, the best possible one without
    observations.
    """

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Write the best constant sequence."""
        rewards = _trained_on(problems, spec)
        job = _table_job(_SEQUENCE, rewards, spec, seed, paths, curve)
        best = int(np.mean([reward.mean(0) for reward in rewards.values()], axis=0).argmax())
        for name, reward in rewards.items():
            job.point("reward", reward.mean(0)[best], step=0, scenario=name)
        _write_sequence(paths.checkpoint, problems[next(iter(rewards))].tree, best)
        return job.budget

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> SequencePolicy:
        """Return the policy that takes the learned sequence."""
        meta = read_checkpoint(checkpoint, _SEQUENCE).meta
        _check_tree(meta, problem, checkpoint)
        return SequencePolicy(str(meta["sequence"]))


class BanditLearner(ConstantLearner):
    """UCB1 over sequences. Like the constant sequence, it observes nothing, but its budget counts only the trainings
    that it looks up.
    """

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Pull arms, each on a random training unit; write the arm with the best mean.

        A pull is an episode. The same sequence on the same unit counts as one training, however often it is pulled.
        """
        settings = [validate(BanditSettings, {**spec.params, **phase.params}) for phase in spec.train_on]
        rewards = _trained_on(problems, spec)
        values = [[each.model_dump() for each in settings], {name: reward.tolist() for name, reward in rewards.items()}]
        job = LearningJob(_SEQUENCE, values, spec, seed, paths, curve)
        pulls = _Pulls(job, problems, settings)
        job.run(pulls)
        _write_sequence(paths.checkpoint, pulls.tree, pulls.best())
        return job.budget


class _Pulls(Learning):
    """UCB1 with the results of its arms so far. The confidence bound is scaled by the range of the rewards so far.

    An update consists of the pulls that one point of the curve averages.

    arms   (2, sequences) number of pulls and sum of rewards of each arm
    range  lowest and highest reward so far
    """

    def __init__(
        self, job: LearningJob, problems: Mapping[str, AdaptationProblem], settings: Sequence[BanditSettings]
    ) -> None:
        self.job, self.problems, self.of_phase, self.trainings = job, problems, settings, Trainings(problems)
        self.tree = problems[job.spec.train_on[0].scenarios[0]].tree
        self.stream = generator(job.seed, "bandit")
        self.order = self.stream.permutation(len(self.tree.sequences))
        self.arms, self.range = np.zeros((2, len(self.order))), np.array([np.inf, -np.inf])

    def begin(self, phase: int) -> Pace:
        """Continue with the same arms on the training units of the phase."""
        self.settings, of_phase = self.of_phase[phase], self.job.spec.train_on[phase]
        self.steps, self.place = of_phase.steps, "+".join(of_phase.scenarios)
        self.units = [(name, row) for name in of_phase.scenarios for row in self.problems[name].rows("train")]
        return Pace(-(-self.steps // self.settings.record_every), SAVE_EVERY)

    def step(self, phase: int, update: int) -> None:
        """Pull the arms of one update, count the pulls, and record their mean reward."""
        del phase
        first, budget = update * self.settings.record_every, self.job.budget
        count = min(self.settings.record_every, self.steps - first)
        pulled = [self._pull() for _ in range(count)]
        budget.episodes += count
        budget.decisions += count * self.tree.decisions
        budget.trainings = self.trainings.count
        at = first + count
        self.job.point("reward", float(np.mean(pulled)), step=at, episode=at, update=at, scenario=self.place)

    def _pull(self) -> float:
        """Choose an arm, look up its reward on a unit drawn at random, add the reward to the arm, and return it."""
        (counts, totals), pulls = self.arms, int(self.arms[0].sum())
        if pulls < len(self.order):
            arm = int(self.order[pulls])
        else:
            width = np.sqrt(2 * np.log(pulls) / counts)
            spread = max(self.range[1] - self.range[0], 0.0)
            arm = int((totals / counts + self.settings.exploration * spread * width).argmax())
        scenario, row = self.units[self.stream.integers(len(self.units))]
        reward = float(self.problems[scenario].view.reward[row, arm])
        self.trainings.seen[scenario][row, arm] = True
        self.arms[:, arm] += 1, reward
        self.range = np.array([min(self.range[0], reward), max(self.range[1], reward)])
        return reward

    def best(self) -> int:
        """Return the arm with the best mean among those pulled."""
        with np.errstate(invalid="ignore"):
            return int(np.nan_to_num(self.arms[1] / self.arms[0], nan=-np.inf).argmax())

    def state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the arms, the trainings looked up, and the state of the random stream."""
        arrays = {"arms": self.arms, "range": self.range, **grouped({"trainings": self.trainings.seen})}
        return {"random": self.stream.bit_generator.state}, arrays

    def load(self, kept: Checkpoint) -> None:
        """Restore what `state` returned."""
        self.arms, self.range, self.trainings.seen = kept.arrays["arms"], kept.arrays["range"], kept.group("trainings")
        self.stream.bit_generator.state = kept.meta["random"]


class NearestLearner:
    """Learns the best sequence of each scenario. The policy takes that of the scenario whose first decision has the
    nearest share of time left.
    """

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Write the times and best sequences."""
        known: list[dict[str, Any]] = []
        rewards = _trained_on(problems, spec)
        job = _table_job(_NEAREST, rewards, spec, seed, paths, curve)
        for name, reward in rewards.items():
            problem, mean = problems[name], reward.mean(0)
            best = int(mean.argmax())
            start = float(problem.view.time_left[list(problem.rows("train")), 0].mean())
            part, sequence = start / problem.setup.total_time, problem.tree.sequences[best]
            known.append({"part_left": part, "sequence": sequence, "scenario": name})
            job.point("reward", mean[best], step=0, scenario=name)
        tree = _one_tree([problems[entry["scenario"]] for entry in known])
        write_checkpoint(
            paths.checkpoint, {"kind": _NEAREST, "actions": tree.actions, "decisions": tree.decisions, "known": known}
        )
        return job.budget

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> NearestPolicy:
        """Return the policy that takes the sequence of the scenario that is nearest in time."""
        meta = read_checkpoint(checkpoint, _NEAREST).meta
        _check_tree(meta, problem, checkpoint)
        return NearestPolicy([(float(entry["part_left"]), str(entry["sequence"])) for entry in meta["known"]])


class NearestPolicy(SequencePolicy):
    """Takes the sequence of the known scenario with the nearest share of the budget left at the first decision."""

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
