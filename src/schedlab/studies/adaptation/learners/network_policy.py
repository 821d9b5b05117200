"""The common code of learners of a policy network: the job, the states of several scenarios as one batch, and the
policy's file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from schedlab.config.contract import Budget, Curve, LearnPaths, PolicySpec
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.schema import validate
from schedlab.learning.checkpoints import Checkpoint, load_module, module_arrays, read_checkpoint, write_checkpoint
from schedlab.learning.job import Learning, LearningJob
from schedlab.learning.seeding import use_one_thread
from schedlab.learning.settings import phase_settings
from schedlab.studies.adaptation.decisions import ActByDeciding, Decision, check_actions
from schedlab.studies.adaptation.learners.encoders import Encoding, vocabulary_of
from schedlab.studies.adaptation.learners.policy_network import Inputs, PolicyNetwork, build_network, encoding_of
from schedlab.studies.adaptation.learners.settings import NetworkSettings, network_mistakes
from schedlab.studies.adaptation.problem import AdaptationProblem, Trainings
from schedlab.studies.adaptation.simulator.table import DecisionTree

POLICY_KIND = "adaptation-network"
_PARENT = "parent/"  # prefix of the parameters from which learning started


@dataclass(frozen=True)
class Group:
    """Units of one scenario that the policy cannot distinguish (same times left), with the mean of their results.

    rows       (units,) the units' positions in the scenario's view
    decisions  one for each prefix
    reward     (sequences,)
    accuracy   (sequences,), NaN if the table has none
    """

    scenario: str
    rows: np.ndarray
    tree: DecisionTree
    decisions: tuple[Decision, ...]
    reward: np.ndarray
    accuracy: np.ndarray


def groups_of(problems: Mapping[str, AdaptationProblem], scenarios: Sequence[str], slope: bool = False) -> list[Group]:
    """Return the groups of training units of some scenarios; with `slope`, units of a group have equal slopes too.

    Raises UserError for a scenario that is not among the problems.
    """
    found = []
    for name in scenarios:
        if name not in problems:
            what = f"scenario '{name}' has no prepared problem"
            raise UserError(what, where="train_on", remedy=did_you_mean(name, problems))
        found += _groups(name, problems[name], slope)
    return found


def _groups(name: str, problem: AdaptationProblem, slope: bool) -> list[Group]:
    rows = np.array(problem.rows("train"))
    seen = problem.view.subset(rows.tolist())
    looks = np.hstack([seen.time_left, seen.slope]) if slope and seen.slope is not None else seen.time_left
    accuracy = seen.metrics.get("test_accuracy" if problem.setup.metric.startswith("test") else "validation_accuracy")
    groups = []
    for first in sorted(np.unique(looks, axis=0, return_index=True)[1]):
        same = np.flatnonzero((looks == looks[first]).all(1))
        reward = seen.reward[same].mean(0)
        known = np.full(len(reward), np.nan) if accuracy is None else accuracy[same].mean(0)
        groups.append(Group(name, rows[same], problem.tree, problem.decisions(int(rows[first])), reward, known))
    return groups


@dataclass(frozen=True)
class Batch:
    """Groups with the same tree, as tensors: the network gives (groups, prefixes, actions) for `inputs` in one pass."""

    groups: tuple[Group, ...]
    inputs: Inputs

    @property
    def tree(self) -> DecisionTree:
        """The tree that all groups share."""
        return self.groups[0].tree

    def log_probabilities(self, network: PolicyNetwork) -> torch.Tensor:
        """Return the log-probability of each action in each state: (groups, prefixes, actions)."""
        return self.logits(network).log_softmax(-1)

    def logits(self, network: PolicyNetwork) -> torch.Tensor:
        """Return the network's scores: (groups, prefixes, actions)."""
        return network(self.inputs).reshape(len(self.groups), len(self.tree.prefixes), self.tree.actions)


def batches_of(groups: Iterable[Group], encoding: Encoding) -> list[Batch]:
    """Return the groups in batches of equal trees."""
    by_tree: dict[DecisionTree, list[Group]] = {}
    for group in groups:
        by_tree.setdefault(group.tree, []).append(group)
    return [
        Batch(tuple(same), Inputs(encoding([decision for group in same for decision in group.decisions])))
        for same in by_tree.values()
    ]


def greedy_sequences(tree: DecisionTree, scores: np.ndarray) -> np.ndarray:
    """Return the sequence of the highest scores: scores (groups, prefixes, actions) -> (groups,)."""
    best = scores.argmax(-1)
    chosen = np.zeros(len(best), dtype=int)
    first = 0
    for step in range(tree.decisions):
        chosen = chosen * tree.actions + best[np.arange(len(best)), first + chosen]
        first += tree.actions**step
    return chosen


class NetworkPolicy(ActByDeciding):
    """Takes the most probable action of a policy network. `parent`: the policy from which its learning started."""

    def __init__(self, network: PolicyNetwork, encoding: Encoding, parent: NetworkPolicy | None = None) -> None:
        self.network, self.encoding, self.parent = network, encoding, parent
        self.reads_slope = encoding.slope

    def decide(self, decision: Decision) -> np.ndarray:
        """Return the network's probability of each action."""
        with torch.no_grad():
            logits = self.network(Inputs(self.encoding([decision])))[0]
        return logits.double().softmax(-1).numpy()


def start_network(
    settings: NetworkSettings, problems: Mapping[str, AdaptationProblem], seed: int, paths: LearnPaths
) -> tuple[PolicyNetwork, Encoding]:
    """Return the network with which learning starts: new parameters from the seed, or the parent's final ones.

    Raises UserError if a head with a fixed number of actions is to learn on scenarios with different numbers, or if the
    parent has other sizes.
    """
    counts = {problem.tree.actions for problem in problems.values()}
    if settings.head == "fixed" and len(counts) > 1:
        what = f"the scenarios have {sorted(counts)} actions"
        expected = "one number of actions for head: fixed"
        raise UserError(what, where="learner.head", expected=expected, remedy="set head: blocks")
    encoding = encoding_of(settings)
    network = build_network(settings, max(counts), encoding, seed)
    if paths.start is not None:
        parent = read_checkpoint(paths.start, POLICY_KIND)
        _check_words(parent, encoding)
        load_module(network, _own(parent), paths.start)
    return network, encoding


def _check_words(parent: Checkpoint, encoding: Encoding) -> None:
    """Raise UserError if the words of a parent have other ids: the embedding is derived from the ids."""
    if encoding.vocabulary is None or not parent.meta.get("vocabulary"):
        return
    words = vocabulary_of(parent.meta["vocabulary"], str(parent.path))
    known = encoding.vocabulary
    if known.layers[: len(words.layers)] != words.layers or known.seed != words.seed:
        expected = "a vocabulary that only appends to the parent's"
        raise UserError("the parent was learned with other layer ids", where=str(parent.path), expected=expected)


def save_network(
    paths: LearnPaths,
    settings: NetworkSettings,
    network: PolicyNetwork,
    encoding: Encoding,
    problems: Mapping[str, AdaptationProblem],
) -> None:
    """Write a policy: its parameters, those of its parent, and in meta.json all values that describe the network."""
    words = encoding.vocabulary
    meta = {
        "kind": POLICY_KIND,
        "network": {name: getattr(settings, name) for name in NetworkSettings.model_fields},
        "actions": max(problem.tree.actions for problem in problems.values()),
        "vocabulary": None
        if words is None
        else {"version": words.version, "seed": words.seed, "layers": list(words.layers)},
    }
    begun = {} if paths.start is None else _own(read_checkpoint(paths.start, POLICY_KIND))
    write_checkpoint(
        paths.checkpoint, meta, module_arrays(network) | {f"{_PARENT}{name}": array for name, array in begun.items()}
    )


def _own(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """Return the policy's final parameters, without those of its parent."""
    return {name: array for name, array in checkpoint.arrays.items() if not name.startswith(_PARENT)}


def load_policy(path: Path, problem: AdaptationProblem) -> NetworkPolicy:
    """Return the policy in a file. Raises UserError if it is damaged or has another number of actions."""
    checkpoint = read_checkpoint(path, POLICY_KIND)
    meta: Mapping[str, Any] = checkpoint.meta
    try:
        settings, actions = NetworkSettings(**meta["network"]), int(meta["actions"])
    except (KeyError, TypeError, ValueError) as error:
        what = f"the policy's description is damaged: {error}"
        raise UserError(what, where=str(path), remedy="learn the policy again") from None
    if settings.head == "fixed":
        check_actions(actions, problem.tree.actions, f"{path}: for scenario {problem.name}")
    words = vocabulary_of(meta["vocabulary"], str(path)) if settings.encoder == "vocab" else None
    encoding = encoding_of(settings, words)

    def policy(arrays: Mapping[str, np.ndarray], parent: NetworkPolicy | None = None) -> NetworkPolicy:
        network = build_network(settings, actions, encoding, 0)
        load_module(network, arrays, path)
        return NetworkPolicy(network, encoding, parent)

    begun = checkpoint.group(_PARENT.removesuffix("/"))
    return policy(_own(checkpoint), policy(begun) if begun else None)


class NetworkLearning(Learning):
    """The state of a learner of a policy network: the network, the groups of each phase, and the trainings
    looked up.
    """

    def __init__(
        self,
        job: LearningJob,
        network: PolicyNetwork,
        encoding: Encoding,
        of_phase: Sequence[tuple[Any, list[Group]]],
        trainings: Trainings,
    ) -> None:
        self.job, self.network, self.encoding, self.of_phase = job, network, encoding, of_phase
        self.trainings = trainings


class NetworkLearner:
    """Learns a policy network phase after phase. An interrupted job resumes and gives the same bytes."""

    settings: ClassVar[type[NetworkSettings]]
    learning: ClassVar[type[NetworkLearning]]

    def learn(
        self, problems: Mapping[str, AdaptationProblem], spec: PolicySpec, seed: int, paths: LearnPaths, curve: Curve
    ) -> Budget:
        """Learn phase after phase, each with a fresh Adam, write the final parameters and return the budget used."""
        use_one_thread()
        settings = validate(self.settings, spec.params)
        network, encoding = start_network(settings, problems, seed, paths)
        of_phase = phase_settings(self.settings, spec, network_mistakes)
        groups = [groups_of(problems, phase.scenarios, settings.slope) for phase in spec.train_on]
        tables = [[group.reward.tolist() for group in some] for some in groups]
        values = [[each.model_dump(mode="json") for each in of_phase], tables]
        job = LearningJob(POLICY_KIND, values, spec, seed, paths, curve)
        phases = list(zip(of_phase, groups, strict=True))
        job.run(self.learning(job, network, encoding, phases, Trainings(problems)))
        save_network(paths, settings, network, encoding, problems)
        return job.budget

    def load(self, checkpoint: Path, problem: AdaptationProblem) -> NetworkPolicy:
        """Return the learned policy."""
        return load_policy(checkpoint, problem)
