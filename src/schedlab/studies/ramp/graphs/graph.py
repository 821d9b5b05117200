"""Graphs of training jobs: the forward pass, as in a file, and the training step that is made from it by mirroring.

Sources: PAC-ML, arXiv 2301.13799; PipeDream's text files; docs/reference/ramp_graphs.md.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from schedlab.config.errors import UserError

Array = Any  # any sequence of numbers is taken, a read-only array is held
LARGEST = 1e300  # of any number that is given; sums over ops and steps stay finite


@dataclass(frozen=True, eq=False)
class ForwardGraph:
    """The forward pass of a model: n ops and m edges. Their order is that of the file; ops are split in this order.

    ids            int64[n], a permutation of 1..n (the mate of op i is 2n + 1 - i)
    kinds          the operator of each op, such as Conv2d
    forward_cost   float64[n], run time of the forward op in the file's time unit
    backward_cost  float64[n], run time of its mate in the backward pass, same unit
    activation     float64[n], bytes
    parameter      float64[n], bytes
    edges          int64[m, 2], (source, destination) as op ids
    edge_size      float64[m], bytes of each edge and of its mirror; None: the source's activation, as in PipeDream
    """

    name: str
    ids: Array = field(repr=False)
    kinds: tuple[str, ...] = field(repr=False)
    forward_cost: Array = field(repr=False)
    backward_cost: Array = field(repr=False)
    activation: Array = field(repr=False)
    parameter: Array = field(repr=False)
    edges: Array = field(repr=False)
    edge_size: Array | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Convert all fields to read-only arrays of their types; raises UserError for invalid values."""
        for name in ("ids", "forward_cost", "backward_cost", "activation", "parameter"):
            kind = np.int64 if name == "ids" else np.float64
            object.__setattr__(self, name, _frozen(np.asarray(getattr(self, name), dtype=kind).reshape(-1)))
        object.__setattr__(self, "edges", _frozen(np.asarray(self.edges, dtype=np.int64).reshape(-1, 2)))
        if self.edge_size is not None:
            object.__setattr__(self, "edge_size", _frozen(np.asarray(self.edge_size, dtype=np.float64).reshape(-1)))
        object.__setattr__(self, "kinds", tuple(self.kinds))
        self._check_ops()
        self._check_edges()

    @property
    def num_ops(self) -> int:
        """Number of forward ops, n."""
        return len(self.ids)

    def _check_ops(self) -> None:
        where, count = f"graph '{self.name}'", len(self.ids)
        if count == 0:
            raise UserError("the graph has no ops", where=where, expected="at least one op")
        lengths = {
            name: len(getattr(self, name))
            for name in ("kinds", "forward_cost", "backward_cost", "activation", "parameter")
        }
        for name, length in lengths.items():
            if length != count:
                what = f"{length} values of {name} for {count} ops"
                raise UserError(what, where=where, expected="one value for each op")
        if sorted(self.ids.tolist()) != list(range(1, count + 1)):
            what = f"the op ids are not the numbers 1 to {count}: {_first_wrong_id(self.ids, count)}"
            expected = f"each of 1..{count} once (the mate of op i in the backward pass is {2 * count} + 1 - i)"
            raise UserError(what, where=where, expected=expected)
        for name in ("forward_cost", "backward_cost", "activation", "parameter"):
            values = getattr(self, name)
            wrong = np.flatnonzero(~np.isfinite(values) | (values < 0))
            if wrong.size:
                at = wrong[0]
                what = f"{name} is {values[at]}"
                raise UserError(what, where=f"{where}, op {self.ids[at]}", expected="a finite number, at least 0")

    def _check_edges(self) -> None:
        where, count = f"graph '{self.name}'", len(self.ids)
        seen: set[tuple[int, int]] = set()
        for source, destination in self.edges.tolist():
            edge = f"edge {source} -> {destination}"
            if not (1 <= source <= count and 1 <= destination <= count):
                what = f"{edge} names an op that the graph does not have"
                raise UserError(what, where=where, expected=f"ops 1 to {count}")
            if (source, destination) in seen:
                raise UserError(f"{edge} is given twice", where=where, expected="each edge once")
            seen.add((source, destination))
        if self.edge_size is not None and len(self.edge_size) != len(self.edges):
            what = f"{len(self.edge_size)} sizes for {len(self.edges)} edges"
            raise UserError(what, where=where, expected="one size for each edge")
        if self.edge_size is not None and not (self.edge_size >= 0).all() & np.isfinite(self.edge_size).all():
            raise UserError("an edge's size is no finite number of at least 0", where=where, expected="bytes")
        if cycle := _ops_on_cycles(count, self.edges):
            shown = ", ".join(map(str, cycle[:6])) + (", ..." if len(cycle) > 6 else "")
            raise UserError(f"the graph has a cycle among ops {shown}", where=where, expected="a graph without cycles")


@dataclass(frozen=True, eq=False)
class TrainingGraph:
    """One training step: the n forward ops in file order, then their mates in the same order; 2n ops in all.

    ids         int64[2n]; position i + n is the mate of position i
    cost        float64[2n], the file's time unit times `seconds_per_unit`
    memory      float64[2n] bytes, activation + parameter (both passes, so a layer counts twice)
    activation  float64[2n] bytes
    edges       int64[e, 2], (source, destination) as positions; forward, join, then backward by source in op order
    dep_size    float64[e] bytes: `edge_size` of the forward graph if it is given, else the activation of the source
    depth       int64[2n], number of ops on the shortest path from the first source to this op, both included; 0 if
                there is no path
    """

    name: str
    ids: np.ndarray = field(repr=False)
    kinds: tuple[str, ...] = field(repr=False)
    cost: np.ndarray = field(repr=False)
    memory: np.ndarray = field(repr=False)
    activation: np.ndarray = field(repr=False)
    edges: np.ndarray = field(repr=False)
    dep_size: np.ndarray = field(repr=False)
    depth: np.ndarray = field(repr=False)

    @property
    def num_ops(self) -> int:
        """Number of ops of a training step, 2n."""
        return len(self.ids)

    @property
    def num_forward(self) -> int:
        """Number of ops of the forward pass, n."""
        return len(self.ids) // 2

    @cached_property
    def step_time(self) -> float:
        """Time of one training step on one device: the sum of all costs."""
        return float(sum(self.cost.tolist()))

    @cached_property
    def total_memory(self) -> float:
        """Sum of the ops' memory, bytes."""
        return float(sum(self.memory.tolist()))

    @cached_property
    def total_dep_size(self) -> float:
        """Sum of the deps' sizes, bytes."""
        return float(sum(self.dep_size.tolist()))

    @cached_property
    def digest(self) -> str:
        """Hash of the content without the name: ids, costs, memory, activations, edges and sizes of deps."""
        parts = (self.ids, self.cost, self.memory, self.activation, self.edges, self.dep_size)
        return hashlib.sha256(b"|".join(part.tobytes() for part in parts)).hexdigest()


def training_graph(forward: ForwardGraph, seconds_per_unit: float = 1.0, join_sinks: bool = True) -> TrainingGraph:
    """Return the training step of a forward pass (docs/reference/ramp_graphs.md). Costs are multiplied by
    `seconds_per_unit`.

    Its edges are all forward edges; for each edge u -> v, the edge mate(v) -> mate(u); and an edge from the op with the
    highest id of the forward pass to its mate.
    join_sinks  whether the other sinks also have edges to their mates; as published, they have none, so these mates are
                ready at time 0
    Raises UserError if no op takes any time, because a job with this graph would have no length.
    """
    cost = np.concatenate([forward.forward_cost, forward.backward_cost]) * seconds_per_unit
    if not cost.any():
        what = "no op takes any time"
        raise UserError(what, where=f"graph '{forward.name}'", expected="at least one run time above 0")
    count = forward.num_ops
    ids = np.concatenate([forward.ids, 2 * count + 1 - forward.ids])
    position = {int(op): at for at, op in enumerate(ids)}
    pairs = [(position[u], position[v]) for u, v in forward.edges.tolist()]
    pairs += [(v + count, u + count) for u, v in pairs]
    pairs.append((position[count], position[count + 1]))
    if join_sinks:
        sinks = set(range(count)) - {u for u, _ in pairs}
        pairs += [(sink, sink + count) for sink in sorted(sinks)]
    edges = np.array(pairs, dtype=np.int64)
    order = np.argsort(edges[:, 0], kind="stable")  # file order within a source
    memory = np.tile(forward.activation + forward.parameter, 2)
    activation = np.tile(forward.activation, 2)
    dep_size = activation[edges[:, 0]]
    if forward.edge_size is not None:
        dep_size[: 2 * len(forward.edges)] = np.tile(forward.edge_size, 2)
    return TrainingGraph(
        name=forward.name,
        ids=_frozen(ids),
        kinds=forward.kinds * 2,
        cost=_frozen(cost),
        memory=_frozen(memory),
        activation=_frozen(activation),
        edges=_frozen(edges[order]),
        dep_size=_frozen(dep_size[order]),
        depth=_frozen(_depths(2 * count, edges)),
    )


def _depths(count: int, edges: np.ndarray) -> np.ndarray:
    children: list[list[int]] = [[] for _ in range(count)]
    is_source = np.ones(count, dtype=bool)
    for source, destination in edges.tolist():
        children[source].append(destination)
        is_source[destination] = False
    depth = np.zeros(count, dtype=np.int64)
    front = [int(np.flatnonzero(is_source)[0])]
    depth[front] = 1
    while front:
        reached = {child for op in front for child in children[op] if depth[child] == 0}
        depth[list(reached)] = depth[front[0]] + 1
        front = sorted(reached)
    return depth


def _ops_on_cycles(count: int, edges: np.ndarray) -> list[int]:
    """Return the ids of the ops that remain if ops without parents are removed repeatedly. Without a cycle, none
    remain.
    """
    children: dict[int, list[int]] = {op: [] for op in range(1, count + 1)}
    parents = dict.fromkeys(children, 0)
    for source, destination in edges.tolist():
        children[source].append(destination)
        parents[destination] += 1
    free = [op for op in children if parents[op] == 0]
    left = set(children)
    while free:
        op = free.pop()
        left.remove(op)
        for child in children[op]:
            parents[child] -= 1
            if parents[child] == 0:
                free.append(child)
    return sorted(left)


def _first_wrong_id(ids: np.ndarray, count: int) -> str:
    values, counts = np.unique(ids, return_counts=True)
    outside = values[(values < 1) | (values > count)]
    if outside.size:
        return f"{outside[0]} is outside"
    return f"{values[counts > 1][0]} is given twice"


def _frozen(values: np.ndarray) -> np.ndarray:
    values = np.array(values)
    values.flags.writeable = False
    return values
