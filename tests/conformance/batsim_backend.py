"""A stand-in for the simulator that says what was recorded."""

from __future__ import annotations

import json
from typing import Any

from schedlab.batsim.errors import SimulationDeadlock


class Replay:
    """A back end that says what was recorded, whatever it is answered, and keeps the answers; ends in a deadlock where
    told to.
    """

    def __init__(self, said: list[dict[str, Any]], deadlock: bool = False) -> None:
        self._said = iter(said)
        self._deadlock = deadlock
        self.answers: list[dict[str, Any]] = []

    def next_message(self) -> dict[str, Any] | None:
        message = next(self._said, None)
        if message is None and self._deadlock:
            raise SimulationDeadlock("w0!1 waits and nothing can happen any more", ("w0!1",))
        return message

    def answer(self, message: dict[str, Any]) -> None:
        self.answers.append(json.loads(json.dumps(message)))
