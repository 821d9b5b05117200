"""The one mailbox of the simulator: messages of its actors, received one after the other in the order of posting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from schedlab.batsim.agenda import Agenda, Turn


class Mailbox:
    """Messages to be received (`posts`), in order; one with a latency keeps the receiver busy for that time, once its turn has come."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.posts: deque[tuple[Callable[[Any], None], Any, Callable[[], None] | None, float]] = deque()
        self._receiving = False

    def post(
        self, handler: Callable[[Any], None], argument: Any = None, then: Callable[[], None] | None = None, latency: float = 0.0
    ) -> None:
        """Post a message: `handler(argument)` when it is received, `then()` as the sender's next step after that."""
        self.posts.append((handler, argument, then, latency))

    def receive(self) -> tuple[Callable[[], None] | None] | None:
        """Handle the next message and return its sender's next step; None where there is none yet."""
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
