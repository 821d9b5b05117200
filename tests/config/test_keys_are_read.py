"""A key that nothing reads would be accepted, checked and documented in vain.

Words are compared, so that a key passes where anything of its name is read; one whose name nothing reads cannot be
read.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import schedlab
from schedlab.config.schema import Settings


def sections(kind: type[Settings] = Settings) -> Iterator[type[Settings]]:
    """Yield every typed section of the library, once all its modules are imported."""
    for below in kind.__subclasses__():
        if below.__module__.startswith("schedlab."):
            yield below
        yield from sections(below)


def words_read(source: str) -> set[str]:
    """Return the attributes that a source reads, and its texts; a field that a section declares is neither."""
    nodes = list(ast.walk(ast.parse(source)))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)}
    return attributes | {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_every_key_of_every_section_is_read_or_said_to_be_not_used(repository: Path) -> None:
    for module in pkgutil.walk_packages(schedlab.__path__, "schedlab."):
        importlib.import_module(module.name)
    read = set().union(*(words_read(path.read_text()) for path in (repository / "src").rglob("*.py")))
    for path in [repository / "Snakefile", *(repository / "workflow").rglob("*.smk")]:
        read.update(re.findall(r"\w+", path.read_text()))
    for path in (repository / "conf").rglob("*.yaml"):
        read.update(re.findall(r"\$\{scale\.studies\.\w+\.(\w+)\}", path.read_text()))
    unread = {
        f"{kind.__name__}.{key}": field.description
        for kind in sections()
        for key, field in kind.model_fields.items()
        if key not in read
    }
    assert "ProcessorType.llc_size" in unread, "sections and their keys are found"
    assert [key for key, doc in unread.items() if not re.search(r"\bnot used$", doc or "")] == []
