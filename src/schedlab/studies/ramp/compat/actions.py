"""What a program of one's own hands to the cluster: five actions by name, checked and made into plans.

Ops are called by their id, shards and servers by their labels, channels by their names, deps by their two shards.
See docs/reference/ramp_model.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.placement.blocks import Block, make_block
from schedlab.studies.ramp.placement.partitioning import Partition, degrees_of
from schedlab.studies.ramp.placement.placers import Placement, fits, placement_of, placement_order
from schedlab.studies.ramp.placement.ranks import srpt_dep_ranks, srpt_ranks
from schedlab.studies.ramp.simulator.cluster import JobPlan
from schedlab.studies.ramp.simulator.jobs import PARTS

if TYPE_CHECKING:
    from schedlab.studies.ramp.network.topology import Topology
    from schedlab.studies.ramp.simulator.cluster import Channel, Cluster, JobPlan
    from schedlab.studies.ramp.simulator.jobs import Job

Dep = tuple[str, str]
Channels = Set[str] | None


@dataclass(frozen=True)
class OpPartition:
    """job -> op id -> number of shards: 1 or even, the same for an op and its mate (others stay whole)."""

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
    """name of a channel that the dep takes, or None -> job -> dep -> priority.

    Under None stand deps that take no channel, and those whose channel does not matter to the schedule. A dep that has
    no priority is told;
    durations do not depend on the numbers: ready flows advance together or, in contention, shortest first.
    """

    priorities: Mapping[str | None, Mapping[int, Mapping[Dep, int]]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for jobs in self.priorities.values() for job, deps in jobs.items() if deps}


@dataclass(frozen=True)
class JointAction:
    """The five actions of a step. A job is handled if all five handle it; the first that does not is the cause."""

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

        Raises UserError for a job that does not wait, a shard without a server or unknown, a server that holds another
        job or is unknown, memory that is exceeded, an unknown dep, a channel that does not join the servers of its dep
        or that another job holds, and priorities that leave a shard or dep out or stand where it is not.
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
            channels = plan.channels or frozenset()
            if plan.placement.mask & taken:
                what = "takes a server of another job"
                raise UserError(what, where=f"action: job {index}", expected="servers of one job only")
            if channels & held:
                name = _channel_name(cluster.times.topology, *min(channels & held))
                what = f"takes {name} of another job"
                raise UserError(what, where=f"action: job {index}", expected="channels of one job only")
            taken |= plan.placement.mask
            held |= channels
            found[index] = plan
        return found

    def _plan(self, cluster: Cluster, job: Job) -> JobPlan:
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
        where, given = f"action: job {job}, op_schedule", {}
        places = dict(zip(split.shard_names, (labels[worker] for worker in server), strict=True))
        for label, jobs in self.op_schedule.priorities.items():
            if label not in labels:
                raise UserError(f"there is no server {label}", where=where, expected=f"a server such as {labels[0]}")
            for name, priority in jobs.get(job, {}).items():
                if name not in places:
                    raise UserError(f"there is no shard {name}", where=where, expected="shards of the partition")
                if places[name] != label:
                    raise UserError(f"shard {name} is not on {label}", where=where, expected="the shards that it holds")
                given[name] = priority
        if missing := places.keys() - given:
            raise UserError(f"shard {min(missing)} has no priority", where=where, expected="one for each shard")
        priorities = [given[name] for name in split.shard_names]
        by_name = np.argsort(np.array(split.shard_names), kind="stable")[::-1]
        sorted_shards = by_name[np.argsort(np.array(priorities)[by_name], kind="stable")]
        ranks = np.empty(len(priorities), dtype=np.int64)
        ranks[sorted_shards] = np.arange(len(priorities))
        return tuple(ranks.tolist())

    def _channels(self, cluster: Cluster, split: Partition, placement: Placement, job: int) -> frozenset[Channel]:
        """The channels that a job takes, checked against the servers of its deps and its dep schedule."""
        topology, traffic = cluster.times.topology, cluster.times.traffic(split, placement)
        given, where = self.dep_placement.channels[job], f"action: job {job}, dep_placement"
        deps = list(_named_deps(split))
        _require_known(given, deps, where)
        used: set[Channel] = set()
        for number, dep in enumerate(deps):
            chosen, link = set(given[dep] or ()), int(traffic.link[number])
            if not chosen and not traffic.remote[number]:
                continue
            joining = {_channel_name(topology, link, channel): (link, channel) for channel in range(topology.channels)}
            inside = link % topology.num_servers == link // topology.num_servers
            if not chosen or inside or chosen - joining.keys():
                what = f"{dep[0]} -> {dep[1]} takes {', '.join(sorted(map(str, chosen))) or 'no channel'}"
                expected = "None, for it stays on one server" if inside else f"one of {', '.join(sorted(joining))}"
                raise UserError(what, where=where, expected=expected)
            if traffic.remote[number]:  # a dep of no bytes sends nothing
                used |= {joining[name] for name in chosen}
        self._check_dep_schedule(deps, job)
        return frozenset(used)

    def _check_dep_schedule(self, deps: Sequence[Dep], job: int) -> None:
        """Refuse a schedule that leaves deps out, has unknown ones, or names another channel than the dep's."""
        where = f"action: job {job}, dep_schedule"
        _require_known(
            {dep for jobs in self.dep_schedule.priorities.values() for dep in jobs.get(job, {})}, deps, where
        )
        for channel, jobs in self.dep_schedule.priorities.items():
            for dep in jobs.get(job, {}):
                taken = self.dep_placement.channels[job][dep] or ()
                if channel is not None and channel not in taken:
                    expected = f"one of {', '.join(sorted(taken))}, or None" if taken else "None"
                    raise UserError(f"{dep[0]} -> {dep[1]} does not take {channel}", where=where, expected=expected)


def _require_known(given: Collection[Dep], deps: Sequence[Dep], where: str) -> None:
    known = set(deps)
    if unknown := set(given) - known:
        what = f"there is no dep {' -> '.join(map(str, min(unknown, key=str)))}"
        raise UserError(what, where=where, expected="deps of the partition")
    if missing := next((dep for dep in deps if dep not in given), None):
        raise UserError(f"{missing[0]} -> {missing[1]} is missing", where=where, expected="every dep of the job")


def _blocks(cluster: Cluster, split: Partition, servers: Mapping[str, str], where: str) -> list[Block]:
    labels = {label: number for number, label in enumerate(cluster.times.topology.worker_labels)}
    if unknown := set(servers) - set(split.shard_names):
        what = f"there is no shard {min(unknown)}"
        raise UserError(what, where=f"{where}, op_placement", expected="shards of the partition")
    blocks = []
    for op in range(split.graph.num_ops):
        places = []
        for shard in split.shards(op):
            name = split.shard_names[shard]
            if servers.get(name) not in labels:
                what = f"shard {name} is on {servers.get(name)}"
                raise UserError(what, where=f"{where}, op_placement", expected="a server such as 0-0-0")
            places.append(labels[servers[name]])
        blocks.append(make_block(tuple(places)))
    return blocks


def action_of(cluster: Cluster, plans: Mapping[int, JobPlan]) -> JointAction:
    """Return the five actions that say what plans say, with shortest-first schedules, as the managers' (section 8).

    A dep takes the first free channel of its link; a job for which a link has none is left out of dep_placement.
    """
    partitions, placements = {}, {}
    schedules, deps, dep_schedules = dict[Any, Any](), dict[Any, Any](), dict[Any, Any]()
    held = set(cluster.held)
    for job, plan in plans.items():
        split, topology = plan.split, cluster.times.topology
        server, names = cluster.times.workers(split, plan.placement), split.shard_names
        traffic = cluster.times.traffic(split, plan.placement)
        partitions[job] = {int(op): int(degree) for op, degree in zip(split.graph.ids, split.degrees, strict=True)}
        placements[job] = {name: topology.worker_labels[server[shard]] for shard, name in enumerate(names)}
        ranks = srpt_ranks(split.cost, server, placement_order(split, plan.placement))
        for shard, name in enumerate(names):
            schedules.setdefault(topology.worker_labels[server[shard]], {}).setdefault(job, {})[name] = int(
                ranks[shard]
            )
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
        OpPartition(partitions),
        OpPlacement(placements),
        OpSchedule(schedules),
        DepPlacement(deps),
        DepSchedule(dep_schedules),
    )


def _channel_name(topology: Topology, link: int, number: int) -> str:
    return topology.channel_name(*divmod(link, topology.num_servers), number)


def _named_deps(split: Partition) -> Iterable[Dep]:
    names = split.shard_names
    return (
        (names[source], names[destination])
        for source, destination in zip(split.dep_source, split.dep_destination, strict=True)
    )
