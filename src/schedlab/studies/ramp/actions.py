"""What a program of one's own hands to the cluster: five actions by name, checked and made into plans.

Ops are called by their id, shards and servers by their labels, channels by their names, deps by their two shards.
Source: specification of the ramp study, section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.causes import PARTS
from schedlab.studies.ramp.partitioning import Partition, degrees_of
from schedlab.studies.ramp.placement_rules import Block, make_block
from schedlab.studies.ramp.placers import Placement, fits, placement_of, placement_order
from schedlab.studies.ramp.schedulers import srpt_dep_ranks, srpt_ranks

if TYPE_CHECKING:
    from schedlab.studies.ramp.cluster import Channel, Cluster, JobPlan
    from schedlab.studies.ramp.jobs import Job
    from schedlab.studies.ramp.topology import Topology

Dep = tuple[str, str]
Channels = Set[str] | None


@dataclass(frozen=True)
class OpPartition:
    """job -> op id -> number of shards: 1 or even, the same for an op and its mate (ops that are not named stay whole)."""

    degrees: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for job, degrees in self.degrees.items() if degrees}


@dataclass(frozen=True)
class OpPlacement:
    """job -> shard -> label of its worker (of its server, where a server has one)."""

    servers: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for job, servers in self.servers.items() if servers}


@dataclass(frozen=True)
class OpSchedule:
    """label of a worker -> job -> shard -> priority; the highest ready one runs."""

    priorities: Mapping[str, Mapping[int, Mapping[str, int]]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for jobs in self.priorities.values() for job, shards in jobs.items() if shards}


@dataclass(frozen=True)
class DepPlacement:
    """job -> dep -> names of the channels that it takes, None where it takes none (same server, or nothing to send)."""

    channels: Mapping[int, Mapping[Dep, Channels]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for job, deps in self.channels.items() if deps}


@dataclass(frozen=True)
class DepSchedule:
    """name of a channel (None for deps that take none) -> job -> dep -> priority.

    A dep that has none is told; durations do not depend on the numbers: ready flows advance together or, in contention, shortest first.
    """

    priorities: Mapping[str | None, Mapping[int, Mapping[Dep, int]]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for jobs in self.priorities.values() for job, deps in jobs.items() if deps}


@dataclass(frozen=True)
class JointAction:
    """The five actions of a step. A job is handled if all five handle it; the first that does not names the cause of its rejection."""

    op_partition: OpPartition = field(default_factory=OpPartition)
    op_placement: OpPlacement = field(default_factory=OpPlacement)
    op_schedule: OpSchedule = field(default_factory=OpSchedule)
    dep_placement: DepPlacement = field(default_factory=DepPlacement)
    dep_schedule: DepSchedule = field(default_factory=DepSchedule)

    def cause(self, job: int) -> str | None:
        """Return the first part that does not handle a job; None where all do."""
        return next((part for part in PARTS if job not in getattr(self, part).jobs), None)

    def decisions(self, cluster: Cluster) -> dict[int, JobPlan | str]:
        """Return what `Cluster.step` takes, for every waiting job: its plan, or the cause of its rejection.

        Raises UserError for a job that does not wait, a shard without a server or unknown, a server that holds another job, memory that is
        exceeded, a channel that does not join the servers of its dep or that another job holds, and priorities that leave a shard out.
        """
        waiting = {job.index: job for job in cluster.queue}
        if unknown := set().union(*(getattr(self, part).jobs for part in PARTS)) - waiting.keys():
            raise UserError(f"job {min(unknown)} does not wait", where="action", expected="jobs of the queue")
        found: dict[int, JobPlan | str] = {}
        taken, held = cluster.taken, set(cluster.held)
        for index, job in waiting.items():
            cause = self.cause(index)
            if cause is not None:
                found[index] = cause
                continue
            plan = self._plan(cluster, job)
            if plan.placement.mask & taken:
                raise UserError("takes a server of another job", where=f"action: job {index}", expected="servers of one job only")
            if plan.channels & held:
                name = _channel_name(cluster.times.topology, *min(plan.channels & held))
                raise UserError(f"takes {name} of another job", where=f"action: job {index}", expected="channels of one job only")
            taken |= plan.placement.mask
            held |= plan.channels
            found[index] = plan
        return found

    def _plan(self, cluster: Cluster, job: Job) -> JobPlan:
        from schedlab.studies.ramp.cluster import JobPlan

        where = f"action: job {job.index}"
        split = cluster.times.split(job.graph, degrees_of(job.graph, self.op_partition.degrees[job.index]))
        blocks = _blocks(cluster, split, self.op_placement.servers[job.index], where)
        placement = placement_of(blocks)
        if not fits(split, placement, cluster.memory):
            raise UserError("exceeds the memory of a server", where=where, expected="shards that fit, of both passes")
        ranks = self._ranks(cluster, split, placement, job.index)
        return JobPlan(split, placement_of(blocks, ranks=ranks), self._channels(cluster, split, placement, job.index))

    def _ranks(self, cluster: Cluster, split: Partition, placement: Placement, job: int) -> tuple[int, ...]:
        """The shards' ranks by their priorities; among equals the smallest name goes first."""
        labels, server = cluster.times.topology.worker_labels, cluster.times.workers(split, placement)
        priorities = []
        for shard, name in enumerate(split.shard_names):
            given = self.op_schedule.priorities.get(labels[server[shard]], {}).get(job, {})
            if name not in given:
                raise UserError(f"shard {name} has no priority", where=f"action: job {job}, op_schedule", expected="one for each shard")
            priorities.append(given[name])
        by_name = np.argsort(np.array(split.shard_names), kind="stable")[::-1]
        sorted_shards = by_name[np.argsort(np.array(priorities)[by_name], kind="stable")]
        ranks = np.empty(len(priorities), dtype=np.int64)
        ranks[sorted_shards] = np.arange(len(priorities))
        return tuple(ranks.tolist())

    def _channels(self, cluster: Cluster, split: Partition, placement: Placement, job: int) -> frozenset[Channel]:
        """The channels that a job takes, checked against the servers of its deps and its dep schedule."""
        topology, traffic = cluster.times.topology, cluster.times.traffic(split, placement)
        given, names = self.dep_placement.channels[job], split.shard_names
        scheduled = {dep for jobs in self.dep_schedule.priorities.values() for dep in jobs.get(job, {})}
        where = f"action: job {job}, dep_placement"
        used: set[Channel] = set()
        for number, ends in enumerate(zip(split.dep_source.tolist(), split.dep_destination.tolist(), strict=True)):
            dep = (names[ends[0]], names[ends[1]])
            if dep not in given or dep not in scheduled:
                part = "dep_placement" if dep not in given else "dep_schedule"
                raise UserError(f"{dep[0]} -> {dep[1]} is missing", where=f"action: job {job}, {part}", expected="every dep of the job")
            if not traffic.remote[number]:
                continue
            link = int(traffic.link[number])
            joining = {_channel_name(topology, link, channel): (link, channel) for channel in range(topology.channels)}
            chosen = set(given[dep] or ())
            if not chosen or chosen - joining.keys():
                what = f"{dep[0]} -> {dep[1]} takes {', '.join(sorted(map(str, chosen))) or 'no channel'}"
                raise UserError(what, where=where, expected=f"one of {', '.join(sorted(joining))}")
            used |= {joining[name] for name in chosen}
        return frozenset(used)


def _blocks(cluster: Cluster, split: Partition, servers: Mapping[str, str], where: str) -> list[Block]:
    labels = {label: number for number, label in enumerate(cluster.times.topology.worker_labels)}
    if unknown := set(servers) - set(split.shard_names):
        raise UserError(f"there is no shard {min(unknown)}", where=f"{where}, op_placement", expected="shards of the partition")
    blocks = []
    for op in range(split.graph.num_ops):
        places = []
        for shard in split.shards(op):
            name = split.shard_names[shard]
            if servers.get(name) not in labels:
                raise UserError(
                    f"shard {name} is on {servers.get(name)}", where=f"{where}, op_placement", expected="a server such as 0-0-0"
                )
            places.append(labels[servers[name]])
        blocks.append(make_block(tuple(places)))
    return blocks


def action_of(cluster: Cluster, plans: Mapping[int, JobPlan]) -> JointAction:
    """Return the five actions that say what plans say, with shortest-first schedules: what the managers of section 8 hand over.

    A dep takes the first channel of its link that no job holds; a job for which a link has none is left out of dep_placement.
    """
    partitions, placements, schedules, deps, dep_schedules = {}, {}, {}, {}, {}
    held = set(cluster.held)
    for job, plan in plans.items():
        split, topology = plan.split, cluster.times.topology
        server, names = cluster.times.workers(split, plan.placement), split.shard_names
        traffic = cluster.times.traffic(split, plan.placement)
        partitions[job] = {int(op): int(degree) for op, degree in zip(split.graph.ids, split.degrees, strict=True)}
        placements[job] = {name: topology.worker_labels[server[shard]] for shard, name in enumerate(names)}
        ranks = srpt_ranks(split.cost, server, placement_order(split, plan.placement))
        for shard, name in enumerate(names):
            schedules.setdefault(topology.worker_labels[server[shard]], {}).setdefault(job, {})[name] = int(ranks[shard])
        channels = cluster.free_channels(plan, held) if plan.channels is None else plan.channels
        if channels is None:
            continue
        held |= channels
        number_on, dep_ranks = dict(channels), srpt_dep_ranks(traffic.time)
        deps[job] = {}
        for number, dep in enumerate(_named_deps(split)):
            link = int(traffic.link[number])
            channel = _channel_name(topology, link, number_on.get(link, 0)) if traffic.remote[number] else None
            deps[job][dep] = None if channel is None else frozenset([channel])
            dep_schedules.setdefault(channel, {}).setdefault(job, {})[dep] = int(dep_ranks[number])
    return JointAction(
        OpPartition(partitions), OpPlacement(placements), OpSchedule(schedules), DepPlacement(deps), DepSchedule(dep_schedules)
    )


def _channel_name(topology: Topology, link: int, number: int) -> str:
    return topology.channel_name(*divmod(link, topology.num_servers), number)


def _named_deps(split: Partition) -> Iterable[Dep]:
    names = split.shard_names
    return ((names[source], names[destination]) for source, destination in zip(split.dep_source, split.dep_destination, strict=True))
