"""The resources of a platform as plain data: numbered clusters, nodes, processors and cores; reading and writing them
as JSON.

A resource model uses this data, and the XML for the simulator is made from the same object, so the two cannot disagree.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from schedlab.config.errors import UserError
from schedlab.config.files import canonical_json, write_text
from schedlab.config.readers import read_json
from schedlab.platforms.description import MAX_CORES, Libraries, PlatformDescription, type_named

MB_PER_GB = 1000
FORMAT = 1


@dataclass(frozen=True, slots=True)
class PowerState:
    """A pstate of every core.

    speed, flops: speed as a share of full speed or, if `flops` is given, in flop/s
    power, model_power: shares of the core's power, for the simulator and for the resource model
    idle_power: the same for the simulator while no job runs; None: equal to `power`
    """

    name: str
    speed: float
    power: float
    model_power: float
    flops: float | None = None
    idle_power: float | None = None


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor: cores first_core ... first_core + cores - 1; speed in Gflop/s and power in W per core; mem_bw in
    GB/s for all cores.
    """

    id: int
    type: str
    first_core: int
    cores: int
    gflops_per_core: float
    power_per_core: float
    mem_bw: float


@dataclass(frozen=True, slots=True)
class Node:
    """A node: its memory in MB (1 GB = 1000 MB) and its processors."""

    id: int
    type: str
    memory: float
    processors: tuple[Processor, ...]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster: its nodes, and the bandwidth and latency of each node's link."""

    id: str
    bandwidth: str
    latency: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Hierarchy:
    """A platform. core_digits: number of digits of a core's number in its host name; 0: no leading zeros."""

    name: str
    bandwidth: str
    latency: str
    core_digits: int
    states: tuple[PowerState, ...]
    clusters: tuple[Cluster, ...]

    def nodes(self) -> Iterator[Node]:
        """Yield the nodes in the order of their numbers."""
        for cluster in self.clusters:
            yield from cluster.nodes

    def processors(self) -> Iterator[Processor]:
        """Yield the processors in the order of their numbers."""
        for node in self.nodes():
            yield from node.processors

    def core_name(self, core: int) -> str:
        """Return the name of the host that represents a core."""
        return f"cor_{core:0{self.core_digits}d}"

    def core_names(self) -> list[str]:
        """Return the names of all cores in the order of their numbers."""
        return [self.core_name(core) for core in range(self.cores)]

    @cached_property
    def cores(self) -> int:
        """Number of cores."""
        return sum(processor.cores for processor in self.processors())

    @cached_property
    def processor_of_core(self) -> np.ndarray:
        """Number of each core's processor, (cores,) int64."""
        return np.repeat([processor.id for processor in self.processors()], self._cores_of_processors)

    @cached_property
    def gflops(self) -> np.ndarray:
        """Full speed of each core, (cores,) float64, Gflop/s."""
        return np.repeat([processor.gflops_per_core for processor in self.processors()], self._cores_of_processors)

    @cached_property
    def power(self) -> np.ndarray:
        """Full power of each core, (cores,) float64, W."""
        return np.repeat([processor.power_per_core for processor in self.processors()], self._cores_of_processors)

    @property
    def _cores_of_processors(self) -> list[int]:
        return [processor.cores for processor in self.processors()]

    @cached_property
    def reference_speed(self) -> float:
        """Mean full speed over all cores, Gflop/s."""
        return float(self.gflops.mean())

    @property
    def slowest_gflops(self) -> float:
        """Speed of the slowest core in its slowest pstate that computes, Gflop/s."""
        return float(self.gflops.min()) * min(state.speed for state in self.states if state.speed > 0)

    def room_for(self, memory: float) -> int:
        """Return how many cores a job can have at once on the empty platform if each needs `memory` MB of its node."""
        return sum(
            count * (min(cores, int(size // memory)) if memory > 0 else cores)
            for (cores, size), count in self._node_sizes.items()
        )

    @cached_property
    def _node_sizes(self) -> Counter[tuple[int, float]]:
        """(cores, memory in MB) -> number of nodes with this size."""
        return Counter((sum(processor.cores for processor in node.processors), node.memory) for node in self.nodes())

    def totals(self) -> dict[str, Any]:
        """Return the totals of the platform: counts, mean speed of a core (Gflop/s), power (W), memory (GB), links."""
        processors = list(self.processors())
        return {
            "name": self.name,
            "clusters": len(self.clusters),
            "nodes": sum(1 for _ in self.nodes()),
            "processors": len(processors),
            "cores": self.cores,
            "reference_speed_gflops": self.reference_speed,
            "slowest_core_gflops": float(self.gflops.min()),
            "fastest_core_gflops": float(self.gflops.max()),
            "power_w": round(sum(processor.power_per_core * processor.cores for processor in processors), 6),
            "memory_gb": sum(node.memory for node in self.nodes()) / MB_PER_GB,
            "node_types": sorted({node.type for node in self.nodes()}),
            "processor_types": sorted({processor.type for processor in processors}),
            "local_links": sorted({cluster.bandwidth for cluster in self.clusters}),
            "global_links": self.bandwidth,
        }


def build(
    name: str,
    description: PlatformDescription,
    libraries: Libraries,
    states: tuple[PowerState, ...],
    padded: bool,
    where: str,
) -> Hierarchy:
    """Return the hierarchy of a description. Numbers run over the whole platform in the order of the file.

    padded  host names have leading zeros, so that their alphabetical order, by which Batsim numbers the hosts, is that
            of the cores
    where   name of the description in messages

    Raises UserError for an unknown type and for a platform of more than MAX_CORES cores.
    """
    counter = _Counter(libraries, where)
    clusters = []
    for number, cluster in enumerate(description.clusters):
        key = f"clusters.{number}"
        links = type_named(libraries.networks, cluster.local_links.type, "network", f"{where}: {key}.local_links.type")
        nodes = tuple(
            counter.node(group.type, f"{key}.nodes.{place}.type")
            for place, group in enumerate(cluster.nodes)
            for _ in range(group.number)
        )
        clusters.append(Cluster(cluster.id, links.bandwidth, cluster.local_links.latency, nodes))
    network = type_named(libraries.networks, description.global_links.type, "network", f"{where}: global_links.type")
    digits = len(str(counter.cores - 1)) if padded else 0
    return Hierarchy(name, network.bandwidth, description.global_links.latency, digits, states, tuple(clusters))


class _Counter:
    """Makes nodes with running numbers."""

    def __init__(self, libraries: Libraries, where: str) -> None:
        self.libraries, self.where = libraries, where
        self.nodes = self.processors = self.cores = 0

    def node(self, kind: str, key: str) -> Node:
        found = type_named(self.libraries.nodes, kind, "node", f"{self.where}: {key}")
        processors = tuple(self.processor(group.type, kind) for group in found.processors for _ in range(group.number))
        self.nodes += 1
        return Node(self.nodes - 1, kind, found.memory.capacity * MB_PER_GB, processors)

    def processor(self, kind: str, node: str) -> Processor:
        found = type_named(self.libraries.processors, kind, "processor", f"{self.where}: node type {node}")
        first = self.cores
        self.cores += found.cores
        self.processors += 1
        if self.cores > MAX_CORES:
            raise UserError(f"more than {MAX_CORES} cores", where=self.where, expected="a smaller platform")
        return Processor(
            self.processors - 1, kind, first, found.cores, found.gflops_per_core, found.power_per_core, found.mem_bw
        )


def write_hierarchy(path: Path | str, hierarchy: Hierarchy) -> None:
    """Write a hierarchy as JSON, with one line for each node, atomically."""
    whole = {"format": FORMAT, **asdict(hierarchy)}
    clusters = whole.pop("clusters")
    head = canonical_json(whole)[:-1]
    parts = []
    for cluster in clusters:
        nodes = ",\n".join(canonical_json(node) for node in cluster.pop("nodes"))
        parts.append(f'{canonical_json(cluster)[:-1]},"nodes":[\n{nodes}]}}')
    write_text(path, f'{head},"clusters":[\n' + ",\n".join(parts) + "]}\n")


def read_hierarchy(path: Path | str) -> Hierarchy:
    """Return a hierarchy written by `write_hierarchy`. Raises UserError for any other file."""
    values = read_json(path, "a hierarchy of resources")
    if not isinstance(values, dict) or values.pop("format", None) != FORMAT:
        raise UserError(
            f"is no hierarchy of resources of form {FORMAT}", where=str(path), remedy="generate the platform again"
        )
    try:
        found = TypeAdapter(Hierarchy).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{path}: {'.'.join(map(str, first['loc']))}"
        raise UserError(first["msg"], where=where, remedy="generate the platform again") from None
    _check_numbers(found, str(path))
    return found


def _check_numbers(hierarchy: Hierarchy, where: str) -> None:
    core = 0
    for number, processor in enumerate(hierarchy.processors()):
        if processor.cores < 1 or processor.gflops_per_core <= 0:
            raise UserError(
                f"processor {processor.id} cannot compute",
                where=where,
                expected="at least one core, of a speed above 0",
            )
        if (processor.id, processor.first_core) != (number, core):
            raise UserError(
                f"processor {processor.id} out of turn", where=where, expected=f"processor {number} from core {core} on"
            )
        core += processor.cores
    if not core:
        raise UserError("holds no core", where=where, expected="at least one")
    for number, node in enumerate(hierarchy.nodes()):
        if node.id != number:
            raise UserError(f"node {node.id} out of turn", where=where, expected=f"node {number}")
