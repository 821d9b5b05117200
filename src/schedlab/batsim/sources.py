"""What comes from files at given dates: static jobs and external events, one group of equal date after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from schedlab.batsim.agenda import Agenda, Turn
from schedlab.batsim.mailbox import Mailbox


class Source:
    """Posts groups of `items` at their `dates`, each once the group before it was received, then `finish`."""

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
