"""The five actions that a user's program passes to the cluster, by name; they are checked and converted into plans.

Ops are referred to by id, shards and servers by label, channels by name, deps by their two shards.
See docs/reference/ramp_model.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.network.names import UNKNOWN
from schedlab.studies.ramp.placement.blocks import Block, make_block
from schedlab.studies.ramp.placement.partitioning import Partition, degrees_of
from schedlab.studies.ramp.placement.placers import fits, placement_of, placement_order
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
    """job -> dep -> names of its channels; None for a dep that needs no channel (same server or size 0)."""

    channels: Mapping[int, Mapping[Dep, Channels]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for job, deps in self.channels.items() if deps}


@dataclass(frozen=True)
class DepSchedule:
    """name of a channel that the dep takes, or None -> job -> dep -> priority: the highest ready one goes first.

    The key None holds deps without a channel and those whose channel does not matter to the schedule. Every dep has a
    priority. Priorities change durations only with `management.contention`, where messages on a channel wait for each
    other; else all ready messages advance together.
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
        """Return the argument of `Cluster.step`: for every waiting job its plan, or the cause of its rejection.

        Raises UserError for a job that does not wait, a shard that is unknown or has no server, a server that is
        unknown or holds another job, exceeded memory, an unknown dep, a channel that does not join the servers of its
        dep or that another job holds, and priorities that omit a shard or dep or are given for the wrong server.
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
        where, times = f"action: job {job.index}", cluster.times
        split = times.split(job.graph, degrees_of(job.graph, self.op_partition.degrees[job.index]))
        blocks = _blocks(cluster, split, self.op_placement.servers[job.index], where)
        worker = np.concatenate([block.servers for block in blocks])[_by_shard(split)]
        given = {"ranks": self._ranks(cluster, split, worker, job.index)}
        codes = self._channels(cluster, split, worker // times.topology.workers, job.index)
        dep_ranks = self._dep_ranks(cluster, split, codes, job.index)
        if times.contention:
            numbers = np.maximum(codes, 0) % times.topology.channels
            given |= {"dep_ranks": tuple(dep_ranks), "dep_channels": tuple(numbers.tolist())}
        placement = placement_of(blocks, **given)
        if not fits(split, placement, cluster.memory):
            raise UserError("exceeds the memory of a server", where=where, expected="shards that fit, of both passes")
        return JobPlan(split, placement, self._taken(cluster, split, codes, job.index))

    def _ranks(self, cluster: Cluster, split: Partition, worker: np.ndarray, job: int) -> tuple[int, ...]:
        """The shards' ranks by their priorities; among equals the smallest name goes first."""
        where, labels = f"action: job {job}, op_schedule", cluster.times.names.workers
        priorities, known = np.zeros(split.num_shards, dtype=np.int64), np.zeros(split.num_shards, dtype=bool)
        for label, jobs in self.op_schedule.priorities.items():
            if label not in labels:
                expected = f"a server such as {next(iter(labels))}"
                raise UserError(f"there is no server {label}", where=where, expected=expected)
            shards = _numbers(jobs.get(job, {}), split.shard_numbers, "shard", where)
            elsewhere = worker[shards] != labels[label]
            if elsewhere.any():
                name = split.shard_names[shards[np.argmax(elsewhere)]]
                raise UserError(f"shard {name} is not on {label}", where=where, expected="the shards that it holds")
            priorities[shards], known[shards] = list(jobs.get(job, {}).values()), True
        if not known.all():
            missing = min(split.shard_names[shard] for shard in np.flatnonzero(~known).tolist())
            raise UserError(f"shard {missing} has no priority", where=where, expected="one for each shard")
        by_name = split.shards_by_name
        ranks = np.empty(split.num_shards, dtype=np.int64)
        ranks[by_name[np.argsort(priorities[by_name], kind="stable")]] = np.arange(split.num_shards)
        return tuple(ranks.tolist())

    def _channels(self, cluster: Cluster, split: Partition, server: np.ndarray, job: int) -> np.ndarray:
        """Return int64[deps]: link x channels + number of the first channel of each dep, -1 for none. Raises UserError
        for a channel that does not join the servers of its dep.
        """
        topology, given = cluster.times.topology, self.dep_placement.channels[job]
        where, names = f"action: job {job}, dep_placement", cluster.times.names
        deps = _numbers(given, split.dep_numbers, "dep", where)
        _require_all(deps, split, where)
        codes = np.full(split.num_deps, -1, dtype=np.int64)
        codes[deps] = names.lowest(list(given.values()))
        source, destination = server[split.dep_source], server[split.dep_destination]
        link, inside = source * topology.num_servers + destination, source == destination
        sent = ~inside & (split.dep_size > 0)
        wrong = np.where(codes < 0, sent | (codes == UNKNOWN), inside | (codes // topology.channels != link))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise _wrong_channels(topology, split.dep_names[at], given[split.dep_names[at]], int(link[at]), where)
        return codes

    def _taken(self, cluster: Cluster, split: Partition, codes: np.ndarray, job: int) -> frozenset[Channel]:
        """Return the channels that a job takes: those of deps that send data."""
        topology, given = cluster.times.topology, self.dep_placement.channels[job]
        names, sends = cluster.times.names, (split.dep_size > 0) & (codes >= 0)
        found = set(np.unique(codes[sends]).tolist())
        for number in np.flatnonzero(sends).tolist() if topology.channels > 1 else ():
            found.update(names.code(name) for name in given[split.dep_names[number]] or ())
        return frozenset(divmod(code, topology.channels) for code in found)

    def _dep_ranks(self, cluster: Cluster, split: Partition, codes: np.ndarray, job: int) -> list[int]:
        """Return the priorities of the deps. Raises UserError for a schedule that omits deps, has unknown ones, or
        names another channel than the dep's.
        """
        where, names = f"action: job {job}, dep_schedule", cluster.times.names
        ranks, known = np.zeros(split.num_deps, dtype=np.int64), np.zeros(split.num_deps, dtype=bool)
        for channel, jobs in self.dep_schedule.priorities.items():
            deps = _numbers(jobs.get(job, {}), split.dep_numbers, "dep", where)
            ranks[deps], known[deps] = list(jobs.get(job, {}).values()), True
            if channel is None:
                continue
            for number in deps[codes[deps] != names.code(channel)].tolist():
                dep = split.dep_names[number]
                taken = self.dep_placement.channels[job][dep] or ()
                if channel not in taken:
                    expected = f"one of {', '.join(sorted(taken))}, or None" if taken else "None"
                    raise UserError(f"{dep[0]} -> {dep[1]} does not take {channel}", where=where, expected=expected)
        _require_all(np.flatnonzero(known), split, where)
        return ranks.tolist()


NO_SUCH = -1  # in place of the number of an unknown worker


def _numbers(given: Mapping[Any, Any], known: Mapping[Any, int], what: str, where: str) -> np.ndarray:
    """Return int64[n]: the numbers of the named shards or deps. Raises UserError for an unknown name."""
    found = list(map(known.get, given))
    if None in found:
        name = min((name for name in given if name not in known), key=str)
        shown = " -> ".join(map(str, name)) if what == "dep" and isinstance(name, tuple) else name
        raise UserError(f"there is no {what} {shown}", where=where, expected=f"{what}s of the partition")
    return np.array(found, dtype=np.int64)


def _require_all(deps: np.ndarray, split: Partition, where: str) -> None:
    if len(deps) < split.num_deps:
        missing = split.dep_names[int(np.setdiff1d(np.arange(split.num_deps), deps)[0])]
        raise UserError(f"{missing[0]} -> {missing[1]} is missing", where=where, expected="every dep of the job")


def _by_shard(split: Partition) -> np.ndarray:
    """Return int64[shards]: the position of each shard among the shards of all ops, op by op."""
    places = np.empty(split.num_shards, dtype=np.int64)
    places[np.concatenate([split.shards(op) for op in range(split.graph.num_ops)])] = np.arange(split.num_shards)
    return places


def _wrong_channels(topology: Topology, dep: Dep, chosen: Channels, link: int, where: str) -> UserError:
    joining = sorted(_channel_name(topology, link, channel) for channel in range(topology.channels))
    inside = link % topology.num_servers == link // topology.num_servers
    what = f"{dep[0]} -> {dep[1]} takes {', '.join(sorted(map(str, chosen or ()))) or 'no channel'}"
    expected = "None, for it stays on one server" if inside else f"one of {', '.join(joining)}"
    return UserError(what, where=where, expected=expected)


def _blocks(cluster: Cluster, split: Partition, servers: Mapping[str, str], where: str) -> list[Block]:
    labels, where = cluster.times.names.workers, f"{where}, op_placement"
    _numbers(servers, split.shard_numbers, "shard", where)
    places = [labels.get(servers.get(name, ""), NO_SUCH) for name in split.shard_names]
    if NO_SUCH in places:
        name = split.shard_names[places.index(NO_SUCH)]
        raise UserError(f"shard {name} is on {servers.get(name)}", where=where, expected="a server such as 0-0-0")
    made = lru_cache(maxsize=None)(make_block)
    return [made(tuple(places[shard] for shard in split.shards(op))) for op in range(split.graph.num_ops)]


def action_of(cluster: Cluster, plans: Mapping[int, JobPlan]) -> JointAction:
    """Return the five actions that are equal to plans, with the shortest-first schedules of the package's managers.

    A dep takes the first free channel of its link; a job that needs a link without one is omitted from dep_placement.
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
        for number, dep in enumerate(split.dep_names):
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
