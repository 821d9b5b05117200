"""Reads the inputs of recorded runs of the published system (schema ramp-truth/1).

The inputs contain the arrivals of the jobs and, if they were recorded, the decisions. Raises UserError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import ConfigDict, Field

from schedlab.config.errors import UserError
from schedlab.config.readers import read_json
from schedlab.config.schema import Settings, setting, validate
from schedlab.studies.ramp.compat.draws import DrawnArrivals
from schedlab.studies.ramp.graphs.graph import LARGEST, ForwardGraph, TrainingGraph, training_graph
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.rules import Rule, capped, rule_named, takes_cap
from schedlab.studies.ramp.simulator.jobs import Job, ListedJobs, PoolRanges, pool_ranges

SCHEMA = "ramp-truth/1"
LONGEST_NUMBER = 18  # digits
LARGEST_ID = 2**31 - 1  # limit of tables of ids; a later check finds ids without an op
WHAT = f"a recorded run (schema {SCHEMA})"

Id = Annotated[int, Field(ge=-LARGEST_ID, le=LARGEST_ID)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Share = Annotated[float, Field(gt=0, le=1)]
S = TypeVar("S", bound=Settings)
Operation = tuple[Id, Any, Number, Number, Number | tuple[Number, ...], Number]


class _Section(Settings):
    """A section that may have further keys, which are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class _Topology(_Section):
    communication_groups: int = setting(doc="whole number")
    racks_per_group: int = setting(doc="whole number")
    servers_per_rack: int = setting(doc="whole number")
    channels: int = setting(1, doc="whole number")
    node_bandwidth: Number = setting(1.6e12, doc="bandwidth of a server", unit="bytes/s")
    propagation_latency: Number = setting(1.25e-6, doc="propagation time between servers", unit="s")
    io_latency: Number = setting(100e-9, doc="time of a server's input or output", unit="s")


class _Device(_Section):
    memory_bytes: Number = setting(doc="memory of a device", unit="bytes", gt=0)


class _Graph(_Section):
    ops: tuple[Operation, ...] = setting(
        doc="[id, kind, forward time, backward time, activation bytes or a list of them, parameter bytes] of each op"
    )
    edges: tuple[tuple[Id, Id], ...] = setting(doc="[op id, op id] of each edge")


class _Arrival(_Section):
    model: str = setting(doc="name of a graph")
    time: Number = setting(doc="time of the arrival", unit="s")
    max_acceptable_jct_frac: Number = setting(doc="acceptable completion time as a share of the sequential time")
    job_id: int | str = setting("", doc="number in the pool")


class _Decided(_Section):
    action: int | None = setting(None, doc="0 (reject) or a number of shards", ge=0)
    job_idx: int | None = setting(None, doc="index of the job; default: its place in the list")


class _Inputs(_Section):
    graphs: dict[str, _Graph] = setting(doc="graphs by name", min_length=1)
    topology: _Topology = setting(doc="cluster")
    device: _Device = setting(doc="device of the cluster")
    training_steps: int = setting(doc="training steps of a job")
    arrivals: tuple[_Arrival, ...] = setting(doc="jobs that arrived", min_length=1)
    decisions: tuple[_Decided, ...] = setting((), doc="decisions")
    min_op_run_time_quantum: Number = setting(doc="target run time of a forward shard", unit="s", gt=0)
    max_partitions_per_op: int = setting(doc="maximum number of shards of an op", ge=1)
    max_acceptable_jct_frac: Share | tuple[Share, ...] | str = setting(
        (), doc="values of beta in the pool; text is ignored"
    )
    interarrival: Any = setting(None, doc="seconds between arrivals, if a number")
    replication: int = setting(1, doc="jobs of each graph in the pool")
    sampling: Any = setting("remove", doc="what happens to a drawn job; `remove`: it leaves the pool")
    max_simulation_time: Number | Literal["inf"] = setting("inf", doc="end of the simulation", unit="s")
    queue_capacity: int = setting(10, doc="capacity of the queue, in jobs")
    cache: bool = setting(True, doc="reuse look-aheads")
    seed: int = setting(0, doc="seed of the generators", ge=0, le=LARGEST_ID)
    apply_action_mask: bool = setting(False, doc="true: an invalid action is an error; false: it rejects the job")
    agent: str = setting("", doc="name of the policy")
    agent_kwargs: dict[str, Any] = setting({}, doc="parameters of the policy")
    op_partitioner: str = setting("", doc="name that contains sip_ml or random", pattern="^$|sip_ml|random")
    op_placer: str = setting("ramp_first_fit", doc="name that contains first_fit or random", pattern="first_fit|random")
    op_scheduler: str = setting("srpt", doc="name that contains srpt; checked, not used", pattern="srpt")
    dep_placer: str = setting("first_fit", doc="name that contains first_fit; checked, not used", pattern="first_fit")
    dep_scheduler: str = setting("srpt", doc="name that contains srpt; checked, not used", pattern="srpt")

    @property
    def end(self) -> float:
        """End of the simulation, s."""
        return float(self.max_simulation_time)


class _Drawn(_Section):
    partition_degrees: dict[str, int] = setting({}, doc='degrees by op id, such as {"1": 2, "8": 2}')
    max_partition_degree: int | None = setting(None, doc="largest degree")
    placement: dict[str, Any] = setting({}, doc="servers by shard")


class _Expected(_Section):
    jobs: dict[str, _Drawn] = setting(doc="outcomes of the jobs, by index")


@dataclass(frozen=True)
class Case:
    """A recorded run without its results.

    memory    bytes of a device
    actions   the recorded actions by job index
    rule      rule of the agent, for jobs without a recorded action; None if no agent is named
    drawn     random degrees and placements by job index, from `expected`, because the inputs do not contain these draws
    strict    whether an invalid action is an error
    last_gap  s from the last recorded arrival to the next one, which is not recorded; infinity if there is none
    """

    topology: Ramp
    memory: float
    graphs: Mapping[str, TrainingGraph]
    jobs: tuple[Job, ...]
    source: ListedJobs
    ranges: PoolRanges
    quantum: float
    most: int
    actions: Mapping[int, int]
    rule: Rule | None
    partitioner: str
    placer: str
    end: float
    queue_capacity: int
    reuse: bool
    seed: int
    strict: bool
    last_gap: float
    drawn: Mapping[int, Mapping[str, Any]]

    @property
    def has_agent(self) -> bool:
        """Whether an agent chose the degrees of jobs; if not, a partitioner did."""
        return not self.partitioner


def is_number(text: str) -> bool:
    """Return whether a text consists of digits 0 to 9, at most LONGEST_NUMBER of them."""
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER


def read_case(path: Path | str, legacy: LegacySettings) -> Case:
    """Return the inputs of a recorded run. Raises UserError."""
    document = read_json(path, WHAT)
    if not isinstance(document, dict):
        raise UserError("the document is no object", where=str(path), expected=WHAT)
    if document.get("schema", SCHEMA) != SCHEMA:
        raise UserError(f"the schema is {document['schema']!r:.40}", where=f"{path}.schema", expected=SCHEMA)
    inputs = _section(_Inputs, document.get("inputs"), f"{path}.inputs")
    drawn = _drawn(document["expected"], f"{path}.expected") if document.get("expected") else {}
    graphs = {name: _graph(name, graph, not legacy.sinks_unjoined) for name, graph in inputs.graphs.items()}
    jobs, times = _jobs(inputs, graphs, f"{path}.inputs.arrivals")
    last_gap = _last_gap(inputs, graphs, jobs, times)
    return Case(
        topology=_topology(inputs.topology, legacy),
        memory=inputs.device.memory_bytes,
        graphs=graphs,
        jobs=jobs,
        source=ListedJobs(jobs, times, _later(inputs, times, last_gap)),
        ranges=_ranges(inputs, graphs, jobs),
        quantum=inputs.min_op_run_time_quantum,
        most=inputs.max_partitions_per_op,
        actions={
            at if one.job_idx is None else one.job_idx: one.action
            for at, one in enumerate(inputs.decisions)
            if one.action is not None
        },
        rule=_rule(inputs, f"{path}.inputs"),
        partitioner=inputs.op_partitioner,
        placer=inputs.op_placer,
        end=inputs.end,
        queue_capacity=inputs.queue_capacity,
        reuse=inputs.cache,
        seed=inputs.seed,
        strict=inputs.apply_action_mask,
        last_gap=last_gap,
        drawn=drawn,
    )


def _section(kind: type[S], values: Any, where: str) -> S:
    """Return the typed values of an object; null means that a key is absent."""
    if not isinstance(values, dict):
        raise UserError("there is no object", where=where, expected="an object")
    return validate(kind, _without_null(values), lambda path: ".".join(map(str, (where, *path))))


def _without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value


def _rule(inputs: _Inputs, where: str) -> Rule | None:
    """Return the agent's rule with its parameters, or None if no agent is named."""
    name, given = inputs.agent, inputs.agent_kwargs
    known = {"name"} | ({"max_partitions_per_op"} if takes_cap(name) else set())
    if unknown := sorted(set(given) - known):
        what = f"'{unknown[0]}' is no parameter of {name or 'no agent'}"
        raise UserError(what, where=f"{where}.agent_kwargs", expected=f"{' or '.join(sorted(known))}, or nothing")
    cap = given.get("max_partitions_per_op")
    if cap is not None and (not isinstance(cap, int) or isinstance(cap, bool) or cap < 1):
        key = f"{where}.agent_kwargs.max_partitions_per_op"
        raise UserError(f"is {cap!r:.40}", where=key, expected="a whole number from 1 on")
    if not name or cap is not None:
        return None if cap is None else capped(cap)
    # an unknown name is allowed where each action is recorded
    return lambda decision: rule_named(name, f"{where}.agent")(decision)


def _drawn(expected: Any, where: str) -> dict[int, dict[str, Any]]:
    """Return degrees and placements of the recorded jobs if the file contains results."""
    jobs = _section(_Expected, expected, where).jobs
    for number, job in jobs.items():
        if not is_number(number):
            raise UserError(f"a job is called '{number:.40}'", where=f"{where}.jobs", expected="its index, such as 0")
        if not all(map(is_number, job.partition_degrees)):
            key = f"{where}.jobs.{number}.partition_degrees"
            raise UserError("are no degrees by op id", where=key, expected='such as {"1": 2, "8": 2}')
    return {
        int(number): vars(job) | {"partition_degrees": {int(op): k for op, k in job.partition_degrees.items()}}
        for number, job in jobs.items()
    }


def _topology(values: _Topology, legacy: LegacySettings) -> Ramp:
    return Ramp(
        groups=values.communication_groups,
        racks=values.racks_per_group,
        servers=values.servers_per_rack,
        channels=values.channels,
        node_bandwidth=values.node_bandwidth,
        propagation_latency=values.propagation_latency,
        io_latency=values.io_latency,
        free_inside_racks=legacy.free_inside_racks,
        bandwidth_shared_twice=legacy.bandwidth_shared_twice,
    )


def _graph(name: str, values: _Graph, join_sinks: bool) -> TrainingGraph:
    """Return the training step of a graph. An activation that is a list of sizes counts as their sum."""
    ids, kinds, forward, backward, activation, parameter = ([op[place] for op in values.ops] for place in range(6))
    sizes = [sum(one) if isinstance(one, tuple) else one for one in activation]
    made = ForwardGraph(name, ids, tuple(map(str, kinds)), forward, backward, sizes, parameter, values.edges)
    return training_graph(made, join_sinks=join_sinks)


def _jobs(inputs: _Inputs, graphs: Mapping[str, TrainingGraph], where: str) -> tuple[tuple[Job, ...], list[float]]:
    jobs: list[Job] = []
    times = [arrival.time for arrival in inputs.arrivals]
    for at, arrival in enumerate(inputs.arrivals):
        if arrival.model not in graphs:
            what, expected = f"there is no graph '{arrival.model:.40}'", f"one of {', '.join(sorted(graphs))}"
            raise UserError(what, where=f"{where}.{at}.model", expected=expected)
        number = int(arrival.job_id) if is_number(str(arrival.job_id)) else at
        jobs.append(Job(at, number, graphs[arrival.model], inputs.training_steps, arrival.max_acceptable_jct_frac))
        if at == 0 and times[0] != 0:
            what = f"the first job arrives at {times[0]:g} s"
            raise UserError(what, where=f"{where}.0.time", expected="0, where a simulation begins")
        if at and times[at] < times[at - 1]:
            what = f"arrives at {times[at]} s, before the job ahead of it"
            raise UserError(what, where=f"{where}.{at}.time", expected="times in order")
    return tuple(jobs), times


def _last_gap(inputs: _Inputs, graphs: Mapping[str, TrainingGraph], jobs: tuple[Job, ...], times: list[float]) -> float:
    """Return the seconds from the last recorded arrival to the next one; infinity if the pool is empty, or if the draws
    cannot be repeated.
    """
    pool = len(graphs) * inputs.replication
    if inputs.sampling == "remove" and len(times) >= pool:
        return math.inf
    if isinstance(inputs.interarrival, int | float):
        return float(inputs.interarrival)
    repeats = {"remove": False, "remove_and_repeat": True}.get(inputs.sampling)
    if repeats is None or not isinstance(inputs.interarrival, str):
        return math.inf
    drawn = DrawnArrivals(inputs.seed, pool, inputs.max_acceptable_jct_frac, inputs.interarrival, repeats)
    return drawn.gap_after([job.id for job in jobs], times)


def _later(inputs: _Inputs, times: list[float], last_gap: float) -> float:
    """Return the time of the arrival after the last recorded one. A run may have ended before its pool was empty; this
    arrival is then after the end.
    """
    later = times[-1] + last_gap
    if later >= inputs.end:
        return later
    beyond = inputs.sampling == "remove_and_repeat" and not isinstance(inputs.interarrival, int | float)
    return inputs.end + 1.0 if beyond else math.inf  # an earlier arrival would be in the record


def _ranges(inputs: _Inputs, graphs: Mapping[str, TrainingGraph], jobs: tuple[Job, ...]) -> PoolRanges:
    """Return the ranges of the pool. It contains every graph, with the recorded betas and those that the inputs
    list.
    """
    given = inputs.max_acceptable_jct_frac
    listed = given if isinstance(given, tuple) else [given] if isinstance(given, float) else []
    order = list(graphs.values())
    pairs = [(order.index(job.graph), job.beta) for job in jobs]
    pairs += [(number, beta) for number in range(len(order)) for beta in listed]
    members, betas = zip(*pairs, strict=True)
    return pool_ranges(order, np.array(members), np.array(betas), jobs[0].steps)
