"""Runs of unchanged PyBatsim schedulers with a back end in the same process, without sockets or threads.

PyBatsim communicates with its simulator through an object `NetworkHandler`, which it makes itself. While PyBatsim makes
it, this name is replaced by LocalBus.
"""

from __future__ import annotations

import copy
import logging
import sys
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any
from unittest import mock

from schedlab.batsim.backends.backend import Backend
from schedlab.batsim.backends.time_limit import TimeIsUp, TimeLimit
from schedlab.batsim.errors import SimulationDeadlock
from schedlab.config.errors import UserError

SHARED_WITH_PYBATSIM = ("REGISTER_PROFILE", "REGISTER_JOB")
"""Events of replies whose dictionaries PyBatsim keeps and gives to the scheduler: the simulator needs copies."""


PYBATSIM_STARTS_AFTER_0 = "Invalid start time for the allocation"
NO_START_AT_0 = (
    "PyBatsim's high-level API can start no job at 0 s: let the first one come later (schedlab trace to-batsim ... "
    "--first-submit 1,"
    " in a scenario workload.batsim.first_submit)"
)


class SchedulerFailed(UserError):
    """The scheduler raised an error or took too long; the message names the place and the events being handled."""


class LocalBus:
    """Replaces `batsim.network.NetworkHandler`; messages are passed as dictionaries, never as text."""

    def __init__(self, backend: Backend, limit: TimeLimit) -> None:
        self._backend, self._limit = backend, limit
        self._logged = logging.getLogger("batsim.batsim").isEnabledFor(logging.INFO)
        self.message: dict[str, Any] | None = None
        self.error: BaseException | None = None
        """An error of the back end that is on its way through PyBatsim."""

    def bind(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def recv(self, blocking: bool = False) -> dict[str, Any] | None:  # noqa: ARG002
        """Return the simulator's next message; at a deadlock None, which PyBatsim takes for one. Raises
        SimulationDeadlock in the call after that.
        """
        if self.error is not None and isinstance(self.error, SimulationDeadlock):
            raise self.error
        self._limit.stop()
        try:
            self.message = self._backend.next_message()
        except SimulationDeadlock as deadlock:
            self.error = deadlock
            self.message = None
        except BaseException as error:
            self.error = error
            raise
        self._limit.start()
        return self.message if self._logged or self.message is None else _UnloggedMessage(self.message)

    def send(self, message: dict[str, Any]) -> None:
        """Pass the scheduler's decisions to the simulator; the scheduler's next turn begins with `recv`."""
        self._limit.stop()
        for event in message["events"]:
            if event["type"] in SHARED_WITH_PYBATSIM:
                event["data"] = copy.deepcopy(event["data"])
        decisions = dict(message)
        if not self._logged:
            message.clear()  # see _UnloggedMessage
        try:
            self._backend.answer(decisions)
        except BaseException as error:
            self.error = error
            raise


class _UnloggedMessage(dict[str, Any]):
    """A message whose text is empty: PyBatsim formats each message for its log even if the log is off, which takes a
    tenth of its time.
    """

    def __format__(self, _form: str) -> str:
        return ""


class EventSink:
    """A replacement for the optional socket on which PyBatsim publishes a scheduler's events; it passes the texts to a
    function.
    """

    def __init__(self, publish: Callable[[str], None]) -> None:
        self.send_string = publish

    def bind(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class PyBatsimRun:
    """A run of a PyBatsim scheduler with a back end, one message at a time.

    ```python
    with PyBatsimRun(simulation, scheduler) as run:
        while run.step():
            ...
    ```
    Entering creates PyBatsim's `Batsim` object (`run.batsim`, the scheduler's attribute `bs`), which receives and
    answers the first message; each `step` handles one more. A step of a Gymnasium environment can consist of one or
    several of these.

    scheduler       an instance of a low-level scheduler (`batsim.batsim.BatsimScheduler`)
    message_limit   wall-clock seconds that the scheduler may take for one message (see TimeLimit); None: no limit
    publish         receives the texts that the scheduler publishes with `bs.publish_event`; None: they are dropped

    Raises SchedulerFailed if the scheduler raises an error or takes too long, and every error of the back end
    (ProtocolError, and SimulationDeadlock after a call of the scheduler's `onDeadlock`).
    """

    def __init__(
        self,
        backend: Backend,
        scheduler: Any,
        *,
        message_limit: float | None = None,
        publish: Callable[[str], None] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.batsim: Any = None
        self._limit = TimeLimit(message_limit)
        self._backend = backend
        self._bus = LocalBus(backend, self._limit)
        self._publish = publish
        self._over = False

    def __enter__(self) -> PyBatsimRun:
        self._limit.__enter__()
        try:
            self._guarded(self._connect)
        except BaseException:
            self._limit.__exit__()
            raise
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._limit.__exit__(kind, error, trace)

    def step(self) -> bool:
        """Pass one message to the scheduler and its answer back; return False after the last message, when the back end
        has ended without an error.
        """
        if not self._over:
            self._over = not self._guarded(self.batsim.do_next_event)
            if self._over:
                self._backend.next_message()
        return not self._over

    def _connect(self) -> None:
        batsim_module = import_pybatsim()
        recursion_limit = sys.getrecursionlimit()
        handlers = {"local": self._bus, "publish": EventSink(self._publish or (lambda _text: None))}
        try:
            with mock.patch.object(batsim_module, "NetworkHandler", lambda endpoint, **_options: handlers[endpoint]):
                self.batsim = batsim_module.Batsim(self.scheduler, "local", None, event_endpoint="publish")
        finally:
            sys.setrecursionlimit(recursion_limit)  # PyBatsim sets 10,000

    def _guarded(self, call: Callable[[], Any]) -> Any:
        """Call PyBatsim; raise an error of the back end and a UserError of the scheduler as they are, and any other
        error of the scheduler as SchedulerFailed.
        """
        try:
            return self._limit.call(call)
        except TimeIsUp:
            raise SchedulerFailed(
                f"{self._who()} did not answer within {self._limit.seconds:g} s, {self._hearing()}"
            ) from None
        except (Exception, SystemExit) as error:
            if self._bus.error is not None:
                raise self._bus.error from None
            if isinstance(error, UserError):
                raise
            what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            remedy = NO_START_AT_0 if PYBATSIM_STARTS_AFTER_0 in what else ""
            raise SchedulerFailed(
                f"{self._who()} raised {what}, {_place(error)}, {self._hearing()}", remedy=remedy
            ) from error
        finally:
            self._limit.stop()

    def _who(self) -> str:
        own = getattr(
            self.scheduler, "_scheduler", self.scheduler
        )  # the high-level scheduler that PyBatsim's BaseBatsimScheduler wraps
        return f"the scheduler {type(own).__name__}"

    def _hearing(self) -> str:
        if self._bus.message is None:
            return "before the first message"
        types = ", ".join(dict.fromkeys(event["type"] for event in self._bus.message["events"])) or "no event"
        return f"while hearing the message at {self._bus.message['now']:g} s ({types})"


def run_pybatsim(backend: Backend, scheduler: Any, **options: Any) -> Any:
    """Run a PyBatsim scheduler with a back end to the end; return PyBatsim's `Batsim` object with its counters.

    Options and errors are those of PyBatsimRun.
    """
    with PyBatsimRun(backend, scheduler, **options) as run:
        while run.step():
            pass
    return run.batsim


def import_pybatsim() -> Any:
    """Return the module `batsim.batsim`. Raises UserError with the way to install PyBatsim if it is missing."""
    try:
        import batsim.batsim
    except ImportError as error:
        raise UserError(
            f"PyBatsim is not installed ({error})",
            remedy="run: pip install pyzmq procset sortedcontainers docopt && pip install --no-deps pybatsim==3.2.1",
        ) from error
    return batsim.batsim


def _place(error: BaseException) -> str:
    """Return file and line of the innermost frame that raised the error, as a text."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {frame.filename}:{frame.lineno} ({frame.name})"
