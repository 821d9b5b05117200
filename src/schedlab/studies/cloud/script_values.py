"""Whole numbers that the text of a script tells without running it: literals, arithmetic on them, and names that get one value."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

LARGEST = 10**18  # of a number, which an environment variable then holds in 18 digits
DIGITS = 18
DEEPEST = 40  # expressions within expressions and names behind names: also what a chain of names that leads back to itself ends at
OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda one, other: one + other,
    ast.Sub: lambda one, other: one - other,
    ast.Mult: lambda one, other: one * other,
    ast.FloorDiv: lambda one, other: one // other if other else 0,
    ast.Pow: lambda one, other: one**other if 0 <= other <= 64 and abs(one) <= LARGEST else 0,
}
GETTERS = ("get", "getenv", "setdefault", "pop")  # of os.environ or os


class KnownNumbers:
    """What expressions of a module come to. A name counts where one plain assignment in the whole text is all that sets it."""

    def __init__(self, tree: ast.Module) -> None:
        bound: Counter[str] = Counter()
        self.values: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            bound.update(_names_set(node))
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(target, ast.Name) and node.value is not None:
                self.values[target.id] = node.value
        self.values = {name: value for name, value in self.values.items() if bound[name] == 1}

    def whole_number(self, node: ast.expr | None, text: bool = False) -> int | None:
        """Return the whole number above 0 that an expression comes to, None where the text does not tell; text: also one in quotes."""
        found = self._value(node, text, DEEPEST)
        return found if found is not None and 0 < found < LARGEST else None

    def _value(self, node: ast.expr | None, text: bool, deep: int) -> int | None:
        if deep == 0:
            return None
        if isinstance(node, ast.Constant):
            return _literal(node.value, text)
        if isinstance(node, ast.Name):
            return self._value(self.values.get(node.id), text, deep - 1)
        if isinstance(node, ast.BinOp):
            sides = [self._value(side, False, deep - 1) for side in (node.left, node.right)]
            operation = OPERATIONS.get(type(node.op))
            return None if operation is None or None in sides or max(map(abs, sides)) > LARGEST else operation(*sides)
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
        if called == "int" or (called == "str" and text):
            return self._value(node.args[0], True, deep - 1) if len(node.args) == 1 and not node.keywords else None
        return None


def _names_set(node: ast.AST) -> Iterator[str]:
    """The names that a node of a tree gives something to."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        yield node.name or ""


def _literal(value: object, text: bool) -> int | None:
    if text and isinstance(value, str) and value.isdecimal() and len(value) <= DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def defaults(tree: ast.Module, variable: str) -> Iterator[ast.expr]:
    """Yield what stands for an environment variable that is not set: second arguments of `get` and its like, and `get(...) or this`."""
    for node in ast.walk(tree):
        if _asks(node, variable):
            yield from node.args[1:2]
            yield from (each.value for each in node.keywords if each.arg == "default")
        elif (
            isinstance(node, ast.BoolOp)
            and isinstance(node.op, ast.Or)
            and _asks(node.values[0], variable)
            and len(node.values[0].args) == 1
        ):
            yield node.values[1]


def _asks(node: ast.AST, variable: str) -> bool:
    """Whether a node is `os.environ.get(variable, ...)`, `os.getenv(variable, ...)` or one of their like."""
    if not isinstance(node, ast.Call) or not node.args or getattr(node.args[0], "value", None) != variable:
        return False
    return getattr(node.func, "attr", getattr(node.func, "id", None)) in GETTERS


def needs(tree: ast.Module, variable: str) -> bool:
    """Return whether a module takes an environment variable as given: by `os.environ[variable]` alone, and not within a `try`."""
    tried = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Try) for each in node.body for part in ast.walk(each)}
    plain = {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript) and id(node) not in tried}
    return all(id(node) in plain for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == variable)


def mentions(tree: ast.Module, variable: str) -> bool:
    """Return whether the name of an environment variable stands in a module as a text."""
    return any(isinstance(node, ast.Constant) and node.value == variable for node in ast.walk(tree))
