"""Batsim's messages over ZeroMQ, with time-outs: each is a UTF-8 JSON object, and both sides are on this machine unless
an option allows others.
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
    """One end of a conversation. `kind` is 'REQ' (sends first) or 'REP' (answers).

    endpoint    tcp://HOST:PORT, or ipc://PATH; the port of a bound tcp endpoint may be '*': the attribute `endpoint`
                then has the chosen port
    bind        whether this end binds the endpoint; otherwise it connects, even before the other side is there
    anywhere    whether other machines may reach the endpoint

    Raises UserError for an endpoint that is malformed or taken, or that other machines can reach without `anywhere`.
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
        """Return whether the other side closed a connection and none of its messages is left to receive."""
        return bool(self._monitor.poll(0)) and not self._socket.poll(int(SLICE * 1000))

    def send(self, message: dict[str, Any], seconds: float | None) -> None:
        """Send a message. If the other side is not there yet, a connected socket queues the message, and a bound one
        waits.

        Raises NoAnswer if it waits for longer than `seconds` (None: for ever), and ProtocolError for a message that
        JSON cannot express.
        """
        if not self._socket.poll(None if seconds is None else int(seconds * 1000), self._zmq.POLLOUT):
            raise NoAnswer
        self._socket.send(message_text(message).encode())

    def receive(self, seconds: float | None, look: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """Wait for a message and return it.

        seconds    longest time to wait; None: for ever
        look       called every SLICE s while waiting; may raise an error if the other side is gone

        Raises NoAnswer after this time, and ProtocolError for anything but a message of the protocol.
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
    """Return the message that the bytes encode. Raises ProtocolError if they encode none."""
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
    """Send the back end's messages through a REQ socket and pass the answers back, until SIMULATION_ENDS is answered.

    answer_limit   wall-clock seconds for each answer; those for the first one include the start of the scheduler; None:
                   no limit

    Returns the number of messages. Raises SchedulerFailed if an answer does not come or the scheduler closes the
    connection, and ProtocolError if an answer breaks the rules.
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
