"""Files of graphs: PipeDream's text, which we also write, cost graphs (cost.py), folders and archives of both.

PipeDream's text has a line for each op and each edge, fields separated by ` -- `; edges are indented by a tab:

    node1 -- Input -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=600.0, parameter_size=0.0
        node1 -- node2

An activation may be a list, `[6.0; 2.0]`, and counts as its sum. We write and read a third field, `size=0.0`, of an
edge that carries something else than its source's activation. See docs/reference/ramp_graphs.md; msr-fiddle/pipedream.
"""

from __future__ import annotations

import graphlib
import itertools
import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.config.readers import read_members, read_text
from schedlab.studies.ramp.graphs.cost import parse_cost_graph
from schedlab.studies.ramp.graphs.graph import LARGEST, ForwardGraph

SUFFIXES = (".txt", ".pbtxt")
COSTS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
OP_LINE = f"node<ID> -- <Kind> -- {', '.join(f'{name}=<number>' for name in COSTS)}"
LONGEST_ID = 9  # digits
_NODE = re.compile(rf"node(\d{{1,{LONGEST_ID}}})", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold


def read_graph(path: Path | str) -> ForwardGraph:
    """Return the graph in a file of PipeDream (.txt) or a cost graph (.pbtxt). Raises UserError with file and line.

    The graph has the name of the file, or that of its folder if the file is graph.txt.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise UserError(f"the ending is '{path.suffix}'", where=str(path), expected=" or ".join(SUFFIXES))
    return _parsed(read_text(path, "a graph of a training job"), path, str(path))


def read_graphs(path: Path | str, max_files: int | None = None) -> tuple[ForwardGraph, ...]:
    """Return the graphs of a folder, of an archive of `write_graphs`, or of one file, in the order of the files' names.

    In a folder, its .txt and .pbtxt files are read, and PipeDream's <model>/graph.txt. max_files: only the first of
    them. Raises UserError, also if there is no graph, or if two graphs have the same name.
    """
    path = Path(path)
    if path.is_dir():
        files = [
            file
            for file in path.iterdir()
            if file.suffix in SUFFIXES and file.is_file() and not file.name.startswith(".")
        ]
        files += [file for file in path.glob("*/graph.txt") if file.is_file()]
        graphs = [read_graph(file) for file in sorted(files)[:max_files]]
    elif path.suffix == ".zip":
        graphs = _from_archive(path)[:max_files]
    elif path.exists():
        graphs = [read_graph(path)]
    else:
        raise UserError("there is no such file or folder", where=str(path), expected="graphs of training jobs")
    if not graphs:
        what = "there is no graph here"
        raise UserError(what, where=str(path), expected=f"files that end in {' or '.join(SUFFIXES)}")
    names = [graph.name for graph in graphs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        what = f"two graphs are called '{twice[0]}'"
        raise UserError(what, where=str(path), expected="a name for each", remedy="rename one of the files")
    return tuple(graphs)


def write_graphs(path: Path | str, graphs: Iterable[ForwardGraph]) -> None:
    """Write graphs as PipeDream's text into a zip archive, in the order of their names. Equal graphs give equal
    bytes.
    """
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for graph in sorted(graphs, key=lambda graph: graph.name):
            member = zipfile.ZipInfo(f"{graph.name}.txt", _EPOCH)
            member.external_attr = 0o644 << 16
            archive.writestr(member, pipedream_text(graph))


def pipedream_text(graph: ForwardGraph) -> str:
    """Return a graph as PipeDream's text. Reading it gives the same graph, except that a kind ends at its first
    bracket.
    """
    columns = (graph.forward_cost, graph.backward_cost, graph.activation, graph.parameter)
    lines = []
    for op, kind, *values in zip(
        graph.ids.tolist(), graph.kinds, *(column.tolist() for column in columns), strict=True
    ):
        costs = ", ".join(f"{name}={value!r}" for name, value in zip(COSTS, values, strict=True))
        lines.append(f"node{op} -- {kind} -- {costs}")
    sizes = (
        [""] * len(graph.edges)
        if graph.edge_size is None
        else [f" -- size={size!r}" for size in graph.edge_size.tolist()]
    )
    lines += [f"\tnode{u} -- node{v}{size}" for (u, v), size in zip(graph.edges.tolist(), sizes, strict=True)]
    return "\n".join(lines) + "\n"


def parse_pipedream(text: str, name: str, where: str) -> ForwardGraph:
    """Return the graph in PipeDream's text. Raises UserError that names line and field; `where` stands for the file."""
    found = _Lines(where)
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found.take(line.strip(), number)
    return found.graph(name)


@dataclass
class _Lines:
    """The ops and edges read so far, with their line numbers for error messages."""

    where: str
    op_lines: dict[int, int] = field(default_factory=dict)  # op id -> line
    edge_lines: dict[tuple[int, int], int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    costs: list[list[float]] = field(default_factory=list)
    sizes: list[float | None] = field(default_factory=list)

    def take(self, line: str, number: int) -> None:
        """Read one line that is not empty."""
        where, fields = f"{self.where}:{number}", [part.strip() for part in line.split(" -- ")]
        if len(fields) < 2:
            raise UserError("the line has one field", where=where, expected=f"'{OP_LINE}' or 'node<ID> -- node<ID>'")
        op = _node(fields[0], where, "field 1")
        if len(fields) == 2 or (len(fields) == 3 and fields[2].startswith("size=")):
            edge = (op, _node(fields[1], where, "field 2"))
            if (first := self.edge_lines.setdefault(edge, number)) != number:
                what = f"edge {op} -> {edge[1]} is already given in line {first}"
                raise UserError(what, where=where, expected="each edge once")
            self.sizes.append(_number(fields[2].removeprefix("size="), where, "size") if len(fields) == 3 else None)
            return
        if (first := self.op_lines.setdefault(op, number)) != number:
            raise UserError(f"op {op} is already given in line {first}", where=where, expected="each op once")
        self.kinds.append(fields[1].partition("(")[0].strip())
        self.costs.append(_costs(fields[2], where))

    def graph(self, name: str) -> ForwardGraph:
        """Return the graph of all lines."""
        self._check()
        kinds = tuple(self.kinds)
        sizes = None
        if any(size is not None for size in self.sizes):
            sent = dict(zip(self.op_lines, (row[2] for row in self.costs), strict=True))
            sizes = [
                sent[u] if size is None else size for (u, _), size in zip(self.edge_lines, self.sizes, strict=True)
            ]
        forward, backward, activation, parameter = zip(*self.costs, strict=True)
        return ForwardGraph(
            name, list(self.op_lines), kinds, forward, backward, activation, parameter, list(self.edge_lines), sizes
        )

    def _check(self) -> None:
        """Require ids 1..n, edges between these ops, and no cycle; raises UserError."""
        count = len(self.op_lines)
        if not count:
            raise UserError("the file holds no op", where=self.where, expected=f"lines '{OP_LINE}'")
        for op, line in self.op_lines.items():
            if not 1 <= op <= count:
                what, place = f"op {op} of a file with {count} ops", f"{self.where}:{line}"
                raise UserError(what, where=place, expected=f"ids 1 to {count}", remedy="number the ops")
        for (source, destination), line in self.edge_lines.items():
            for op in (source, destination):
                if op not in self.op_lines:
                    what = f"the edge names op {op}, which has no line"
                    raise UserError(what, where=f"{self.where}:{line}", expected=f"ops 1 to {count}")
        try:
            graphlib.TopologicalSorter(_children(self.edge_lines)).prepare()
        except graphlib.CycleError as error:
            cycle = error.args[1]
            lines = [self.edge_lines.get((u, v)) or self.edge_lines[v, u] for u, v in itertools.pairwise(cycle)]
            path = ", ".join(map(str, sorted(set(cycle))[:6])) + (", ..." if len(set(cycle)) > 6 else "")
            what = f"the edges form a cycle through ops {path}"
            raise UserError(what, where=f"{self.where}:{max(lines)}", expected="no cycle") from None


def _children(edges: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for source, destination in edges:
        found.setdefault(source, []).append(destination)
    return found


def _node(text: str, where: str, what: str) -> int:
    if (match := _NODE.fullmatch(text)) is None:
        raise UserError(f"{what} is '{_short(text)}'", where=where, expected="node<ID>, such as node12")
    return int(match[1])


def _costs(text: str, where: str) -> list[float]:
    parts = [part.partition("=") for part in text.split(", ")]
    names = tuple(name.strip() for name, _, _ in parts)
    if names != COSTS:
        wrong = next(
            (
                f"'{_short(given)}' instead of {name}"
                for given, name in zip(names, COSTS, strict=False)
                if given != name
            ),
            "",
        )
        what = f"field 3 has {wrong}" if wrong else f"field 3 has {len(names)} values"
        raise UserError(what, where=where, expected=", ".join(f"{name}=<number>" for name in COSTS))
    return [_amount(value.strip(), where, name) for name, _, value in parts]


def _amount(text: str, where: str, name: str) -> float:
    """Return a number, or for activations the sum of a list."""
    if name == "activation_size" and text.startswith("[") and text.endswith("]"):
        return sum(_number(part.strip(), where, name) for part in text[1:-1].split(";"))
    return _number(text, where, name)


def _number(text: str, where: str, name: str) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else float("nan")
    if not 0 <= value <= LARGEST:
        raise UserError(f"{name} is '{_short(text)}'", where=where, expected=f"a number from 0 to {LARGEST:g}")
    return value


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _parsed(text: str, path: Path, where: str) -> ForwardGraph:
    name = path.resolve().parent.name if path.name == "graph.txt" else path.stem
    return parse_cost_graph(text, name, where) if path.suffix == ".pbtxt" else parse_pipedream(text, name, where)


def _from_archive(path: Path) -> list[ForwardGraph]:
    remedy = "delete it and run the job that makes it again"
    texts = read_members(path, "an archive of graphs", remedy, lambda name: Path(name).suffix in SUFFIXES)
    try:
        return [_parsed(text.decode(), Path(name), f"{path}/{name}") for name, text in sorted(texts.items())]
    except UnicodeDecodeError as error:
        raise UserError(f"is no archive of graphs: {error}", where=str(path), remedy=remedy) from None
