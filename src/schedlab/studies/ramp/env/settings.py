"""Typed settings of the environment: observation, actions and reward."""

from __future__ import annotations

from typing import Literal

from schedlab.config.schema import Settings, setting

Reward = Literal[
    "acceptance", "jct", "multi_objective", "compute_throughput", "cluster_throughput", "demand_throughput"
]


class EnvironmentSettings(Settings):
    """Observation, actions and reward of the environment."""

    observation: Literal["vector", "graph_id", "published", "durations"] = setting(
        "vector",
        doc="`vector`: features of job, graph and cluster, and the mask; `graph_id`: also the number of "
        "the graph, whose features are in `env.graphs`; `published`: also the whole graph, padded; "
        "`durations`: the vector, and the true speed-up and acceptance of each number of shards (an "
        "informed policy)",
    )
    max_nodes: int | None = setting(
        None,
        doc="observation `published`: pad graphs to n ops and n (n - 1) / 2 deps (published: 150); "
        "null: to the largest graph",
        ge=2,
        le=2000,
    )
    partitions: int = setting(
        1,
        doc="scale `pool`: the numbers of ops and deps are scaled for jobs with up to this many shards per "
        "op (published: 1)",
        ge=1,
        le=1024,
    )
    scale: Literal["pool", "absolute"] = setting(
        "pool",
        doc="scaling of times and sizes: `pool`: relative to the jobs and to the graph's maximum, as "
        "published; `absolute`: logarithms of seconds and bytes, which are comparable among graphs",
    )
    mask: Literal["scenario", "blocks"] = setting(
        "scenario", doc="valid actions: the scenario's, or only those with a free block"
    )
    invalid: Literal["raise", "reject"] = setting(
        "reject", doc="an invalid action is an error (`raise`) or rejects the job"
    )
    reward: Reward = setting(
        "acceptance",
        doc="`acceptance`: whether the job was accepted; `jct`: its completion time; `multi_objective`: "
        "completion time over sequential time, with failures weighted by the job's length; "
        "throughputs: mean bytes/s since the last decision",
    )
    success: float = setting(1.0, doc="acceptance: reward of an accepted job")
    failure: float = setting(-1.0, doc="acceptance: reward of a blocked job")
    failure_factor: float = setting(1.0, doc="jct, multi_objective: factor on the value of a blocked job", gt=0)
    failure_time: float | None = setting(
        None, doc="jct: value of a blocked job; null: its sequential time", unit="s", gt=0
    )
    jct_over: Literal["one", "sequential", "failure"] = setting(
        "one", doc="jct: the value is divided by 1, by the job's sequential time, or by that time x `failure_factor`"
    )
    of_most: bool = setting(
        False,
        doc="throughputs: as a share of the maximum (the fastest op on every worker and, except for "
        "compute_throughput, all channels)",
    )
    sign: Literal[-1, 1] = setting(-1, doc="jct, multi_objective: sign of the reward; -1 rewards short times")
    inverse: bool = setting(False, doc="jct, multi_objective: reward the inverse of the value")
    logarithm: bool = setting(False, doc="transform every reward r except acceptance to sign(r) log10(1 + abs(r))")
