"""The meaning of a module's source to Python: the syntax tree of each statement as text, and the names in it.

The tree omits everything that only people and type checkers read: positions, docstrings, strings that are statements,
the documentation of settings (`doc=`), and imports for type checking alone. It also omits the rules and learners that a
study adds by `with_doors`: that statement names modules as text, and each of them counts in the jobs that use it.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

# Modules that all parts reach. If names are imported from them, only these names count, with the statements that they
# use.
BY_NAME = re.compile(r"schedlab\.config\.(contract|files|readers|schema|seeds|settings)")
DOORS, DOORS_NAMES = "schedlab.doors", {"STUDY", "with_doors", "Door"}
LOADERS = ("load_object", "import_module")  # a module named in their literal argument counts as imported
UNSAID = ("ctx", "kind", "type_comment", "type_ignores")  # fields of nodes that follow from others or carry no meaning

Import = ast.Import | ast.ImportFrom
Content = tuple[str, list[str]]  # the digest of a syntax tree, and the dotted names that it imports


@dataclass
class Statement:
    """A statement of a module.

    names     names that it defines or extends; empty if it also has other effects
    words     its syntax tree, node by node
    loaded    the variables in it
    imports   dotted names that it imports or loads by name
    imported  for an import: the name in the module -> the dotted names in `imports`
    """

    names: list[str]
    words: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    imported: dict[str, set[str]] = field(default_factory=dict)


def statements_of(source: bytes, package: str) -> list[Statement]:
    """Return the statements of a module. package: the package that contains it"""
    collects = gc.isenabled()
    gc.disable()  # otherwise the collector traverses the growing tree many times
    try:
        body = ast.parse(source).body
        return [_statement(node, package) for node in body if not (_is_text(node) or _is_of_doors(node))]
    finally:
        if collects:
            gc.enable()


def content(statements: Iterable[Statement]) -> Content:
    """Return the joint content of several statements."""
    statements = list(statements)
    words = (word for statement in statements for word in statement.words)
    return hexdigest(words), sorted(set().union(*(statement.imports for statement in statements)))


def content_of_one(name: str, statements: Sequence[Statement]) -> Content:
    """Return the content of the statements that define a name of a module, and of those in the module that they use.
    Statements that define nothing always count. Raises KeyError if the module does not define the name.
    """
    if not any(name in statement.names for statement in statements):
        raise KeyError(name)
    always = [statement for statement in statements if not statement.names and not statement.imported]
    used, waiting = set[str](), [name, *(loaded for statement in always for loaded in statement.loaded)]
    while waiting:
        if (one := waiting.pop()) not in used:
            used.add(one)
            waiting += [loaded for statement in statements if one in statement.names for loaded in statement.loaded]
    tree, imports = content(each for each in statements if each in always or used & set(each.names))
    named = (names for each in statements for here, names in each.imported.items() if here in used or here == "*")
    return tree, sorted(set(imports).union(*named))


def hexdigest(lines: Iterable[str]) -> str:
    """Return the hexadecimal SHA-256 of lines."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _statement(node: ast.stmt, package: str) -> Statement:
    found = Statement(_names_of(node))
    if isinstance(node, Import):
        for alias in node.names:
            here = alias.asname or alias.name.partition(".")[0]
            found.imported.setdefault(here, set()).update(_imported(node, alias, package))
    _read(node, found, package)
    return found


def _names_of(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets: list[ast.expr] = node.targets if isinstance(node, ast.Assign) else []
    targets = [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else targets
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


def _read(node: ast.AST, found: Statement, package: str) -> None:
    """Add a node and all nodes below it to a statement."""
    kind: Any = type(node)
    found.words.append(kind.__name__)
    if isinstance(node, ast.Name):
        found.loaded.add(node.id)
    elif isinstance(node, Import):
        found.imports.update(name for alias in node.names for name in _imported(node, alias, package))
    elif isinstance(node, ast.Call):
        found.imports.update(_given_to_loader(node))
    for name in _fields(kind):
        value = getattr(node, name)
        if isinstance(value, ast.AST):
            _read(value, found, package)
        elif not isinstance(value, list):
            found.words.append(repr(value))
        elif not (name == "body" and _is_for_types(node)):
            found.words.append("[")
            for part in value:
                if not isinstance(part, ast.AST):
                    found.words.append(repr(part))
                elif not _is_text(part):
                    _read(part, found, package)
            found.words.append("]")


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in kind._fields if name not in UNSAID)


def _is_of_doors(node: ast.stmt) -> bool:
    """Return whether a statement only adds rules and learners by `with_doors`, or imports from its module."""
    if isinstance(node, ast.ImportFrom):
        return node.module == DOORS and not node.level
    call = node.value if isinstance(node, ast.Assign) else None
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return isinstance(call, ast.Call) and ast.unparse(call.func) == "with_doors" and names <= DOORS_NAMES


def _is_text(node: ast.AST) -> bool:
    """Return whether a node is meant only for people."""
    if isinstance(node, ast.keyword):
        return node.arg == "doc"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_for_types(node: ast.AST) -> bool:
    if not isinstance(node, ast.If):
        return False
    return "TYPE_CHECKING" in (getattr(node.test, "id", ""), getattr(node.test, "attr", ""))


def _given_to_loader(node: ast.Call) -> list[str]:
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if called not in LOADERS or not node.args or not isinstance(node.args[0], ast.Constant):
        return []
    return [str(node.args[0].value).partition(":")[0]]


def _imported(node: Import, alias: ast.alias, package: str) -> list[str]:
    """Return the dotted names of an import. `from a import b` gives a and a.b, since b may be a module; for a module in
    BY_NAME, it gives a:b.
    """
    if isinstance(node, ast.Import):
        return [alias.name]
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    source = ".".join([*above, *([node.module] if node.module else [])])
    if BY_NAME.fullmatch(source) and alias.name != "*":
        return [f"{source}:{alias.name}"]
    return [source, f"{source}.{alias.name}"]
