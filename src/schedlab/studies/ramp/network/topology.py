"""Optical clusters: their servers, and the times of messages between servers.

A topology is independent of jobs. Placement rules (placement/blocks.py) determine which servers a job may take; users'
classes can replace both.
Source: RAMP, arXiv 2211.15226; docs/reference/ramp_model.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from schedlab.config.errors import UserError

# memory bandwidth (bytes/s) and peak rate of a device in the published cost model of reductions
MEMORY_FREQUENCY, PEAK_FLOPS = (2e12, 130e12)
MOST_WORKERS = 65536

Spread = tuple[int, ...]


class Topology(Protocol):
    """Interface of a network. Servers are numbered from 0; worker w belongs to server w // workers."""

    @property
    def name(self) -> str:
        """Name of this kind of network in scenarios."""

    @property
    def channels(self) -> int:
        """Channels of a link."""

    @property
    def workers(self) -> int:
        """Workers of each server, one device each; messages within a server take no time."""

    @property
    def num_servers(self) -> int:
        """Servers of the cluster."""

    @property
    def channel_bandwidth(self) -> float:
        """Bytes/s of one channel."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Name of each server, in order."""

    @property
    def num_workers(self) -> int:
        """Workers of the cluster."""

    @property
    def worker_labels(self) -> tuple[str, ...]:
        """Name of each worker, in order; the name of its server where each server has one worker."""

    def symmetry_key(self, worker: np.ndarray) -> bytes:
        """Return a key of a placement (int64[shards], the worker of each shard). Placements with equal keys have equal
        times.
        """

    def spread(self, servers: Sequence[int]) -> Spread:
        """Return the values that decide the time of a collective among these servers, together with its message
        size.
        """

    def collective_time(self, spread: Spread, message: float) -> float:
        """Return the seconds of an all-reduce of `message` bytes; infinity if the network cannot carry it out."""

    def one_to_one_times(self, sources: np.ndarray, destinations: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return the seconds of single messages, float64; 0 within a server and for a size of 0."""

    def channel_name(self, source: int, destination: int, channel: int) -> str:
        """Return the name of one channel between two servers."""


def require_rates(topology: Topology, where: str) -> None:
    """Raise UserError for an invalid bandwidth or latency."""
    for key in ("node_bandwidth", "propagation_latency", "io_latency"):
        value = getattr(topology, key)
        if not math.isfinite(value) or value < 0 or (key == "node_bandwidth" and value == 0):
            expected = "a finite number above 0" if key == "node_bandwidth" else "at least 0"
            raise UserError(f"{key} is {value}", where=where, expected=expected)


@dataclass(frozen=True)
class Ramp:
    """RAMP: communication groups x racks per group x servers per rack, each pair of servers one optical hop apart.

    Bandwidths in bytes/s, latencies in s; free_inside_racks and bandwidth_shared_twice as in LegacySettings.
    contending_racks: racks that share the wavelengths of a collective's steps: one, or all participating racks of a
    group. Raises UserError for sizes that do not form a RAMP network.
    """

    groups: int
    racks: int
    servers: int
    channels: int = 1
    node_bandwidth: float = 1.6e12
    propagation_latency: float = 1.25e-6
    io_latency: float = 100e-9
    free_inside_racks: bool = False
    bandwidth_shared_twice: bool = False
    workers: int = 1
    contending_racks: Literal["one", "racks"] = "one"
    name: str = field(default="ramp", init=False)

    def __post_init__(self) -> None:
        """Raise UserError for invalid sizes and rates."""
        where = f"topology ramp {self.groups} x {self.racks} x {self.servers}"
        for key in ("groups", "racks", "servers", "channels", "workers"):
            if getattr(self, key) < 1:
                raise UserError(f"{key} is {getattr(self, key)}", where=where, expected="a whole number from 1 on")
        if self.racks > self.groups:
            what = f"{self.racks} racks per group, but {self.groups} communication groups"
            raise UserError(what, where=where, expected="at most as many racks per group as communication groups")
        if self.num_workers > MOST_WORKERS:
            raise UserError(f"{self.num_workers} workers", where=where, expected=f"at most {MOST_WORKERS}")
        require_rates(self, where)

    @property
    def num_servers(self) -> int:
        """Servers of the cluster."""
        return self.groups * self.racks * self.servers

    @property
    def num_workers(self) -> int:
        """Workers of the cluster."""
        return self.num_servers * self.workers

    @property
    def shape(self) -> tuple[int, int, int]:
        """Groups, racks per group, servers per rack."""
        return self.groups, self.racks, self.servers

    @cached_property
    def coordinates(self) -> np.ndarray:
        """int64[servers, 3]: group, rack, server of each, in c-major order."""
        return np.ascontiguousarray(np.indices(self.shape).reshape(3, -1).T)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """`c-r-s` of each server."""
        return tuple("-".join(map(str, place)) for place in self.coordinates.tolist())

    @cached_property
    def worker_labels(self) -> tuple[str, ...]:
        """`c-r-s`, or `c-r-s-w` where servers have several workers."""
        if self.workers == 1:
            return self.labels
        return tuple(f"{label}-{number}" for label in self.labels for number in range(self.workers))

    @property
    def channel_bandwidth(self) -> float:
        """Bytes/s of one channel: a node's bandwidth shared by the communication groups."""
        return self.node_bandwidth / self.groups

    @property
    def message_latency(self) -> float:
        """Time of a message of 0 bytes, s."""
        return self.propagation_latency + 2 * self.io_latency

    def channel_name(self, source: int, destination: int, channel: int) -> str:
        """Return `src_U_dst_V_channel_K`."""
        return f"src_{self.labels[source]}_dst_{self.labels[destination]}_channel_{channel}"

    def one_to_one_times(self, sources: np.ndarray, destinations: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return latency + size / channel bandwidth, in s; 0 within a server and for a size of 0."""
        times = self.propagation_latency + 2 * self.io_latency + sizes / self.channel_bandwidth
        return np.where((sources == destinations) | (sizes == 0), 0.0, times)

    def symmetry_key(self, worker: np.ndarray) -> bytes:
        """Return a placement with each axis and the workers renumbered in the order of their first appearance."""
        columns = [self.coordinates[worker // self.workers, axis] for axis in range(3)]
        if self.workers > 1:
            columns.append(worker)
        return np.array([_by_appearance(column) for column in columns], dtype=np.int32).tobytes()

    def spread(self, servers: Sequence[int]) -> Spread:
        """Return the number of servers, groups, racks and server numbers in a set of servers."""
        places = [self.coordinates[server].tolist() for server in set(servers)]
        return (len(places), *(len({place[axis] for place in places}) for axis in range(3)))

    def collective_time(self, spread: Spread, message: float) -> float:
        """Return the seconds of a reduce-scatter and an all-gather over a spread's servers.

        The result is infinite if a step has too few wavelengths for its members.
        """
        servers, groups, racks, nodes = spread
        if servers <= 1:
            return 0.0
        across = [groups, min(groups, nodes), racks, math.ceil(nodes / self.groups)]
        if max(across) == 1 and not self.free_inside_racks:
            across[3] = nodes  # one rack, up to `groups` servers: exchanged as any other step is
        communication = computation = 0.0
        part = message
        for members in across:
            part = math.ceil(part / members)
            if members > 1:
                bandwidth = self._step_bandwidth(members, racks if self.contending_racks == "racks" else 1)
                if bandwidth == 0:
                    return math.inf
                communication += self.message_latency + part / bandwidth
                computation += reduction_time(members, part)
        return 2 * communication + computation

    def _step_bandwidth(self, members: int, contending: int) -> float:
        """Return the bandwidth (bytes/s) of a member in one step over its share of the wavelengths; 0 without any.

        contending  racks that share the wavelengths; the published counter always returns 1 (errata, 38)
        """
        fair = self.groups // (members - 1)
        wavelengths = (1 + min(self.groups // contending, fair)) - 1
        shared = self.groups if self.bandwidth_shared_twice else 1
        return wavelengths * self.channel_bandwidth / shared


def _by_appearance(values: np.ndarray) -> np.ndarray:
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def reduction_time(members: int, part: float) -> float:
    """Return the seconds of adding up `members` parts on a device, by a roofline model of its memory and peak rate."""
    levels = math.ceil(math.log2(members))
    return (levels * part / 2) / min(MEMORY_FREQUENCY * levels / (2 * (members + 1)), PEAK_FLOPS)
