"""Sets of servers that ops with k shards may take, in the order in which they are tried.

See docs/reference/ramp_model.md. In this module, `server` means a worker: if servers have w workers, a rack has w times
as many places. Sets are Python integers, bit s for worker s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from schedlab.studies.ramp.network.topology import Ramp

Shape = tuple[int, int, int]
DIAGONAL = -1
# servers named in cached lists of blocks, over all degrees (150 MB); 4,096 servers need 1.4 million
MOST_BLOCKS_KEPT = 2_000_000


@dataclass(frozen=True)
class Block:
    """Servers that take the shards of an op: shard j goes to servers[j]; mask has their bits."""

    servers: tuple[int, ...]
    mask: int


class PlacementRules(Protocol):
    """Interface for placers and masks: whether a degree can be placed at all, and which blocks it may take."""

    def is_legal(self, degree: int) -> bool:
        """Return whether an empty cluster has a regular block for this degree."""

    def blocks(self, degree: int) -> tuple[Block, ...]:
        """Return all blocks of a degree in the order in which first fit tries them."""


def make_block(servers: tuple[int, ...]) -> Block:
    """Return the block of these servers, which may contain duplicates."""
    return Block(servers, sum(1 << server for server in set(servers)))


def block_shapes(degree: int, shape: Shape) -> list[Shape]:
    """Return the regular shapes (groups, racks, servers) of a degree in a cluster's shape, some of them repeated."""
    groups, racks, servers = shape
    found: list[Shape] = []
    for deep in range(1, min(degree, servers) + 1):
        if degree % deep:
            continue
        wide = degree // deep
        side = math.isqrt(wide)
        if side * side == wide and side <= groups and side <= racks:
            found.append((side, side, deep))
        if wide <= groups and wide <= racks:
            found += [(wide, 1, deep), (wide, deep, 1)]
    return found


class BlockCache:
    """Cache of the blocks of each degree.

    If the blocks of a new degree would bring the number of named servers above MOST_BLOCKS_KEPT, the cache is emptied
    first.
    """

    def __init__(self, find: Callable[[int], tuple[Block, ...]]) -> None:
        self._find = find
        self._blocks: dict[int, tuple[Block, ...]] = {}
        self.weight = 0  # servers that are named

    def of(self, degree: int) -> tuple[Block, ...]:
        """Return the blocks of a degree."""
        if degree not in self._blocks:
            found = self._find(degree)
            if self.weight + degree * len(found) > MOST_BLOCKS_KEPT:
                self._blocks.clear()
                self.weight = 0
            self._blocks[degree] = found
            self.weight += degree * len(found)
        return self._blocks[degree]


class InnerBlocks:
    """Blocks for ops with fewer shards than the job's largest degree, within the block of that degree."""

    def __init__(self, rules: PlacementRules) -> None:
        self._rules = rules
        self._by_first: dict[int, dict[int, list[tuple[int, Block]]]] = {}

    def within(self, degree: int, outer: Block) -> tuple[Block, ...]:
        """Return the legal blocks of a degree within the block `outer`, in the order of first fit. If there is none,
        return one block of the first `degree` servers of `outer`.
        """
        if degree not in self._by_first:
            index = self._by_first.setdefault(degree, {})
            for place, block in enumerate(self._rules.blocks(degree)):
                index.setdefault(min(block.servers), []).append((place, block))
        starting = (self._by_first[degree].get(server, ()) for server in outer.servers)
        found = [pair for pairs in starting for pair in pairs if not pair[1].mask & ~outer.mask]
        legal = tuple(block for _, block in sorted(found, key=lambda pair: pair[0]))
        return legal or (make_block(outer.servers[:degree]),)


class RampPlacement:
    """Blocks of RAMP: boxes of servers, then the diagonal and one server in each of k groups as a last resort."""

    def __init__(self, topology: Ramp) -> None:
        groups, racks, servers = topology.shape
        self._shape = groups, racks, servers * topology.workers
        self._blocks = BlockCache(self._find)

    def is_legal(self, degree: int) -> bool:
        """Return whether the degree is 1 or even and has a regular shape."""
        return degree == 1 or (degree > 1 and degree % 2 == 0 and bool(block_shapes(degree, self._shape)))

    def blocks(self, degree: int) -> tuple[Block, ...]:
        """Return all blocks of a degree: shape by shape, origins ascending by group, rack, server; each set once."""
        return self._blocks.of(degree)

    def _find(self, degree: int) -> tuple[Block, ...]:
        shapes = [*block_shapes(degree, self._shape), (degree, degree, DIAGONAL), (degree, 1, 1)]
        seen: dict[tuple[int, ...], None] = {}
        for shape in dict.fromkeys(shapes):
            for servers in self._boxes(shape):
                seen.setdefault(servers)
        return tuple(make_block(servers) for servers in seen)

    def _boxes(self, box: Shape) -> list[tuple[int, ...]]:
        _, racks, servers = self._shape
        deep = 1 if box[2] == DIAGONAL else box[2]
        starts = [range(whole - part + 1) for whole, part in zip(self._shape, (box[0], box[1], deep), strict=True)]
        if box[2] == DIAGONAL:
            offsets = [(step, step, 0) for step in range(box[0])]
        else:
            offsets = [(c, r, s) for c in range(box[0]) for r in range(box[1]) for s in range(deep)]
        steps = [(c * racks + r) * servers + s for c, r, s in offsets]
        origins = ((c * racks + r) * servers + s for c in starts[0] for r in starts[1] for s in starts[2])
        return [tuple(origin + step for step in steps) for origin in origins]
