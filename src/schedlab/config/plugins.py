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
    """Return the object that `package.module:object` or `package.module:TABLE[key]` (an entry of a mapping) names.

    The module is imported by this call, so that a study that is only named loads nothing heavy. Raises ValueError for a
    name of another form, and the errors of the import.
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

    kind     required kind of class: 'rule' (reset, act) or 'learner' (learn, load); for another kind, give its
             `methods`

    Raises UserError if the file or the class is missing, the file fails to run, or a method is missing.
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
    """Check a FILE.py:CLASS target without running the file. Raises UserError if the file or the class is missing or
    the class visibly lacks a method.

    Only load_class can check a class that is not defined at the top level of the file (imported, or made by a call) and
    methods of base classes.
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
    """Yield the mistake in a FILE.py:CLASS target, with its place in conf/ as `where`; the file is not run."""
    try:
        find_class(target, kind)
    except UserError as error:
        yield UserError(f"{error.where}: {error.what}", where=where, expected=error.expected, remedy=error.remedy)


def _may_bind(body: list[ast.stmt], name: str) -> bool:
    """Return whether a statement other than a function or class, such as an import or assignment, may bind a name."""
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
    """Run a Python file as a module, once for each content of the file."""
    if not path.is_file():
        raise UserError("no such file", where=str(path), expected="a Python file with the user's class")
    name = f"schedlab_user_{path.stem}_{file_hash(path)[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError("is no Python file", where=str(path), expected="a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look up their module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise UserError(
            f"the file does not run: {type(error).__name__}: {error}",
            where=place_in(path, error),
            remedy="mend the file",
        ) from error
    except BaseException:  # interrupted: remove the incomplete module
        del sys.modules[name]
        raise
    return module


@contextmanager
def told_with_place(target: str, what: str) -> Iterator[None]:
    """Run code of FILE.py:CLASS. An error that it raises becomes a UserError with the file and the line.

    what  the code that runs, for the start of the message: "rule 'patient'"

    A UserError, and an error without a line of the file in its traceback, are raised unchanged. If the target is no
    file, all errors are.
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
    """Return the file and line of the deepest frame (or the syntax error) in the file; if there is none, only the
    file.
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
