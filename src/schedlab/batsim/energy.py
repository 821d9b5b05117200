"""Energy of hosts: the integral of a power that depends on pstate and load, exact between events (section 5.4 of the protocol notes)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.platforms.batsim_xml import Host


class EnergyMeter:
    """Energy in J of numbered hosts. A host without load takes its idle power, with load l > 0 `epsilon + l * (full - epsilon)` W.

    l is the flop/s in use over those of all cores at the pstate's speed. Hosts are given as an index: a slice or an array of numbers.
    As in SimGrid 3.32, a host that begins in another pstate than 0 takes the idle power of pstate 0 until it is first looked at:
    at its first work or change of pstate, or at the first reading after date 0 (recorded case 40a).
    """

    def __init__(self, hosts: Sequence[Host], where: str) -> None:
        self._powers = [_powers(host, where) for host in hosts]
        self._flops = [tuple(speed * host.cores for speed in host.speeds) for host in hosts]
        self._cores = [host.cores for host in hosts]
        count = len(hosts)
        self._idle, self._epsilon, self._range, self._full_flops = (np.zeros(count) for _ in range(4))
        self._used, self._power, self._energy = (np.zeros(count) for _ in range(3))
        self._since = np.zeros(count)
        for number, host in enumerate(hosts):
            self._take_state(number, host.pstate)
        self._power[:] = [powers[0][0] for powers in self._powers]
        self._unseen = np.array([number for number, host in enumerate(hosts) if host.pstate != 0], np.int64)

    def use(self, hosts: Any, flops: Any, now: float) -> None:
        """Let hosts compute that many flop/s from now on."""
        self._see(hosts, now)
        self._account(hosts, now)
        self._used[hosts] = flops
        self._update(hosts)

    def change_pstate(self, host: int, pstate: int, now: float) -> None:
        """Put a host into a pstate; what it computes goes on until `use` says otherwise."""
        self._see(host, now)
        self._account(host, now)
        self._take_state(host, pstate)
        self._update(host)

    def occupy_one_core(self, host: int, now: float) -> None:
        """Let one core of a host be at work, as the transition between two pstates does."""
        self.use(host, self._full_flops[host] / self._cores[host], now)

    def total(self, now: float) -> float:
        """Return the energy in J of all hosts since date 0."""
        self._see_all(now)
        return float((self._energy + self._power * (now - self._since)).sum())

    def of(self, hosts: Any, now: float) -> float:
        """Return the energy in J of some hosts since date 0."""
        self._see_all(now)
        return float((self._energy[hosts] + self._power[hosts] * (now - self._since[hosts])).sum())

    def least_power(self) -> float:
        """Return the power in W of all hosts in their pstates with load near 0 (Batsim's `wattmin`)."""
        return float(self._epsilon.sum())

    def _see_all(self, now: float) -> None:
        if len(self._unseen) and now > 0:
            self._see(self._unseen, now)

    def _see(self, hosts: Any, now: float) -> None:
        """Let hosts take the power of the pstate that they began in."""
        if len(self._unseen):
            seen = np.zeros(len(self._power), bool)
            seen[hosts] = True
            first_seen = self._unseen[seen[self._unseen]]
            self._unseen = self._unseen[~seen[self._unseen]]
            self._account(first_seen, now)
            self._update(first_seen)

    def _take_state(self, host: int, pstate: int) -> None:
        idle, epsilon, full = self._powers[host][pstate]
        self._idle[host], self._epsilon[host], self._range[host] = idle, epsilon, full - epsilon
        self._full_flops[host] = self._flops[host][pstate]

    def _account(self, hosts: Any, now: float) -> None:
        self._energy[hosts] += self._power[hosts] * (now - self._since[hosts])
        self._since[hosts] = now

    def _update(self, hosts: Any) -> None:
        load = np.minimum(self._used[hosts] / self._full_flops[hosts], 1.0)
        self._power[hosts] = np.where(load > 0, self._epsilon[hosts] + load * self._range[hosts], self._idle[hosts])


def _powers(host: Host, where: str) -> list[tuple[float, float, float]]:
    """Read (idle, epsilon, full) in W of each pstate; older files name the property `watt_per_state`."""
    text = host.properties.get("wattage_per_state", host.properties.get("watt_per_state"))
    here = f"{where}: host '{host.name}', wattage_per_state"
    expected = "idle:epsilon:full or idle:full in W for each pstate, separated by commas"
    if text is None:
        raise UserError("is missing", where=here, expected=expected, remedy="add the property, or simulate without energy")
    states = text.split(",")
    if len(states) != len(host.speeds):
        raise UserError(f"has {len(states)} entries", where=here, expected=f"{len(host.speeds)}, one for each speed")
    powers = []
    for state in states:
        try:
            values = [float(part) for part in state.split(":")]
        except ValueError:
            values = []
        if len(values) not in (2, 3) or not all(math.isfinite(value) and value >= 0 for value in values):
            raise UserError(f"'{state.strip()}' is no power range", where=here, expected=expected)
        powers.append((values[0], values[-2], values[-1]))
    return powers
