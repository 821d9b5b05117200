"""The recorded conversations of a real Batsim, and a stand-in that replays one to a scheduler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schedlab.batsim.errors import SimulationDeadlock


def conversation(case: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Read a case's messages as pairs of what the simulator said and what the scheduler answered."""
    lines = [json.loads(line) for line in (case / "protocol.jsonl").read_text().splitlines()]
    said = [line["msg"] for line in lines if line["dir"] == "batsim->sched"]
    answered = [line["msg"] for line in lines if line["dir"] == "sched->batsim"]
    return list(zip(said, answered, strict=True))


class Replay:
    """A back end that says what was recorded, whatever it is answered, and keeps the answers; ends in a deadlock where told to."""

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
