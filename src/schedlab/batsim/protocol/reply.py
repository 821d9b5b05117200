"""The form of a scheduler's reply: `{"now": s, "events": [{"timestamp": s, "type": text, "data": {...}}, ...]}`."""

from __future__ import annotations

import math
from typing import Any

from schedlab.batsim.errors import ProtocolError


def checked_events(message: Any) -> tuple[float, list[dict[str, Any]]]:
    """Return the reply's date and its events; ProtocolError where the form or the order of dates is wrong."""
    if not isinstance(message, dict) or not isinstance(message.get("events"), list):
        raise ProtocolError("the reply is no message", message, expected='{"now": ..., "events": [...]}')
    end = date_of(message.get("now"), message, "now")
    last = 0.0
    for event in message["events"]:
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise ProtocolError("is no event", event, expected='{"timestamp": ..., "type": ..., "data": {...}}')
        date = event.get("timestamp")
        if type(date) is not float or not last <= date <= end:
            date = date_of(date, event, "timestamp")
        if date > end:
            raise ProtocolError(
                f"timestamp {date} is later than the reply's now, {end}", event, expected="timestamp <= now"
            )
        if date < last:
            raise ProtocolError(
                f"timestamp {date} comes after {last}", event, expected="events in order of their dates"
            )
        last = date
        if not isinstance(event.get("data"), dict):
            raise ProtocolError("has no data", event, expected='an object "data", which may be empty')
    return end, message["events"]


def date_of(value: Any, event: Any, key: str) -> float:
    """Return a date in s; ProtocolError for anything but a finite number."""
    if type(value) is float and -math.inf < value < math.inf:
        return value
    if isinstance(value, float | int) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    elif hasattr(value, "item"):  # a NumPy number
        return date_of(value.item(), event, key)
    raise ProtocolError(f"{key} is {value!r:.60}", event, expected="a date in s")
