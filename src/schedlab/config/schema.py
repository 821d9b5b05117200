"""Typed sections: one declaration of a key gives its default, its checks, its error messages and its row in the table
of parameters.

A section is a class on `Settings` whose fields are made by `setting`, each with a sentence and a unit:

    class Budget(Settings):
        \"\"\"How long a training job may run.\"\"\"

        seconds: float = setting(240.0, doc="training budget", unit="s", gt=0)
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schedlab.config.errors import UserError, UserErrors, did_you_mean, nearest


class Settings(BaseModel):
    """Base class of every typed section. Unknown keys, NaN and infinity are errors; values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


def setting(default: Any = ..., *, doc: str, unit: str = "-", **checks: Any) -> Any:
    """Declare a key: its default (without one, the key is required), a description, its unit, and pydantic's checks."""
    return Field(default, description=doc, json_schema_extra={"unit": unit}, **checks)


def section(kind: type[Settings], *, doc: str) -> Any:
    """Declare a nested section. If it is not given, it has its own defaults."""
    return Field(default_factory=kind, description=doc)


def validate(kind: type[S], values: Mapping[str, Any], locate: Any = None) -> S:
    """Return the typed section of plain values, as in YAML or JSON. Raises UserErrors for all mistakes together.

    locate(path) returns the place (`where`) that a message names for a mistake at a tuple of keys; by default, the
    dotted key. Types are strict: text is not accepted for a number, nor true or false for an integer.
    """
    try:
        return kind.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        where = locate or (lambda path: ".".join(str(key) for key in path))
        raise UserErrors(_describe(kind, item, where) for item in _told_once(kind, error.errors(), values)) from None


def settings_given(kind: type[S], given: S | Mapping[str, Any] | None, where: str = "settings") -> S:
    """Return the typed section of the settings that a program passes: None gives the defaults, and a mapping of keys is
    validated. Raises UserError.
    """
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        what = f"{_short(given)} ({type(given).__name__})"
        raise UserError(what, where=where, expected=f"{kind.__name__} of {kind.__module__}, or a mapping of its keys")
    return validate(kind, given, lambda path: ".".join(map(str, (where, *path))))


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values merged with others, which have priority. Mappings are merged key by key; other values are
    replaced as a whole.
    """
    found = dict(base)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
        found[key] = merged(found[key], value) if both else value
    return found


class NoSettings(Settings):
    """A learner, rule or figure without settings."""


def names_within(settings: Settings, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    """Yield (path, kind of name, name) for every value of a section whose type states what it names
    (settings.PolicyName, ScenarioName).
    """
    for key, field in type(settings).model_fields.items():
        marks = [mark for mark in field.metadata if isinstance(mark, str)] or _marks_of_union(field.annotation)
        yield from _named(getattr(settings, key), marks[0] if marks else "", field.annotation, (*path, key))


def _marks_of_union(annotation: Any) -> list[str]:
    """Return the kinds of names in a union of types, such as `PolicyName | None`."""
    if not isinstance(annotation, UnionType) and get_origin(annotation) is not Union:
        return []
    return [
        mark for kind in get_args(annotation) for mark in getattr(kind, "__metadata__", ()) if isinstance(mark, str)
    ]


def _named(value: Any, what: str, annotation: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str, str]]:
    if isinstance(value, Settings):
        yield from names_within(value, path)
    elif isinstance(value, tuple):
        inner = get_args(annotation)[0] if get_args(annotation) else annotation
        marks = [mark for mark in getattr(inner, "__metadata__", ()) if isinstance(mark, str)]
        for number, entry in enumerate(value):
            yield from _named(entry, marks[0] if marks else what, inner, (*path, number))
    elif what and isinstance(value, str) and value:
        yield path, what, value


def _told_once(kind: type[Settings], items: Iterable[Mapping[str, Any]], values: Any) -> list[dict[str, Any]]:
    """Return the mistakes without those that follow from another one: a missing key next to its misspelling, the other
    branches of a union.
    """
    found = [{**item, "tagged": item["loc"], "loc": _without_tags(item, values)} for item in items]
    for extra in [item for item in found if item["type"] == "extra_forbidden"]:
        near = nearest(str(extra["loc"][-1]), _fields_at(kind, extra["tagged"][:-1]))
        found = [
            item for item in found if not (item["type"] == "missing" and item["loc"] == (*extra["loc"][:-1], near))
        ]
    above = {item["loc"][:depth] for item in found for depth in range(len(item["loc"]))}
    found = [
        item
        for item in found
        if not (item["loc"] in above and (item["type"].endswith("_type") or item["type"] == "too_short"))
    ]
    once: dict[tuple[Any, ...], dict[str, Any]] = {}
    for item in found:
        first = once.setdefault(item["loc"], item)
        if first is not item:
            first["msg"] = f"{first['msg']} or {_plain(item)}"
    return list(once.values())


def _without_tags(item: Mapping[str, Any], values: Any) -> tuple[Any, ...]:
    """Return the keys of a mistake as they are in the values; pydantic inserts the branches of unions between them."""
    path, here = [], values
    for number, key in enumerate(item["loc"]):
        inside = isinstance(here, Mapping) and key in here
        if inside or (isinstance(here, list | tuple) and isinstance(key, int) and key < len(here)):
            here = here[key]
            path.append(key)
        elif item["type"] == "missing" and number == len(item["loc"]) - 1:
            path.append(key)
    return tuple(path)


_PLAIN = {
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "an integer",
    "float_type": "a number",
}


def _plain(item: Mapping[str, Any]) -> str:
    """Return the expected kind of value in the words of the documentation."""
    if item["type"] in _PLAIN:
        return _PLAIN[item["type"]]
    if item["type"] in ("too_long", "too_short"):
        bound, limit = ("at most", "max_length") if item["type"] == "too_long" else ("at least", "min_length")
        return f"{bound} {item['ctx'][limit]} entries, not {item['ctx']['actual_length']}"
    message = str(item["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    return message[:1].lower() + message[1:]


def _describe(kind: type[Settings], item: Mapping[str, Any], where: Any) -> UserError:
    path, tagged = item["loc"], item["tagged"]
    if item["type"] == "extra_forbidden":
        name, siblings = str(path[-1]), _fields_at(kind, tagged[:-1])
        elsewhere = [key for key, *_ in parameter_rows(kind) if key.rpartition(".")[2] == name]
        remedy = f"did you mean '{elsewhere[0]}'?" if elsewhere else did_you_mean(name, siblings)
        return UserError(f"unknown key '{name}'", where=where(path), remedy=remedy)
    doc = _field_doc(kind, tagged)
    if item["type"] == "missing":
        return UserError(f"key '{path[-1]}' is missing", where=where(path), expected=doc)
    name = (
        f"entry {path[-1]} of '{path[-2]}'"
        if len(path) > 1 and isinstance(path[-1], int)
        else f"'{path[-1]}'"
        if path
        else ""
    )
    given = f"{name} is {_short(item.get('input'))}" if path else "the section is not valid"
    expected = _plain(item) + (f" ({doc})" if doc else "")
    remedy = _nearest_choice(item) if item["type"] == "literal_error" else ""
    return UserError(given, where=where(path), expected=expected, remedy=remedy)


def _nearest_choice(item: Mapping[str, Any]) -> str:
    near = nearest(
        str(item.get("input")), [choice.strip("'") for choice in re.split(r", | or ", item["ctx"]["expected"])]
    )
    return f"did you mean '{near}'?" if near else ""


def _short(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _nested(annotation: Any) -> type[Settings] | None:
    candidates = [annotation, *get_args(annotation)]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, Settings):
            return candidate
    for candidate in get_args(annotation):
        if (found := _nested(candidate)) is not None:
            return found
    return None


def _section_at(kind: type[Settings], path: tuple[Any, ...]) -> type[Settings] | None:
    here: type[Settings] | None = kind
    for key in path:
        if here is None:
            return None
        if isinstance(key, int) or key not in here.model_fields:
            continue  # a list position, or the tag of a union
        here = _nested(here.model_fields[key].annotation)
    return here


def _fields_at(kind: type[Settings], path: tuple[Any, ...]) -> list[str]:
    here = _section_at(kind, path)
    return list(here.model_fields) if here else []


def _field_doc(kind: type[Settings], path: tuple[Any, ...]) -> str:
    owner = _section_at(kind, path[:-1]) if path else None
    field = owner.model_fields.get(str(path[-1])) if owner else None
    if field is None and len(path) > 1 and isinstance(path[-1], int):
        return _field_doc(kind, path[:-1])  # the doc of a list also describes its entries
    return (field.description or "") if field else ""


def parameter_rows(
    kind: type[Settings], prefix: str = "", given: Settings | None = None
) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (key, type, default, unit, sentence) of every field in order. Nested sections are listed with dotted keys.

    given: values of the section that the section around it sets as a default
    """
    for name, field in kind.model_fields.items():
        if _is_section(field.annotation) and not field.is_required():
            default = getattr(given, name) if given else field.get_default(call_default_factory=True)
            yield from parameter_rows(cast(type[Settings], field.annotation), f"{prefix}{name}.", default)
            continue
        unit = field.json_schema_extra.get("unit", "-") if isinstance(field.json_schema_extra, dict) else "-"
        if given is not None:
            value = getattr(given, name)
        else:
            value = None if field.is_required() else field.get_default(call_default_factory=True)
        yield (
            prefix + name,
            type_text(field.annotation) + _bounds(field.metadata),
            "required" if field.is_required() and given is None else json.dumps(value, default=_plain_default),
            str(unit),
            field.description or "",
        )


def _plain_default(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, Settings) else str(value)


def _bounds(checks: Iterable[Any]) -> str:
    """Return the limits of a number or a list in words: ', above 0, at most 1000'; a length counts entries."""
    words = {"gt": "above {}", "ge": "at least {}", "lt": "below {}", "le": "at most {}"}
    words |= {"min_length": "at least {} long", "max_length": "at most {} long"}
    told = [
        text.format(f"{limit:,}")
        for check in checks
        for key, text in words.items()
        if (limit := getattr(check, key, None)) is not None
    ]
    return "".join(f", {text}" for text in told)


def sections_within(kind: type[Settings]) -> list[type[Settings]]:
    """Return the sections in lists, mappings and required keys of a section, in order and without repetition."""
    found: dict[type[Settings], None] = {}
    for field in kind.model_fields.values():
        spelled_out = _is_section(field.annotation) and not field.is_required()
        if spelled_out:
            found |= dict.fromkeys(sections_within(cast(type[Settings], field.annotation)))
        elif nested := _nested(field.annotation):
            found[nested] = None
    return list(found)


def type_text(annotation: Any) -> str:
    """Return a type in the words of the documentation: 'number', 'list of text', 'one of a, b'."""
    annotation = getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    words = {float: "number", int: "integer", str: "text", bool: "true or false", type(None): "null", Any: "anything"}
    if annotation in words:
        return words[annotation]
    arguments = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    origin = get_origin(annotation)
    if origin is Literal:
        values = ", ".join(str(argument) or "empty" for argument in arguments)
        return f"one of {values}" if len(arguments) > 1 else values
    if origin in (tuple, list):
        return "list of " + " and ".join(dict.fromkeys(type_text(argument) for argument in arguments))
    if origin is dict:
        return "mapping to " + type_text(arguments[1])
    if arguments:
        return " or ".join(type_text(argument) for argument in arguments)
    return getattr(annotation, "__name__", str(annotation))


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)
