"""A torus, an alternative to RAMP: servers on a grid, with links to their neighbours that wrap around. Jobs take boxes.

It is a second, simple implementation of both interfaces, topology and placement rules. A message takes the shortest
path, at the bandwidth of a link. Collectives run around a ring of the members (reduce-scatter, then all-gather;
Patarasuk and Yuan 2009); each step is assumed to take as long as a message between the two members that are farthest
apart. As a simplification, jobs do not share links: each pair of servers has a separate channel.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.network.topology import MOST_WORKERS, Spread, reduction_time, require_rates
from schedlab.studies.ramp.placement.blocks import Block, BlockCache, Shape, make_block


@dataclass(frozen=True)
class Torus:
    """A torus of x * y * z servers, each with two links per axis longer than 1.

    node_bandwidth  bytes/s of a server, shared by its links; propagation_latency: s per hop, io_latency: s at each end
    Raises UserError for invalid sizes and rates.
    """

    shape: Shape
    channels: int = 1
    node_bandwidth: float = 1.6e12
    propagation_latency: float = 1.25e-6
    io_latency: float = 100e-9
    name: str = field(default="torus", init=False)
    workers: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        """Raise UserError for invalid sizes and rates."""
        where = "topology torus " + " x ".join(map(str, self.shape))
        if min(self.shape) < 1 or self.channels < 1 or self.num_servers > MOST_WORKERS:
            what = "the sizes do not form a torus"
            raise UserError(what, where=where, expected=f"three numbers from 1 on, at most {MOST_WORKERS} servers")
        require_rates(self, where)

    @property
    def num_servers(self) -> int:
        """Servers of the cluster."""
        return math.prod(self.shape)

    @cached_property
    def coordinates(self) -> np.ndarray:
        """int64[servers, 3]: place of each on the axes, the last axis running fastest."""
        return np.ascontiguousarray(np.indices(self.shape).reshape(3, -1).T)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """`x-y-z` of each server."""
        return tuple("-".join(map(str, place)) for place in self.coordinates.tolist())

    @property
    def num_workers(self) -> int:
        """Workers of the cluster, one a server."""
        return self.num_servers

    @property
    def worker_labels(self) -> tuple[str, ...]:
        """The servers' labels."""
        return self.labels

    @property
    def channel_bandwidth(self) -> float:
        """Bytes/s of one link."""
        return self.node_bandwidth / max(1, 2 * sum(size > 1 for size in self.shape))

    def hops(self, sources: np.ndarray, destinations: np.ndarray) -> np.ndarray:
        """Return int64[...], the number of links between servers on the shorter way around each axis."""
        apart = np.abs(self.coordinates[sources] - self.coordinates[destinations])
        return np.minimum(apart, np.array(self.shape) - apart).sum(axis=-1)

    def symmetry_key(self, worker: np.ndarray) -> bytes:
        """Return the placement, shifted so that its first shard is at the origin, as bytes."""
        places = self.coordinates[worker]
        return ((places - places[0]) % np.array(self.shape)).astype(np.int32).tobytes()

    def spread(self, servers: Sequence[int]) -> Spread:
        """Return the number of servers and the largest number of hops between two of them, which bounds a ring's
        step.
        """
        members = np.array(sorted(set(servers)))
        return len(members), int(self.hops(members[:, None], members[None, :]).max())

    def collective_time(self, spread: Spread, message: float) -> float:
        """Return the seconds of a ring all-reduce: 2 (n - 1) steps with 1/n of the message, and n - 1 additions."""
        servers, hops = spread
        if servers <= 1:
            return 0.0
        part = math.ceil(message / servers)
        step = hops * self.propagation_latency + 2 * self.io_latency + part / self.channel_bandwidth
        return (servers - 1) * (2 * step + reduction_time(2, part))

    def one_to_one_times(self, sources: np.ndarray, destinations: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """Return hops x latency + size / link bandwidth, in s; 0 within a server and for a size of 0."""
        times = (
            self.hops(sources, destinations) * self.propagation_latency
            + 2 * self.io_latency
            + sizes / self.channel_bandwidth
        )
        return np.where((sources == destinations) | (sizes == 0), 0.0, times)

    def channel_name(self, source: int, destination: int, channel: int) -> str:
        """Return `src_U_dst_V_channel_K`, for the path from U to V."""
        return f"src_{self.labels[source]}_dst_{self.labels[destination]}_channel_{channel}"


class TorusPlacement:
    """Blocks of a torus: boxes at every origin, wrapped around the edges; compact boxes come first."""

    def __init__(self, topology: Torus) -> None:
        self._shape = topology.shape
        self._blocks = BlockCache(self._find)

    def is_legal(self, degree: int) -> bool:
        """Return whether the degree is 1 or even and has a box."""
        return degree == 1 or (degree > 1 and degree % 2 == 0 and bool(self._boxes(degree)))

    def blocks(self, degree: int) -> tuple[Block, ...]:
        """Return all blocks of a degree: box by box, origins in ascending order; each set of servers once."""
        return self._blocks.of(degree)

    def _find(self, degree: int) -> tuple[Block, ...]:
        seen: dict[int, Block] = {}
        for box in self._boxes(degree):
            for origin in itertools.product(*map(range, self._shape)):
                block = make_block(self._servers(box, origin))
                seen.setdefault(block.mask, block)
        return tuple(seen.values())

    def _boxes(self, degree: int) -> list[tuple[int, ...]]:
        boxes = [
            box for box in itertools.product(*(range(1, size + 1) for size in self._shape)) if math.prod(box) == degree
        ]
        return sorted(boxes, key=lambda box: (sum(box), box))

    def _servers(self, box: Sequence[int], origin: Sequence[int]) -> tuple[int, ...]:
        places = itertools.product(*(range(start, start + size) for start, size in zip(origin, box, strict=True)))
        _, rows, deep = self._shape
        inside = [tuple(at % size for at, size in zip(place, self._shape, strict=True)) for place in places]
        return tuple((x * rows + y) * deep + z for x, y, z in inside)
