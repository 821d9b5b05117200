"""One training step in plain Python: the rules that `lookahead_kernel` compiles.

Slow, and read beside the kernel; the tests hold both against each other.
"""

from __future__ import annotations

import math

import numpy as np

from schedlab.studies.ramp.network.communication import Traffic
from schedlab.studies.ramp.placement.partitioning import Partition
from schedlab.studies.ramp.placement.ranks import srpt_dep_classes, srpt_dep_ranks
from schedlab.studies.ramp.simulator.lookahead import FlowRules


def plain_step(
    partition: Partition, traffic: Traffic, ranks: np.ndarray, rules: FlowRules
) -> tuple[list[float], list[tuple[int, float]]]:
    """Return [time, communication, computation, busy] in s, and (workers, s) of each tick. Raises ValueError where
    shards wait for ever.
    """
    step = _PlainStep(partition, traffic, ranks, rules)
    sums, ticks = [0.0] * 4, []
    while step.unfinished:
        running, flows = step.candidates(), list(step.flows)
        local = list(step.local)
        tick = min((step.left[shard] for shard in running), default=math.inf)
        tick = 0.0 if local else min(tick, step.shortest_flow())
        if tick == math.inf:
            raise ValueError("shards wait for ever")
        movers = step.movers()
        step.run(running, tick)
        if local:
            step.complete(local)
        elif flows:
            step.advance([flow for flow in flows if flow in movers], tick)
            sums[1] += tick
        sums[0] += tick
        if running:
            sums[2] += tick
            sums[3] += len(running) * tick
        ticks.append((len(running), tick))
    return sums, ticks


class _PlainStep:
    """What is ready, what is left, what has arrived."""

    def __init__(self, partition: Partition, traffic: Traffic, ranks: np.ndarray, rules: FlowRules) -> None:
        self.partition, self.traffic, self.ranks, self.rules = partition, traffic, ranks, rules
        self.left = partition.cost.tolist()
        self.dep_left = traffic.time.tolist()
        self.dep_ranks = srpt_dep_ranks(traffic.time) if rules.contention else srpt_dep_classes(traffic.time)
        self.needed = [0] * partition.num_shards
        self.arrived = [0] * partition.num_shards
        self.outgoing: list[list[int]] = [[] for _ in range(partition.num_shards)]
        for dep, (source, destination) in enumerate(zip(partition.dep_source, partition.dep_destination, strict=True)):
            self.outgoing[source].append(dep)
            self.needed[destination] += not partition.mutual[dep]
        self.ready = {shard for shard in range(partition.num_shards) if self.needed[shard] == 0}
        self.flows: list[int] = []
        self.local: list[int] = []
        self.unfinished = partition.num_shards + partition.num_deps

    def candidates(self) -> list[int]:
        """On each worker the ready shard of highest rank."""
        best: dict[int, int] = {}
        for shard in self.ready:
            worker = int(self.traffic.worker[shard])
            if worker not in best or self.ranks[shard] > self.ranks[best[worker]]:
                best[worker] = shard
        return list(best.values())

    def first_of_links(self) -> set[int]:
        """The ready flow of highest rank, of equals that with least left, on each link, of those that have to do with
        each other.
        """
        best: dict[int, int] = {}
        for dep in self.flows:
            if self.rules.contention and self.traffic.collective[dep]:
                continue
            link = int(self.traffic.link[dep])
            if link not in best or (self.dep_ranks[dep], -self.dep_left[dep]) > (
                self.dep_ranks[best[link]],
                -self.dep_left[best[link]],
            ):
                best[link] = dep
        return set(best.values())

    def movers(self) -> set[int]:
        """Flows that may advance: all, or where they contend the first of each link and collectives."""
        if not self.rules.contention:
            return set(self.flows)
        return self.first_of_links() | {dep for dep in self.flows if self.traffic.collective[dep]}

    def shortest_flow(self) -> float:
        """What is left of the flow that ends the tick."""
        deciding = (
            self.first_of_links() if self.rules.ticks_by_priority and not self.rules.contention else self.movers()
        )
        return min((self.dep_left[dep] for dep in deciding), default=math.inf)

    def run(self, running: list[int], tick: float) -> None:
        """Run shards; the deps of those that finish become ready."""
        for shard in running:
            self.left[shard] -= tick
            if self.left[shard] <= 0:
                self.ready.remove(shard)
                self.unfinished -= 1
                for dep in self.outgoing[shard]:
                    (self.flows if self.traffic.remote[dep] else self.local).append(dep)

    def advance(self, flows: list[int], tick: float) -> None:
        """Advance flows and complete those that are through."""
        through = []
        for dep in flows:
            self.dep_left[dep] -= tick
            if self.dep_left[dep] <= 0:
                self.flows.remove(dep)
                through.append(dep)
        self._arrive(through)

    def complete(self, deps: list[int]) -> None:
        """Complete deps that take no time."""
        for dep in deps:
            self.local.remove(dep)
        self._arrive(deps)

    def _arrive(self, deps: list[int]) -> None:
        for dep in deps:
            self.unfinished -= 1
            if self.partition.mutual[dep] and not self.rules.mutual_deps_count:
                continue
            shard = int(self.partition.dep_destination[dep])
            self.arrived[shard] += 1
            if self.arrived[shard] == self.needed[shard]:
                self.ready.add(shard)
