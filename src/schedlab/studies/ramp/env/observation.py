"""Observation of the waiting job and of the cluster, and the mask of valid actions.

See docs/reference/ramp_model.md. All features are float32. Relative to the pool of jobs they lie in [0, 1],
as in the published code; absolute ones are logarithms of s and bytes and therefore comparable between pools.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import mean, median
from weakref import WeakKeyDictionary

import numpy as np

from schedlab.studies.ramp.graphs.graph import TrainingGraph
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.placement.blocks import PlacementRules
from schedlab.studies.ramp.simulator.cluster import Cluster
from schedlab.studies.ramp.simulator.jobs import Job, PoolRanges

JOB_FEATURES = 17
# s, s, bytes: absolute features are log(1 + value / one of these) over DECADES
OP_TIME, JOB_TIME, BYTES = (1e-4, 0.1, 1e6)
DECADES = 5.0  # so that most lie between 0 and 2
_KNOWN: WeakKeyDictionary[TrainingGraph, dict[tuple[bool, bool], GraphFeatures]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class GraphFeatures:
    """The constant features of a graph, which are stored once.

    nodes                  float32[ops, 5]: cost relative to the largest, whether it is the largest; the same of memory;
                           depth relative to the largest
    edges                  float32[deps, 2]: size relative to the largest, whether it is the largest
    sources, destinations  float32[deps], positions of the ops
    summary                float64[6]: mean and median of cost, memory and dep size, relative to the largest; if
                           absolute, their maximum and median
    """

    nodes: np.ndarray
    edges: np.ndarray
    sources: np.ndarray
    destinations: np.ndarray
    summary: tuple[float, ...]


def graph_features(graph: TrainingGraph, no_largest_cost: bool = False, absolute: bool = False) -> GraphFeatures:
    """Return the features of an unsplit graph; no_largest_cost as in LegacySettings; absolute: costs and sizes are
    logarithms.
    """
    nodes = np.zeros((graph.num_ops, 5), dtype=np.float32)
    nodes[:, 0] = _log_scaled(graph.cost, OP_TIME) if absolute else _over_maximum(graph.cost)
    nodes[:, 2] = _log_scaled(graph.memory, BYTES) if absolute else _over_maximum(graph.memory)
    nodes[:, 4] = _over_maximum(graph.depth)
    if not no_largest_cost:
        nodes[int(np.argmax(graph.cost)), 1] = 1
    nodes[int(np.argmax(graph.memory)), 3] = 1
    edges = np.zeros((len(graph.edges), 2), dtype=np.float32)
    edges[:, 0] = _log_scaled(graph.dep_size, BYTES) if absolute else _over_maximum(graph.dep_size)
    edges[int(np.argmax(graph.dep_size)), 1] = 1
    summary = []
    for values, unit in ((graph.cost, OP_TIME), (graph.memory, BYTES), (graph.dep_size, BYTES)):
        largest = float(values.max())
        if absolute:
            summary += _log_scaled(np.array([largest, median(values.tolist())]), unit).tolist()
        else:
            summary += [mean(values.tolist()) / (largest or 1.0), median(values.tolist()) / (largest or 1.0)]
    ends = graph.edges.astype(np.float32)
    return GraphFeatures(nodes, edges, ends[:, 0].copy(), ends[:, 1].copy(), tuple(summary))


def _log_scaled(values: np.ndarray, unit: float) -> np.ndarray:
    return np.log1p(values / unit) / DECADES


def _over_maximum(values: np.ndarray) -> np.ndarray:
    largest = values.max()
    return values / largest if largest > 0 else np.zeros(len(values))


class Observer:
    """Observations of one scenario: ranges of its pool, its largest action, its rules of placement."""

    def __init__(
        self, ranges: PoolRanges, most: int, rules: PlacementRules, num_workers: int, legacy: LegacySettings
    ) -> None:
        self.most, self.ranges, self._num_workers = most, ranges, num_workers
        self._legal = np.array(
            [True, *(degree <= num_workers and rules.is_legal(degree) for degree in range(1, most + 1))]
        )
        self._no_largest_cost, self._late = legacy.no_largest_cost, legacy.workers_before_completions

    def graph(self, graph: TrainingGraph, absolute: bool = False) -> GraphFeatures:
        """Return the features of a graph."""
        known, kind = _KNOWN.setdefault(graph, {}), (self._no_largest_cost, absolute)
        if kind not in known:
            known[kind] = graph_features(graph, *kind)
        return known[kind]

    def mounted(self, cluster: Cluster) -> int:
        """Return how many workers a decision observes as occupied: those with a job now, or, with
        `legacy.workers_before_completions`, before the last completions.
        """
        return cluster.mounted_before if self._late else cluster.mounted_workers

    def mask(self, mounted: int) -> np.ndarray:
        """Return int16[most + 1], 1 for a valid action: 0, and degrees with a legal block and enough free workers."""
        valid = self._legal.copy()
        valid[max(self._num_workers - mounted, 0) + 1 :] = False
        return valid.astype(np.int16)

    def features(
        self, job: Job, mask: np.ndarray, mounted: int, running: int, absolute: bool = False, partitions: int = 1
    ) -> np.ndarray:
        """Return float32[17 + most + 1]: features of the job, relative to the pool or absolute; of its graph; of the
        cluster; and the mask.

        partitions  number of shards per op for which the ranges of the numbers of ops and deps are computed
        """
        graph = job.graph
        sizes = (graph.num_ops, len(graph.edges))
        times, shares = (job.sequential_time, job.time_limit), (job.beta, job.beta)
        bytes_and_steps = (graph.total_memory, graph.total_dep_size, job.steps)
        if absolute:
            units = (1, 1, JOB_TIME, JOB_TIME, BYTES, BYTES, 1)
            logs = [
                math.log1p(value / unit) / DECADES
                for value, unit in zip((*sizes, *times, *bytes_and_steps), units, strict=True)
            ]
            scaled = [*logs[:4], *shares, *logs[4:]]
        else:
            values = (*sizes, *times, *shares, *bytes_and_steps)
            pairs = zip(values, self._ends(partitions), strict=True)
            scaled = [value if low is None else _scaled(value, low, high) for value, (low, high) in pairs]
        cluster = [mounted / self._num_workers, running / self._num_workers]
        return np.array([*scaled, *self.graph(graph, absolute).summary, *cluster, *mask.tolist()], dtype=np.float32)

    def _ends(self, partitions: int) -> tuple[tuple[float | None, float], ...]:
        ranges, ops = self.ranges, partitions * self.ranges.ops[1]
        return (
            (ranges.ops[0], ops),
            (ranges.deps[0], 3 * partitions * ranges.deps[1]),
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
