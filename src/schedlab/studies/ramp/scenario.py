"""The typed scenario of the ramp study: graphs, jobs, a cluster, and how jobs are split and placed; and the published
scenario.

The published experiment: PAC-ML, arXiv 2301.13799; docs/reference/ramp_model.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Tag

from schedlab.config.contract import Metric
from schedlab.config.schema import Settings, merged, section, setting, validate
from schedlab.config.settings import MOST, ScenarioSettings, Seeds
from schedlab.studies.ramp.graphs.settings import GraphSettings
from schedlab.studies.ramp.legacy import REFERENCE, LegacySettings
from schedlab.studies.ramp.simulator.distributions import DistributionSettings
from schedlab.studies.ramp.simulator.gaps import GapSettings
from schedlab.studies.ramp.user_classes import UserClass

RESULTS_VERSION = 4  # raise it when the code of this study changes its results
SECONDS = {"s": 1.0, "ms": 1e-3}
LARGEST_DEGREE = 1024
SHIPPED = "resources/graphs/a100"
# Changes to the published setting for the shipped graphs: traced graphs have short ops, and there is no block for the
# 10, 12 or 14 shards that they would get.
ON_SHIPPED = {"management": {"illegal_degrees": "round_down"}}
METRICS = (
    Metric("blocking_rate", "-", "lower", headline=True, label="blocking rate"),
    Metric("speedup", "-", "higher", label="mean speed-up of completed jobs"),
    Metric("jct", "s", "lower", label="mean completion time of completed jobs"),
    Metric("demand_throughput", "bytes/s", "higher", label="demand throughput"),
    Metric("mounted_workers", "workers", "higher", label="mean number of mounted workers per step"),
    Metric("utilisation", "-", "higher", label="mean utilisation of mounted workers per step"),
)


Interarrival = Annotated[
    Annotated[GapSettings, Tag("law")] | Annotated[UserClass, Tag("class")], Discriminator(UserClass.is_meant)
]
THOUSAND: Any = partial(GapSettings, kind="fixed", value=1000.0)
HUNDREDTHS: Any = partial(DistributionSettings, kind="uniform", low=0.1, high=1.0, decimals=2)


class ClusterSettings(Settings):
    """A cluster: RAMP, or a torus whose three axes have the sizes of groups, racks and servers."""

    topology: Literal["ramp", "torus"] | UserClass = setting(
        "ramp", doc="network topology, which determines the blocks of servers that a job may use"
    )
    groups: int = setting(4, doc="communication groups", ge=1, le=256)
    racks: int = setting(4, doc="racks per group, at most the number of groups (ramp)", ge=1, le=256)
    servers: int = setting(2, doc="servers per rack", ge=1, le=256)
    workers: int = setting(
        1,
        doc="workers per server, one device each; jobs that share a server have separate channels, and "
        "messages within a server take no time",
        ge=1,
        le=64,
    )
    channels: int = setting(1, doc="channels between two servers in each direction", ge=1, le=256)
    node_bandwidth: float = setting(1.6e12, doc="bandwidth of a server, over all its channels", unit="bytes/s", gt=0)
    propagation_latency: float = setting(50e-9, doc="propagation time between servers (torus: per hop)", unit="s", ge=0)
    io_latency: float = setting(100e-9, doc="time of a server's input or output", unit="s", ge=0)
    memory: float = setting(80e9, doc="memory of a device", unit="bytes", gt=0)
    speeds: tuple[float, ...] = setting(
        (),
        doc="speed of each worker relative to the device of the graphs' times, repeated cyclically; empty: all 1",
    )
    memories: tuple[float, ...] = setting(
        (), doc="memory of each worker, repeated cyclically; empty: `memory` for all", unit="bytes"
    )
    contending_racks: Literal["one", "racks"] = setting(
        "one",
        doc="number of racks that contend for the wavelengths of a collective (ramp): one, as published, or all "
        "racks of a group that take part",
    )


class JobSettings(Settings):
    """The jobs that arrive."""

    steps: int = setting(50, doc="training steps of a job", unit="steps", ge=1)
    time_unit: Literal["s", "ms"] = setting(
        "s", doc="unit of the times in graph files; PipeDream measured ms, the published runs read them as s"
    )
    beta: DistributionSettings = section(
        HUNDREDTHS, doc="acceptable completion time as a share of the sequential time, above 0 and at most 1"
    )
    interarrival: Interarrival = section(
        THOUSAND, doc="time between arrivals, s: a law with its keys, or a user's class"
    )
    replication: int = setting(201, doc="jobs of each graph in the pool", ge=1, le=1_000_000)
    sampling: Literal["replace", "remove", "remove_and_repeat"] = setting(
        "remove_and_repeat",
        doc="a drawn job returns to the pool (`replace`) or leaves it (`remove`); `remove_and_repeat`: it "
        "leaves the pool, which is refilled when it is empty",
    )


class ManagementSettings(Settings):
    """Partitioning and placement of a job, given the maximum number of shards that a policy chose."""

    most: int = setting(16, doc="maximum number of shards of an op, the largest action", ge=1, le=LARGEST_DEGREE)
    partitioner: Literal["quantum", "random"] | UserClass = setting(
        "quantum", doc="number of shards of an op: its run time over `quantum`, or random within the action's limit"
    )
    quantum: float = setting(0.01, doc="target run time of a forward shard", unit="s", gt=0)
    illegal_degrees: Literal["keep", "round_down"] = setting(
        "keep",
        doc="degrees that follow from the quantum but have no block of that size: `keep` them (the job "
        "cannot be placed), or use the next smaller legal degree",
    )
    placer: Literal["first_fit", "any_servers", "random"] | UserClass = setting(
        "first_fit",
        doc="placement: `first_fit`: the first free block; `any_servers`: the first free servers, whether or not they "
        "are a block, shared by all ops of the job; `random`: random free servers",
    )
    whole_ops: Literal["first_free", "inside"] = setting(
        "first_free",
        doc="where ops with fewer shards than the job's largest degree are placed (first fit): `first_free`: on the "
        "first free servers of the cluster, as published, so that a job often occupies more servers than its "
        "largest degree; `inside`: on servers of the job's block",
    )
    shaper: Literal["none", "first_fit", "random"] = setting(
        "none",
        doc="whether a block for the job's largest degree is chosen before its ops are placed, all within this block: "
        "`none`: no; `first_fit`: the first free block; `random`: a random free one",
    )
    op_scheduler: Literal["srpt"] | UserClass = setting(
        "srpt", doc="which ready shard of a server runs first: the one with the shortest run time"
    )
    dep_scheduler: Literal["srpt"] | UserClass = setting(
        "srpt", doc="which ready message of a channel goes first where `contention` is on: the shortest"
    )
    contention: bool = setting(False, doc="messages of a job on one link wait for each other")
    mask: Literal["degrees", "blocks"] = setting(
        "degrees",
        doc="valid actions: degrees with a legal block and enough free workers (`degrees`), or with a free block",
    )


class EpisodeSettings(Settings):
    """Length and number of episodes."""

    end: float = setting(1e6, doc="end of an episode", unit="s", gt=0)
    queue_capacity: int = setting(10, doc="capacity of the queue, in jobs; further arrivals are blocked", ge=0)
    train: int = setting(0, doc="training episodes", unit="episodes", ge=0, le=MOST)
    validation: int = setting(
        0, doc="validation episodes, on which the best rule is chosen", unit="episodes", ge=0, le=MOST
    )
    test: int = setting(3, doc="test episodes", unit="episodes", ge=1, le=MOST)


class RampScenario(ScenarioSettings):
    """A RAMP cluster with arriving jobs of distributed training."""

    graphs: GraphSettings = setting(doc="graphs of the jobs")
    cluster: ClusterSettings = section(ClusterSettings, doc="cluster")
    jobs: JobSettings = section(JobSettings, doc="the jobs")
    management: ManagementSettings = section(ManagementSettings, doc="partitioning and placement")
    episodes: EpisodeSettings = section(EpisodeSettings, doc="windows that are simulated separately")
    legacy: LegacySettings = section(LegacySettings, doc="switches for defects of the original")

    @property
    def user_classes(self) -> tuple[UserClass, ...]:
        """The users' classes that the scenario names."""
        named = (
            self.cluster.topology,
            self.jobs.interarrival,
            self.management.partitioner,
            self.management.placer,
            self.management.op_scheduler,
            self.management.dep_scheduler,
        )
        return tuple(one for one in named if isinstance(one, UserClass))


class RampScale(Settings):
    """Sizes of this study at one scale: `sizes` of its file in conf/study/."""

    end: float = setting(1e6, doc="end of an episode", unit="s", gt=0)
    test: int = setting(20, doc="test episodes", unit="episodes", ge=1, le=MOST)
    validation: int = setting(3, doc="validation episodes", unit="episodes", ge=0, le=MOST)
    seeds: Seeds = setting((0, 1, 2), doc="seeds of learned policies", min_length=1)
    bases: int = setting(1, doc="number of base policies to whose rollouts values are fitted", ge=1, le=MOST)
    training_episodes: int = setting(
        4, doc="training episodes decided by rollouts, to which values are fitted", unit="episodes", ge=1, le=MOST
    )
    samples: int = setting(32, doc="samples per rollout", ge=1, le=MOST)
    generations: int = setting(40, doc="generations of the evolution strategy over the linear weights", ge=0, le=MOST)


TERMS = {
    "blocking rate": "blocked jobs over arrived jobs",
    "degree": "number of shards that an op is split into",
    "beta": "share of its sequential time that a job may take; a job that would take longer is blocked",
    "speed-up": "sequential time of a job over its completion time",
    "sequential": "splits no job; a job runs on one server if its memory suffices",
    "smallest": "two shards for each op, if any splitting is valid",
    "para_max": "as many shards as are valid (maximum parallelisation)",
    "para_min": "as few shards as meet the job's limit, if n shards made it n times as fast",
    "random": "a random valid number of shards",
    "sip_ml": "as many shards as are valid, up to a cap; rejects the job if the cap is not valid",
    "afterstate": "takes the action (a degree, or rejection) with the largest sum of acceptance (1 or 0) and the "
    "learned value of the cluster's state after it",
    "table": "gives each job a degree that depends on the least degree for its limit and on whether the job is short "
    "or long; tuned on training episodes",
    "rollouts": "simulates each action, followed by drawn jobs under a base policy, and takes the action after which "
    "the most jobs are accepted on average",
    "pac_ml": "the published learned agent, a graph network",
    "fixed": "always the same number of shards, or the next lower valid one",
}


def _skewed(skewness: float, *extremes: float) -> dict[str, Any]:
    return {
        "kind": "skew_normal",
        "skewness": skewness,
        "low": 0.1,
        "high": 1.0,
        "decimals": 2,
        "extremes": list(extremes),
    }


# Of the published sample only mean and deviation are known; these extremes reproduce both
# (test_ramp_distributions.py).
BETAS: dict[str, dict[str, Any]] = {
    "A": {"kind": "uniform", "low": 0.1, "high": 1.0, "decimals": 2},
    "B": _skewed(5.0, -0.6813, 4.4868),
    "C": _skewed(0.0, -4.2409, 4.8493),
    "D": _skewed(-5.0, -4.9345, 0.7801),
}


def published_scenario(beta: str, compat: bool, **changes: Mapping[str, Any]) -> RampScenario:
    """Return the scenario of the published experiment: 32 servers, five graphs, an arrival every 1000 s for 1e6 s.

    beta     distribution of the limits, A to D
    compat   whether the published defects are on
    changes  other values for keys of its sections
    Raises UserError.
    """
    own_beta = "beta" in changes.get("jobs", {})  # one of another kind replaces all keys of the published one
    values = {
        "name": f"published-{beta.lower()}",
        "seed": 0,
        "graphs": {"name": "pipedream", "source": "files", "path": "graphs"},
        "jobs": {} if own_beta else {"beta": BETAS[beta]},
        "legacy": REFERENCE if compat else {},
    }
    return validate(RampScenario, merged(values, changes))
