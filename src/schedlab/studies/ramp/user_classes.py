"""Users' classes in a scenario, named by `_target_` and keyword arguments: importing, checking, constructing.

See docs/reference/ramp_extensions.md.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import model_validator

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.plugins import is_file_target, load_class, target_file, told_with_place
from schedlab.config.schema import Settings, setting

TARGET = "_target_"
FORMS = "FILE.py:CLASS or MODULE.CLASS"


class UserClass(Settings):
    """A user's class and its arguments. YAML writes `{_target_: ..., argument: value}`."""

    target: str = setting(doc=f"class, as {FORMS}, written as `_target_`", min_length=1)
    params: dict[str, Any] = setting({}, doc="keyword arguments of the class, written next to `_target_`")

    @model_validator(mode="before")
    @classmethod
    def _spread(cls, values: Any) -> Any:
        return spread_target(values)

    @classmethod
    def is_meant(cls, values: Any) -> str:
        """Return `class` for values that name a user's class, else `law`: the tags by which pydantic distinguishes
        them.
        """
        named = isinstance(values, UserClass) or (
            isinstance(values, Mapping) and bool({TARGET, "target"} & set(values))
        )
        return "class" if named else "law"

    @property
    def name(self) -> str:
        """Name of the class alone."""
        return self.target.replace(":", ".").rpartition(".")[2]


def spread_target(values: Any) -> Any:
    """Return `{_target_: T, key: value, ...}` as `{target: T, params: {key: value, ...}}`, without null values. Values
    without `_target_` are returned unchanged.
    """
    if not isinstance(values, Mapping) or TARGET not in values:
        return values
    params = {key: value for key, value in values.items() if key != TARGET and value is not None}
    return {"target": values[TARGET], "params": params}


@dataclass(frozen=True)
class Interface:
    """The methods and attributes that a class must have. kind: its name in messages; where: its key in a scenario."""

    kind: str
    where: str
    methods: tuple[str, ...]
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class UserObject:
    """An instance of a user's class."""

    given: UserClass
    interface: Interface
    made: Any = field(repr=False)

    @property
    def where(self) -> str:
        """The key of the scenario and the class, for messages."""
        return f"{self.interface.where}: {self.given.target}"

    @property
    def draws(self) -> bool:
        """Whether the class draws random numbers: whether it has the method `reset`."""
        return callable(getattr(self.made, "reset", None))

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method and return its result. An exception in the user's file becomes a UserError that names its
        line.
        """
        with told_with_place(_file_form(self.given.target), f"{self.interface.kind} '{self.given.name}'"):
            return getattr(self.made, method)(*arguments)


def user_object(given: UserClass, interface: Interface, **keywords: Any) -> UserObject:
    """Return an instance of a user's class, made with its `params` and further keyword arguments.

    Raises UserError for a module or class that does not exist, a class that lacks a method or an attribute of its
    interface, and arguments that it does not accept.
    """
    kind, where, name = interface.kind, interface.where, given.name
    found, form = find_class(given.target, interface), _file_form(given.target)
    if twice := sorted(keywords.keys() & given.params.keys()):
        what = f"'{twice[0]}' is given next to {TARGET}"
        raise UserError(what, where=where, remedy=f"{kind} '{name}' gets it from the scenario's own key")
    with told_with_place(form, f"{kind} '{name}'"):
        try:
            made = found(**keywords, **given.params)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            what = f"{kind} '{name}' cannot be made: {error}"
            remedy = f"write its arguments next to {TARGET}; null removes an inherited one"
            raise UserError(what, where=where, remedy=remedy) from None
    if missing := [key for key in interface.attributes if not hasattr(made, key)]:
        raise _lacks(given, interface, missing)
    return UserObject(given, interface, made)


def find_class(target: str, interface: Interface) -> type:
    """Return the class that FILE.py:CLASS or MODULE.CLASS names, with the methods of its interface. Raises UserError.

    If MODULE is a file of the working directory, this file is read.
    """
    form, where, methods = _file_form(target), interface.where, interface.methods
    if is_file_target(form):
        try:
            return load_class(form, interface.kind, methods)
        except UserError as error:
            what = f"{error.where}: {error.what}"
            raise UserError(what, where=where, expected=error.expected, remedy=error.remedy) from error
    module, _, name = target.replace(":", ".").rpartition(".")
    if not module:
        raise UserError(f"'{target}' names no class", where=where, expected=FORMS)
    try:
        loaded = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise UserError(
                f"module '{module}' does not run: {error}", where=where, remedy="mend the module"
            ) from error
        remedy = "write the path of its file from the working directory on, or install the module"
        raise UserError(f"there is no module '{module}'", where=where, expected=FORMS, remedy=remedy) from None
    except Exception as error:
        what = f"module '{module}' does not run: {type(error).__name__}: {error}"
        raise UserError(what, where=where, remedy="mend the module") from error
    found = getattr(loaded, name, None)
    if not isinstance(found, type):
        classes = [key for key, value in vars(loaded).items() if isinstance(value, type)]
        raise UserError(f"module '{module}' has no class '{name}'", where=where, remedy=did_you_mean(name, classes))
    if missing := [method for method in methods if not callable(getattr(found, method, None))]:
        raise _lacks(UserClass(target=target), interface, missing)
    return found


def class_files(given: Sequence[UserClass]) -> tuple[str, ...]:
    """Return the absolute paths of the files of users' classes, each once. Results depend on the content of these
    files.
    """
    return tuple(dict.fromkeys(path for one in given if (path := _source(one.target))))


def _lacks(given: UserClass, interface: Interface, missing: Sequence[str]) -> UserError:
    what = f"class '{given.name}' cannot serve as a {interface.kind}: it lacks {', '.join(missing)}"
    expected = ", ".join((*interface.methods, *interface.attributes))
    return UserError(what, where=f"{interface.where}: {given.target}", expected=expected)


def _file_form(target: str) -> str:
    """Return FILE.py:CLASS for a class in a module of the working directory; any other target unchanged."""
    module, _, name = target.replace(":", ".").rpartition(".")
    if is_file_target(target) or not module:
        return target
    path = Path(*module.split(".")).with_suffix(".py")
    return f"{path}:{name}" if path.is_file() else target


def _source(target: str) -> str:
    """Return the path of the file that defines a class; empty if none is found."""
    form = _file_form(target)
    if is_file_target(form):
        return str(target_file(form).absolute())
    try:
        spec = importlib.util.find_spec(target.replace(":", ".").rpartition(".")[0])
    except (ImportError, ValueError):
        return ""
    return spec.origin if spec is not None and spec.origin and spec.origin.endswith(".py") else ""
