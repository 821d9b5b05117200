"""The interface of back ends, with which a scheduler communicates: the embedded simulator or a real Batsim."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from schedlab.batsim.errors import ProtocolError
from schedlab.config.errors import UserError


class Backend(Protocol):
    """The simulator's side of Batsim's protocol: it sends the first message, and the scheduler answers each message
    exactly once.
    """

    def next_message(self) -> dict[str, Any] | None:
        """Continue to the next message `{"now": s, "events": [...]}` for the scheduler; return None after the answer to
        SIMULATION_ENDS.

        The caller may keep and change the dictionaries. Raises SimulationDeadlock if jobs wait and nothing can happen
        any more.
        """

    def answer(self, message: dict[str, Any]) -> None:
        """Receive the scheduler's reply to the last message. Raises ProtocolError with the event that is forbidden."""


class WrittenConversation:
    """A back end that also records its messages: it calls `write` with whether the simulator sent a message, and the
    message.
    """

    def __init__(self, backend: Backend, write: Callable[[bool, dict[str, Any]], None]) -> None:
        self._backend, self._write = backend, write

    def next_message(self) -> dict[str, Any] | None:
        """Return and record the simulator's next message."""
        message = self._backend.next_message()
        if message is not None:
            self._write(True, message)
        return message

    def answer(self, message: dict[str, Any]) -> None:
        """Record the scheduler's reply and pass it on."""
        self._write(False, message)
        self._backend.answer(message)


@contextmanager
def recorded(backend: Backend, path: Path | str | None) -> Iterator[Backend]:
    """Yield a back end whose conversation is recorded in a file, which gets its name when it is complete; a failure
    leaves PATH.partial.

    Each line is a JSON object, {"dir": "batsim->sched" | "sched->batsim", "msg": {...}}. Without a path, nothing is
    recorded. Raises UserError for a path that is a folder.
    """
    if path is None:
        yield backend
        return
    path = Path(path)
    if path.is_dir():
        raise UserError("is a folder", where=str(path), expected="a file for the conversation")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8") as file:

        def write(sent: bool, message: dict[str, Any]) -> None:
            direction = "batsim->sched" if sent else "sched->batsim"
            file.write(f'{{"dir":"{direction}","msg":{message_text(message)}}}\n')

        yield WrittenConversation(backend, write)
    partial.replace(path)


def message_text(message: dict[str, Any]) -> str:
    """Return a message as JSON. Raises ProtocolError for values that JSON cannot express."""
    try:
        return json.dumps(message, separators=(",", ":"), default=_plain, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ProtocolError(
            f"cannot be sent: {error or 'nested too deeply'}", message, expected="what JSON can hold"
        ) from None


def _plain(value: Any) -> Any:
    """Return a NumPy number, which some schedulers put into messages, as a plain one."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r} cannot be written as JSON")
