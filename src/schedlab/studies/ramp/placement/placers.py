"""Placement of partitioned jobs on servers: first fit over legal blocks, the first free servers, or random ones; and
the links that jobs may use.

See docs/reference/ramp_model.md. Sets of servers are Python integers, bit s for server s.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from weakref import WeakKeyDictionary

import numpy as np

from schedlab.studies.ramp.graphs.graph import TrainingGraph
from schedlab.studies.ramp.network.topology import Topology
from schedlab.studies.ramp.placement.blocks import Block, InnerBlocks, PlacementRules, make_block
from schedlab.studies.ramp.placement.partitioning import Partition

Channel = tuple[int, int]  # link (source server x servers + destination), and a number below `channels`


@dataclass(frozen=True)
class OpenLinks:
    """The workers to which each worker may send (bits): those on its server, and those over a link with a free
    channel.
    """

    reach: tuple[int, ...]

    def joins(self, source: Block, destination: Block) -> bool:
        """Return whether every worker of a block may send to every worker of another."""
        return all(not destination.mask & ~self.reach[worker] for worker in source.servers)


def open_links(topology: Topology, held: Iterable[Channel]) -> OpenLinks | None:
    """Return the links with a free channel; None where every link has one."""
    taken = Counter(link for link, _ in held)
    full = [divmod(link, topology.num_servers) for link, channels in taken.items() if channels >= topology.channels]
    if not full:
        return None
    of_server = (1 << topology.workers) - 1
    reach = [(1 << topology.num_workers) - 1] * topology.num_servers
    for source, destination in full:
        reach[source] &= ~(of_server << destination * topology.workers)
    return OpenLinks(tuple(reach[worker // topology.workers] for worker in range(topology.num_workers)))


@dataclass(frozen=True, eq=False)
class Placement:
    """The servers of a job.

    blocks        the block of each op (by position, both passes): shard j of op i runs on blocks[i].servers[j]
    mask          bits of all servers
    key           identifies the placement among those of one partition: the servers of each degree, if these determine
                  the placement; else a hash of the servers of each op and of all values below
    order         the shards in the order in which they were placed, which breaks ties in scheduling; None:
                  `placement_order`
    ranks         rank of each shard on its server, of which the highest runs first; None: the shortest runs first
    dep_ranks     rank of each dep on its channel, of which the highest goes first in contention; None: the shortest
                  goes first
    dep_channels  number of each dep's channel on its link; None: 0
    """

    blocks: tuple[Block, ...] = field(repr=False)
    mask: int
    key: tuple[tuple[int, ...], ...] | bytes = field(repr=False)
    order: tuple[int, ...] | None = field(default=None, repr=False)
    ranks: tuple[int, ...] | None = field(default=None, repr=False)
    dep_ranks: tuple[int, ...] | None = field(default=None, repr=False)
    dep_channels: tuple[int, ...] | None = field(default=None, repr=False)


def placement_of(blocks: Sequence[Block], order: tuple[int, ...] | None = None, **given: tuple[int, ...]) -> Placement:
    """Return the placement of ops (by position, both passes) on blocks. given: ranks, dep_ranks, dep_channels."""
    mask = 0
    for block in blocks:
        mask |= block.mask
    schedules = (given.get(name, ()) for name in ("ranks", "dep_ranks", "dep_channels"))
    parts: tuple[Sequence[int], ...] = (*(block.servers for block in blocks), order or (), *schedules)
    parts = (list(map(len, parts)), *parts)
    key = hashlib.sha256(array("q", chain.from_iterable(parts)).tobytes()).digest()
    return Placement(tuple(blocks), mask, key, order, **given)


def blocks_on(partition: Partition, worker: np.ndarray) -> list[Block]:
    """Return the block of each op (by position, both passes), given the worker of each shard, int64[shards]."""
    made, servers = lru_cache(maxsize=None)(make_block), worker.tolist()
    shards = zip(partition.first_shard.tolist(), partition.degree_list, strict=True)
    return [made(tuple(servers[first : first + degree])) for first, degree in shards]


@dataclass(frozen=True)
class Room:
    """The state of the cluster that a placer sees.

    taken    servers that other jobs occupy (bits)
    memory   float64[servers], bytes
    allowed  servers to which the job is restricted (bits); None: all
    links    links with a free channel, to which first fit and shapers are restricted; None: all
    block    the block that ops of the job's largest degree must take (first fit); None: any
    """

    taken: int
    memory: np.ndarray
    allowed: int | None = None
    links: OpenLinks | None = None
    block: Block | None = None

    @property
    def closed(self) -> int:
        """Bits of the servers that may not be used."""
        every = (1 << len(self.memory)) - 1
        return self.taken if self.allowed is None else self.taken | (every & ~self.allowed)


@dataclass(frozen=True)
class VisitOrder:
    """Forward ops (positions) in the order in which they are placed, and the parents of each in edge order."""

    ops: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]


_ORDERS: WeakKeyDictionary[TrainingGraph, VisitOrder] = WeakKeyDictionary()


def visit_order(graph: TrainingGraph) -> VisitOrder:
    """Return Kahn's order of the forward pass: the sources in file order; then each op when its last parent has been
    visited.
    """
    if graph in _ORDERS:
        return _ORDERS[graph]
    count = graph.num_forward
    children: list[list[int]] = [[] for _ in range(count)]
    parents: list[list[int]] = [[] for _ in range(count)]
    for source, destination in graph.edges.tolist():
        if source < count and destination < count:
            children[source].append(destination)
            parents[destination].append(source)
    waiting = [len(found) for found in parents]
    queue = deque(op for op in range(count) if waiting[op] == 0)
    order = []
    while queue:
        op = queue.popleft()
        order.append(op)
        for child in children[op]:
            waiting[child] -= 1
            if waiting[child] == 0:
                queue.append(child)
    _ORDERS[graph] = VisitOrder(tuple(order), tuple(map(tuple, parents)))
    return _ORDERS[graph]


def placement_order(partition: Partition, placement: Placement | None = None) -> np.ndarray:
    """Return int64[shards]: the shards in the order in which they are placed, op by op in visiting order; the shards of
    a forward op are followed by those of its mate.
    """
    if placement is not None and placement.order is not None:
        return np.array(placement.order, dtype=np.int64)
    count = partition.graph.num_forward
    ops = [op for forward in visit_order(partition.graph).ops for op in (forward, forward + count)]
    return np.concatenate([np.arange(partition.degrees[op]) + partition.first_shard[op] for op in ops])


def first_fit(
    partition: Partition,
    rules: PlacementRules,
    room: Room,
    forward_only: bool = False,
    inner: InnerBlocks | None = None,
) -> Placement | None:
    """Place each op on its parent's servers if both have equally many shards, else on the first free legal block.
    Return None if an op finds no block.

    If other jobs occupy channels (`room.links`), the first blocks are taken between which channels are free. If
    `room.block` is given, the largest degree takes this block.
    forward_only  as published: no memory is reserved for the backward pass, and servers are used for another op if the
                  sum of their free memory suffices
    inner         places ops with fewer shards than the largest degree inside the block of that degree; None: each
                  degree has a separate block
    """
    if partition.most_memory_of_a_server <= float(room.memory.min()):
        return _first_fit_by_degree(partition, rules, room, inner)
    placement = _first_fit_with_memory(partition, rules, room, forward_only, inner)
    if placement is None or not fits(partition, placement, room.memory):
        return None
    return placement


def _first_fit_by_degree(
    partition: Partition, rules: PlacementRules, room: Room, inner: InnerBlocks | None = None
) -> Placement | None:
    """First fit if memory suffices everywhere: all ops of one degree take the same block."""
    found = (
        _free_blocks(partition, rules, room, inner)
        if room.links is None
        else _joined_blocks(partition, rules, room, room.links, inner)
    )
    if found is None:
        return None
    mask = 0
    for block in found.values():
        mask |= block.mask
    key = tuple(found[degree].servers for degree in partition.distinct_degrees)
    return Placement(tuple(map(found.__getitem__, partition.degree_list)), mask, key)


def _free_blocks(
    partition: Partition, rules: PlacementRules, room: Room, inner: InnerBlocks | None
) -> dict[int, Block] | None:
    """Return the first free block of each degree; with `inner`, smaller degrees take the first one within the block of
    the largest degree.
    """
    closed, largest = room.closed, partition.max_degree
    found: dict[int, Block] = {}
    for degree in partition.distinct_degrees if inner is None else sorted(partition.distinct_degrees, reverse=True):
        if inner is not None and degree < largest:
            found[degree] = inner.within(degree, found[largest])[0]
            continue
        legal = rules.blocks(degree) if room.block is None or degree < largest else (room.block,)
        block = next((block for block in legal if not block.mask & closed), None)
        if block is None:
            return None
        found[degree] = block
    return found


def _joined_blocks(
    partition: Partition, rules: PlacementRules, room: Room, links: OpenLinks, inner: InnerBlocks | None
) -> dict[int, Block] | None:
    """Return the first free blocks, that of the largest degree chosen first, such that free channels join all pairs of
    blocks that exchange data.
    """
    degrees = sorted(partition.distinct_degrees, reverse=True)
    closed, sending = room.closed, partition.sending_degrees

    def choose(chosen: dict[int, Block]) -> dict[int, Block] | None:
        if len(chosen) == len(degrees):
            return chosen
        degree = degrees[len(chosen)]
        outer = [chosen[partition.max_degree]] if chosen else []
        for block in _candidates(rules, inner, degree, outer) if outer or room.block is None else (room.block,):
            if block.mask & closed:
                continue
            found = chosen | {degree: block}
            pairs = [
                (one, other)
                for other in found
                for one, other in ((degree, other), (other, degree))
                if (one, other) in sending
            ]
            if (
                all(links.joins(found[one], found[other]) for one, other in pairs)
                and (every := choose(found)) is not None
            ):
                return every
        return None

    return choose({})


def _candidates(
    rules: PlacementRules, inner: InnerBlocks | None, degree: int, outer: Sequence[Block]
) -> Iterable[Block]:
    """Return the blocks of a degree in the order in which they are tried: with `inner`, those within the block of the
    largest degree (`outer`) first; then all.
    """
    if inner is None or not outer or len(outer[0].servers) == degree:
        return rules.blocks(degree)
    return chain((block for one in outer for block in inner.within(degree, one)), rules.blocks(degree))


def _first_fit_with_memory(
    partition: Partition, rules: PlacementRules, room: Room, forward_only: bool, inner: InnerBlocks | None = None
) -> Placement | None:
    """First fit op by op. With `inner`, ops with the most shards are placed first, and the others inside their
    blocks.
    """
    graph, count = partition.graph, partition.graph.num_forward
    order = visit_order(graph)
    free = room.memory.copy()
    blocks: list[Block | None] = [None] * graph.num_ops
    outer: list[Block] = []
    for op in order.ops if inner is None else sorted(order.ops, key=lambda op: -partition.degrees[op]):
        degree = int(partition.degrees[op])
        needed = float(graph.memory[op]) * (1 if forward_only else 2)
        block = None
        for parent in order.parents[op]:
            candidate = blocks[parent]
            if candidate is not None and len(candidate.servers) == degree:
                left = free[list(candidate.servers)]
                enough = (left.sum() >= needed) if forward_only else (left.min() >= needed / degree)
                if enough and _reaches(partition, blocks, op, candidate, room.links):
                    block = candidate
                    break
        if block is None:
            legal = _candidates(rules, inner, degree, outer)
            if room.block is not None and degree == partition.max_degree:
                legal = (room.block,)
            if room.links is not None:
                legal = (one for one in legal if _reaches(partition, blocks, op, one, room.links))
            block = _free_block(legal, room.closed, free, needed / degree)
        if block is None:
            return None
        free[list(block.servers)] -= needed / degree
        blocks[op] = blocks[op + count] = block
        if degree == partition.max_degree and block not in outer:
            outer.append(block)
    return placement_of([block for block in blocks if block is not None])


def _reaches(
    partition: Partition, blocks: Sequence[Block | None], op: int, block: Block, links: OpenLinks | None
) -> bool:
    """Whether a forward op and its mate, if placed on a block, have channels for all messages exchanged with the ops
    that are already placed.
    """
    if links is None:
        return True
    both = (op, op + partition.graph.num_forward)
    for bundle in (bundle for one in both for bundle in (*partition.outgoing[one], *partition.incoming[one])):
        source, destination = (block if end in both else blocks[end] for end in (bundle.source, bundle.destination))
        if bundle.size > 0 and source is not None and destination is not None and not links.joins(source, destination):
            return False
    return True


def _free_block(blocks: Iterable[Block], closed: int, free: np.ndarray, needed: float) -> Block | None:
    short = closed
    for server in np.flatnonzero(free < needed).tolist():
        short |= 1 << server
    return next((block for block in blocks if not block.mask & short), None)


def fits(partition: Partition, placement: Placement, memory: np.ndarray) -> bool:
    """Return whether all shards, of both passes, fit into the memory of their servers (bytes, float64[servers])."""
    least = float(memory.min())
    if partition.total_memory <= least:
        return True
    if partition.most_memory_of_a_server <= least and all(
        block.mask.bit_count() == len(block.servers) for block in placement.blocks
    ):
        return True
    load = np.zeros(len(memory))
    for op, block in enumerate(placement.blocks):
        np.add.at(load, list(block.servers), partition.graph.memory[op] / partition.degrees[op])
    return bool((load <= memory).all())


def place_anywhere(partition: Partition, room: Room) -> Placement | None:
    """Place the shards of each op on the first free servers, which all ops share. Return None if some op has more
    shards than there are free servers.
    """
    closed, most = room.closed, partition.max_degree
    free = tuple(server for server in range(len(room.memory)) if not closed >> server & 1)[:most]
    if len(free) < most:
        return None
    found = {degree: make_block(free[:degree]) for degree in partition.distinct_degrees}
    key = tuple(found[degree].servers for degree in partition.distinct_degrees)
    return Placement(tuple(map(found.__getitem__, partition.degree_list)), found[most].mask, key)


def place_at_random(partition: Partition, room: Room, random: np.random.Generator) -> Placement | None:
    """Place each shard, in visiting order, on a random free server with enough memory left; None if there is none."""
    count, free = partition.graph.num_forward, room.memory.copy()
    closed = room.closed
    open_servers = np.array([server for server in range(len(free)) if not closed >> server & 1], dtype=np.int64)
    blocks: list[Block | None] = [None] * partition.graph.num_ops
    for forward in visit_order(partition.graph).ops:
        for op in (forward, forward + count):
            needed = float(partition.graph.memory[op] / partition.degrees[op])
            servers = []
            for _ in range(int(partition.degrees[op])):
                candidates = open_servers[free[open_servers] >= needed]
                if not len(candidates):
                    return None
                servers.append(int(random.choice(candidates)))
                free[servers[-1]] -= needed
            blocks[op] = make_block(tuple(servers))
    return placement_of([block for block in blocks if block is not None])


def free_masks(blocks: Sequence[Block], room: Room) -> list[int]:
    """Return the masks of the free blocks in their order. A placement shaper chooses one of them."""
    free = [block for block in blocks if not block.mask & room.closed]
    return [block.mask for block in free if room.links is None or room.links.joins(block, block)]
