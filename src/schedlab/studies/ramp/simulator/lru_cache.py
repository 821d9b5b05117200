"""A cache of computed values with a bounded total weight."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class LruCache:
    """Values by key. While the total weight exceeds `most`, the least recently used value is dropped, except the last
    one that remains.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._weight = 0
        self._values: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        """Number of cached values."""
        return len(self._values)

    def get(self, key: Hashable, make: Callable[[], Value], weight: Callable[[Value], int] = lambda _: 1) -> Value:
        """Return the value of a key; `make` computes it where it is not cached."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key][0]
        value = make()
        added = weight(value)
        self._values[key] = (value, added)
        self._weight += added
        while self._weight > self._most and len(self._values) > 1:
            _, (_, lost) = self._values.popitem(last=False)
            self._weight -= lost
        return value
