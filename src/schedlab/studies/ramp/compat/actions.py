"""The five actions that a user's program passes to the cluster; they are checked and converted into plans.

A part of an action is an array in the order of the job's ops, shards or deps (`Partition`), or names them: ops by id,
shards and servers by label, channels by name, deps by their two shards. See docs/reference/ramp_model.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.network.names import UNKNOWN
from schedlab.studies.ramp.placement.partitioning import Partition, degrees_of
from schedlab.studies.ramp.placement.placers import blocks_on, fits, placement_of, placement_order
from schedlab.studies.ramp.placement.ranks import ranks_of, srpt_dep_ranks, srpt_ranks
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
    """job -> op id -> number of shards: 1 or even, and equal for an op and its mate. Ops without a number are not
    split.

    Or job -> int64[ops].
    """

    degrees: Mapping[int, Mapping[int, int] | np.ndarray] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for job, degrees in self.degrees.items() if len(degrees)}


@dataclass(frozen=True)
class OpPlacement:
    """job -> shard -> label of its worker (that of its server, if servers have one worker). Or job -> int64[shards]:
    workers.
    """

    servers: Mapping[int, Mapping[str, str] | np.ndarray] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for job, servers in self.servers.items() if len(servers)}


@dataclass(frozen=True)
class OpSchedule:
    """label of a worker -> job -> shard -> priority. Of the shards of a worker that are ready, the one with the highest
    priority runs. Or None -> job -> int64[shards].
    """

    priorities: Mapping[str | None, Mapping[int, Mapping[str, int] | np.ndarray]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for jobs in self.priorities.values() for job, shards in jobs.items() if len(shards)}


@dataclass(frozen=True)
class DepPlacement:
    """job -> dep -> names of its channels; None for a dep that needs no channel (within a server, or of size 0).

    Or job -> int64[deps]: the number of its channel on the link between its servers, -1 for none.
    """

    channels: Mapping[int, Mapping[Dep, Channels] | np.ndarray] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for job, deps in self.channels.items() if len(deps)}


@dataclass(frozen=True)
class DepSchedule:
    """name of a channel that the dep uses, or None -> job -> dep -> priority. Of the messages of a channel that are
    ready, the one with the highest priority is sent first. Or None -> job -> int64[deps].

    Deps without a channel, and deps whose channel does not matter to the schedule, are listed under None. Every dep
    needs a priority. Priorities change durations only with `management.contention`, with which messages on a channel
    wait for each other; without it, all ready messages advance together.
    """

    priorities: Mapping[str | None, Mapping[int, Mapping[Dep, int] | np.ndarray]] = field(default_factory=dict)

    @property
    def jobs(self) -> set[int]:
        """Jobs that it handles."""
        return {job for jobs in self.priorities.values() for job, deps in jobs.items() if len(deps)}


@dataclass(frozen=True)
class JointAction:
    """The five actions of a step. A job is executed if all five contain it; else it is blocked, and the first action
    that does not contain it is the cause.
    """

    op_partition: OpPartition = field(default_factory=OpPartition)
    op_placement: OpPlacement = field(default_factory=OpPlacement)
    op_schedule: OpSchedule = field(default_factory=OpSchedule)
    dep_placement: DepPlacement = field(default_factory=DepPlacement)
    dep_schedule: DepSchedule = field(default_factory=DepSchedule)

    def cause(self, job: int) -> str | None:
        """Return the name of the first action that does not contain a job, or None if all do."""
        return next((part for part in PARTS if job not in getattr(self, part).jobs), None)

    def decisions(self, cluster: Cluster) -> dict[int, JobPlan | str]:
        """Return the argument of `Cluster.step`: for every waiting job its plan, or the cause of its rejection.

        Raises UserError for a job that does not wait, an array of another shape or type, a shard that is unknown or has
        no server, a server that is unknown or executes another job, insufficient memory, an unknown dep, a channel that
        does not join the servers of its dep or that another job occupies, and priorities that omit a shard or dep or
        are given for the wrong server.
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
        split = times.split(job.graph, self._degrees(job, where))
        worker = self._workers(cluster, split, job.index)
        given = {"ranks": tuple(self._ranks(cluster, split, worker, job.index).tolist())}
        codes = self._channels(cluster, split, worker // times.topology.workers, job.index)
        dep_ranks = self._dep_ranks(cluster, split, codes, job.index)
        if times.contention:
            numbers = np.maximum(codes, 0) % times.topology.channels
            given |= {"dep_ranks": tuple(dep_ranks.tolist()), "dep_channels": tuple(numbers.tolist())}
        placement = placement_of(blocks_on(split, worker), **given)
        if not fits(split, placement, cluster.memory):
            raise UserError("exceeds the memory of a server", where=where, expected="shards that fit, of both passes")
        return JobPlan(split, placement, self._taken(cluster, split, codes, job.index))

    def _degrees(self, job: Job, where: str) -> np.ndarray:
        given = self.op_partition.degrees[job.index]
        if isinstance(given, np.ndarray):
            return _whole_numbers(given, job.graph.num_ops, "op", f"{where}, op_partition")
        return degrees_of(job.graph, given)

    def _workers(self, cluster: Cluster, split: Partition, job: int) -> np.ndarray:
        """Return int64[shards], the worker of each shard. Raises UserError for unknown shards and workers."""
        given, labels = self.op_placement.servers[job], cluster.times.names.workers
        where = f"action: job {job}, op_placement"
        if isinstance(given, np.ndarray):
            worker = _whole_numbers(given, split.num_shards, "shard", where)
            wrong = (worker < 0) | (worker >= cluster.num_workers)
            if wrong.any():
                shard = int(np.argmax(wrong))
                what, expected = f"{split.shard_names[shard]} is on {worker[shard]}", f"below {cluster.num_workers}"
                raise UserError(f"shard {what}", where=where, expected=f"the number of a server, {expected}")
            return worker
        _numbers(given, split.shard_names, split.shard_numbers, "shard", where)
        places = [labels.get(given.get(name, ""), NO_SUCH) for name in split.shard_names]
        if NO_SUCH in places:
            name = split.shard_names[places.index(NO_SUCH)]
            raise UserError(f"shard {name} is on {given.get(name)}", where=where, expected="a server such as 0-0-0")
        return np.array(places, dtype=np.int64)

    def _ranks(self, cluster: Cluster, split: Partition, worker: np.ndarray, job: int) -> np.ndarray:
        """Return int64[shards], the rank of each shard by its priority; of equal priorities, the smallest name goes
        first.
        """
        where, labels = f"action: job {job}, op_schedule", cluster.times.names.workers
        priorities, known = np.zeros(split.num_shards, dtype=np.int64), np.zeros(split.num_shards, dtype=bool)
        for label, jobs in self.op_schedule.priorities.items():
            given = jobs.get(job, {})
            if label is None and isinstance(given, np.ndarray):
                priorities, known[:] = _whole_numbers(given, split.num_shards, "shard", where), True
                continue
            if label not in labels or isinstance(given, np.ndarray):
                expected = f"a server such as {next(iter(labels))}, or an array under None"
                raise UserError(f"there is no server {label}", where=where, expected=expected)
            shards = _numbers(given, split.shard_names, split.shard_numbers, "shard", where)
            elsewhere = worker[shards] != labels[label]
            if elsewhere.any():
                name = split.shard_names[shards[np.argmax(elsewhere)]]
                raise UserError(f"shard {name} is not on {label}", where=where, expected="the shards that it holds")
            priorities[shards], known[shards] = list(given.values()), True
        if not known.all():
            missing = min(split.shard_names[shard] for shard in np.flatnonzero(~known).tolist())
            raise UserError(f"shard {missing} has no priority", where=where, expected="one for each shard")
        return ranks_of(priorities, split.shards_by_name)

    def _channels(self, cluster: Cluster, split: Partition, server: np.ndarray, job: int) -> np.ndarray:
        """Return int64[deps], the code of the first channel of each dep (link x channels + number), -1 for none. Raises
        UserError for a channel that does not join the servers of its dep.
        """
        topology, given = cluster.times.topology, self.dep_placement.channels[job]
        where, names = f"action: job {job}, dep_placement", cluster.times.names
        source, destination = server[split.dep_source], server[split.dep_destination]
        link, inside = source * topology.num_servers + destination, source == destination
        sent = (split.dep_size > 0) & ~inside
        if isinstance(given, np.ndarray):
            numbers = _whole_numbers(given, split.num_deps, "dep", where)
            none = numbers == -1
            wrong = np.where(none, sent, inside | (numbers < 0) | (numbers >= topology.channels))
            codes = np.where(none, -1, link if topology.channels == 1 else link * topology.channels + numbers)
        else:
            deps = _numbers(given, split.dep_names, split.dep_numbers, "dep", where)
            _require_all(deps, split, where)
            codes = np.full(split.num_deps, -1, dtype=np.int64)
            codes[deps] = names.lowest(list(given.values()))
            wrong = np.where(codes < 0, sent | (codes == UNKNOWN), inside | (codes // topology.channels != link))
        if wrong.any():
            at = int(np.argmax(wrong))
            dep = split.dep_names[at]
            if isinstance(given, np.ndarray):
                chosen = [] if given[at] == -1 else [f"channel {given[at]}"]
            else:
                chosen = sorted(map(str, given[dep] or ()))
            raise _wrong_channels(topology, dep, chosen, int(link[at]), where)
        return codes

    def _taken(self, cluster: Cluster, split: Partition, codes: np.ndarray, job: int) -> frozenset[Channel]:
        """Return the channels that a job occupies: those of its deps that send data."""
        topology, given = cluster.times.topology, self.dep_placement.channels[job]
        names, sends = cluster.times.names, (split.dep_size > 0) & (codes >= 0)
        found = set(_distinct(codes[sends], topology.num_servers**2 * topology.channels).tolist())
        if topology.channels > 1 and not isinstance(given, np.ndarray):
            for number in np.flatnonzero(sends).tolist():
                found.update(names.code(name) for name in given[split.dep_names[number]] or ())
        return frozenset(divmod(code, topology.channels) for code in found)

    def _dep_ranks(self, cluster: Cluster, split: Partition, codes: np.ndarray, job: int) -> np.ndarray:
        """Return the priorities of the deps, int64[deps]. Raises UserError for a schedule that omits deps, contains
        unknown ones, or lists a dep under a channel that it does not use.
        """
        where, names = f"action: job {job}, dep_schedule", cluster.times.names
        ranks, known = np.zeros(split.num_deps, dtype=np.int64), np.zeros(split.num_deps, dtype=bool)
        for channel, jobs in self.dep_schedule.priorities.items():
            given = jobs.get(job, {})
            if isinstance(given, np.ndarray):
                if channel is not None:
                    what, expected = f"an array of priorities under {channel}", "it under None, with all deps"
                    raise UserError(what, where=where, expected=expected)
                ranks, known[:] = _whole_numbers(given, split.num_deps, "dep", where), True
                continue
            deps = _numbers(given, split.dep_names, split.dep_numbers, "dep", where)
            ranks[deps], known[deps] = list(given.values()), True
            if channel is None:
                continue
            for number in deps[codes[deps] != names.code(channel)].tolist():
                dep = split.dep_names[number]
                taken = self._names_of_channels(cluster, dep, int(codes[number]), job)
                if channel not in taken:
                    expected = f"one of {', '.join(sorted(taken))}, or None" if taken else "None"
                    raise UserError(f"{dep[0]} -> {dep[1]} does not take {channel}", where=where, expected=expected)
        _require_all(np.flatnonzero(known), split, where)
        return ranks

    def _names_of_channels(self, cluster: Cluster, dep: Dep, code: int, job: int) -> Set[str]:
        given, topology = self.dep_placement.channels[job], cluster.times.topology
        if not isinstance(given, np.ndarray):
            return given[dep] or frozenset()
        return frozenset([_channel_name(topology, *divmod(code, topology.channels))] if code >= 0 else [])


NO_SUCH = -1  # in place of the number of an unknown worker


def _whole_numbers(given: np.ndarray, count: int, what: str, where: str) -> np.ndarray:
    """Return an array of an action as int64[count]. Raises UserError for another shape or type."""
    if given.shape != (count,) or given.dtype.kind not in "iu":
        shown = f"an array of shape {given.shape} and type {given.dtype}"
        raise UserError(shown, where=where, expected=f"{count} whole numbers, one for each {what}")
    return given.astype(np.int64, copy=False)


def _numbers(
    given: Mapping[Any, Any], names: tuple[Any, ...], known: Mapping[Any, int], what: str, where: str
) -> np.ndarray:
    """Return int64[n]: the numbers of the named shards or deps. Raises UserError for an unknown name."""
    if len(given) == len(names) and tuple(given) == names:  # all, in order: no search
        return np.arange(len(names))
    found = list(map(known.get, given))
    if None in found:
        name = min((name for name in given if name not in known), key=str)
        shown = " -> ".join(map(str, name)) if what == "dep" and isinstance(name, tuple) else name
        raise UserError(f"there is no {what} {shown}", where=where, expected=f"{what}s of the partition")
    return np.array(found, dtype=np.int64)


def _distinct(codes: np.ndarray, most: int) -> np.ndarray:
    """Return the distinct codes, int64, in ascending order; all codes are below `most`."""
    return np.unique(codes) if most > DENSE * len(codes) else np.flatnonzero(np.bincount(codes))


DENSE = 64  # codes for each dep, up to which counting is faster than sorting


def _require_all(deps: np.ndarray, split: Partition, where: str) -> None:
    if len(deps) < split.num_deps:
        missing = split.dep_names[int(np.setdiff1d(np.arange(split.num_deps), deps)[0])]
        raise UserError(f"{missing[0]} -> {missing[1]} is missing", where=where, expected="every dep of the job")


def _wrong_channels(topology: Topology, dep: Dep, chosen: list[str], link: int, where: str) -> UserError:
    joining = sorted(_channel_name(topology, link, channel) for channel in range(topology.channels))
    inside = link % topology.num_servers == link // topology.num_servers
    what = f"{dep[0]} -> {dep[1]} takes {', '.join(chosen) or 'no channel'}"
    expected = "None, for it stays on one server" if inside else f"one of {', '.join(joining)}"
    return UserError(what, where=where, expected=expected)


def action_of(cluster: Cluster, plans: Mapping[int, JobPlan], named: bool = False) -> JointAction:
    """Return the five actions that lead to given plans, with the shortest-first schedules of the package's managers.

    A dep takes the first free channel of its link. If a link has no free channel, the job is left out of dep_placement.
    named  whether ops, shards, deps, servers and channels are named; if not, the actions are arrays
    """
    topology, held = cluster.times.topology, set(cluster.held)
    arrays: dict[str, dict[int, np.ndarray]] = {part: {} for part in PARTS}
    for job, plan in plans.items():
        split, worker = plan.split, cluster.times.workers(plan.split, plan.placement)
        traffic = cluster.times.communication.traffic(split, worker)
        ranks = srpt_ranks(split.cost, worker, placement_order(split, plan.placement))
        arrays["op_partition"][job], arrays["op_placement"][job] = split.degrees, worker
        arrays["op_schedule"][job] = ranks
        taken = cluster.free_channels(plan, held) if plan.channels is None else plan.channels
        if taken is None:
            continue
        held |= taken
        number_on, channels = dict(taken), np.full(split.num_deps, -1, dtype=np.int64)
        channels[traffic.remote] = [number_on.get(link, 0) for link in traffic.link[traffic.remote].tolist()]
        arrays["dep_placement"][job], arrays["dep_schedule"][job] = channels, srpt_dep_ranks(traffic.time)
    if named:
        return _named(topology, {job: plan.split for job, plan in plans.items()}, arrays)
    return JointAction(
        OpPartition(arrays["op_partition"]),
        OpPlacement(arrays["op_placement"]),
        OpSchedule({None: arrays["op_schedule"]}),
        DepPlacement(arrays["dep_placement"]),
        DepSchedule({None: arrays["dep_schedule"]}),
    )


def _named(
    topology: Topology, splits: Mapping[int, Partition], arrays: Mapping[str, Mapping[int, np.ndarray]]
) -> JointAction:
    """Return the action with names instead of arrays (part -> job): shards are listed under their server, deps under
    their channel.
    """
    partitions, servers, channels = dict[int, Any](), dict[int, Any](), dict[int, Any]()
    schedules, dep_schedules = dict[Any, Any](), dict[Any, Any]()
    for job, split in splits.items():
        worker = arrays["op_placement"][job]
        partitions[job] = dict(zip(split.graph.ids.tolist(), split.degrees.tolist(), strict=True))
        labels = [topology.worker_labels[one] for one in worker.tolist()]
        servers[job] = dict(zip(split.shard_names, labels, strict=True))
        for name, label, rank in zip(split.shard_names, labels, arrays["op_schedule"][job].tolist(), strict=True):
            schedules.setdefault(label, {}).setdefault(job, {})[name] = rank
        if job not in arrays["dep_placement"]:
            continue
        server, channels[job] = worker // topology.workers, {}
        link = server[split.dep_source] * topology.num_servers + server[split.dep_destination]
        of_deps = (link, arrays["dep_placement"][job], arrays["dep_schedule"][job])
        for dep, on, number, rank in zip(split.dep_names, *(each.tolist() for each in of_deps), strict=True):
            channel = None if number < 0 else _channel_name(topology, on, number)
            channels[job][dep] = None if channel is None else frozenset([channel])
            dep_schedules.setdefault(channel, {}).setdefault(job, {})[dep] = rank
    return JointAction(
        OpPartition(partitions),
        OpPlacement(servers),
        OpSchedule(schedules),
        DepPlacement(channels),
        DepSchedule(dep_schedules),
    )


def _channel_name(topology: Topology, link: int, number: int) -> str:
    return topology.channel_name(*divmod(link, topology.num_servers), number)
