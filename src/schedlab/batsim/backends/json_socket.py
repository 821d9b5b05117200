"""Batsim's messages over ZeroMQ, with time-outs: one UTF-8 JSON object a message, on this machine unless an
option says otherwise.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable
from typing import Any

from schedlab.batsim.backends.backend import Backend, message_text
from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed
from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.workload import DEEPEST
from schedlab.config.errors import UserError
from schedlab.config.readers import parse_json

SLICE = 0.1
"""Seconds between two looks at whether the other side is still there."""


class NoAnswer(Exception):
    """The other side sent nothing within the time limit."""


class JsonSocket:
    """One end of a conversation. `kind` is 'REQ' (speaks first) or 'REP' (answers).

    endpoint    tcp://HOST:PORT, or ipc://PATH; a bound tcp endpoint may have '*' as its port: `endpoint` then has
                the chosen one
    bind        whether this end binds the endpoint (else it connects to it, also before the other side is there)
    anywhere    allow an endpoint that other machines can reach

    Raises UserError for an endpoint that is malformed, taken, or not of this machine without `anywhere`.
    """

    def __init__(self, kind: str, endpoint: str, *, bind: bool, anywhere: bool = False) -> None:
        zmq = _import_zmq()
        check_endpoint(endpoint, anywhere)
        self._context = zmq.Context()
        self._socket = self._context.socket(getattr(zmq, kind))
        self._socket.linger = 0
        self._zmq = zmq
        self._monitor = self._socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        try:
            (self._socket.bind if bind else self._socket.connect)(endpoint)
        except zmq.ZMQError as error:
            self.close()
            raise UserError(
                f"cannot {'bind' if bind else 'connect to'} {endpoint}: {error}", remedy="choose another endpoint"
            ) from error
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT).rstrip("\0") if bind else endpoint

    def __enter__(self) -> JsonSocket:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close at once; unsent messages are dropped."""
        self._socket.disable_monitor()
        self._monitor.close()
        self._socket.close()
        self._context.term()

    def other_side_left(self) -> bool:
        """True if the other side closed a connection and none of its messages is left to receive."""
        return bool(self._monitor.poll(0)) and not self._socket.poll(int(SLICE * 1000))

    def send(self, message: dict[str, Any], seconds: float | None) -> None:
        """Send a message. If the other side is not there yet, a connected socket queues the message, and a bound one
        waits.

        Raises NoAnswer where it waits for longer than `seconds` (None: for ever), ProtocolError for what JSON cannot
        hold.
        """
        if not self._socket.poll(None if seconds is None else int(seconds * 1000), self._zmq.POLLOUT):
            raise NoAnswer
        self._socket.send(message_text(message).encode())

    def receive(self, seconds: float | None, look: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Wait for a message.

        seconds    how long; None: for ever
        look       called between slices of waiting; may raise where the other side is gone

        Raises NoAnswer after the time, ProtocolError for anything but a message of the protocol.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not self._socket.poll(int(SLICE * 1000)):
            look()
            if end is not None and time.monotonic() >= end:
                raise NoAnswer
        parts = self._socket.recv_multipart()
        if len(parts) != 1:
            raise ProtocolError(f"a message of {len(parts)} parts: {b''.join(parts)[:80]!r}", expected="one part")
        return parse_message(parts[0])


def parse_message(data: bytes) -> dict[str, Any]:
    """Return the message in some bytes. Raises ProtocolError if they contain none."""
    form = "an object with 'now' and 'events'"
    try:
        message = parse_json(data.decode(), "", form, DEEPEST)
    except (ValueError, UserError) as error:
        why = error.what if isinstance(error, UserError) else str(error)
        raise ProtocolError(f"not a JSON message: {data[:80]!r} ({why})", expected=form) from None
    if (
        not isinstance(message, dict)
        or not isinstance(message.get("now"), int | float)
        or not isinstance(message.get("events"), list)
    ):
        raise ProtocolError(f"not a message: {data[:80]!r}", expected=form)
    return message


def check_endpoint(endpoint: str, anywhere: bool) -> None:
    """Raise UserError for an invalid endpoint, and for one that other machines can reach unless this is allowed."""
    form = "tcp://127.0.0.1:PORT, tcp://localhost:PORT or ipc://PATH"
    if endpoint.startswith("ipc://"):
        return
    match = re.fullmatch(r"tcp://(\[[^\]]+\]|[^:/\s]+):(\d+|\*)", endpoint)
    if match is None or (match[2] != "*" and not 0 < int(match[2]) < 65536):
        raise UserError(f"'{endpoint}' is no endpoint", expected=form)
    if not anywhere and not _is_loopback(match[1].strip("[]")):
        raise UserError(
            f"'{endpoint}' can be reached by other machines", expected=form, remedy="say --anywhere if that is wanted"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _import_zmq() -> Any:
    try:
        import zmq
    except ImportError as error:
        raise UserError("pyzmq is not installed", remedy="run: pip install pyzmq") from error
    return zmq


def serve(backend: Backend, socket: JsonSocket, answer_limit: float | None) -> int:
    """Send the back end's messages through a REQ socket and pass the answers to it, until SIMULATION_ENDS was
    answered.

    answer_limit   wall-clock seconds for each answer, the first included, for which the scheduler must also be started;
                   None: no limit

    Returns the number of messages. Raises SchedulerFailed where an answer does not come or the scheduler closes the
    connection, ProtocolError where an answer breaks the rules.
    """
    count = 0

    def look() -> None:
        if socket.other_side_left():
            raise SchedulerFailed(f"the scheduler left at {now:g} s without an answer, at {socket.endpoint}")

    while (message := backend.next_message()) is not None:
        now = message["now"]
        try:
            socket.send(message, answer_limit)
            answer = socket.receive(answer_limit, look)
        except NoAnswer:
            what = "the scheduler did not answer the message" if count else "no scheduler answered"
            remedy = "" if count else "start the scheduler, and see that no other program uses this endpoint"
            raise SchedulerFailed(
                f"{what} at {message['now']:g} s within {answer_limit:g} s, at {socket.endpoint}", remedy=remedy
            ) from None
        backend.answer(answer)
        count += 1
    return count
