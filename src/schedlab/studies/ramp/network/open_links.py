"""Over which links a further job may send, where jobs share servers and each job needs a channel of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from schedlab.studies.ramp.network.topology import Topology
from schedlab.studies.ramp.placement.rules import Block

Channel = tuple[int, int]  # link (source server x servers + destination), and a number below `channels`


@dataclass(frozen=True)
class OpenLinks:
    """Workers that each worker may send to (bits): on its own server, or behind a link with a free channel."""

    reach: tuple[int, ...]

    def joins(self, source: Block, destination: Block) -> bool:
        """Return whether every worker of a block may send to every worker of another."""
        return all(not destination.mask & ~self.reach[worker] for worker in source.servers)


def open_links(topology: Topology, held: Iterable[Channel]) -> OpenLinks | None:
    """Return the links of which some channel is not held; None where that is every link."""
    taken = Counter(link for link, _ in held)
    full = [divmod(link, topology.num_servers) for link, channels in taken.items() if channels >= topology.channels]
    if not full:
        return None
    of_server = (1 << topology.workers) - 1
    reach = [(1 << topology.num_workers) - 1] * topology.num_servers
    for source, destination in full:
        reach[source] &= ~(of_server << destination * topology.workers)
    return OpenLinks(tuple(reach[worker // topology.workers] for worker in range(topology.num_workers)))
