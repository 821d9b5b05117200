"""The clock of a simulation, its planned actions, and the messages between its actors."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any


class Turn(IntEnum):
    """The order of actions with the same date."""

    TIMER = 0
    SUBMISSION = 1
    SCHEDULER = 2
    DELAY = 3
    TASK = 4
    SWITCH = 5
    EXTERNAL_EVENT = 6
    MESSAGE = 7


def tolerance(date: float) -> float:
    """Return the difference below which two dates count as equal, because sums of times that should be equal differ in
    their last digits.
    """
    return 1e-9 + 4e-16 * date


class Agenda:
    """The planned actions by date, and the current date `now` (s). An action with a token is cancelled if its
    argument's `token` has changed.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, int, Callable[[Any], None], Any, int]] = []
        self._count = 0
        self._sweep_at = 4096

    def at(self, date: float, turn: Turn, action: Callable[[Any], None], argument: Any = None, token: int = -1) -> None:
        """Plan `action(argument)` for a date (s)."""
        self._count += 1
        heapq.heappush(self._heap, (date, turn, self._count, action, argument, token))
        if len(self._heap) > self._sweep_at:
            self._heap = [entry for entry in self._heap if _holds(entry)]
            heapq.heapify(self._heap)
            self._sweep_at = max(4096, 2 * len(self._heap))

    def next_date(self) -> float:
        """Return the date of the next action (s); infinite if there is none."""
        heap = self._heap
        while heap and not _holds(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def run_date(self) -> None:
        """Advance to the next date and run all its actions. Dates that differ only in their last digits count as one,
        the latest of them.
        """
        heap = self._heap
        first = self.next_date()
        end = first + tolerance(first)
        due = [heapq.heappop(heap)]
        while heap and heap[0][0] <= end:
            due.append(heapq.heappop(heap))
        self.now = max(self.now, due[-1][0])
        if len(due) > 1:
            due.sort(key=lambda entry: entry[1:3])
        for entry in due:
            if _holds(entry):
                entry[3](entry[4])


def _holds(entry: tuple[float, int, int, Callable[[Any], None], Any, int]) -> bool:
    return entry[5] < 0 or entry[4].token == entry[5]


class Mailbox:
    """Messages to be received (`posts`), in order. A message with a latency (s) occupies the receiver for this time
    when its turn comes.
    """

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.posts: deque[tuple[Callable[[Any], None], Any, Callable[[], None] | None, float]] = deque()
        self._receiving = False

    def post(
        self,
        handler: Callable[[Any], None],
        argument: Any = None,
        then: Callable[[], None] | None = None,
        latency: float = 0.0,
    ) -> None:
        """Post a message: `handler(argument)` is called when it is received; `then()` is the sender's next step after
        that.
        """
        self.posts.append((handler, argument, then, latency))

    def receive(self) -> tuple[Callable[[], None] | None] | None:
        """Handle the next message and return a tuple of its sender's next step; None if there is no message yet."""
        if self._receiving or not self.posts:
            return None
        handler, argument, then, latency = self.posts.popleft()
        if latency > 0:
            self._receiving = True
            self._agenda.at(self._agenda.now + latency, Turn.MESSAGE, self._arrive, (handler, argument, then, 0.0))
            return None
        handler(argument)
        return (then,)

    def _arrive(self, post: tuple[Callable[[Any], None], Any, Callable[[], None] | None, float]) -> None:
        self._receiving = False
        self.posts.appendleft(post)


class Source:
    """A sender of messages: it posts groups of `items` at their `dates`, each after the previous group was received,
    and then `finish`.
    """

    def __init__(
        self,
        items: Sequence[Any],
        dates: Callable[[Any], float],
        agenda: Agenda,
        turn: Turn,
        mailbox: Mailbox,
        deliver: Callable[[Any], None],
        finish: Callable[[Any], None],
    ) -> None:
        self._items, self._date, self._agenda, self._turn = items, dates, agenda, turn
        self._mailbox, self._deliver, self._finish = mailbox, deliver, finish
        self._next = 0

    def go_on(self) -> None:
        """Plan or post the next group."""
        if self._next == len(self._items):
            self._mailbox.post(self._finish)
            return
        date = self._date(self._items[self._next])
        if date > self._agenda.now:
            self._agenda.at(date, self._turn, self._emit)
        else:
            self._emit(None)

    def _emit(self, _: Any) -> None:
        items, first = self._items, self._next
        last = first + 1
        while last < len(items) and self._date(items[last]) <= self._agenda.now:
            last += 1
        self._next = last
        self._mailbox.post(self._deliver, items[first:last], self.go_on)
