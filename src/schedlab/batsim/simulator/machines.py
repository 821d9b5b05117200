"""Hosts as the scheduler sees them: whether a job may start on them, their pstates and sleep states, and the time spent
in each state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from schedlab.batsim.resource_set import ResourceSet
from schedlab.config.errors import UserError
from schedlab.platforms.platform import Host

ALMOST_NOTHING = 1e-6
"""Share of a host's fastest pstate up to which another pstate is a mark (as an idle one is), not a speed."""


class State(IntEnum):
    """The state of a host; UNAVAILABLE takes the place of any other state."""

    SLEEPING = 0
    SWITCHING_ON = 1
    SWITCHING_OFF = 2
    IDLE = 3
    COMPUTING = 4
    UNAVAILABLE = 5


MOST_CHANGES = 4096
_IDLE, _COMPUTING = State.IDLE, State.COMPUTING  # members of an Enum take longer to look up


@dataclass(frozen=True, slots=True)
class SleepState:
    """A pstate in which a host sleeps, with the virtual pstates of the transitions into and out of it."""

    asleep: int
    falling_asleep: int
    waking_up: int


class Machines:
    """States of the compute hosts, numbered by id.

    Sets of hosts are the bits of an integer. Without sharing, a host either computes one job or is idle, so that hosts
    are counted in whole sets. Hosts that were ever unavailable, and all hosts with sharing, are followed one by one
    (`_followed`).
    """

    def __init__(self, hosts: Sequence[Host], sharing: bool, sleeping: bool) -> None:
        self.hosts, self.sharing = hosts, sharing
        self.everyone = (1 << len(hosts)) - 1
        self.busy = self.asleep = self.switching = self.unavailable = 0
        self.pstates = [host.pstate for host in hosts]
        self.sleep_states = [_sleep_states(host) if sleeping else {} for host in hosts]
        self.counts = [0] * len(State)
        self.times = [0.0] * len(State)
        self._jobs_on = [0] * len(hosts)
        self._states = [State.IDLE] * len(hosts)
        self._since = np.zeros(len(hosts))
        self._changes: list[tuple[int, float]] = []  # hosts and dates that `_since` does not contain yet
        self._followed = self.everyone if sharing else 0
        self._exclusive_storage = self._held = 0
        self.counts[State.IDLE] = len(hosts)
        if sleeping:
            _refuse_still_pstates(hosts, self.sleep_states)
        for number, pstate in enumerate(self.pstates):
            if pstate in self.sleep_states[number]:
                self._set(number, State.SLEEPING, 0.0)
                self.asleep |= 1 << number

    def refusal(self, hosts: ResourceSet) -> str:
        """Return the reason why a job cannot start on these hosts; empty if it can."""
        taken = 0 if self.sharing else self.busy
        if not (taken | self._held | self.unavailable | self.asleep | self.switching) & hosts.mask:
            return ""
        for mask, reason in (
            (taken, "computes another job"),
            (self._held, "is used by another job"),
            (self.unavailable, "is unavailable"),
            (self.asleep, "sleeps"),
            (self.switching, "is switching its pstate"),
        ):
            if mask & hosts.mask:
                return f"resource {_lowest(mask & hosts.mask)} {reason}"
        return ""

    def forbid_sharing(self, resources: ResourceSet) -> None:
        """Allow each storage host in `resources` in the allocation of only one job at a time."""
        self._exclusive_storage = resources.mask & ~self.everyone

    def still(self) -> int:
        """Return how many hosts are awake in a pstate that computes next to nothing (ALMOST_NOTHING)."""
        pairs = zip(self.hosts, self.pstates, strict=True)
        slow = [
            number
            for number, (host, pstate) in enumerate(pairs)
            if host.speeds[pstate] <= ALMOST_NOTHING * max(host.speeds)
        ]
        return sum(not self.asleep >> number & 1 for number in slow)

    def start_job(self, hosts: ResourceSet, now: float) -> None:
        """Mark hosts as occupied by a job."""
        mask = hosts.mask & self.everyone
        self.busy |= mask
        self._held |= hosts.mask & self._exclusive_storage
        followed = mask & self._followed
        plain = mask & ~followed
        for number in _numbers(followed) if followed else ():
            self._jobs_on[number] += 1
            if self._jobs_on[number] == 1:
                self._set(number, State.COMPUTING, now)
        if plain:
            count = plain.bit_count()
            self.counts[_IDLE] -= count
            self.counts[_COMPUTING] += count
            self._changes.append((plain, now))

    def end_job(self, hosts: ResourceSet, start: float, now: float) -> None:
        """Free the hosts of a job that began at the date `start` (s)."""
        mask = hosts.mask & self.everyone
        followed = mask & self._followed
        freed = mask & ~followed
        if freed:
            count = freed.bit_count()
            self.counts[_IDLE] += count
            self.counts[_COMPUTING] -= count
            self.times[_COMPUTING] += count * (now - start)
            self._changes.append((freed, now))
            if len(self._changes) > MOST_CHANGES:
                self._note_changes()
        for number in _numbers(followed) if followed else ():
            self._jobs_on[number] -= 1
            if self._jobs_on[number] == 0:
                freed |= 1 << number
                if self._states[number] != State.UNAVAILABLE:
                    self._set(number, State.IDLE, now)
        self.busy &= ~freed
        self._held &= ~hosts.mask

    def make_unavailable(self, hosts: ResourceSet, now: float) -> None:
        """Refuse new jobs on hosts; running ones continue."""
        for number in _numbers(hosts.mask & self.everyone & ~self.unavailable):
            bit = 1 << number
            if not self._followed & bit:
                self._followed |= bit
                if self.busy & bit:
                    self._jobs_on[number] = 1
                    self._states[number] = State.COMPUTING
            self._set(number, State.UNAVAILABLE, now)
            self.unavailable |= bit

    def make_available(self, hosts: ResourceSet, now: float) -> None:
        """Allow new jobs on hosts again."""
        for number in _numbers(hosts.mask & self.unavailable):
            bit = 1 << number
            self.unavailable &= ~bit
            if self.asleep & bit:
                state = State.SLEEPING
            elif self.switching & bit:
                state = (
                    State.SWITCHING_OFF
                    if self.pstates[number] in _falling(self.sleep_states[number])
                    else State.SWITCHING_ON
                )
            else:
                state = State.COMPUTING if self._jobs_on[number] else State.IDLE
            self._set(number, state, now)

    def begin_switch(self, number: int, pstate: int, to_sleep: bool, now: float) -> None:
        """Put an idle or sleeping host into the virtual pstate of a transition."""
        bit = 1 << number
        self.asleep &= ~bit
        self.switching |= bit
        self.pstates[number] = pstate
        self._set_unless_unavailable(number, State.SWITCHING_OFF if to_sleep else State.SWITCHING_ON, now)

    def end_switch(self, number: int, pstate: int, now: float) -> None:
        """Put a host into the requested pstate at the end of a transition."""
        bit = 1 << number
        self.switching &= ~bit
        self.pstates[number] = pstate
        asleep = pstate in self.sleep_states[number]
        if asleep:
            self.asleep |= bit
        self._set_unless_unavailable(number, State.SLEEPING if asleep else State.IDLE, now)

    def host_seconds(self) -> dict[State, float]:
        """Return the host-seconds in each state; each host counts until its last change of state, as Batsim does."""
        self._note_changes()
        times = {state: self.times[state] for state in State}
        times[State.IDLE] = max(0.0, float(self._since.sum()) - sum(self.times))
        return times

    def _set_unless_unavailable(self, number: int, state: State, now: float) -> None:
        if not self.unavailable >> number & 1:
            self._set(number, state, now)

    def _set(self, number: int, state: State, now: float) -> None:
        self._note_changes()
        old = self._states[number]
        self.counts[old] -= 1
        self.counts[state] += 1
        if old != State.IDLE:  # idle time is computed as the rest
            self.times[old] += now - float(self._since[number])
        self._states[number] = state
        self._since[number] = now

    def _note_changes(self) -> None:
        """Write the dates of the last changes into `_since`: from the latest on, so that each host is written once."""
        missing = self.everyone
        for mask, date in reversed(self._changes):
            if mask & missing:
                self._since[list(_numbers(mask & missing))] = date
                missing &= ~mask
        self._changes.clear()


def _numbers(mask: int) -> Iterable[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _lowest(mask: int) -> int:
    return (mask & -mask).bit_length() - 1


def _falling(states: dict[int, SleepState]) -> set[int]:
    return {state.falling_asleep for state in states.values()}


def _sleep_states(host: Host) -> dict[int, SleepState]:
    """Read `sleep_pstates`: `sleep:off:on` triples of pstates, separated by commas."""
    text = host.properties.get("sleep_pstates", "")
    if not text.strip():
        return {}
    states = {}
    for triple in text.split(","):
        parts = [part.strip() for part in triple.split(":")]
        if len(parts) != 3 or not all(
            part.isascii() and part.isdigit() and int(part) < len(host.speeds) for part in parts
        ):
            raise UserError(
                f"'{triple.strip()[:60]}' is no sleep state",
                where=host.at("sleep_pstates"),
                expected=f"sleep:off:on, three pstates from 0 to {len(host.speeds) - 1}",
            )
        asleep, falling, waking = map(int, parts)
        states[asleep] = SleepState(asleep, falling, waking)
    return states


def _refuse_still_pstates(hosts: Sequence[Host], sleep_states: list[dict[int, SleepState]]) -> None:
    """Raise UserError for a pstate of speed 0 that is no sleep state: computing and switching take time, which is work
    divided by speed.
    """
    for host, sleeps in zip(hosts, sleep_states, strict=True):
        for pstate, speed in enumerate(host.speeds):
            if not speed and pstate not in sleeps:
                raise UserError(
                    f"is 0 in pstate {pstate}, which is none to sleep in",
                    where=host.at("speed"),
                    expected="a positive speed",
                )
