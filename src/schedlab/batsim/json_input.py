"""Reading JSON that other programs wrote: every mistake is a UserError that says where it is."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError


def read_text(path: Path, kind: str) -> str:
    """Return a file's UTF-8 text; UserError where it cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path), expected=kind) from None
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 (byte {error.start})", where=str(path), expected=kind) from None


def parse_json(text: str, where: str, kind: str) -> Any:
    """Return the value of a JSON text; UserError for anything else, NaN and infinities included."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UserError(f"is no valid JSON: {error or 'nested too deeply'}", where=where, expected=kind) from None


def number(value: Any, where: str, expected: str, *, least: float = 0.0, strictly: bool = False) -> float:
    """Return a finite number of at least (or, `strictly`, above) `least` as a float; UserError."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if math.isfinite(result) and (result > least or (result == least and not strictly)):
            return result
    raise UserError(f"is {_short(value)}", where=where, expected=expected)


def whole_number(value: Any, where: str, expected: str, *, least: int = 0) -> int:
    """Return an integer of at least `least` (a float without a fraction counts); UserError."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53:
        return value
    raise UserError(f"is {_short(value)}", where=where, expected=expected)


def text_value(value: Any, where: str, expected: str) -> str:
    """Return a non-empty string; UserError."""
    if isinstance(value, str) and value:
        return value
    raise UserError(f"is {_short(value)}", where=where, expected=expected)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 300 else "an enormous number"
    return text if len(text) <= 80 else text[:80] + "..."


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
