"""Platform descriptions: clusters of nodes by type (the JSON of HDeepRM), and the libraries of network, node and
processor types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import field_validator

from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.readers import read_json
from schedlab.config.schema import Settings, setting, validate

PLATFORMS = "resources/platforms"
BANDWIDTH = r"^\d+(\.\d+)?([eE][+-]?\d+)?([kMGT]i?)?(bps|Bps)$"
LATENCY = r"^\d+(\.\d+)?([eE][+-]?\d+)?(ns|us|ms|s)$"
IDENTIFIER = r"^[A-Za-z0-9][A-Za-z0-9 ._-]*$"
MAX_CORES = 1_000_000
MOST = 1_000_000


class NetworkType(Settings):
    """A kind of network."""

    bandwidth: str = setting(doc="bandwidth of one link, in SimGrid's notation (10.0Gbps)", pattern=BANDWIDTH)


class ProcessorType(Settings):
    """A kind of processor, whose cores are all equal."""

    id: str = setting("", doc="name for readers; not used")
    uarch: str = setting("", doc="microarchitecture; not used")
    type: str = setting("CPU", doc="not used")
    cores: int = setting(doc="number of cores", ge=1, le=MOST)
    clock_rate: float = setting(doc="clock rate", unit="GHz", gt=0)
    mem_bw: float = setting(doc="memory bandwidth, shared by the cores", unit="GB/s", gt=0)
    llc_size: float = setting(0.0, doc="last-level cache; not used", unit="MB", ge=0)
    power: float = setting(doc="power of the whole processor at full load", unit="W", ge=0)
    dpflops_per_cycle: float = setting(doc="double-precision operations per cycle and core", unit="flop", gt=0)

    @property
    def gflops_per_core(self) -> float:
        """Speed of a core, Gflop/s."""
        return self.clock_rate * self.dpflops_per_cycle

    @property
    def power_per_core(self) -> float:
        """Share of a core in the processor's power, W."""
        return self.power / self.cores


class ProcessorGroup(Settings):
    """Equal processors of a node."""

    type: str = setting(doc="a processor type")
    number: int = setting(1, doc="number of these", ge=1, le=MOST)


class Memory(Settings):
    """The memory of a node."""

    type: str = setting("", doc="kind of memory, not used")
    capacity: float = setting(doc="size", unit="GB", gt=0)


class NodeType(Settings):
    """A kind of node."""

    id: str = setting("", doc="name for readers; not used")
    processors: tuple[ProcessorGroup, ...] = setting(doc="processors, in order", min_length=1)
    memory: Memory = setting(doc="memory")


class NodeGroup(Settings):
    """Equal nodes of a cluster."""

    type: str = setting(doc="a node type")
    number: int = setting(1, doc="number of these", ge=1, le=MOST)


class Links(Settings):
    """Links of one kind."""

    type: str = setting(doc="a network type")
    latency: str = setting("0us", doc="latency of one link, in SimGrid's notation", pattern=LATENCY)


class ClusterDescription(Settings):
    """A cluster: its nodes, in order, and the link of each node."""

    id: str = setting(doc="name", pattern=IDENTIFIER)
    nodes: tuple[NodeGroup, ...] = setting(doc="nodes by type, in order", min_length=1)
    local_links: Links = setting(doc="link of a node, shared by its cores")


class PlatformDescription(Settings):
    """A platform: its clusters, in order, and the link of each cluster."""

    clusters: tuple[ClusterDescription, ...] = setting(doc="clusters, in order", min_length=1)
    global_links: Links = setting(doc="link of a cluster to the others")

    @field_validator("clusters")
    @classmethod
    def _distinct(cls, value: tuple[ClusterDescription, ...]) -> tuple[ClusterDescription, ...]:
        if len({cluster.id for cluster in value}) < len(value):
            raise ValueError("clusters with distinct ids")
        return value


@dataclass(frozen=True)
class Libraries:
    """Types of networks, nodes and processors by name."""

    networks: Mapping[str, NetworkType]
    nodes: Mapping[str, NodeType]
    processors: Mapping[str, ProcessorType]

    def with_more(self, other: Libraries) -> Libraries:
        """Return both libraries as one; if a name occurs in both, the type of the other one has priority."""
        return Libraries(
            {**self.networks, **other.networks}, {**self.nodes, **other.nodes}, {**self.processors, **other.processors}
        )


class LibraryFiles(Settings):
    """A user's own type libraries, JSON files that add to the shipped ones or replace single types of them."""

    networks: str = setting("", doc="file with network types; empty: none")
    nodes: str = setting("", doc="file with node types; empty: none")
    processors: str = setting("", doc="file with processor types; empty: none")


LIBRARIES = tuple(LibraryFiles.model_fields)

T = TypeVar("T", bound=Settings)


def shipped_folder() -> Path:
    """Return the folder of the shipped platforms: resources/platforms of the checkout or of the installation.

    Raises UserError if neither exists.
    """
    place = find_resource(PLATFORMS)
    if (place / "types/nodes.json").is_file():
        return place
    raise UserError(
        "the shipped platforms are missing", where=PLATFORMS, remedy="install schedlab from a whole checkout"
    )


def shipped_platforms() -> list[str]:
    """Return the names of the shipped platforms."""
    return sorted(path.stem for path in shipped_folder().glob("*.json"))


def find_platform(name: str) -> Path:
    """Return the file of a platform, given by its path or by the name of a shipped one. Raises UserError."""
    if Path(name).is_file() or re.search(r"[/\\]|\.json$", name):
        return Path(name)
    shipped = shipped_folder() / f"{name}.json"
    if shipped.is_file():
        return shipped
    remedy = f"{did_you_mean(name, shipped_platforms())} (a file of your own: with its path or ending)"
    raise UserError(f"there is no platform '{name}'", where="platform", remedy=remedy)


def read_description(path: Path | str) -> PlatformDescription:
    """Return a platform description. Raises UserError(s)."""
    return _typed(PlatformDescription, _without_notes(read_json(path, "a platform description")), str(path))


def read_libraries(files: LibraryFiles | None = None) -> Libraries:
    """Return the shipped types and a user's own. Raises UserError(s) for files that are missing or wrong."""
    folder = shipped_folder() / "types"
    libraries = Libraries(
        _library(folder / "networks.json", NetworkType),
        _library(folder / "nodes.json", NodeType),
        _library(folder / "processors.json", ProcessorType),
    )
    if files is None:
        return libraries
    own = Libraries(
        _library(Path(files.networks), NetworkType) if files.networks else {},
        _library(Path(files.nodes), NodeType) if files.nodes else {},
        _library(Path(files.processors), ProcessorType) if files.processors else {},
    )
    together = libraries.with_more(own)
    for name, node in own.nodes.items():
        for number, group in enumerate(node.processors):
            where = f"{files.nodes}: {name}: processors.{number}.type"
            type_named(together.processors, group.type, "processor", where)
    return together


def _library(path: Path, kind: type[T]) -> dict[str, T]:
    values = _without_notes(read_json(path, f"a library of types ({kind.__name__})"))
    if not isinstance(values, dict):
        raise UserError("is no mapping", where=str(path), expected="types by name")
    return {name: _typed(kind, value, f"{path}: {name}") for name, value in values.items()}


def _typed(kind: type[T], value: Any, where: str) -> T:
    if not isinstance(value, dict):
        raise UserError("is no mapping", where=where, expected=f"the keys {', '.join(kind.model_fields)}")
    return validate(kind, value, lambda path: f"{where}: {'.'.join(map(str, path))}")


def _without_notes(value: Any) -> Any:
    """Return the value without keys that begin with an underscore (`_doc`), which contain comments."""
    if isinstance(value, dict):
        return {key: _without_notes(entry) for key, entry in value.items() if not key.startswith("_")}
    return [_without_notes(entry) for entry in value] if isinstance(value, list) else value


def type_named(types: Mapping[str, T], name: str, what: str, where: str) -> T:
    """Return a type of a library. Raises UserError for an unknown name."""
    if name not in types:
        raise UserError(f"unknown {what} type '{name}'", where=where, remedy=did_you_mean(name, types))
    return types[name]
