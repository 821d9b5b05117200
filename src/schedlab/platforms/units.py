"""Speeds, bandwidths and durations as SimGrid writes them in platform files."""

from __future__ import annotations

import re

from schedlab.config.errors import UserError

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)
_DECIMAL = {prefix: 1000.0**power for power, prefix in enumerate(("", "k", "M", "G", "T", "P", "E"))}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate(("K", "M", "G", "T", "P", "E"), start=1)}
_PREFIXES = _DECIMAL | _BINARY

_LEAST, _MOST = 1e-20, 1e30  # beyond these, ratios of quantities leave the range of floats

SPEED_UNITS = {f"{prefix}{unit}": factor for prefix, factor in _PREFIXES.items() for unit in ("f", "flops")}
BANDWIDTH_UNITS = {f"{prefix}Bps": factor for prefix, factor in _PREFIXES.items()} | {
    f"{prefix}bps": factor / 8 for prefix, factor in _PREFIXES.items()
}
TIME_UNITS = {
    "w": 604800.0,
    "d": 86400.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "ps": 1e-12,
}


def parse_speed(text: str, where: str) -> float:
    """Return the flop per second of a speed such as "100Mf"; UserError with `where` otherwise. A host that only stores
    data has 0f.
    """
    return _parse(text, SPEED_UNITS, where, "a speed such as 100Mf or 1.5Gf", zero=True)


def parse_bandwidth(text: str, where: str) -> float:
    """Return the bytes per second of a positive bandwidth such as "125MBps" or "1Gbps" (bits); UserError with `where`
    otherwise.
    """
    return _parse(text, BANDWIDTH_UNITS, where, "a positive bandwidth such as 125MBps or 1Gbps", zero=False)


def parse_time(text: str, where: str) -> float:
    """Return the seconds of a duration such as "50us"; UserError with `where` otherwise."""
    return _parse(text, TIME_UNITS, where, "a duration such as 50us or 1ms", zero=True)


def _parse(text: str, units: dict[str, float], where: str, expected: str, *, zero: bool) -> float:
    """Return a quantity in the base unit. A number without a unit is in that unit, as in SimGrid (which warns)."""
    match = _QUANTITY.fullmatch(text)
    factor = None if match is None else 1.0 if not match[2] else units.get(match[2])
    if match is None or factor is None:
        raise UserError(f"'{text}' is no quantity of this kind", where=where, expected=expected)
    value = float(match[1]) * factor
    if not (_LEAST <= value <= _MOST or (zero and value == 0)):
        raise UserError(f"'{text}' is out of range", where=where, expected=expected)
    return value
