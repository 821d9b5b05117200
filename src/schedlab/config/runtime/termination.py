"""SIGTERM as an exception, so that what a command holds (processes, half written files) is let go in order."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STATUS = 143  # exit status of a command that SIGTERM ended: 128 + 15, as a shell tells it


class Terminated(BaseException):
    """SIGTERM came: unwind. No Exception, so that nothing swallows it by catching these."""


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def unwinding() -> Iterator[None]:
    """Have SIGTERM raise Terminated here. Signals reach the main thread alone: in another one nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
