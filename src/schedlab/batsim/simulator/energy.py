"""Energy of hosts: the integral of a power that depends on pstate and load, exact between events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.platforms.platform import Host

POWER_PROPERTIES = ("wattage_per_state", "watt_per_state")  # the second: in files for SimGrid before 3.28


class EnergyMeter:
    """Energy (J) of numbered hosts. A host without load takes its idle power, a host with load l > 0
    `epsilon + l * (full - epsilon)` W.

    l is the ratio of the flop/s in use to those of all cores at the pstate's speed. Hosts are given as an index: a
    slice or an array of numbers. As in SimGrid 3.32, a host that begins in another pstate than 0 takes the idle power
    of pstate 0 until it is first updated: at its first work or change of pstate, or at the first reading after date 0
    (recorded case 40a).
    """

    def __init__(self, hosts: Sequence[Host]) -> None:
        count, states = len(hosts), max((len(host.speeds) for host in hosts), default=1)
        self._states = np.zeros((count, states, 4))  # idle, epsilon, full - epsilon (W), flop/s of all cores
        known: dict[tuple[str | int | None, ...], np.ndarray] = {}
        for number, host in enumerate(hosts):
            key = (*(host.properties.get(name) for name in POWER_PROPERTIES), len(host.speeds))
            if key not in known:
                known[key] = np.array([(idle, epsilon, full - epsilon) for idle, epsilon, full in _powers(host)])
            self._states[number, : len(host.speeds), :3] = known[key]
            flops = [speed * host.cores or 1.0 for speed in host.speeds]  # a speed of 0 is that of a sleep state
            self._states[number, : len(host.speeds), 3] = flops
        self._cores = [host.cores for host in hosts]
        self._idle, self._epsilon, self._range, self._full_flops = (np.zeros(count) for _ in range(4))
        self._used, self._power, self._energy = (np.zeros(count) for _ in range(3))
        self._since = np.zeros(count)
        self._take_state(np.arange(count), np.array([host.pstate for host in hosts], np.int64))
        self._power[:] = self._states[:, 0, 0]
        self._unseen = np.array([number for number, host in enumerate(hosts) if host.pstate != 0], np.int64)

    def use(self, hosts: Any, flops: Any, now: float) -> None:
        """Set the flop/s that hosts compute from now on."""
        self._see(hosts, now)
        self._account(hosts, now)
        self._used[hosts] = flops
        self._update(hosts)

    def change_pstate(self, hosts: Any, pstate: int, now: float) -> None:
        """Put hosts into a pstate; their load stays until `use` changes it."""
        self._see(hosts, now)
        self._account(hosts, now)
        self._take_state(hosts, pstate)
        self._update(hosts)

    def occupy_one_core(self, host: int, now: float) -> None:
        """Let one core of a host work, as a transition between two pstates does."""
        self.use(host, self._full_flops[host] / self._cores[host], now)

    def total(self, now: float) -> float:
        """Return the energy in J of all hosts since date 0."""
        self.look(now)
        return float((self._energy + self._power * (now - self._since)).sum())

    def of(self, hosts: Any, now: float) -> float:
        """Return the energy in J of some hosts since date 0."""
        self.look(now)
        return float((self._energy[hosts] + self._power[hosts] * (now - self._since[hosts])).sum())

    def least_power(self) -> float:
        """Return the power in W of all hosts in their pstates with load near 0 (Batsim's `wattmin`)."""
        return float(self._epsilon.sum())

    def look(self, now: float) -> None:
        """Read the meter. Hosts that were never read before consume the power of their initial pstate from now on."""
        if len(self._unseen) and now > 0:
            self._see(self._unseen, now)

    def _see(self, hosts: Any, now: float) -> None:
        """Let hosts that were not updated before take the power of the pstate in which they began."""
        if len(self._unseen):
            seen = np.zeros(len(self._power), bool)
            seen[hosts] = True
            first_seen = self._unseen[seen[self._unseen]]
            self._unseen = self._unseen[~seen[self._unseen]]
            self._account(first_seen, now)
            self._update(first_seen)

    def _take_state(self, hosts: Any, pstate: Any) -> None:
        columns = (self._idle, self._epsilon, self._range, self._full_flops)
        for column, values in zip(columns, self._states[hosts, pstate].T, strict=True):
            column[hosts] = values

    def _account(self, hosts: Any, now: float) -> None:
        self._energy[hosts] += self._power[hosts] * (now - self._since[hosts])
        self._since[hosts] = now

    def _update(self, hosts: Any) -> None:
        load = np.minimum(self._used[hosts] / self._full_flops[hosts], 1.0)
        self._power[hosts] = np.where(load > 0, self._epsilon[hosts] + load * self._range[hosts], self._idle[hosts])


def _powers(host: Host) -> list[tuple[float, float, float]]:
    """Return (idle, epsilon, full) in W for each pstate of a host. Raises UserError for a missing or wrong property."""
    text = next((host.properties[name] for name in POWER_PROPERTIES if name in host.properties), None)
    here = host.at(POWER_PROPERTIES[0])
    expected = "idle:epsilon:full or idle:full in W for each pstate, separated by commas"
    if text is None:
        raise UserError(
            "is missing", where=here, expected=expected, remedy="add the property, or simulate without energy"
        )
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
