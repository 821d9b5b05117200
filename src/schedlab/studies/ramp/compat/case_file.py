"""Recorded runs of the published system (schema ramp-truth/1): reading their inputs.

The inputs hold all realised random draws: which job arrived when, and what was decided. Raises UserError for whatever
is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.readers import read_json
from schedlab.studies.ramp.graphs.graph import LARGEST, ForwardGraph, TrainingGraph, training_graph
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.rules import Rule, capped, rule_named, takes_cap
from schedlab.studies.ramp.simulator.jobs import Job, ListedJobs, PoolRanges, pool_ranges

SCHEMA = "ramp-truth/1"
OP = "[id, kind, forward time, backward time, activation bytes, parameter bytes]"
LONGEST_NUMBER = 18  # digits
LARGEST_ID = 2**31 - 1  # what a table of ids holds; whether there is such an op is asked later
WHAT = f"a recorded run (schema {SCHEMA})"


@dataclass(frozen=True)
class Case:
    """A recorded run without its results. memory: bytes of a device; actions: by job index, those that were recorded.

    rule   what the agent does where no action was recorded; None where no agent is named
    drawn  what `expected` says of the jobs' random degrees and placements, by job index (draws that the inputs do not
           hold)
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
    partitioner: str | None
    placer: str
    end: float
    queue_capacity: int
    reuse: bool
    drawn: Mapping[int, Mapping[str, Any]]

    @property
    def has_agent(self) -> bool:
        """Whether a policy chose the degrees; else the cluster was driven by a partitioner."""
        return self.partitioner is None


class _Reader:
    """Typed access to the keys of one JSON object; mistakes name file and key."""

    def __init__(self, values: Any, where: str) -> None:
        self.where = where
        self.values = self.typed(values, dict, where, "an object")

    def typed(self, value: Any, kind: type | tuple[type, ...], where: str, expected: str) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise UserError(f"is {_shown(value)}", where=where, expected=expected)
        return value

    def get(self, key: str, kind: type | tuple[type, ...], expected: str, default: Any = ...) -> Any:
        where = f"{self.where}.{key}"
        if key not in self.values or (self.values[key] is None and default is not ...):
            if default is ...:
                raise UserError("the key is missing", where=where, expected=expected)
            return default
        return self.typed(self.values[key], kind, where, expected)

    def number(self, key: str, default: Any = ...) -> float:
        if self.values.get(key) == "inf":
            return math.inf
        value = self.get(key, (int, float), "a number", default)
        if value != math.inf and abs(value) > LARGEST:
            raise UserError(
                f"is {_shown(value)}", where=f"{self.where}.{key}", expected=f"a number of at most {LARGEST:g}"
            )
        return float(value)

    def positive(self, key: str) -> float:
        value = self.number(key)
        if not 0 < value < math.inf:
            raise UserError(
                f"is {_shown(self.values[key])}", where=f"{self.where}.{key}", expected="a finite number above 0"
            )
        return value

    def whole(self, key: str, default: Any = ...) -> int:
        return self.get(key, int, "a whole number", default)

    def manager(self, key: str, default: str | None, *kinds: str) -> str | None:
        """A manager's name, which tells its kind within a longer name."""
        name = self.get(key, str, "a name", default=default)
        if name is not None and not any(kind in name for kind in kinds):
            raise UserError(
                f"is {_shown(name)}", where=f"{self.where}.{key}", expected=f"a name with {' or '.join(kinds)}"
            )
        return name

    def section(self, key: str) -> _Reader:
        return _Reader(self.get(key, dict, "an object"), f"{self.where}.{key}")


def is_number(text: str) -> bool:
    """Return whether a text is a whole number of a usual length in the digits 0 to 9."""
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"{text[:36]} ..."


def read_case(path: Path | str, legacy: LegacySettings) -> Case:
    """Return the inputs of a recorded run. Raises UserError."""
    document = _Reader(read_json(path, WHAT), str(path))
    if document.values.get("schema", SCHEMA) != SCHEMA:
        raise UserError(f"the schema is {_shown(document.values['schema'])}", where=f"{path}.schema", expected=SCHEMA)
    inputs = document.section("inputs")
    graphs = _graphs(inputs, join_sinks=not legacy.sinks_unjoined)
    jobs, times = _jobs(inputs, graphs)
    decisions = inputs.get("decisions", list, "a list", default=[])
    return Case(
        topology=_topology(inputs.section("topology"), legacy),
        memory=inputs.section("device").positive("memory_bytes"),
        graphs=graphs,
        jobs=jobs,
        source=ListedJobs(jobs, times, _later(inputs, jobs, times)),
        ranges=_ranges(inputs, graphs, jobs),
        quantum=inputs.positive("min_op_run_time_quantum"),
        most=_most(inputs),
        actions=_actions(decisions, f"{inputs.where}.decisions"),
        rule=_rule(inputs),
        partitioner=inputs.manager("op_partitioner", None, "sip_ml", "random"),
        placer=_placer(inputs),
        end=inputs.number("max_simulation_time", math.inf),
        queue_capacity=inputs.whole("queue_capacity", 10),
        reuse=inputs.get("cache", bool, "true or false", default=True),
        drawn=_drawn(document),
    )


def _placer(inputs: _Reader) -> str:
    """The op placer's name; of every other manager there is one kind."""
    for key, kind in (("op_scheduler", "srpt"), ("dep_placer", "first_fit"), ("dep_scheduler", "srpt")):
        inputs.manager(key, None, kind)
    return str(inputs.manager("op_placer", "ramp_first_fit", "first_fit", "random"))


def _rule(inputs: _Reader) -> Rule | None:
    """The agent's rule with its parameters; None where no agent is named."""
    name, where = inputs.get("agent", str, "a name or null", default=None), f"{inputs.where}.agent_kwargs"
    given = _Reader(inputs.get("agent_kwargs", dict, "an object or null", default={}), where)
    known = {"name"} | ({"max_partitions_per_op"} if name is not None and takes_cap(name) else set())
    if unknown := sorted(set(given.values) - known):
        what = f"'{unknown[0]}' is no parameter of {'no agent' if name is None else name}"
        raise UserError(what, where=where, expected=f"{' or '.join(sorted(known))}, or nothing")
    if name is None:
        return None
    cap = given.whole("max_partitions_per_op", None)
    if cap is not None and cap < 1:
        raise UserError(f"is {cap}", where=f"{where}.max_partitions_per_op", expected="a whole number from 1 on")
    if cap is not None:
        return capped(cap)
    # a name of others will do where each action is recorded
    return lambda decision: rule_named(name, f"{inputs.where}.agent")(decision)


def _most(inputs: _Reader) -> int:
    most = inputs.whole("max_partitions_per_op")
    if most < 1:
        raise UserError(
            f"is {most}", where=f"{inputs.where}.max_partitions_per_op", expected="a whole number from 1 on"
        )
    return most


def _drawn(document: _Reader) -> dict[int, dict[str, Any]]:
    """Degrees and placements of the recorded jobs, where the file still holds results."""
    if not document.values.get("expected"):
        return {}
    found: dict[int, dict[str, Any]] = {}
    jobs = document.section("expected").section("jobs")
    for number in jobs.values:
        job = jobs.section(number)
        degrees = job.get("partition_degrees", dict, "degrees by op id", default={})
        if not is_number(number):
            raise UserError(
                f"is {_shown(number)}", where=f"{jobs.where}: the name of a job", expected="its index, such as 0"
            )
        if not all(is_number(op) and isinstance(degree, int) for op, degree in degrees.items()):
            raise UserError(
                "are no degrees by op id", where=f"{job.where}.partition_degrees", expected='such as {"1": 2, "8": 2}'
            )
        found[int(number)] = {
            "partition_degrees": {int(op): degree for op, degree in degrees.items()},
            "max_partition_degree": job.get("max_partition_degree", int, "a whole number", default=None),
            "placement": job.get("placement", dict, "servers by shard", default={}),
        }
    return found


def _topology(values: _Reader, legacy: LegacySettings) -> Ramp:
    return Ramp(
        groups=values.whole("communication_groups"),
        racks=values.whole("racks_per_group"),
        servers=values.whole("servers_per_rack"),
        channels=values.whole("channels", 1),
        node_bandwidth=values.number("node_bandwidth", 1.6e12),
        propagation_latency=values.number("propagation_latency", 1.25e-6),
        io_latency=values.number("io_latency", 100e-9),
        free_inside_racks=legacy.free_inside_racks,
        bandwidth_shared_twice=legacy.bandwidth_shared_twice,
    )


def _graphs(inputs: _Reader, join_sinks: bool) -> dict[str, TrainingGraph]:
    found = {}
    section = inputs.section("graphs")
    for name in section.values:
        graph = section.section(name)
        ops = [_op(op, f"{graph.where}.ops.{at}") for at, op in enumerate(graph.get("ops", list, "a list"))]
        edges = graph.get("edges", list, "a list")
        for at, edge in enumerate(edges):
            if not (
                isinstance(edge, list)
                and len(edge) == 2
                and all(isinstance(op, int) and abs(op) <= LARGEST_ID for op in edge)
            ):
                raise UserError(f"is {_shown(edge)}", where=f"{graph.where}.edges.{at}", expected="[op id, op id]")
        ids, kinds, forward, backward, activation, parameter = ([op[place] for op in ops] for place in range(6))
        made = ForwardGraph(name, ids, tuple(map(str, kinds)), forward, backward, activation, parameter, edges)
        found[name] = training_graph(made, join_sinks=join_sinks)
    if not found:
        raise UserError("there are no graphs", where=section.where, expected="at least one")
    return found


def _op(values: Any, where: str) -> list[Any]:
    """One op; an activation that is a list of sizes counts as their sum."""
    if not isinstance(values, list) or len(values) != 6:
        raise UserError(f"is {_shown(values)}", where=where, expected=OP)
    sizes = values[4] if isinstance(values[4], list) else [values[4]]
    numbers = [values[0], values[2], values[3], values[5], *sizes]
    whole = isinstance(values[0], int) and abs(values[0]) <= LARGEST_ID
    if (
        any(isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > LARGEST for value in numbers)
        or not whole
    ):
        raise UserError(f"is {_shown(values)}", where=where, expected=OP)
    return [*values[:4], sum(sizes), values[5]]


def _jobs(inputs: _Reader, graphs: Mapping[str, TrainingGraph]) -> tuple[tuple[Job, ...], list[float]]:
    steps, jobs, times = inputs.whole("training_steps"), [], []
    arrivals = inputs.get("arrivals", list, "a list")
    if not arrivals:
        raise UserError("no job arrives", where=f"{inputs.where}.arrivals", expected="at least one")
    for at, values in enumerate(arrivals):
        arrival = _Reader(values, f"{inputs.where}.arrivals.{at}")
        model = arrival.get("model", str, "the name of a graph")
        if model not in graphs:
            raise UserError(
                f"there is no graph '{model}'",
                where=f"{arrival.where}.model",
                expected=f"one of {', '.join(sorted(graphs))}",
            )
        job_id = arrival.get("job_id", (int, str), "a number", default=at)
        number = int(job_id) if is_number(str(job_id)) else at
        jobs.append(Job(at, number, graphs[model], steps, arrival.number("max_acceptable_jct_frac")))
        times.append(arrival.number("time"))
        if at == 0 and times[0] != 0:
            raise UserError(
                f"the first job arrives at {times[0]:g} s",
                where=f"{arrival.where}.time",
                expected="0, where a simulation begins",
            )
        if times != sorted(times):
            raise UserError(
                f"arrives at {times[-1]} s, before the job ahead of it",
                where=f"{arrival.where}.time",
                expected="times in order",
            )
    return tuple(jobs), times


def _later(inputs: _Reader, jobs: tuple[Job, ...], times: list[float]) -> float:
    """When the job after the last recorded one would have come: recorded runs may end before their pool is empty."""
    interarrival = inputs.values.get("interarrival")
    pool = len(inputs.values["graphs"]) * inputs.whole("replication", 1)
    left = inputs.values.get("sampling", "remove") != "remove" or len(jobs) < pool
    if not left or not isinstance(interarrival, (int, float)):
        return math.inf
    later = times[-1] + interarrival
    # else it would stand in the record
    return later if later >= inputs.number("max_simulation_time", math.inf) else math.inf


def _ranges(inputs: _Reader, graphs: Mapping[str, TrainingGraph], jobs: tuple[Job, ...]) -> PoolRanges:
    """The pool's ranges: every graph is in it, with the recorded betas and those that the inputs list."""
    fractions = inputs.values.get("max_acceptable_jct_frac")
    listed = fractions if isinstance(fractions, list) else [fractions] if isinstance(fractions, (int, float)) else []
    if not all(isinstance(beta, (int, float)) and not isinstance(beta, bool) and 0 < beta <= 1 for beta in listed):
        expected = "numbers above 0 and at most 1"
        raise UserError(f"is {_shown(fractions)}", where=f"{inputs.where}.max_acceptable_jct_frac", expected=expected)
    order = list(graphs.values())
    pairs = [(order.index(job.graph), job.beta) for job in jobs]
    pairs += [(number, float(beta)) for number in range(len(order)) for beta in listed]
    members, betas = zip(*pairs, strict=True)
    return pool_ranges(order, np.array(members), np.array(betas), jobs[0].steps)


def _actions(decisions: list[Any], where: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for at, values in enumerate(decisions):
        decision = _Reader(values, f"{where}.{at}")
        action = decision.get("action", int, "a whole number", default=None)
        if action is not None:
            if action < 0:
                raise UserError(f"is {action}", where=f"{decision.where}.action", expected="0 or a number of shards")
            found[decision.whole("job_idx", at)] = action
    return found
