"""Requests for other pstates. A change of speed takes no time; falling asleep and waking up pass through virtual
pstates.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from schedlab.batsim.resource_set import ResourceSet
from schedlab.batsim.simulator.agenda import Agenda, Turn
from schedlab.batsim.simulator.energy import EnergyMeter
from schedlab.batsim.simulator.execution import Execution
from schedlab.batsim.simulator.machines import Machines
from schedlab.batsim.simulator.records import Records


class PowerStates:
    """Carries out SET_RESOURCE_STATE; `done(hosts, pstate)` is called when all hosts of a request have switched."""

    def __init__(
        self, agenda: Agenda, machines: Machines, meter: EnergyMeter, execution: Execution, records: Records
    ) -> None:
        self._agenda, self._machines, self._meter, self._execution, self._records = (
            agenda,
            machines,
            meter,
            execution,
            records,
        )
        self.done: Callable[[ResourceSet, int], None] = lambda hosts, pstate: None
        self.pending = 0
        # if no host can sleep, a request need not check each host: any pstate that all hosts have is allowed and is
        # reached at once
        self._never_asleep = not any(machines.sleep_states)
        self._common_pstates = min((len(host.speeds) for host in machines.hosts), default=0)
        speeds = [host.speeds[: self._common_pstates] for host in machines.hosts]
        self._speeds = np.array(speeds, float).reshape(len(speeds), self._common_pstates)

    def refusal(self, hosts: ResourceSet, pstate: int) -> str:
        """Return the reason why a request cannot be carried out; empty if it can."""
        machines = self._machines
        if self._never_asleep and 0 <= pstate < self._common_pstates:
            return ""
        for number in hosts:
            speeds, sleep_states = machines.hosts[number].speeds, machines.sleep_states[number]
            virtual = {state for sleep in sleep_states.values() for state in (sleep.falling_asleep, sleep.waking_up)}
            if not 0 <= pstate < len(speeds):
                return f"resource {number} has no pstate {pstate}: the last one is {len(speeds) - 1}"
            if pstate in virtual:
                return f"pstate {pstate} of resource {number} is a virtual one, passed through by a transition"
            if machines.switching >> number & 1:
                return f"resource {number} is switching its pstate"
            asleep = bool(machines.asleep >> number & 1)
            if asleep and pstate in sleep_states:
                return f"resource {number} sleeps and can only be woken"
            if pstate in sleep_states and machines.busy >> number & 1:
                return f"resource {number} computes and cannot sleep"
        return ""

    def request(self, hosts: ResourceSet, pstate: int) -> None:
        """Begin to put hosts into a pstate that `refusal` allows."""
        machines, now = self._machines, self._agenda.now
        to_sleep = not self._never_asleep and any(pstate in machines.sleep_states[number] for number in hosts)
        self._records.switch_requested(hosts, to_sleep)
        if self._never_asleep:
            self._switch_at_once(hosts, pstate)
            self._finish((hosts, pstate))
            return
        at_once: list[int] = []
        ends: dict[float, list[int]] = {}
        for number in hosts:
            sleep_states = machines.sleep_states[number]
            if pstate in sleep_states:
                passing = sleep_states[pstate].falling_asleep
            elif machines.asleep >> number & 1:
                passing = sleep_states[machines.pstates[number]].waking_up
            else:
                at_once.append(number)
                continue
            machines.begin_switch(number, passing, pstate in sleep_states, now)
            self._meter.change_pstate(number, passing, now)
            self._meter.occupy_one_core(number, now)
            ends.setdefault(now + 1 / machines.hosts[number].speeds[passing], []).append(number)
        if at_once:
            for number in at_once:
                machines.pstates[number] = pstate
            self._meter.change_pstate(at_once, pstate, now)
            self._execution.change_speeds(at_once, [machines.hosts[number].speeds[pstate] for number in at_once])
        if not ends:
            self._finish((hosts, pstate))
            return
        self._records.switch_began()
        self.pending += 1
        for end, numbers in ends.items():
            self._agenda.at(end, Turn.SWITCH, self._reach, (numbers, pstate))
        self._agenda.at(max(ends), Turn.SWITCH, self._finish_later, (hosts, pstate))

    def slow_down(self, hosts: ResourceSet, share: float) -> None:
        """Let hosts compute at a share of the speed of pstate 0 until their pstate is set again; their power stays."""
        full = np.array([self._machines.hosts[number].speeds[0] for number in hosts])
        self._execution.change_speeds(hosts.numbers, share * full)

    def _switch_at_once(self, hosts: ResourceSet, pstate: int) -> None:
        """Put hosts that never sleep into a pstate that all hosts have."""
        for first, last in hosts.intervals:
            self._machines.pstates[first : last + 1] = [pstate] * (last - first + 1)
        self._meter.change_pstate(self._records.hosts_index(hosts), pstate, self._agenda.now)
        self._execution.change_speeds(hosts.numbers, self._speeds[hosts.numbers, pstate])

    def _reach(self, switched: tuple[list[int], int]) -> None:
        numbers, pstate = switched
        now = self._agenda.now
        for number in numbers:
            self._machines.end_switch(number, pstate, now)
            self._meter.change_pstate(number, pstate, now)
            self._meter.use(number, 0.0, now)
        self._execution.change_speeds(numbers, [self._machines.hosts[number].speeds[pstate] for number in numbers])

    def _finish_later(self, request: tuple[ResourceSet, int]) -> None:
        self.pending -= 1
        self._finish(request)

    def _finish(self, request: tuple[ResourceSet, int]) -> None:
        self._records.switch_done(*request)
        self.done(*request)
