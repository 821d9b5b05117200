"""Failures of a simulation that are no bugs of this program; each is reported as one paragraph."""

from __future__ import annotations

import json
from typing import Any

from schedlab.config.errors import UserError


class ProtocolError(UserError):
    """A message of the scheduler breaks the rules of Batsim's protocol; `event` is the forbidden event or message."""

    def __init__(self, what: str, event: Any = None, *, expected: str = "", remedy: str = "") -> None:
        self.event = event
        super().__init__(what, where="" if event is None else _shown(event), expected=expected, remedy=remedy)


class SimulationDeadlock(UserError):
    """Nothing can happen any more although the simulation is not over; `jobs`: identifiers of the jobs that wait for
    the scheduler.
    """

    def __init__(self, what: str, jobs: tuple[str, ...], *, remedy: str = "") -> None:
        self.jobs = jobs
        super().__init__(what, expected="the scheduler to start or reject every job", remedy=remedy)


class UnsupportedProfile(UserError):
    """A job profile of a type that the embedded simulator does not have."""


def _shown(event: Any) -> str:
    """Return the event as one line of JSON, cut after 400 characters."""
    try:
        text = json.dumps(event, default=repr)
    except (TypeError, ValueError, RecursionError):
        text = repr(event)
    return f"event {text if len(text) <= 400 else text[:400] + '...'}"
