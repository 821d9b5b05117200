"""Splitting a job's ops into shards: degrees from a quantum, shards with their deps, sizes of the deps.

See docs/reference/ramp_model.md. A partition is independent of servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.graphs.graph import TrainingGraph


def forward_degrees(costs: np.ndarray, quantum: float, cap: int) -> np.ndarray:
    """Return the degree of forward ops, int64[n]: 1 or even, at most `cap`. Costs and quantum in one unit."""
    even = 2 * np.ceil(np.ceil(np.asarray(costs, dtype=np.float64) / quantum) / 2)
    return np.maximum(1, np.minimum(even, cap)).astype(np.int64)


def round_down(degrees: np.ndarray, legal: Iterable[int]) -> np.ndarray:
    """Return the largest legal degree up to each given one, int64; 1 must be legal."""
    known = np.array(sorted(legal), dtype=np.int64)
    return known[np.searchsorted(known, degrees, side="right") - 1]


ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def quantum_degrees(graph: TrainingGraph, most: int, quantum: float, legal: Sequence[int] | None = None) -> np.ndarray:
    """Return int64[2n], the number of shards of each op: at most `most`, and so many that the forward pass of a shard
    takes about `quantum` s.

    legal  degrees to which others are rounded down, 1 among them; None: no rounding, even if there is no block of a
           size
    """
    if quantum <= 0:
        raise UserError(f"the quantum is {quantum} s", where="partitioning", expected="a number above 0")
    forward = forward_degrees(graph.cost[: graph.num_forward], quantum, most)
    if legal is not None:
        forward = round_down(forward, legal)
    degrees = np.tile(forward, 2)
    check_degrees(graph, degrees)
    return degrees


def check_degrees(graph: TrainingGraph, degrees: Sequence[int] | np.ndarray) -> None:
    """Raise UserError, which names the op, for a degree that is not 1 or even, or that differs between a forward op and
    its mate in the backward pass.
    """
    values = [int(degree) for degree in degrees]
    if len(values) != graph.num_ops:
        what = f"{len(values)} degrees for {graph.num_ops} ops"
        raise UserError(what, where=f"graph '{graph.name}'", expected="one for each op")
    for at, degree in enumerate(values):
        where = f"graph '{graph.name}', op {graph.ids[at]}"
        if degree < 1 or (degree > 1 and degree % 2):
            raise UserError(f"{degree} shards", where=where, expected="1 or an even number")
        if degree != values[(at + graph.num_forward) % graph.num_ops]:
            what = f"{degree} shards, but another number for its mate"
            raise UserError(what, where=where, expected="the same for both passes")


def degrees_of(graph: TrainingGraph, named: Mapping[int, int]) -> np.ndarray:
    """Return int64[2n], the degree of each op, from degrees by op id. An op that is not named has the degree of its
    mate; if the mate is not named either, it is not split. Raises UserError.
    """
    ids = {int(op): at for at, op in enumerate(graph.ids)}
    degrees = np.ones(graph.num_ops, dtype=np.int64)
    for op, degree in named.items():
        if op not in ids:
            raise UserError(f"there is no op {op}", where=f"graph '{graph.name}'", expected=f"1 to {graph.num_ops}")
        at = ids[op]
        degrees[at] = degree
        if int(graph.ids[at - graph.num_forward]) not in named:  # positions count around: the mate
            degrees[at - graph.num_forward] = degree
    check_degrees(graph, degrees)
    return degrees


def shard_suffix(number: int, letters_run_on: bool = False) -> str:
    """Return the suffix of shard 0, 1, ... of an op: a..z, aa, ...; letters_run_on: the characters after z (legacy)."""
    if letters_run_on:
        return chr(ord("a") + number)
    text = ""
    number += 1
    while number:
        number, letter = divmod(number - 1, len(ALPHABET))
        text = ALPHABET[letter] + text
    return text


@dataclass(frozen=True)
class Bundle:
    """All deps between the shards of two ops, or the weight synchronisation among the shards of one op (source ==
    destination).

    first, source_stride  the dep of source shard i and column j has the number first + i x source_stride + j
    width                 number of columns: the shards of the destination, one less in a synchronisation
    size                  bytes of each dep
    """

    source: int
    destination: int
    first: int
    source_stride: int
    width: int
    size: float


@dataclass(frozen=True, eq=False)
class Partition:
    """A training step in shards and deps, whose order is that of the published system.

    degrees                      int64[2n], number of shards of each op
    first_shard                  int64[2n], number of the first shard of each op; its others follow
    shard_op                     int64[shards], position of the op
    cost, memory                 float64[shards], s and bytes
    dep_source, dep_destination  int64[deps], shards
    dep_size                     float64[deps], bytes
    mutual                       bool[deps], whether the dep is part of a weight synchronisation
    incoming, outgoing           for each op, the bundles that enter and leave it, in the order in which they were added
    """

    graph: TrainingGraph
    degrees: np.ndarray = field(repr=False)
    first_shard: np.ndarray = field(repr=False)
    shard_op: np.ndarray = field(repr=False)
    cost: np.ndarray = field(repr=False)
    memory: np.ndarray = field(repr=False)
    dep_source: np.ndarray = field(repr=False)
    dep_destination: np.ndarray = field(repr=False)
    dep_size: np.ndarray = field(repr=False)
    mutual: np.ndarray = field(repr=False)
    incoming: tuple[tuple[Bundle, ...], ...] = field(repr=False)
    outgoing: tuple[tuple[Bundle, ...], ...] = field(repr=False)

    @property
    def num_shards(self) -> int:
        """Number of shards of a training step."""
        return len(self.shard_op)

    @property
    def num_deps(self) -> int:
        """Number of deps among the shards."""
        return len(self.dep_source)

    @cached_property
    def key(self) -> tuple[str, bytes]:
        """Key of the partition: the graph and the degrees."""
        return self.graph.digest, self.degrees.tobytes()

    @cached_property
    def max_degree(self) -> int:
        """Largest number of shards of an op."""
        return int(self.degrees.max())

    @cached_property
    def degree_list(self) -> tuple[int, ...]:
        """The degrees as Python integers."""
        return tuple(self.degrees.tolist())

    @cached_property
    def distinct_degrees(self) -> tuple[int, ...]:
        """Each degree once, in the order of the ops."""
        return tuple(dict.fromkeys(self.degree_list))

    @cached_property
    def sending_degrees(self) -> frozenset[tuple[int, int]]:
        """Pairs of degrees, of source and destination, between whose shards data is sent, synchronisation included."""
        sent = [bundle for bundles in self.outgoing for bundle in bundles if bundle.size > 0]
        return frozenset((self.degree_list[bundle.source], self.degree_list[bundle.destination]) for bundle in sent)

    @cached_property
    def total_memory(self) -> float:
        """Bytes of all shards."""
        return sequential_sum(self.memory)

    @cached_property
    def total_dep_size(self) -> float:
        """Bytes of all deps."""
        return sequential_sum(self.dep_size)

    @cached_property
    def most_memory_of_a_server(self) -> float:
        """Bytes on a server with one shard of every op. No placement on blocks needs more memory on a server."""
        return float(np.sum(self.graph.memory / self.degrees))

    @cached_property
    def shard_names(self) -> tuple[str, ...]:
        """The name of each shard: `<id>` for an op that is not split, else `<id>a`, `<id>b`, ...."""
        return self.named_shards()

    @cached_property
    def shard_numbers(self) -> dict[str, int]:
        """The number of each shard by its name."""
        return {name: shard for shard, name in enumerate(self.shard_names)}

    @cached_property
    def shards_by_name(self) -> np.ndarray:
        """int64[shards]: the shards in descending order of their names."""
        return np.argsort(np.array(self.shard_names), kind="stable")[::-1].copy()

    @cached_property
    def dep_names(self) -> tuple[tuple[str, str], ...]:
        """Each dep as the names of its two shards."""
        names, ends = self.shard_names, (self.dep_source.tolist(), self.dep_destination.tolist())
        return tuple((names[source], names[destination]) for source, destination in zip(*ends, strict=True))

    @cached_property
    def dep_numbers(self) -> dict[tuple[str, str], int]:
        """The number of each dep by the names of its shards."""
        return {dep: number for number, dep in enumerate(self.dep_names)}

    def named_shards(self, letters_run_on: bool = False) -> tuple[str, ...]:
        """Return the names of the shards; letters_run_on as in LegacySettings."""
        names = []
        for shard, op in enumerate(self.shard_op.tolist()):
            suffix = shard_suffix(shard - int(self.first_shard[op]), letters_run_on) if self.degrees[op] > 1 else ""
            names.append(f"{self.graph.ids[op]}{suffix}")
        return tuple(names)

    def shards(self, op: int) -> range:
        """Shards of the op at a position."""
        return range(int(self.first_shard[op]), int(self.first_shard[op] + self.degrees[op]))

    def deps(self, bundle: Bundle) -> np.ndarray:
        """int64[source shards, width]: the numbers of a bundle's deps."""
        rows = np.arange(int(self.degrees[bundle.source]))[:, None] * bundle.source_stride
        return bundle.first + rows + np.arange(bundle.width)


def sequential_sum(values: np.ndarray) -> float:
    """Return the sum in order, as a loop computes it: its last bits can decide to how many whole bytes a message is
    rounded up.
    """
    return float(np.cumsum(values)[-1]) if len(values) else 0.0


def partition(graph: TrainingGraph, degrees: np.ndarray, sizes_from_memory: bool = False) -> Partition:
    """Split a training step into shards (docs/reference/ramp_model.md). Raises UserError for invalid degrees.

    sizes_from_memory  as published: the size of a dep is derived from the parameter memory of the source (or of the
                       destination, if that was split first) instead of the activations
    """
    check_degrees(graph, degrees)
    count = graph.num_forward
    split_order = [op for at in range(count) for op in (at, at + count) if degrees[op] > 1]
    children, parents = _bundle_order(graph, split_order)
    nodes = [op for op in range(graph.num_ops) if degrees[op] == 1] + split_order
    first_shard = np.zeros(graph.num_ops, dtype=np.int64)
    first_shard[nodes] = np.concatenate([[0], np.cumsum(degrees[nodes])[:-1]])
    shard_op = np.repeat(np.array(nodes, dtype=np.int64), degrees[nodes])
    sizes = _published_sizes(graph, degrees, split_order) if sizes_from_memory else _activation_sizes(graph, degrees)
    outgoing: list[tuple[Bundle, ...]] = [()] * graph.num_ops
    columns, rows, dep_sizes, mutual = [], [], [], []
    first_dep = 0
    for op in nodes:
        bundles, destinations = _outgoing(op, children[op], degrees, first_shard, sizes, first_dep)
        outgoing[op] = bundles
        if not bundles:
            continue
        widths = [bundle.width for bundle in bundles]
        columns.append(destinations.reshape(-1))
        rows.append(np.repeat(np.arange(degrees[op]) + first_shard[op], destinations.shape[1]))
        dep_sizes.append(np.tile(np.repeat([bundle.size for bundle in bundles], widths), degrees[op]))
        mutual.append(np.tile(np.repeat([bundle.destination == op for bundle in bundles], widths), degrees[op]))
        first_dep += destinations.size
    by_pair = {(bundle.source, bundle.destination): bundle for bundles in outgoing for bundle in bundles}
    return Partition(
        graph=graph,
        degrees=np.array(degrees, dtype=np.int64),
        first_shard=first_shard,
        shard_op=shard_op,
        cost=graph.cost[shard_op] / degrees[shard_op],
        memory=graph.memory[shard_op] / degrees[shard_op],
        dep_source=_joined(rows, np.int64),
        dep_destination=_joined(columns, np.int64),
        dep_size=_joined(dep_sizes, np.float64),
        mutual=_joined(mutual, np.bool_),
        incoming=tuple(tuple(by_pair[parent, op] for parent in parents[op]) for op in range(graph.num_ops)),
        outgoing=tuple(outgoing),
    )


def _bundle_order(graph: TrainingGraph, split_order: list[int]) -> tuple[list[list[int]], list[list[int]]]:
    """Return children and parents of each op in the order of the published system.

    When an op is split, the edges of its shards replace its own edges, at the end of the order; the weight
    synchronisation of its shards is last.
    """
    children: list[list[int]] = [[] for _ in range(graph.num_ops)]
    parents: list[list[int]] = [[] for _ in range(graph.num_ops)]
    for source, destination in graph.edges.tolist():
        children[source].append(destination)
        parents[destination].append(source)
    for op in split_order:
        for parent in parents[op]:
            children[parent].remove(op)
            children[parent].append(op)
        for child in children[op]:
            parents[child].remove(op)
            parents[child].append(op)
        if op >= graph.num_forward:
            children[op].append(op)
            parents[op].append(op)
    return children, parents


def _outgoing(
    op: int,
    children: list[int],
    degrees: np.ndarray,
    first_shard: np.ndarray,
    sizes: Mapping[tuple[int, int], float],
    first_dep: int,
) -> tuple[tuple[Bundle, ...], np.ndarray]:
    """Return the bundles that leave an op, and int64[shards, columns], the shard at the end of each of its deps."""
    shards = int(degrees[op])
    blocks = []
    for child in children:
        targets = first_shard[child] + np.arange(degrees[child])
        grid = np.broadcast_to(targets, (shards, len(targets)))
        blocks.append(grid[~np.eye(shards, dtype=bool)].reshape(shards, shards - 1) if child == op else grid)
    stride = sum(block.shape[1] for block in blocks)
    bundles, column = [], 0
    for child, block in zip(children, blocks, strict=True):
        bundles.append(Bundle(op, child, first_dep + column, stride, block.shape[1], sizes[op, child]))
        column += block.shape[1]
    return tuple(bundles), np.concatenate(blocks, axis=1) if blocks else np.zeros((shards, 0), dtype=np.int64)


def _activation_sizes(graph: TrainingGraph, degrees: np.ndarray) -> dict[tuple[int, int], float]:
    """Return the bytes of a dep by (source, destination): equal parts of the activations, or of the parameters in a
    synchronisation.
    """
    sizes = {}
    for (source, destination), whole in zip(graph.edges.tolist(), graph.dep_size.tolist(), strict=True):
        sizes[source, destination] = whole / int(degrees[source] * degrees[destination])
    for op in range(graph.num_forward, graph.num_ops):
        sizes[op, op] = float(graph.memory[op] - graph.activation[op]) / int(degrees[op])
    return sizes


def _published_sizes(graph: TrainingGraph, degrees: np.ndarray, split_order: list[int]) -> dict[tuple[int, int], float]:
    """Return these sizes as the published code computes them: from memory instead of activations; if both ops are
    split, from the memory of the one that was split first.
    """
    rank = {op: at for at, op in enumerate(split_order)}
    sizes = {}
    for source, destination in graph.edges.tolist():
        child_first = source in rank and rank.get(destination, -1) < rank[source]
        owner, other = (destination, source) if child_first else (source, destination)
        sizes[source, destination] = float(graph.memory[owner]) / int(degrees[owner]) / int(degrees[other])
    for op in range(graph.num_forward, graph.num_ops):
        sizes[op, op] = float(graph.memory[op]) / int(degrees[op])
    return sizes


def _joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(parts).astype(kind) if parts else np.zeros(0, dtype=kind)
