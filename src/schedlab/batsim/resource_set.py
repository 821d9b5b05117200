"""Sets of resources: written as closed intervals separated by spaces ("0-3 5 7-9"), stored as the bits of an
integer.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

FEW_INTERVALS = 8


class ResourceSet:
    """An immutable set of resource numbers: `intervals` (first, last) in order, `mask` with one bit each, `size`."""

    __slots__ = ("_numbers", "_text", "intervals", "mask", "size")

    def __init__(self, intervals: tuple[tuple[int, int], ...], mask: int) -> None:
        self.intervals, self.mask, self.size = intervals, mask, mask.bit_count()
        self._text: str | None = None
        self._numbers: np.ndarray | None = None

    def __str__(self) -> str:
        if self._text is None:
            self._text = " ".join([_text(first, last) for first, last in self.intervals])
        return self._text

    @property
    def numbers(self) -> np.ndarray:
        """The numbers in order, as an array that must not be changed."""
        if self._numbers is None:
            if 0 < len(self.intervals) <= FEW_INTERVALS:  # takes a fifth of the time; each computing job needs it once
                pieces = [np.arange(first, last + 1) for first, last in self.intervals]
                self._numbers = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            else:
                first, last = np.array(self.intervals, np.int64).reshape(-1, 2).T
                length = last - first + 1
                self._numbers = np.arange(self.size) + np.repeat(first - np.cumsum(length) + length, length)
            self._numbers.flags.writeable = False
        return self._numbers

    def __iter__(self) -> Any:
        for first, last in self.intervals:
            yield from range(first, last + 1)

    def __contains__(self, number: int) -> bool:
        return bool(self.mask >> number & 1)


EMPTY = ResourceSet((), 0)


@lru_cache(maxsize=4096)
def parse_resources(text: str, limit: int) -> ResourceSet:
    """Return the set in a text. Raises ValueError with the mistake if the text is malformed or contains a number that
    is not below `limit`.
    """
    mask, intervals, end, ordered, as_written = 0, [], -2, True, True
    parts = text.split()
    for part in parts:
        interval, bits, plain = _interval(part, limit)
        mask |= bits
        intervals.append(interval)
        as_written &= plain
        if interval[0] <= end + 1:
            ordered = False  # overlapping or touching: the intervals are read from the mask
        end = interval[1]
    if not ordered:
        return from_mask(mask)
    found = ResourceSet(tuple(intervals), mask)
    if as_written:
        found._text = " ".join(parts)
    return found


@lru_cache(maxsize=1 << 16)
def _interval(part: str, limit: int) -> tuple[tuple[int, int], int, bool]:
    """Return the interval (first, last) in a text, its mask, and whether the text is the one that `str` gives."""
    first_text, dash, last_text = part.partition("-")
    if not (
        first_text.isdecimal()
        and first_text.isascii()
        and (not dash or (last_text.isdecimal() and last_text.isascii()))
    ):
        raise ValueError(f"'{part[:40]}' is no interval of resources such as 3 or 0-7")
    if len(part) > 40:
        raise ValueError(f"'{part[:40]}...' names no resource")
    first = int(first_text)
    last = int(last_text) if dash else first
    if last < first:
        raise ValueError(f"interval '{part}' runs backwards")
    if last >= limit:
        raise ValueError(f"there is no resource {last}: the last one is {limit - 1}")
    return (first, last), ((1 << (last - first + 1)) - 1) << first, part == _text(first, last)


def _text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def from_mask(mask: int) -> ResourceSet:
    """Return the set of the numbers whose bits are set in `mask`."""
    intervals, rest, offset = [], mask, 0
    while rest:
        skip = (rest & -rest).bit_length() - 1
        rest >>= skip
        offset += skip
        length = (~rest & (rest + 1)).bit_length() - 1
        intervals.append((offset, offset + length - 1))
        rest >>= length
        offset += length
    return ResourceSet(tuple(intervals), mask)
