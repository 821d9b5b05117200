"""What a partitioning policy sees of a waiting job and of the cluster, and which actions are valid.

Source: specification of the ramp study, section 12. All features float32 in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from statistics import mean, median
from weakref import WeakKeyDictionary

import numpy as np

from schedlab.studies.ramp.cluster import Cluster
from schedlab.studies.ramp.graph import TrainingGraph
from schedlab.studies.ramp.jobs import Job, PoolRanges
from schedlab.studies.ramp.placement_rules import PlacementRules

JOB_FEATURES = 17
_KNOWN: WeakKeyDictionary[TrainingGraph, dict[bool, GraphFeatures]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class GraphFeatures:
    """What does not change of a graph: stored once, referred to by observations.

    nodes    float32[ops, 5]: cost and memory over their maxima, whether each is the maximum, depth over the largest
    edges    float32[deps, 2]: size over the maximum, whether it is the maximum
    sources, destinations  float32[deps], positions of the ops
    summary  float64[6]: mean and median of cost, memory, dep size over their maxima
    """

    nodes: np.ndarray
    edges: np.ndarray
    sources: np.ndarray
    destinations: np.ndarray
    summary: tuple[float, ...]


def graph_features(graph: TrainingGraph, no_largest_cost: bool = False) -> GraphFeatures:
    """Return the features of an unsplit graph; no_largest_cost as in LegacySettings."""
    nodes = np.zeros((graph.num_ops, 5), dtype=np.float32)
    nodes[:, 0] = _over_maximum(graph.cost)
    nodes[:, 2] = _over_maximum(graph.memory)
    nodes[:, 4] = _over_maximum(graph.depth)
    if not no_largest_cost:
        nodes[int(np.argmax(graph.cost)), 1] = 1
    nodes[int(np.argmax(graph.memory)), 3] = 1
    edges = np.zeros((len(graph.edges), 2), dtype=np.float32)
    edges[:, 0] = _over_maximum(graph.dep_size)
    edges[int(np.argmax(graph.dep_size)), 1] = 1
    summary = []
    for values in (graph.cost, graph.memory, graph.dep_size):
        largest = float(values.max()) or 1.0
        summary += [mean(values.tolist()) / largest, median(values.tolist()) / largest]
    ends = graph.edges.astype(np.float32)
    return GraphFeatures(nodes, edges, ends[:, 0].copy(), ends[:, 1].copy(), tuple(summary))


def _over_maximum(values: np.ndarray) -> np.ndarray:
    largest = values.max()
    return values / largest if largest > 0 else np.zeros(len(values))


class Observer:
    """Observations of one scenario: ranges of its pool, its largest action, its rules of placement.

    partitions  shards per op by which the ranges of ops and deps are widened
    """

    def __init__(
        self, ranges: PoolRanges, most: int, rules: PlacementRules, num_workers: int, partitions: int = 1, no_largest_cost: bool = False
    ) -> None:
        self.most, self._ranges, self._num_workers, self._partitions = most, ranges, num_workers, partitions
        self._legal = np.array([True, *(degree <= num_workers and rules.is_legal(degree) for degree in range(1, most + 1))])
        self._no_largest_cost = no_largest_cost

    def graph(self, graph: TrainingGraph) -> GraphFeatures:
        """Return the features of a graph."""
        known = _KNOWN.setdefault(graph, {})
        if self._no_largest_cost not in known:
            known[self._no_largest_cost] = graph_features(graph, self._no_largest_cost)
        return known[self._no_largest_cost]

    def mask(self, mounted: int) -> np.ndarray:
        """Return int16[most + 1], 1 for a valid action: 0, and degrees with a legal block and enough workers not mounted."""
        valid = self._legal.copy()
        valid[max(self._num_workers - mounted, 0) + 1 :] = False
        return valid.astype(np.int16)

    def features(self, job: Job, mounted: int, running: int) -> np.ndarray:
        """Return float32[17 + most + 1]: the job among its pool, its graph in six numbers, the cluster, the action mask."""
        ends = self._ends
        values = (
            job.graph.num_ops,
            len(job.graph.edges),
            job.sequential_time,
            job.time_limit,
            job.beta,
            job.beta,
            job.graph.total_memory,
            job.graph.total_dep_size,
            job.steps,
        )
        scaled = [value if low is None else _scaled(value, low, high) for value, (low, high) in zip(values, ends, strict=True)]
        cluster = [mounted / self._num_workers, running / self._num_workers]
        return np.array([*scaled, *self.graph(job.graph).summary, *cluster, *self.mask(mounted).tolist()], dtype=np.float32)

    @cached_property
    def _ends(self) -> tuple[tuple[float | None, float], ...]:
        ranges, ops = self._ranges, self._partitions * self._ranges.ops[1]
        return (
            (ranges.ops[0], ops),
            (ranges.deps[0], 3 * self._partitions * ranges.deps[1]),
            ranges.sequential_time,
            ranges.time_limit,
            ranges.beta,
            (None, 1.0),
            ranges.memory,
            (ranges.dep_size[0], ranges.dep_size[1] * ops * (ops - 1) / 2),
            ranges.steps,
        )


def _scaled(value: float, low: float, high: float) -> float:
    return 1.0 if high == low else (value - low) / (high - low)


def mounted_workers(cluster: Cluster) -> int:
    """Return how many workers a decision takes for mounted: those with a job, or as published those of the last tick."""
    return cluster.mounted_before if cluster.legacy.workers_before_completions else cluster.mounted_workers
