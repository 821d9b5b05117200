"""Typed sections: one declaration gives the defaults, the checks, the error messages and the table of parameters.

A section is a class on `Settings` whose fields are made by `setting`, each with a sentence and a unit:

    class Budget(Settings):
        \"\"\"How long a training job may run.\"\"\"

        seconds: float = setting(240.0, doc="training budget", unit="s", gt=0)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schedlab.config.errors import UserError, UserErrors, did_you_mean


class Settings(BaseModel):
    """Base of every typed section: unknown keys refused, values immutable, no NaN and no infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


S = TypeVar("S", bound=Settings)


def setting(default: Any = ..., *, doc: str, unit: str = "-", **checks: Any) -> Any:
    """Declare a field: its default (none: the key is required), one sentence, its unit, and pydantic's checks."""
    return Field(default, description=doc, json_schema_extra={"unit": unit}, **checks)


def section(kind: type[Settings], *, doc: str) -> Any:
    """Declare a nested section that stands at its own defaults where it is not given."""
    return Field(default_factory=kind, description=doc)


def validate(kind: type[S], values: Mapping[str, Any], locate: Any = None) -> S:
    """Return the typed section of plain values (what YAML or JSON holds), every mistake reported at once.

    locate(path) gives the text that stands for `where` (file: key) of a mistake at a tuple of keys; the dotted
    key without it. Raises UserErrors. Types are strict: no text for a number, no truth value for an integer.
    """
    try:
        return kind.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        where = locate or (lambda path: ".".join(str(key) for key in path))
        raise UserErrors(_describe(kind, item, where) for item in error.errors()) from None


def _describe(kind: type[Settings], item: Mapping[str, Any], where: Any) -> UserError:
    path = tuple(key for key in item["loc"])
    if item["type"] == "extra_forbidden":
        siblings = _fields_at(kind, path[:-1])
        return UserError(
            f"unknown key '{path[-1]}'", where=where(path), expected="a known key", remedy=did_you_mean(str(path[-1]), siblings)
        )
    if item["type"] == "missing":
        return UserError(f"key '{path[-1]}' is missing", where=where(path), expected=_field_doc(kind, path))
    message = str(item["msg"]).removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    given = f"'{path[-1]}' is {_short(item.get('input'))}" if path else "the section is not valid"
    doc = _field_doc(kind, path)
    return UserError(given, where=where(path), expected=message + (f" ({doc})" if doc else ""))


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


def _section_at(kind: type[Settings], path: tuple) -> type[Settings] | None:
    here: type[Settings] | None = kind
    for key in path:
        if here is None:
            return None
        if isinstance(key, int) or key not in here.model_fields:
            continue  # a list position, or the tag of a union
        here = _nested(here.model_fields[key].annotation)
    return here


def _fields_at(kind: type[Settings], path: tuple) -> list[str]:
    here = _section_at(kind, path)
    return list(here.model_fields) if here else []


def _field_doc(kind: type[Settings], path: tuple) -> str:
    owner = _section_at(kind, path[:-1]) if path else None
    field = owner.model_fields.get(str(path[-1])) if owner else None
    return (field.description or "") if field else ""


def parameter_rows(kind: type[Settings], prefix: str = "") -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (key, type, default, unit, sentence) of every field in order; sections of one value are spelled out with dotted keys."""
    for name, field in kind.model_fields.items():
        if _is_section(field.annotation) and not field.is_required():
            yield from parameter_rows(field.annotation, f"{prefix}{name}.")
            continue
        unit = (field.json_schema_extra or {}).get("unit", "-")
        default = "required" if field.is_required() else json.dumps(field.get_default(call_default_factory=True), default=str)
        yield prefix + name, type_text(field.annotation), default, str(unit), field.description or ""


def sections_within(kind: type[Settings]) -> list[type[Settings]]:
    """Return the sections that stand in lists, mappings and required keys of a section, each once, in order."""
    found: dict[type[Settings], None] = {}
    for field in kind.model_fields.values():
        spelled_out = _is_section(field.annotation) and not field.is_required()
        if spelled_out:
            found |= dict.fromkeys(sections_within(field.annotation))
        elif nested := _nested(field.annotation):
            found[nested] = None
    return list(found)


def type_text(annotation: Any) -> str:
    """Return a type as a reader of the documentation writes it: 'number', 'list of text', 'one of a, b'."""
    words = {float: "number", int: "integer", str: "text", bool: "true or false", type(None): "null", Any: "anything"}
    if annotation in words:
        return words[annotation]
    arguments = [argument for argument in get_args(annotation) if argument is not Ellipsis]
    origin = get_origin(annotation)
    if origin is Literal:
        return "one of " + ", ".join(str(argument) for argument in arguments)
    if origin in (tuple, list):
        return "list of " + " and ".join(dict.fromkeys(type_text(argument) for argument in arguments))
    if origin is dict:
        return "mapping to " + type_text(arguments[1])
    if arguments:
        return " or ".join(type_text(argument) for argument in arguments)
    return getattr(annotation, "__name__", str(annotation))


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Settings)
