"""Reading TensorFlow's cost graphs (CostGraphDef) in protocol buffers' text format, as in the REGAL data set.

    node {
      name: "conv" id: 1 compute_cost: 12
      input_info { preceding_node: 0 }  output_info { size: 4096 }  control_input: 0
    }

Source: tensorflow/core/framework/cost_graph.proto; docs/reference/ramp_graphs.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.studies.ramp.graphs.graph import LARGEST, ForwardGraph

SOURCE = "_SOURCE"  # the only node written without an id; its id is 0
_TOKEN = re.compile(
    r"""(?P<skip>[\s,;]+|\#[^\n]*)|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|(?P<word>[\w.+-]+)|(?P<mark>[{}<>:\[\]])""",
    re.ASCII,
)
_CLOSING = {"{": "}", "<": ">"}


@dataclass
class _Message:
    """A message of the file: the values of its fields (text or messages) in order, each with its line number."""

    line: int
    fields: dict[str, list[tuple[Any, int]]] = field(default_factory=dict)

    def messages(self, name: str, where: str) -> list[_Message]:
        """Return the messages under a field; raises UserError for a plain value."""
        for value, line in self.fields.get(name, ()):
            if isinstance(value, str):
                what = f"{name} is '{_short(value)}'"
                raise UserError(what, where=f"{where}:{line}", expected=f"a message: {name} {{ ... }}")
        return [value for value, _ in self.fields.get(name, ())]

    def scalars(self, name: str, where: str) -> list[tuple[str, int]]:
        """Return the plain values under a field, with their lines; raises UserError for a message."""
        for value, line in self.fields.get(name, ()):
            if isinstance(value, _Message):
                raise UserError(f"{name} is a message", where=f"{where}:{line}", expected=f"a value: {name}: ...")
        return list(self.fields.get(name, ()))

    def numbers(self, name: str, where: str, *, whole: bool = False) -> list[Any]:
        """Return the numbers under a field; raises UserError for any other value than a number of 0 or more."""
        found = []
        for text, line in self.scalars(name, where):
            number = _number(text, whole)
            if number is None:
                kind = "a whole number of 0 or more, below 2^31" if whole else f"a number from 0 to {LARGEST:g}"
                raise UserError(f"{name} is '{_short(text)}'", where=f"{where}:{line}", expected=kind)
            found.append(number)
        return found

    def number(self, name: str, where: str, default: float | None, *, whole: bool = False) -> Any:
        """Return the number of a field, the last one where it is repeated, as protocol buffers do."""
        return (self.numbers(name, where, whole=whole) or [default])[-1]


@dataclass
class _Node:
    """A node as the file describes it."""

    name: str
    line: int
    cost: float
    parameter: float
    outputs: list[float]
    inputs: list[tuple[int, int | None]]  # node and port
    controls: list[int]


def parse_cost_graph(text: str, name: str, where: str, *, backward_factor: float = 1.0) -> ForwardGraph:
    """Return the graph in a CostGraphDef's text, read from the file `where`. Raises UserError with line and field.

    A cost graph contains only the forward pass: an op of the backward pass costs `backward_factor` times its mate. The
    format allows any ids; here ops are renumbered so that ids rise along the edges. The activation of an op is the sum
    of its outputs; an edge carries one output, and a control edge carries none. If no edge of the file names its output
    (preceding_port), the output of each edge is drawn from a random stream that depends on the names of the graph and
    the ops.
    """
    nodes = _nodes(_message(text, where), where)
    if not nodes:
        raise UserError("the file holds no node", where=where, expected="node { name: ... id: ... }")
    edges = _edges(nodes, name, where)
    ranks = _ranks(nodes, edges, where)
    costs = [node.cost for node in nodes.values()]
    return ForwardGraph(
        name=name,
        ids=[ranks[op] for op in nodes],
        kinds=tuple(re.sub(r"_\d+$", "", node.name.rsplit("/", 1)[-1]) or node.name for node in nodes.values()),
        forward_cost=costs,
        backward_cost=[backward_factor * cost for cost in costs],
        activation=[sum(node.outputs) for node in nodes.values()],
        parameter=[node.parameter for node in nodes.values()],
        edges=[(ranks[u], ranks[v]) for u, v in edges],
        edge_size=list(edges.values()),
    )


def _nodes(message: _Message, where: str) -> dict[int, _Node]:
    """Return node id -> node, in the order of the file."""
    found: dict[int, _Node] = {}
    for entry in message.messages("node", where):
        here = f"{where}:{entry.line}"
        name = next((text for text, _ in reversed(entry.scalars("name", where))), "")
        number = entry.number("id", where, 0 if name == SOURCE else None, whole=True)
        if number is None:
            what = f"node '{_short(name)}' has no id"
            raise UserError(what, where=here, expected=f"an id for each node but {SOURCE}")
        if number in found:
            what = f"id {number} is already used in line {found[number].line}"
            raise UserError(what, where=here, expected="each id once")
        inputs = [
            (
                message.number("preceding_node", where, 0, whole=True),
                message.number("preceding_port", where, None, whole=True),
            )
            for message in entry.messages("input_info", where)
        ]
        found[number] = _Node(
            name=" ".join(name.split()),
            line=entry.line,
            cost=entry.number("compute_cost", where, 0.0),
            parameter=entry.number("persistent_memory_size", where, 0.0),
            outputs=[message.number("size", where, 0.0) for message in entry.messages("output_info", where)],
            inputs=inputs,
            controls=entry.numbers("control_input", where, whole=True),
        )
    return found


def _edges(nodes: dict[int, _Node], name: str, where: str) -> dict[tuple[int, int], float]:
    """Return (source, destination) -> bytes. Several outputs of an op that go to the same op are one edge."""
    ported = any(port is not None for node in nodes.values() for _, port in node.inputs)
    edges: dict[tuple[int, int], float] = {}
    for op, node in nodes.items():
        here = f"{where}:{node.line}"
        for parent, port in [*node.inputs, *((parent, None) for parent in node.controls)]:
            if parent not in nodes:
                what = f"node {op} follows node {parent}, which the file does not have"
                raise UserError(what, where=here, expected="ids of the file")
            if port is not None and port >= len(nodes[parent].outputs):
                what = f"node {op} reads output {port} of node {parent}, which has {len(nodes[parent].outputs)}"
                raise UserError(what, where=here, expected="an output counted from 0")
        for parent, port in node.inputs:
            outputs = nodes[parent].outputs
            taken = port or 0
            if not ported and len(outputs) > 1:
                taken = int(generator(0, "output of a cost graph", name, parent, op).integers(len(outputs)))
            edges[parent, op] = edges.get((parent, op), 0.0) + (outputs[taken] if outputs else 0.0)
        for parent in node.controls:
            edges.setdefault((parent, op), 0.0)
    return edges


def _ranks(nodes: dict[int, _Node], edges: Iterable[tuple[int, int]], where: str) -> dict[int, int]:
    """Return node id -> 1..n, rising along every edge (Kahn's algorithm with a first-in, first-out queue)."""
    children: dict[int, list[int]] = {op: [] for op in nodes}
    parents = dict.fromkeys(nodes, 0)
    for source, destination in edges:
        children[source].append(destination)
        parents[destination] += 1
    order = [op for op in nodes if not parents[op]]
    for op in order:
        for child in children[op]:
            parents[child] -= 1
            if not parents[child]:
                order.append(child)
    if left := [op for op in nodes if parents[op]]:
        shown = ", ".join(map(str, left[:6])) + (", ..." if len(left) > 6 else "")
        what = f"nodes that are on a cycle or depend on one: {shown}"
        raise UserError(what, where=f"{where}:{nodes[left[0]].line}", expected="a graph without cycles")
    return {op: rank for rank, op in enumerate(order, 1)}


def _message(text: str, where: str) -> _Message:
    """Return the whole file as one message. Messages may be nested to any depth, because no recursion is used."""
    top = _Message(1)
    opened: list[tuple[_Message, str]] = [(top, "")]
    tokens = _tokens(text, where)
    for kind, token, line in tokens:
        here, closing = opened[-1]
        if kind == "mark" and token == closing:
            opened.pop()
            continue
        if kind != "word":
            what = f"'{_short(token)}' is no field"
            raise UserError(what, where=f"{where}:{line}", expected="name: value, or name { ... }")
        values = here.fields.setdefault(token, [])
        kind, value, at = next(tokens, ("end", "the end of the file", line))
        if value == ":" and kind == "mark":
            kind, value, at = next(tokens, ("end", "the end of the file", line))
            if kind in ("text", "word"):
                values.append((value, at))
                continue
            if value == "[" and kind == "mark":
                values += _list(tokens, f"{where}:{at}")
                continue
        if kind != "mark" or value not in _CLOSING:
            what = f"{token} is followed by '{_short(value)}'"
            raise UserError(what, where=f"{where}:{at}", expected=f"{token}: value, or {token} {{ ... }}")
        opened.append((_Message(at), _CLOSING[value]))
        values.append((opened[-1][0], at))
    if len(opened) > 1:
        raise UserError("a message is not closed", where=f"{where}:{opened[-1][0].line}", expected=opened[-1][1])
    return top


def _list(tokens: Iterator[tuple[str, str, int]], where: str) -> list[tuple[str, int]]:
    """Return the plain values up to the closing bracket, with their lines."""
    found: list[tuple[str, int]] = []
    for kind, value, line in tokens:
        if kind == "mark" and value == "]":
            return found
        if kind == "mark":
            break
        found.append((value, line))
    raise UserError("a list is not closed", where=where, expected="[value, value, ...]")


def _tokens(text: str, where: str) -> Iterator[tuple[str, str, int]]:
    """Yield (kind: text, word or mark; the token, strings without their quotes; the line)."""
    place, line = 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            what = f"'{_short(text[place : place + 40].splitlines()[0])}' cannot be read"
            raise UserError(what, where=f"{where}:{line}", expected="text of protocol buffers")
        token = match[0]
        if match.lastgroup != "skip":
            yield match.lastgroup or "", token[1:-1] if match.lastgroup == "text" else token, line
        line += token.count("\n")
        place = match.end()


def _number(text: str, whole: bool) -> float | None:
    """Return a number of 0 or more, or None if the text is something else."""
    try:
        value = int(text) if whole and len(text) < 20 else float(text)
    except ValueError:
        return None
    if whole and not isinstance(value, int):
        return None
    return value if 0 <= value <= (2**31 - 1 if whole else LARGEST) else None


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
