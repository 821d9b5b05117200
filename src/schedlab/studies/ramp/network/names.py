"""Numbers of workers and channels by the names that programs use."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

import numpy as np

from schedlab.studies.ramp.network.topology import Topology

UNKNOWN = -2  # code for a name that no channel has


class NetworkNames:
    """Workers of a topology by label, and its channels by name: link x channels + number."""

    def __init__(self, topology: Topology) -> None:
        self._topology, self._codes = topology, dict[str, int]()
        self._servers = {label: number for number, label in enumerate(topology.labels)}
        self.workers = {label: number for number, label in enumerate(topology.worker_labels)}

    def code(self, name: str) -> int:
        """Return the code of a channel, or UNKNOWN if no channel has this name."""
        if name not in self._codes:
            self._codes[name] = self._find(name)
        return self._codes[name]

    def lowest(self, chosen: Sequence[Set[str] | None]) -> np.ndarray:
        """Return int64[n], the lowest code of each set of channel names; -1 for an empty set, UNKNOWN for an unknown
        name.
        """
        takes = np.fromiter(map(bool, chosen), dtype=bool, count=len(chosen))
        each = [name for names in chosen if names for name in names]
        for name in set(each):
            self.code(name)
        found = np.full(len(chosen), -1, dtype=np.int64)
        if len(each) == np.count_nonzero(takes):  # one channel in each set
            found[takes] = [self._codes[name] for name in each]
        else:
            found[takes] = [min(map(self.code, names)) for names in chosen if names]
        return found

    def _find(self, name: str) -> int:
        parts = re.fullmatch(r"src_(.+)_dst_(.+)_channel_(\d{1,9})", str(name), re.ASCII)
        if parts is None or not {parts[1], parts[2]} <= self._servers.keys():
            return UNKNOWN
        source, destination, number = self._servers[parts[1]], self._servers[parts[2]], int(parts[3])
        if number >= self._topology.channels or self._topology.channel_name(source, destination, number) != name:
            return UNKNOWN
        return (source * self._topology.num_servers + destination) * self._topology.channels + number
