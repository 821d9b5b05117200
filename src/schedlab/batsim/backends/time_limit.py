"""A limit on the wall-clock time of a user's Python code in this process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class TimeIsUp(BaseException):
    """Raised in code that took too long. It is no Exception, so that `except Exception` in a scheduler does not catch
    it.
    """


class TimeLimit:
    """An alarm: `start` sets it, `stop` cancels it, and when the time is over, `TimeIsUp` is raised in the running
    code.

    It uses the signal SIGALRM, hence it works in the main thread only (elsewhere there is no limit), and it rings again
    every second if the code continues. Code that does not return to the interpreter (a loop in a C extension) is not
    interrupted. As a context manager it installs its signal handler and restores the former one at the end.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._works = bool(seconds) and threading.current_thread() is threading.main_thread()
        self._former: Any = None
        self._set = False

    def __enter__(self) -> TimeLimit:
        if self._works:
            self._former = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()
        if self._works:
            signal.signal(signal.SIGALRM, self._former)

    def start(self) -> None:
        """Restart the alarm with the whole time."""
        if self._works:
            self._set = True
            signal.setitimer(signal.ITIMER_REAL, self.seconds or 0.0, 1.0)

    def stop(self) -> None:
        """Cancel the alarm."""
        if self._set:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self._set = False

    def call(self, function: Callable[[], T]) -> T:
        """Return the result of a function that starts and stops the alarm. After a TimeIsUp the alarm is off.

        The alarm may ring once more before it is off, for example if freeing the memory of the interrupted code takes
        longer than a second.
        """
        try:
            try:
                return function()
            except TimeIsUp:
                self.stop()
                raise
        except TimeIsUp:
            self.stop()
            raise

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        raise TimeIsUp
