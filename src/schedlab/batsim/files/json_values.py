"""Checked values of JSON that other programs wrote. The UserError for a wrong value contains its place."""

from __future__ import annotations

import math
from typing import Any

from schedlab.config.errors import UserError


def number(value: Any, where: str, expected: str, *, least: float = 0.0, strictly: bool = False) -> float:
    """Return a finite number of at least `least`, or `strictly` above it, as a float. Raises UserError for any other
    value.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if math.isfinite(result) and (result > least or (result == least and not strictly)):
            return result
    raise UserError(f"is {_short(value)}", where=where, expected=expected)


def whole_number(value: Any, where: str, expected: str, *, least: int = 0) -> int:
    """Return an integer from `least` to below 2**53; a float without a fraction counts. Raises UserError for any other
    value.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53:
        return value
    raise UserError(f"is {_short(value)}", where=where, expected=expected)


def text_value(value: Any, where: str, expected: str) -> str:
    """Return a non-empty string. Raises UserError for any other value."""
    if isinstance(value, str) and value:
        return value
    raise UserError(f"is {_short(value)}", where=where, expected=expected)


def _short(value: Any) -> str:
    text = repr(value) if not isinstance(value, int) or value.bit_length() < 300 else "an enormous number"
    return text if len(text) <= 80 else text[:80] + "..."
