"""The tree of a scenario's runs: a beginning that several runs share is trained once, and stored nodes are not trained
again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from schedlab.studies.adaptation.network.architecture import Architecture
from schedlab.studies.adaptation.simulator.course import Node, Run, Step
from schedlab.studies.adaptation.simulator.store import NodeStore, NodeSummary

Metrics = dict[str, float]
State = Any  # the state of a training; a trainer may change it in place


class Trainer(Protocol):
    """Interface of a trainer of nodes. Equal nodes give equal states, whatever the process and the clock."""

    def initial(self) -> State:
        """Return the state before the first epoch."""

    def train(self, state: State, step: Step, recall: Callable[[Node], State]) -> tuple[State, Metrics]:
        """Run one epoch, which may change `state` in place, and return the new state and its metrics.

        recall: returns a copy of the state of a node, here the step's `returns_to` or `teacher`
        """

    def evaluate(self, state: State) -> Metrics:
        """Return the held-out metrics; the state does not change."""

    def pack(self, state: State) -> bytes:
        """Return the state as bytes."""

    def unpack(self, data: bytes, architecture: Architecture) -> State:
        """Return the state that `pack` packed."""


@dataclass(frozen=True)
class Evaluation:
    """The epochs of a run whose held-out metrics are computed: the last `window`, or all if `curves`.

    frontier: number of epochs with added resources after which one more decision would be taken
    """

    window: int
    curves: bool = False
    frontier: int = 0

    def shown(self, run: Run) -> tuple[Step, ...]:
        """Return the steps of a run that have held-out metrics."""
        return run.steps if self.curves else run.steps[-self.window :]


@dataclass(frozen=True)
class Tree:
    """The nodes of several runs.

    steps      node -> the step that leads to it; includes the steps of the trunk before the root
    children   node -> the nodes that follow it, in the order of the sequences
    evaluated  nodes whose held-out metrics are needed
    foreseen   nodes that are evaluated when they are trained, because a scenario with one more decision would need
               their metrics after their states have been dropped
    stored     nodes whose states stay in the store after all their descendants are finished
    """

    root: Node
    steps: Mapping[Node, Step]
    children: Mapping[Node, tuple[Node, ...]]
    evaluated: frozenset[Node]
    foreseen: frozenset[Node]
    stored: frozenset[Node]

    @property
    def size(self) -> int:
        """Number of nodes after the root, which is the number of epochs to train with an empty store."""
        return sum(len(nodes) for nodes in self.children.values())


def build_tree(runs: Sequence[Run], trunk: Sequence[Step], plan: Evaluation, stored: Iterable[Node]) -> Tree:
    """Return the tree of runs that start at the same node.

    trunk: the steps that lead to this node; stored: the nodes whose states stay in the store
    """
    children: dict[Node, dict[Node, None]] = {}
    steps = {step.node: step for step in trunk}
    for run in runs:
        for step in run.steps:
            steps.setdefault(step.node, step)
            children.setdefault(step.parent, {})[step.node] = None
    return Tree(
        root=runs[0].steps[0].parent,
        steps=steps,
        children={node: tuple(found) for node, found in children.items()},
        evaluated=frozenset(step.node for run in runs for step in plan.shown(run)),
        foreseen=frozenset(
            node for run in runs for node in _epochs_of_plenty(run)[max(plan.frontier - plan.window, 0) : plan.frontier]
        ),
        stored=frozenset(stored),
    )


def nodes_to_store(runs: Sequence[Run], keep: Literal["frontier", "leaves", "all"], frontier: int) -> set[Node]:
    """Return the nodes whose states are stored.

    keep=leaves    the last node of each run, and the nodes to which a run returns or that serve as teachers
    keep=frontier  also the nodes after `frontier` epochs with added resources, where one more decision would be taken
    keep=all       all nodes
    """
    if keep == "all":
        return {step.node for run in runs for step in run.steps}
    nodes = {run.steps[-1].node for run in runs}
    nodes |= {node for run in runs for step in run.steps for node in (step.returns_to, step.teacher) if node}
    if keep == "frontier":
        nodes |= {node for run in runs for node in _epochs_of_plenty(run)[frontier - 1 : frontier]}
    return nodes


def _epochs_of_plenty(run: Run) -> list[Node]:
    return [step.node for step in run.steps if step.plenty]


class Progress:
    """Writes the finished epochs, their total and the estimated time left every few seconds; affects no result."""

    def __init__(self, title: str, total: int, write: Callable[[str], None] | None, every: float = 3.0) -> None:
        self._title, self._total, self._write, self._every = title, total, write, every
        self._done = self._trained = 0
        self._start = self._last = time.monotonic()

    def count(self, trained: bool) -> None:
        """Count one more node, trained now or found in the store."""
        self._done += 1
        self._trained += trained
        now = time.monotonic()
        if self._write and trained and now - self._last >= self._every:
            self._last = now
            left = (now - self._start) / self._trained * (self._total - self._done)
            self._write(f"{self._title}: {self._done} of {self._total} epochs, about {left:.0f} s left")

    def close(self) -> None:
        """Write the last line."""
        if self._write:
            stored, spent = self._done - self._trained, time.monotonic() - self._start
            self._write(
                f"{self._title}: all {self._total} epochs, {self._trained} trained in {spent:.1f} s, "
                f"{stored} from the store"
            )


class _Walk:
    """One pass over a tree, with the known summaries of its nodes; `place` gives the store of a node."""

    def __init__(self, tree: Tree, trainer: Trainer, place: Callable[[Node], NodeStore]) -> None:
        self.tree, self.trainer, self.place = tree, trainer, place
        stores = {place(node) for node in tree.steps}
        stored = {store: store.summaries() for store in stores}
        self.summaries: dict[Node, NodeSummary] = {}
        for node in tree.steps:
            if summary := stored[place(node)].get(node.key):
                self.summaries[node] = summary
        self._live: tuple[Node, State] | None = None  # the state trained last, with which its first child continues

    def visit(self, node: Node) -> bool:
        """Ensure that a node is trained, stored and, if needed, evaluated; return whether this call trained it."""
        known = self.summaries.get(node)
        wanted = node in self.tree.evaluated
        if known is None:
            self._live = (node, self._train(node))
            return True
        if not wanted or _is_evaluated(known.metrics):
            return False
        state = self._state(node)
        trained = self.summaries[node] is not known  # its state was lost, so `_state` trained it again
        if not trained:
            metrics = {**known.metrics, **self.trainer.evaluate(state)}
            self.place(node).update_metrics(node.key, metrics)
            self.summaries[node] = NodeSummary(metrics, known.has_state, known.trained)
        self._live = (node, state)
        return trained

    def forget(self, nodes: list[Node]) -> None:
        """Drop the states of finished nodes, except those that stay in the store."""
        nodes = [node for node in nodes if node not in self.tree.stored and self.summaries[node].has_state]
        for store in dict.fromkeys(map(self.place, nodes)):
            store.drop_states(node.key for node in nodes if self.place(node) is store)
        for node in nodes:
            self.summaries[node] = NodeSummary(self.summaries[node].metrics, False, self.summaries[node].trained)

    def _train(self, node: Node) -> State:
        """Train a node and return its state; its parent is trained first if the parent's state is not available."""
        step = self.tree.steps[node]
        state, metrics = self.trainer.train(self._state(step.parent), step, self._recall)
        if node in self.tree.evaluated or node in self.tree.foreseen:
            metrics = {**metrics, **self.trainer.evaluate(state)}
        self.place(node).save(node.key, metrics, self.trainer.pack(state))
        self.summaries[node] = NodeSummary(metrics, True, 1)
        return state

    def _state(self, node: Node) -> State:
        """Return a state that the caller may change: the live one (handed over), the stored one, or a new one."""
        if self._live and self._live[0] == node:
            state, self._live = self._live[1], None
            return state
        if node.epoch == 0:
            return self.trainer.initial()
        stored = self._stored(node)
        return self._train(node) if stored is None else stored

    def _recall(self, node: Node) -> State:
        """Return a copy of a node's stored state; the node is trained first if it has none."""
        if node.epoch == 0:
            return self.trainer.initial()
        if (state := self._stored(node)) is None:
            self._train(node)
            state = self._stored(node)
        return state

    def _stored(self, node: Node) -> State | None:
        known = self.summaries.get(node)
        data = self.place(node).state(node.key) if known and known.has_state else None
        return None if data is None else self.trainer.unpack(data, self.tree.steps[node].architecture)


def complete(
    tree: Tree, trainer: Trainer, place: Callable[[Node], NodeStore], progress: Progress
) -> dict[Node, Metrics]:
    """Train every node after the root that is in no store, and return the metrics of all of them.

    The order is depth first, in the order of the sequences. A node's state is dropped when all its descendants are
    finished, unless it stays in the store. After an interruption, the next call continues at the unfinished node.
    """
    walk = _Walk(tree, trainer, place)
    metrics: dict[Node, Metrics] = {}
    finished: list[Node] = []  # nodes whose states may be dropped; collected, to write once per branch
    stack: list[tuple[Node, bool]] = [(child, False) for child in reversed(tree.children[tree.root])]
    while stack:
        node, done = stack.pop()
        if done:
            finished.append(node)
            continue
        walk.forget(finished)
        finished = []
        progress.count(walk.visit(node))
        metrics[node] = walk.summaries[node].metrics
        stack.append((node, True))
        stack += [(child, False) for child in reversed(tree.children.get(node, ()))]
    walk.forget(finished)
    progress.close()
    return metrics


def _is_evaluated(metrics: Mapping[str, float]) -> bool:
    return any(not name.startswith("train_") for name in metrics)
