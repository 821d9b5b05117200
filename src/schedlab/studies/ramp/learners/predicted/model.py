"""A model of durations that is fitted on some graphs and predicts those of others.

A step at degree d takes T = C + w(d) M. C is the time of all shards of a server, one after the other. M is the largest
number of bytes that messages between split ops send on a path through the graph. Both follow from the graph and the
number of shards of its ops; w(d) >= 0, in s per byte, is fitted. See docs/notebook/ramp_graph_policy.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter

import numpy as np

from schedlab.studies.ramp.graphs.graph import TrainingGraph
from schedlab.studies.ramp.placement.partitioning import quantum_degrees

FEWEST_GRAPHS = 2
LEAST_ERROR = 0.003  # durations on other blocks than the first differ by about as much


@dataclass(frozen=True, eq=False)
class DurationModel:
    """A fitted model.

    actions  int64[A], maximum number of shards of an op, rising
    rates    float64[A], w of each action, s per byte
    errors   float64[A], root mean square of log(predicted / measured duration) of graphs left out of the fit
    """

    actions: np.ndarray
    rates: np.ndarray
    errors: np.ndarray

    def predict(self, terms: np.ndarray) -> np.ndarray:
        """Return the step times of graphs, float64[graphs, A] s, from their terms (float64[graphs, A, 2])."""
        return terms[:, :, 0] + self.rates * terms[:, :, 1]


def fit_durations(actions: np.ndarray, terms: np.ndarray, measured: np.ndarray) -> DurationModel:
    """Return the model with the least sum of squared relative errors.

    terms     float64[graphs, A, 2], as `graph_terms` returns them
    measured  float64[graphs, A], step times in s; infinite where a graph cannot be placed
    Needs FEWEST_GRAPHS graphs, because errors are estimated on graphs left out.
    """
    weight = np.where(np.isfinite(measured), measured, np.inf) ** -2.0
    sent = terms[:, :, 1]
    above = np.where(weight > 0, (np.where(weight > 0, measured, 0.0) - terms[:, :, 0]) * sent * weight, 0.0)
    below = sent**2 * weight
    left_out = _rates(above.sum(axis=0) - above, below.sum(axis=0) - below)
    predicted = terms[:, :, 0] + left_out * sent
    wrong = np.where(weight > 0, np.log(predicted / np.where(weight > 0, measured, predicted)), 0.0)
    errors = np.sqrt((wrong**2).sum(axis=0) / np.maximum((weight > 0).sum(axis=0), 1))
    return DurationModel(actions, _rates(above.sum(axis=0), below.sum(axis=0)), np.maximum(errors, LEAST_ERROR))


def _rates(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.maximum(np.divide(above, below, out=np.zeros_like(above), where=below > 0), 0.0)


def all_terms(
    graphs: Sequence[TrainingGraph], actions: np.ndarray, quantum: float, legal: Sequence[int] | None
) -> np.ndarray:
    """Return the terms of graphs under each action, float64[graphs, A, 2]; quantum and legal as in quantum_degrees."""
    rows = [[graph_terms(graph, quantum_degrees(graph, most, quantum, legal)) for most in actions] for graph in graphs]
    return np.array(rows, dtype=np.float64)


def graph_terms(graph: TrainingGraph, degrees: np.ndarray) -> tuple[float, float]:
    """Return C (s) and M (bytes) of a graph whose ops are split into `degrees` (int64[2n]) shards.

    An op of the forward pass sends all its outputs in one collective, and its mate receives all its inputs in one, if
    all these ops have the same degree. Otherwise each pair of shards has its own message.
    """
    source, destination = graph.edges.T
    owner = np.where(source < graph.num_forward, source, destination)
    unequal = degrees[source] != degrees[destination]
    alone = np.bincount(owner[unequal], minlength=graph.num_ops) > 0
    together = np.bincount(owner, weights=graph.dep_size, minlength=graph.num_ops)
    pairs = degrees[source] * degrees[destination]
    sent = np.where(alone[owner], graph.dep_size / pairs, together[owner])
    return float((graph.cost / degrees).sum()), _longest(graph, np.where(pairs > 1, sent, 0.0))


def _longest(graph: TrainingGraph, weights: np.ndarray) -> float:
    """Return the largest sum of the weights of edges (float64[e]) over all paths."""
    incoming: dict[int, list[tuple[int, float]]] = {op: [] for op in range(graph.num_ops)}
    for (source, destination), weight in zip(graph.edges.tolist(), weights.tolist(), strict=True):
        incoming[destination].append((source, weight))
    longest: dict[int, float] = {}
    for op in TopologicalSorter({op: [source for source, _ in found] for op, found in incoming.items()}).static_order():
        longest[op] = max((longest[source] + weight for source, weight in incoming[op]), default=0.0)
    return max(longest.values())
