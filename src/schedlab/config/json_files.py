"""Reading JSON that somebody wrote: every way in which it can be wrong is told in one sentence."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError

MAX_BYTES = 1 << 30
MOST_LEVELS = 100  # of lists and objects within each other


def read_json(path: Path | str, what: str) -> Any:
    """Return the value in a JSON file; `what` says in messages what it should hold. Raises UserError; NaN and infinities are refused."""
    return parse_json(read_text(path, what), str(path), what)


def read_text(path: Path | str, what: str) -> str:
    """Return a file's UTF-8 text; `what` says in messages what it should hold. Raises UserError."""
    path = Path(path)
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except FileNotFoundError:
        raise UserError("there is no such file", where=str(path), expected=what) from None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", where=str(path), expected=what) from None
    if data is None:
        raise UserError("is larger than 1 GiB", where=str(path), expected=what)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"byte 0x{data[error.start]:02x} is not UTF-8", where=str(path), expected=what) from None


def parse_json(text: str, where: str, what: str, most_levels: int = MOST_LEVELS) -> Any:
    """Return the value of a JSON text; `where` and `what` as messages name it. Raises UserError, also for NaN, infinities, double keys.

    most_levels: of lists and objects within each other; more for a caller that hands values on and does not walk through them.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise UserError(f"is no valid JSON: {error.msg}, line {error.lineno}, column {error.colno}", where=where, expected=what) from None
    except ValueError as error:
        raise UserError(f"{error}", where=where, expected=what) from None
    except RecursionError:
        raise UserError("is no valid JSON: nested too deeply", where=where, expected=what) from None
    if levels_exceed(value, most_levels):
        raise UserError(f"is nested too deeply, in more than {most_levels} levels", where=where, expected=what)
    return value


def levels_exceed(value: Any, most: int) -> bool:
    """Tell whether lists and mappings lie within each other in more than `most` levels: whoever walks through them recurses."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inside = [outer.values() if isinstance(outer, dict) else outer for outer in level]
        level = [value for values in inside for value in values if isinstance(value, dict | list)]
        if not level:
            return False
    return bool(level)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"holds {text}, which is too large")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        twice = next(key for key, number in times.items() if number > 1)
        raise ValueError(f"holds the key '{twice}' twice in one object")
    return found
