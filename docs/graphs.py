"""Write two graphs and the table of rooms into docs/architecture.md: python docs/graphs.py

rooms    every folder of the package with the first line of its docstring; read from the source, nothing is imported
modules  the folders of the package, as their modules import each other; read from the source
rules    the workflow rules of a run at scale smoke, as Snakemake plans it
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent
REPOSITORY = DOCS.parent
PACKAGE = REPOSITORY / "src/schedlab"
Graph = Mapping[str, set[str]]


def folder_of(module: tuple[str, ...]) -> str | None:
    """The folder of the package that a module belongs to, a study for itself (studies/ramp); None for what lies in no
    folder.
    """
    if module[:1] != ("schedlab",) or len(module) < 2:
        return None
    folder = "/".join(module[1:3]) if module[1] == "studies" else module[1]
    return folder if (PACKAGE / folder).is_dir() else None


def imported(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Every module that a source imports, at its top or in a function, as the parts of its name (the package has no
    relative imports).
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(name.name.split(".")) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module
            yield from ((*node.module.split("."), name.name) for name in node.names)


def import_graph() -> Graph:
    """Folder -> the other folders that it imports from."""
    graph: dict[str, set[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        here = folder_of(("schedlab", *file.relative_to(PACKAGE).with_suffix("").parts))
        if here:
            there = {folder_of(module) for module in imported(ast.parse(file.read_text()))}
            graph.setdefault(here, set()).update(found for found in there if found and found != here)
    return graph


def rule_graph(folder: str) -> Graph:
    """Workflow rule -> the rules that read what it writes, in a run of everything at scale smoke with the data that we
    ship, planned in a folder.
    """
    command = [sys.executable, "-m", "snakemake", "-s", str(REPOSITORY / "Snakefile"), "all"]
    shipped_only = {name: value for name, value in os.environ.items() if name != "SCHEDLAB_DATA"}
    command += ["--rulegraph", "mermaid-js", "--config", "scale=smoke"]
    done = subprocess.run(command, cwd=folder, env=shipped_only, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^\s*(id\d+)\[(\w+)\]", done.stdout, flags=re.M)
    # one node for the rules of all spans of replicates, and one for those that draw the figures of a study
    names = {number: re.sub(r"_\d+_\d+$|(?<=^draw)_.*", "", name) for number, name in found}
    graph: dict[str, set[str]] = {name: set() for name in names.values()}
    for here, there in re.findall(r"^\s*(id\d+) --> (id\d+)", done.stdout, flags=re.M):
        graph[names[here]].add(names[there])
    return graph


def behind(graph: Graph, place: str) -> set[str]:
    """All that one place leads to, however indirectly."""
    found: set[str] = set()
    left = [place]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def reduced(graph: Graph) -> Graph:
    """The same graph without the arrows that follow from others; it must have no circle."""
    assert not any(place in behind(graph, place) for place in graph), "the arrows lead round in a circle"
    return {
        here: {there for there in to if not any(there in behind(graph, other) for other in to - {there})}
        for here, to in graph.items()
    }


def mermaid(graph: Graph, direction: str) -> str:
    """The graph as a block that GitHub and most editors draw; direction as Mermaid names it (BT: upwards)."""
    named: set[str] = set()

    def node(place: str) -> str:
        label = f"[{place}]" if "/" in place and place not in named else ""
        named.add(place)
        return place.replace("/", "_") + label

    lines = []
    for here, to in sorted(graph.items()):
        if to or not any(here in others for others in graph.values()):
            arrow = f" --> {' & '.join(node(there) for there in sorted(to))}" if to else ""
            lines.append(f"    {node(here)}{arrow}")
    return "\n".join(["```mermaid", f"graph {direction}", *lines, "```", ""])


def rooms() -> str:
    """A table of every folder of the package and what it is for, as its docstring says in its first sentence."""
    rows = ["| room | what it is for |", "|---|---|"]
    for file in sorted(PACKAGE.rglob("__init__.py"), key=lambda file: file.parent.relative_to(PACKAGE).parts):
        if file.parent != PACKAGE and "templates" not in file.parts:
            purpose = " ".join((ast.get_docstring(ast.parse(file.read_text())) or "").split("\n\n")[0].split())
            rows.append(f"| `{file.parent.relative_to(PACKAGE).as_posix()}/` | {purpose} |")
    return "\n".join([*rows, ""])


def with_graph(page: str, name: str, drawn: str) -> str:
    """The page with a graph or table between the marks of its name."""
    begin, end = f"<!-- graph of {name} -->\n", f"<!-- end of graph of {name} -->\n"
    head, found, rest = page.partition(begin)
    _, ended, tail = rest.partition(end)
    assert found and ended, f"docs/architecture.md lacks the marks of the graph of {name}"
    return f"{head}{begin}{drawn}{end}{tail}"


def with_modules(page: str) -> str:
    """The page with the graph of modules of today."""
    return with_graph(page, "modules", mermaid(reduced(import_graph()), "BT"))


def with_rooms(page: str) -> str:
    """The page with the table of rooms of today."""
    return with_graph(page, "rooms", rooms())


def with_rules(page: str, folder: str) -> str:
    """The page with the graph of workflow rules of today, planned in a folder."""
    return with_graph(page, "rules", mermaid(reduced(rule_graph(folder)), "LR"))


if __name__ == "__main__":
    page = DOCS / "architecture.md"
    with tempfile.TemporaryDirectory() as scratch:
        page.write_text(with_rules(with_modules(with_rooms(page.read_text())), scratch))
