"""Write the graph of the package's folders, as their modules import each other, into docs/architecture.md: python docs/module_graph.py

The imports are read from the source; nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "src/schedlab"
BEGIN, END = "<!-- module graph -->\n", "<!-- end of module graph -->\n"
Graph = dict[str, set[str]]


def folder_of(module: tuple[str, ...]) -> str | None:
    """The folder of the package that a module belongs to, a study for itself (studies/ramp); None for what lies in no folder."""
    if module[:1] != ("schedlab",) or len(module) < 2:
        return None
    folder = "/".join(module[1:3]) if module[1] == "studies" else module[1]
    return folder if (PACKAGE / folder).is_dir() else None


def imported(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Every module that a source imports, at its top or in a function, as the parts of its name (the package has no relative imports)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(name.name.split(".")) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module
            yield from ((*node.module.split("."), name.name) for name in node.names)


def import_graph() -> Graph:
    """Folder -> the other folders that it imports from."""
    graph: Graph = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        here = folder_of(("schedlab", *file.relative_to(PACKAGE).with_suffix("").parts))
        if here:
            there = {folder_of(module) for module in imported(ast.parse(file.read_text()))}
            graph.setdefault(here, set()).update(found for found in there if found and found != here)
    return graph


def behind(graph: Graph, folder: str) -> set[str]:
    """All folders that one imports from, however indirectly."""
    found: set[str] = set()
    left = [folder]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def reduced(graph: Graph) -> Graph:
    """The same graph without the arrows that follow from others; it must have no circle."""
    assert not any(folder in behind(graph, folder) for folder in graph), "folders import each other in a circle"
    return {here: {there for there in to if not any(there in behind(graph, other) for other in to - {there})} for here, to in graph.items()}


def mermaid(graph: Graph) -> str:
    """The graph as a block that GitHub and most editors draw."""
    lines = [f"    {here.replace('/', '_')}[{here}]" for here in sorted(graph)]
    lines += [f"    {here.replace('/', '_')} --> {there.replace('/', '_')}" for here in sorted(graph) for there in sorted(graph[here])]
    return "\n".join(["```mermaid", "graph BT", *lines, "```", ""])


def with_graph(page: str) -> str:
    """The page with the graph of today between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    assert end, f"docs/architecture.md lacks the mark {(BEGIN if not rest else END).strip()}"
    return f"{head}{BEGIN}{mermaid(reduced(import_graph()))}{END}{tail}"


if __name__ == "__main__":
    page = DOCS / "architecture.md"
    page.write_text(with_graph(page.read_text()))
