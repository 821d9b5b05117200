"""Typed settings of the environment: what is seen, and what a decision is rewarded with."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import Settings, setting

Reward = Literal[
    "acceptance", "jct", "multi_objective", "compute_throughput", "cluster_throughput", "demand_throughput"
]


class EnvironmentSettings(Settings):
    """What the environment shows and rewards (specification of the ramp study, section 12)."""

    observation: Literal["vector", "graph_id", "published", "durations"] = setting(
        "vector",
        doc="vector: the job, its graph in numbers, the cluster, and the mask; graph_id: these and the graph's "
        "number, whose features `env.graphs` holds once; published: these and the whole graph, padded; durations: the "
        "vector, and for each number of shards the speed-up and whether it meets the limit, which no policy could "
        "know beforehand",
    )
    max_nodes: int | None = setting(
        None,
        doc="published: graphs are padded to n ops and n (n - 1) / 2 deps, as published 150; null: to the largest "
        "graph",
        ge=2,
        le=2000,
    )
    partitions: int = setting(
        1, doc="scale pool: ranges of ops and deps have room for so many shards of an op, as published 1", ge=1, le=1024
    )
    scale: Literal["pool", "absolute"] = setting(
        "pool",
        doc="pool: times and sizes among those of the jobs, and of a graph over its largest, as published; absolute: "
        "logarithms of s and bytes, which mean the same among jobs of other graphs",
    )
    mask: Literal["scenario", "blocks"] = setting(
        "scenario", doc="valid actions: as the scenario has them, or those with a free block"
    )
    invalid: Literal["raise", "reject"] = setting(
        "reject", doc="an action that is not valid is an error, or rejects the job"
    )
    reward: Reward = setting(
        "acceptance",
        doc="acceptance: by whether the job was accepted; jct: its completion time; multi_objective: that over its "
        "sequential time, or a failure weighed by the job's length; throughputs: mean bytes/s since the last decision",
    )
    success: float = setting(1.0, doc="acceptance: of an accepted job")
    failure: float = setting(-1.0, doc="acceptance: of a blocked job")
    failure_factor: float = setting(1.0, doc="jct, multi_objective: factor on what a blocked job counts", gt=0)
    failure_time: float | None = setting(
        None, doc="jct: what a blocked job counts; null: its sequential time", unit="s", gt=0
    )
    jct_over: Literal["one", "sequential", "failure"] = setting(
        "one", doc="jct: divided by nothing, by the job's sequential time, or by that times `failure_factor`"
    )
    of_most: bool = setting(
        False,
        doc="throughputs: as shares of the most: that of the fastest op on every worker, and but for "
        "compute_throughput all channels",
    )
    sign: Literal[-1, 1] = setting(-1, doc="jct, multi_objective: factor, -1 where shorter is better")
    inverse: bool = setting(False, doc="jct, multi_objective: one over the value")
    logarithm: bool = setting(False, doc="sign(r) log10(1 + |r|) of every reward but acceptance")
