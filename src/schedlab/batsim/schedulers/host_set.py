"""Sets of host ids as sorted intervals: the cost of taking or returning hosts does not grow with the number of
hosts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class HostSet:
    """Host ids as disjoint closed intervals in ascending order; its text is Batsim's form of a resource set ('0-3 5
    7-9').
    """

    __slots__ = ("_firsts", "_lasts", "_size")

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        self._size = 0
        for first, last in intervals:
            self._insert([first], [last])

    def __len__(self) -> int:
        return self._size

    def __str__(self) -> str:
        return " ".join([str(a) if a == b else f"{a}-{b}" for a, b in zip(self._firsts, self._lasts, strict=True)])

    def intervals(self) -> list[tuple[int, int]]:
        """Return the (first, last) pairs in ascending order."""
        return list(zip(self._firsts, self._lasts, strict=True))

    def take_lowest(self, count: int) -> HostSet:
        """Remove the `count` lowest ids and return them as a set of their own; ValueError where there are fewer."""
        if count > self._size:
            raise ValueError(f"{count} hosts asked of {self._size}")
        firsts, lasts = self._firsts, self._lasts
        whole, missing = 0, count
        while missing and (length := lasts[whole] - firsts[whole] + 1) <= missing:
            missing -= length
            whole += 1
        taken = HostSet()
        taken._firsts, taken._lasts, taken._size = firsts[:whole], lasts[:whole], count
        del firsts[:whole], lasts[:whole]
        if missing:
            taken._firsts.append(firsts[0])
            taken._lasts.append(firsts[0] + missing - 1)
            firsts[0] += missing
        self._size -= count
        return taken

    def add(self, other: HostSet) -> None:
        """Put the ids of another set back; ValueError where one of them is here already."""
        self._insert(other._firsts, other._lasts)

    def _insert(self, new_firsts: list[int], new_lasts: list[int]) -> None:
        firsts, lasts = self._firsts, self._lasts
        for first, last in zip(new_firsts, new_lasts, strict=True):
            at = bisect_left(firsts, first)  # of the interval to the right, if any; the one to the left is at - 1
            left = lasts[at - 1] if at else -2
            right = firsts[at] if at < len(firsts) else last + 2
            if left >= first or right <= last:
                raise ValueError(f"hosts {first}-{last} are in the set already")
            if left == first - 1:
                if right == last + 1:
                    lasts[at - 1] = lasts.pop(at)
                    del firsts[at]
                else:
                    lasts[at - 1] = last
            elif right == last + 1:
                firsts[at] = first
            else:
                firsts.insert(at, first)
                lasts.insert(at, last)
            self._size += last - first + 1
