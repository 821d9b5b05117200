"""Objects by name: `package.module:object`, and a user's own classes, which YAML names as FILE.py:CLASS."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import file_hash

INTERFACES = {"rule": ("reset", "act"), "learner": ("learn", "load")}


NAMED = re.compile(r"([\w.]+):(\w+)(?:\[([^\]]+)\])?")


def load_object(name: str) -> Any:
    """Return what `package.module:object` names, or `package.module:TABLE[key]`, an entry of a mapping.

    The module is imported now, so that a door loads nothing heavy before it is used. Raises ValueError for another
    form, and what the import raises.
    """
    if (parts := NAMED.fullmatch(name)) is None:
        raise ValueError(f"'{name}' is not of the form package.module:object")
    module, attribute, key = parts.groups()
    found = getattr(importlib.import_module(module), attribute)
    return found if key is None else found[key]


def is_file_target(target: str) -> bool:
    """Return whether a target names a class in a file (FILE.py:CLASS) and not a name that the study knows."""
    return target.rpartition(":")[0].endswith(".py")


def target_file(target: str) -> Path:
    """Return the file of a FILE.py:CLASS target, relative to the working directory unless absolute."""
    return Path(target.rpartition(":")[0])


def load_class(target: str, kind: str, methods: Sequence[str] | None = None) -> type:
    """Return the class that FILE.py:CLASS names, after checking that it has the methods of its kind.

    kind     what the class shall be: 'rule' (reset, act) or 'learner' (learn, load); another kind with its own
             `methods`
    Raises UserError where the file or the class is missing, the file fails to run, or a method is missing.
    """
    if not is_file_target(target):
        raise UserError(f"'{target}' names no class in a file", expected="FILE.py:CLASS")
    name = target.rpartition(":")[2]
    module = load_module(target_file(target))
    found = getattr(module, name, None)
    if not isinstance(found, type):
        classes = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        raise UserError(f"no class '{name}'", where=str(target_file(target)), remedy=did_you_mean(name, classes))
    wanted = INTERFACES[kind] if methods is None else methods
    missing = [method for method in wanted if not callable(getattr(found, method, None))]
    if missing:
        raise UserError(
            f"class '{name}' cannot serve as a {kind}: it lacks {', '.join(missing)}",
            where=str(target_file(target)),
            expected="the methods " + ", ".join(wanted),
        )
    return found


def find_class(target: str, kind: str) -> None:
    """Check a FILE.py:CLASS target without running the file. Raises UserError if the file, the class or, as far as can
    be seen, a method is missing.

    A class that is not written out at the top of the file (imported, or made by a call), and methods of its bases, are
    left to load_class.
    """
    path, name = target_file(target), target.rpartition(":")[2]
    if not path.is_file():
        raise UserError("no such file", where=str(path), expected=f"a Python file with the {kind}'s class")
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError) as error:
        raise UserError(
            f"the file does not run: {type(error).__name__}: {error}", where=str(path), remedy="mend the file"
        ) from None
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    if name in classes:
        there = {entry.name for entry in classes[name].body if isinstance(entry, ast.FunctionDef)}
        missing = [method for method in INTERFACES[kind] if method not in there]
        if missing and not classes[name].bases:
            what = f"class '{name}' cannot serve as a {kind}: it lacks {', '.join(missing)}"
            raise UserError(what, where=str(path), expected="the methods " + ", ".join(INTERFACES[kind]))
    elif not _may_bind(body, name):
        raise UserError(f"no class '{name}'", where=str(path), remedy=did_you_mean(name, classes))


def class_mistakes(target: str, kind: str, where: str) -> Iterator[UserError]:
    """Yield the mistake in a FILE.py:CLASS target, reported with its place in conf/ in front; the file is not run."""
    try:
        find_class(target, kind)
    except UserError as error:
        yield UserError(f"{error.where}: {error.what}", where=where, expected=error.expected, remedy=error.remedy)


def _may_bind(body: list[ast.stmt], name: str) -> bool:
    """Return whether statements other than functions and classes may give a name a value: an import, an assignment."""
    for node in (
        found
        for statement in body
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef)
        for found in ast.walk(statement)
    ):
        if isinstance(node, ast.alias) and (node.asname or node.name) in (name, "*"):
            return True
        if (isinstance(node, ast.Name) and node.id == name) or (isinstance(node, ast.ClassDef) and node.name == name):
            return True
    return False


def load_module(path: Path) -> ModuleType:
    """Run a Python file as a module, once for each content that the file has."""
    if not path.is_file():
        raise UserError("no such file", where=str(path), expected="a Python file with the user's class")
    name = f"schedlab_user_{path.stem}_{file_hash(path)[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError("is no Python file", where=str(path), expected="a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(
            f"the file does not run: {type(error).__name__}: {error}",
            where=place_in(path, error),
            remedy="mend the file",
        ) from error
    except BaseException:  # interrupted: half a module is none
        del sys.modules[name]
        raise
    return module


@contextmanager
def told_with_place(target: str, what: str) -> Iterator[None]:
    """Run code of FILE.py:CLASS. What it raises becomes a UserError that names the file and the line.

    what  what runs, as the message's begin: "rule 'patient'"
    A UserError, and an error that no line of the file lies behind, pass as they are. A target that is no file changes
    nothing.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not is_file_target(target) or (line := _line_in(target_file(target), error)) is None:
            raise
        place = f"{target_file(target)}:{line}"
        raise UserError(
            f"{what} failed: {type(error).__name__}: {error}", where=place, remedy="mend the file"
        ) from error


def place_in(path: Path, error: BaseException) -> str:
    """Return file and line of the deepest frame (or the syntax error) that is in the file itself; if none is, the file
    alone.
    """
    line = _line_in(path, error)
    return f"{path}:{line}" if line else str(path)


def _line_in(path: Path, error: BaseException) -> int | None:
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
