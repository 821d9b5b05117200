"""Durations of placed jobs, computed once for each distinct job and cached.

A duration depends on the graph, the degrees, the placement up to the symmetry of the topology, the devices, and the
parameters of topology and cost model, which are constant within one `JobTimes`. All caches are bounded.
"""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedlab.studies.ramp.graphs.graph import TrainingGraph
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.communication import CommunicationModel, Traffic
from schedlab.studies.ramp.network.names import NetworkNames
from schedlab.studies.ramp.network.topology import Topology
from schedlab.studies.ramp.placement.partitioning import Partition, partition, quantum_degrees
from schedlab.studies.ramp.placement.placers import Placement, placement_order
from schedlab.studies.ramp.placement.ranks import srpt_ranks
from schedlab.studies.ramp.simulator.lookahead import FlowRules, Lookahead, look_ahead
from schedlab.studies.ramp.simulator.lru_cache import LruCache

MOST_TICKS_KEPT = 2_000_000  # in cached timings, 16 bytes each; keys are short
MOST_RULES_KEPT = 8192  # degrees by the quantum rule
MOST_DEPS_KEPT = 4_000_000  # deps of cached partitions, some 35 bytes each
# of a job that never ends because of a collective
ENDLESS = Lookahead(math.inf, math.inf, math.inf, np.zeros(0, dtype=np.int64), np.zeros(0), 0.0)


@dataclass(frozen=True, eq=False)
class Timing:
    """One training step of a placed job.

    lookahead  times of the step; workers, channels: mounted by the job; flow_size: bytes that cross the network
    """

    lookahead: Lookahead
    workers: int
    channels: int
    flow_size: float


class JobTimes:
    """Partitions and durations of jobs on one topology with one set of rules.

    legacy      defects of the original that are switched on, the same as those of the cluster that uses these times
    speed       float64[workers], speed of each worker relative to the device of the graph's costs (default: all 1)
    contention  whether the messages of a job on one channel wait for each other
    reuse       whether durations are reused by model and maximum degree if `legacy.memo_by_degree` is on
    """

    def __init__(
        self,
        topology: Topology,
        legacy: LegacySettings,
        speed: np.ndarray | None = None,
        contention: bool = False,
        reuse: bool = True,
    ) -> None:
        self.topology, self.legacy = topology, legacy
        self._sizes_from_memory, self._memo = legacy.sizes_from_memory, legacy.memo_by_degree and reuse
        self._flow_rules = FlowRules(legacy.mutual_deps_count, legacy.ticks_by_priority and not contention, contention)
        self.communication = CommunicationModel(topology)
        self._speed = None if speed is None or (speed == 1).all() else np.asarray(speed, dtype=np.float64)
        self._partitions, self._quantum = LruCache(MOST_DEPS_KEPT), LruCache(MOST_RULES_KEPT)
        self._timings, self._placed = LruCache(MOST_TICKS_KEPT), LruCache(MOST_TICKS_KEPT)
        self._by_degree: dict[tuple[str, int], Lookahead] = {}

    @property
    def contention(self) -> bool:
        """Whether the messages of a job on one channel wait for each other."""
        return self._flow_rules.contention

    @cached_property
    def names(self) -> NetworkNames:
        """Workers and channels by name."""
        return NetworkNames(self.topology)

    def for_episode(self) -> JobTimes:
        """Return a copy that shares all caches except the published memo, so that episodes do not affect each other."""
        own = copy.copy(self)
        own._by_degree = {}
        return own

    def split(self, graph: TrainingGraph, degrees: np.ndarray) -> Partition:
        """Return the partition of a graph by int64[2n] degrees. Raises UserError."""
        return self._partitions.get((graph.digest, degrees.tobytes()), lambda: self._split(graph, degrees), _weight)

    def _split(self, graph: TrainingGraph, degrees: np.ndarray) -> Partition:
        return partition(graph, degrees, self._sizes_from_memory)

    def split_by_quantum(
        self, graph: TrainingGraph, most: int, quantum: float, legal: tuple[int, ...] | None = None
    ) -> Partition:
        """Return the partition by the quantum rule with at most `most` shards per op. If legal degrees are given,
        others are rounded down to the next of them.
        """
        key = (graph.digest, most, quantum, legal)
        degrees, packed = self._quantum.get(key, lambda: _packed(quantum_degrees(graph, most, quantum, legal)))
        return self._partitions.get((graph.digest, packed), lambda: self._split(graph, degrees), _weight)

    def workers(self, split: Partition, placement: Placement) -> np.ndarray:
        """Return int64[shards]: the worker of each shard."""
        worker = np.empty(split.num_shards, dtype=np.int64)
        for op, block in enumerate(placement.blocks):
            first = split.first_shard[op]
            worker[first : first + len(block.servers)] = block.servers
        return worker

    def timing(self, split: Partition, placement: Placement) -> Timing:
        """Return the training step of a placed job. Raises UserError if it cannot be executed."""
        return self._placed.get((split.key, placement.key), lambda: self._timing(split, placement), _ticks)

    def lookahead_is_known(self, split: Partition) -> bool:
        """Return whether the published memo, by model and maximum degree, contains this job's duration."""
        return self._memo and (split.graph.name, split.max_degree) in self._by_degree

    def lookahead(self, split: Partition, placement: Placement) -> tuple[Timing, Lookahead]:
        """Return the timing of a placed job, and the look-ahead that decides its duration: that of the timing, or with
        `legacy.memo_by_degree` the first one of the same model and maximum degree.
        """
        timing = self.timing(split, placement)
        if not self._memo:
            return timing, timing.lookahead
        return timing, self._by_degree.setdefault((split.graph.name, split.max_degree), timing.lookahead)

    def traffic(self, split: Partition, placement: Placement) -> Traffic:
        """Return the network traffic of a placed job's deps."""
        return self.communication.traffic(split, self.workers(split, placement))

    def _timing(self, split: Partition, placement: Placement) -> Timing:
        worker = self.workers(split, placement)
        told = [self.topology.symmetry_key(worker), b"" if self._speed is None else self._speed[worker].tobytes()]
        orders = [placement.order, placement.ranks]
        if self._flow_rules.contention:
            orders += [placement.dep_ranks, placement.dep_channels]
        told += [np.array(part or (), dtype=np.int64).tobytes() for part in orders]
        sizes = np.array(list(map(len, told)), dtype=np.int64).tobytes()
        key = (split.key, hashlib.sha256(b"".join([sizes, *told])).digest())
        return self._timings.get(key, lambda: self._compute(split, worker, placement), _ticks)

    def _compute(self, split: Partition, worker: np.ndarray, placement: Placement) -> Timing:
        traffic = self.communication.traffic(split, worker)
        cost = split.cost if self._speed is None else split.cost / self._speed[worker]
        if placement.ranks is None:
            ranks = srpt_ranks(cost, worker, placement_order(split, placement))
        else:
            ranks = np.array(placement.ranks, dtype=np.int64)
        endless = np.isinf(traffic.time[traffic.remote]).any()
        step = ENDLESS if endless else look_ahead(split, traffic, ranks, cost, self._flow_rules, placement)
        flow_size = float(split.dep_size[traffic.remote].sum())
        return Timing(step, traffic.num_workers, traffic.num_channels, flow_size)


def _weight(split: Partition) -> int:
    return split.num_deps + split.num_shards


def _packed(degrees: np.ndarray) -> tuple[np.ndarray, bytes]:
    return degrees, degrees.tobytes()


def _ticks(timing: Timing) -> int:
    return len(timing.lookahead.ticks) + 128  # the key with its degrees among them
