"""The number of hosts that are free from now on, and reservations of hosts. The code is compiled, because each event
needs it for every waiting job.
"""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled

SPARE = 8  # number of steps for which there is room at first; the room doubles when it is full


class Availability:
    """The number of hosts that are free from now on, as a step function of time, with reservations of hosts for spans
    of time.

    Between `times[i]` and `times[i + 1]`, `free[i]` hosts are free; the last step has no end. Dates and durations in s.
    """

    def __init__(self, now: float, hosts: int) -> None:
        self._times, self._free = np.empty(SPARE), np.empty(SPARE, np.int64)
        self._times[0], self._free[0] = now, hosts
        self._count = 1

    def advance(self, now: float) -> None:
        """Forget the time before `now`."""
        past = int(self._times[: self._count].searchsorted(now, side="right")) - 1
        if past > 0:
            left = self._count - past
            for column in (self._times, self._free):
                column[:left] = column[past : self._count]
            self._count = left
        self._times[0] = now

    def reserve(self, hosts: int, duration: float) -> float:
        """Reserve hosts from the first date at which they are free for the whole duration; return this date, or
        infinity if there is none.
        """
        begin = float(_earliest(self._times, self._free, self._count, hosts, duration, np.inf, -np.inf, np.inf))
        if begin < np.inf:
            self.occupy(begin, begin + duration, hosts)
        return begin

    def occupy(self, begin: float, end: float, hosts: int) -> None:
        """Occupy hosts for a span of time; a negative number frees them."""
        self._times, self._free = _with_room(self._times, self._free, self._count)
        self._count = _occupy(self._times, self._free, self._count, begin, end, hosts)

    def bring_forward(
        self, opened: list[tuple[float, float]], hosts: np.ndarray, durations: np.ndarray, starts: np.ndarray
    ) -> None:
        """Move reservations to earlier dates, after hosts were freed in the spans `opened`, until none can be
        moved.

        `hosts`, `durations` and `starts` describe the reservations (infinite start: none), shape (jobs,); `starts` is
        changed in place. The spans are processed one after the other, and for each span the reservations in their
        order: a reservation is removed and made again at the first possible date (its former span is free, so it cannot
        become later). If it moves, its former span is appended to the list of spans. Only a reservation that fits into
        the span, and starts after the span begins, can move because of it.
        """
        self._times, self._free, self._count = _bring_forward(
            self._times, self._free, self._count, np.array(opened), hosts, durations, starts
        )


@compiled
def _earliest(
    times: np.ndarray, free: np.ndarray, count: int, hosts: int, duration: float, before: float, low: float, high: float
) -> float:
    """Return the first date from which hosts are free for a duration; `before` if there is no earlier date.

    If `before` is finite, the reservation that would be moved occupies hosts from then on for the same duration. Hosts
    were freed between `low` and `high` only, so a span that ends by `low` or begins at `high` or later is no new
    possibility.
    """
    step = _step_at(times, count, low - duration)
    begin: float = times[step]
    while step < count and times[step] < before:
        if free[step] < hosts:
            if begin + duration <= times[step]:
                return begin
            begin = times[step + 1] if step + 1 < count else np.inf
            if begin >= high:
                return before
        step += 1
    while step < count and times[step] < begin + duration:
        if free[step] < (0 if times[step] < before + duration else hosts):
            return before
        step += 1
    return min(begin, before)


@compiled
def _with_room(times: np.ndarray, free: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns with room for the four steps that a move may add."""
    if count + 4 <= len(times):
        return times, free
    more_times, more_free = np.empty(2 * len(times)), np.empty(2 * len(times), np.int64)
    more_times[:count], more_free[:count] = times[:count], free[:count]
    return more_times, more_free


@compiled
def _occupy(times: np.ndarray, free: np.ndarray, count: int, begin: float, end: float, hosts: int) -> int:
    """Occupy hosts for a span of time; return the new number of steps, of which no two neighbours are equal."""
    first, count = _step(times, free, count, begin)
    last, count = _step(times, free, count, end)
    free[first:last] -= hosts
    count = _join(times, free, count, last)
    joined: int = _join(times, free, count, first)
    return joined


@compiled
def _step(times: np.ndarray, free: np.ndarray, count: int, date: float) -> tuple[int, int]:
    """Return the step that begins at a date, which is inserted if there is none, and the number of steps."""
    if date <= times[0]:
        return 0, count
    at = _step_at(times, count, date)
    if times[at] != date:
        at += 1
        for step in range(count, at, -1):
            times[step], free[step] = times[step - 1], free[step - 1]
        times[at], free[at] = date, free[at - 1]
        count += 1
    return at, count


@compiled
def _step_at(times: np.ndarray, count: int, date: float) -> int:
    """Return the last step that begins by a date; the first step if there is none."""
    first, last = 0, count - 1
    while first < last:
        middle = (first + last + 1) // 2
        if times[middle] <= date:
            first = middle
        else:
            last = middle - 1
    return first


@compiled
def _join(times: np.ndarray, free: np.ndarray, count: int, at: int) -> int:
    """Remove the step `at` if nothing changes at it; return the number of steps."""
    if at == 0 or at >= count or free[at] != free[at - 1]:
        return count
    for step in range(at, count - 1):
        times[step], free[step] = times[step + 1], free[step + 1]
    return count - 1


@compiled
def _most_free(times: np.ndarray, free: np.ndarray, count: int, begin: float, end: float) -> int:
    """Return the largest number of hosts that are free at any moment of a span of time."""
    step = _step_at(times, count, begin)
    most = 0
    while step < count and times[step] < end:
        most = max(most, free[step])
        step += 1
    return most


@compiled
def _bring_forward(
    times: np.ndarray,
    free: np.ndarray,
    count: int,
    opened: np.ndarray,
    hosts: np.ndarray,
    durations: np.ndarray,
    starts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Do the same as `Availability.bring_forward`; return the columns and the number of steps.

    A reservation that was examined can move only because of spans that were opened since then: `known` holds the number
    of spans at that time. `hull` holds the first begin and the last end of each span and all spans after it.
    """
    last = len(opened)
    stretches, hull = opened.copy(), np.empty_like(opened)
    for at in range(last):
        _extend_hull(hull, at, opened[at, 0], opened[at, 1])
    known = np.zeros(len(starts), np.int64)
    at = 0
    while at < last:
        begin, end = stretches[at]
        room = _most_free(times, free, count, begin, end)
        for job in range(len(starts)):
            start, duration = starts[job], durations[job]
            if known[job] == last or hosts[job] > room or not begin < start < np.inf:
                continue
            low, high = hull[max(at, known[job])]
            known[job] = last
            earlier = _earliest(times, free, count, hosts[job], duration, start, low, high)
            if earlier == start:
                continue
            times, free = _with_room(times, free, count)
            count = _occupy(times, free, count, start, start + duration, -int(hosts[job]))
            count = _occupy(times, free, count, earlier, earlier + duration, int(hosts[job]))
            starts[job] = earlier
            if last == len(stretches):
                stretches, hull = np.concatenate((stretches, stretches)), np.concatenate((hull, hull))
            stretches[last] = start, start + duration
            _extend_hull(hull, last, start, start + duration)
            last += 1
            room = _most_free(times, free, count, begin, end)
        at += 1
    return times, free, count


@compiled
def _extend_hull(hull: np.ndarray, last: int, begin: float, end: float) -> None:
    hull[last] = begin, end
    for at in range(last - 1, -1, -1):
        if hull[at, 0] <= begin and hull[at, 1] >= end:
            break
        hull[at] = min(hull[at, 0], begin), max(hull[at, 1], end)
