"""SIGTERM as an exception, so that a command ends its processes and removes half-written files before it ends."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STATUS = 143  # exit status of a command ended by SIGTERM, as a shell reports it: 128 + 15


class Terminated(BaseException):
    """Raised when SIGTERM arrives. It is not an Exception, so `except Exception` does not catch it."""


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def unwinding() -> Iterator[None]:
    """Within the block, SIGTERM raises Terminated. Only the main thread receives signals; in other threads this does
    nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
