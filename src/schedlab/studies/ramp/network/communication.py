"""Times of the deps of a placed job: single messages, and collectives among shards that all exchange data.

See docs/reference/ramp_model.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from schedlab.studies.ramp.network.topology import Spread, Topology
from schedlab.studies.ramp.placement.partitioning import Bundle, Partition, sequential_sum
from schedlab.studies.ramp.simulator.lru_cache import LruCache

MOST_BYTES_KEPT = 32_000_000  # size of the cache of spreads of sets of servers; the cache of their pairs has the same
KEY_BYTES = 200  # approximate size of a cached value and its key without the part that grows with the servers


@dataclass(frozen=True)
class Collective:
    """A collective: the numbers of its deps, which all take its time; the spread of its servers; its message in bytes;
    its time in s.
    """

    deps: np.ndarray
    spread: Spread
    message: float
    time: float


@dataclass(frozen=True, eq=False)
class Traffic:
    """Times and network links of the deps of a placed job.

    worker      int64[shards], the worker of each shard
    time        float64[deps], s by the cost model; a dep of a collective has the time of the collective, even within a
                server
    remote      bool[deps], whether the dep crosses the network: between different servers, with a size above 0
    collective  bool[deps], whether the dep belongs to a collective
    link        int64[deps], number of the link: source server x number of servers + destination server
    """

    worker: np.ndarray
    time: np.ndarray
    remote: np.ndarray
    collective: np.ndarray
    link: np.ndarray

    @cached_property
    def num_workers(self) -> int:
        """Number of workers with a shard."""
        return len(np.unique(self.worker))

    @cached_property
    def num_channels(self) -> int:
        """Number of channels with a flow: one for each directed link that is used."""
        return len(np.unique(self.link[self.remote]))


class CommunicationModel:
    """Times of deps on one topology. The spreads of sets of servers, and of their pairs, are kept in bounded caches."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._spreads, self._pairs = LruCache(MOST_BYTES_KEPT), LruCache(MOST_BYTES_KEPT)

    def traffic(self, partition: Partition, worker: np.ndarray) -> Traffic:
        """Return the traffic of a partition's deps with shard i on worker[i] (int64[shards])."""
        return self._compute(partition, worker, None)

    def collectives(self, partition: Partition, worker: np.ndarray) -> list[Collective]:
        """Return the collectives, op by op in file order: that of the forward op, that of its mate, and the weight
        synchronisations of the mate.
        """
        found: list[Collective] = []
        self._compute(partition, worker, found)
        return found

    def _compute(self, partition: Partition, worker: np.ndarray, found: list[Collective] | None) -> Traffic:
        server = worker // self.topology.workers
        source, destination = server[partition.dep_source], server[partition.dep_destination]
        time = self.topology.one_to_one_times(source, destination, partition.dep_size)
        collective = np.zeros(partition.num_deps, dtype=bool)
        for forward in range(partition.graph.num_forward):
            if partition.degrees[forward] == 1:
                continue
            mate = forward + partition.graph.num_forward
            arriving = [bundle for bundle in partition.incoming[mate] if bundle.source != mate]
            for bundles, by_source in ((partition.outgoing[forward], True), (arriving, False)):
                exchange = self._exchange(partition, server, bundles, by_source)
                if exchange is not None:
                    time[exchange.deps] = exchange.time
                    collective[exchange.deps] = True
                    if found is not None:
                        found.append(exchange)
            self._synchronise(partition, server, mate, time, collective, found)
        remote = (source != destination) & (partition.dep_size > 0)
        return Traffic(worker, time, remote, collective, source * self.topology.num_servers + destination)

    def _exchange(
        self, partition: Partition, server: np.ndarray, bundles: Sequence[Bundle], by_source: bool
    ) -> Collective | None:
        """Return the collective of these deps, or None if some server does not send as many of them as it receives."""
        if not bundles:
            return None
        total = self.topology.num_servers
        sent, received = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
        for bundle in bundles:
            senders = server[list(partition.shards(bundle.source))]
            receivers = server[list(partition.shards(bundle.destination))]
            np.add.at(sent, senders, bundle.width)
            np.add.at(received, receivers, len(senders))
        if not np.array_equal(sent, received):
            return None
        members = tuple(np.flatnonzero(sent).tolist())
        grids = [partition.deps(bundle) for bundle in bundles]
        deps = np.concatenate(grids, axis=1).reshape(-1) if by_source else np.concatenate(grids, axis=0).T.reshape(-1)
        message = sequential_sum(partition.dep_size[deps])
        spread = self._spread(members)
        return Collective(deps, spread, message, self.topology.collective_time(spread, message))

    def _synchronise(
        self,
        partition: Partition,
        server: np.ndarray,
        mate: int,
        time: np.ndarray,
        collective: np.ndarray,
        found: list[Collective] | None,
    ) -> None:
        """Let each pair of shards of a backward op exchange gradients in a collective of two deps."""
        bundle = next(bundle for bundle in partition.outgoing[mate] if bundle.destination == mate)
        deps, shards = partition.deps(bundle), int(partition.degrees[mate])
        codes, spreads = self._pair_spreads(tuple(server[list(partition.shards(mate))].tolist()))
        message = bundle.size + bundle.size
        times = np.array([self.topology.collective_time(spread, message) for spread in spreads])
        others = ~np.eye(shards, dtype=bool)
        time[deps] = times[codes[others]].reshape(shards, shards - 1)
        collective[deps] = True
        if found is not None:
            numbers = np.zeros((shards, shards), dtype=np.int64)
            numbers[others] = deps.reshape(-1)
            for first in range(shards):
                for second in range(first + 1, shards):
                    pair = np.array([numbers[second, first], numbers[first, second]])
                    code = codes[first, second]
                    found.append(Collective(pair, spreads[code], message, float(times[code])))

    def _spread(self, members: tuple[int, ...]) -> Spread:
        return self._spreads.get(members, lambda: self.topology.spread(members), lambda _: KEY_BYTES + 8 * len(members))

    def _pair_spreads(self, servers: tuple[int, ...]) -> tuple[np.ndarray, list[Spread]]:
        """Return the number of each pair's spread, uint8 or uint16 [k, k], and the spreads."""
        return self._pairs.get(
            servers, lambda: self._find_pairs(servers), lambda found: KEY_BYTES + 8 * len(servers) + found[0].nbytes
        )

    def _find_pairs(self, servers: tuple[int, ...]) -> tuple[np.ndarray, list[Spread]]:
        numbers: dict[Spread, int] = {}
        codes = np.zeros((len(servers), len(servers)), dtype=np.int64)
        for row, first in enumerate(servers):
            for column, second in enumerate(servers):
                if row != column:
                    codes[row, column] = numbers.setdefault(self.topology.spread((first, second)), len(numbers))
        return codes.astype(np.min_scalar_type(len(numbers))), list(numbers)
