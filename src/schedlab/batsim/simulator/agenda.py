"""The clock of a simulation, its planned actions, and the messages between its actors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any


class Turn:
    """The order of actions with the same date; plain numbers, as members of an Enum take longer to look up."""

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

    def at(self, date: float, turn: int, action: Callable[[Any], None], argument: Any = None, token: int = -1) -> None:
        """Plan `action(argument)` for a date (s)."""
        self._count += 1
        heap = self._heap
        heappush(heap, (date, turn, self._count, action, argument, token))
        if len(heap) > self._sweep_at:
            heap[:] = [entry for entry in heap if _holds(entry)]
            heapify(heap)
            self._sweep_at = max(4096, 2 * len(heap))

    def run_date(self) -> bool:
        """Advance to the next date and run all its actions; return False if nothing is planned. Dates that differ only
        in their last digits count as one, the latest of them.
        """
        heap = self._heap
        while heap:
            entry = heappop(heap)
            first, _, _, action, argument, token = entry
            if token < 0 or argument.token == token:
                break
        else:
            return False
        end = first + tolerance(first)
        if not heap or heap[0][0] > end:  # the most frequent case
            self.now = max(self.now, first)
            action(argument)
            return True
        due = [entry]
        while heap and heap[0][0] <= end:
            due.append(heappop(heap))
        self.now = max(self.now, due[-1][0])
        due.sort(key=lambda entry: entry[1:3])
        for entry in due:
            if _holds(entry):
                entry[3](entry[4])
        return True


def _holds(entry: tuple[float, int, int, Callable[[Any], None], Any, int]) -> bool:
    return entry[5] < 0 or entry[4].token == entry[5]


Post = tuple[Callable[[Any], None], Any, Callable[[], None] | None, float]


class Mailbox:
    """Messages to be received (`posts`), in order. A message with a latency (s) occupies the receiver for this time
    when its turn comes.
    """

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.posts: deque[Post] = deque()
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

    def receive(self) -> Post | None:
        """Handle the next message and return it; None if there is no message yet."""
        if self._receiving or not self.posts:
            return None
        post = self.posts.popleft()
        handler, argument, then, latency = post
        if latency > 0:
            self._receiving = True
            self._agenda.at(self._agenda.now + latency, Turn.MESSAGE, self._arrive, (handler, argument, then, 0.0))
            return None
        handler(argument)
        return post

    def _arrive(self, post: Post) -> None:
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
        turn: int,
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
