"""Duration of one training step of a placed job: a compiled event loop over shards and deps.

See docs/reference/ramp_model.md. tests/oracles/ramp_lookahead.py implements
the same rules in plain Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.network.communication import Traffic
from schedlab.studies.ramp.placement.partitioning import Partition
from schedlab.studies.ramp.placement.placers import Placement
from schedlab.studies.ramp.placement.ranks import srpt_dep_classes, srpt_dep_ranks
from schedlab.studies.ramp.simulator.lookahead_kernel import Step, run_step


@dataclass(frozen=True)
class FlowRules:
    """Rules for the flows of one job.

    mutual_deps_count  as published: the end of a weight synchronisation counts as the arrival of an input of the op
    ticks_by_priority  as published: of the flows on a link, only the end of the first one, which takes the shortest
                       time in total, is an event; others may therefore end late. Of equally long flows, the one that
                       started first is the first (ranks.srpt_dep_classes)
    contention         single messages on one channel are sent one after the other, in the order of the placement's
                       ranks, or without ranks the shortest first; collectives do not wait
    """

    mutual_deps_count: bool = False
    ticks_by_priority: bool = False
    contention: bool = False


@dataclass(frozen=True, eq=False)
class Lookahead:
    """One training step.

    time           s
    communication  s in which at least one flow advanced
    computation    s in which at least one shard ran; a second may count in both
    active         int64[ticks], number of workers that computed in each tick
    ticks          float64[ticks], length of each tick, s
    busy           s of computing, summed over workers
    """

    time: float
    communication: float
    computation: float
    active: np.ndarray = field(repr=False)
    ticks: np.ndarray = field(repr=False)
    busy: float


def look_ahead(
    partition: Partition,
    traffic: Traffic,
    ranks: np.ndarray,
    cost: np.ndarray | None = None,
    rules: FlowRules | None = None,
    placement: Placement | None = None,
) -> Lookahead:
    """Run one training step to its end.

    ranks      int64[shards], distinct on a worker; of the shards that are ready, the one with the highest rank runs
    cost       float64[shards], s on its device (default: the costs of the partition)
    placement  with contention, its ranks of deps and its channels are used, if it has them
    Raises UserError if some shard can never start.
    """
    rules = rules or FlowRules()
    cost = partition.cost if cost is None else cost
    order = np.argsort(partition.dep_source, kind="stable")
    _, worker = np.unique(traffic.worker, return_inverse=True)
    step = Step(
        worker=worker.astype(np.int64).reshape(-1),
        rank=ranks,
        needed=np.bincount(partition.dep_destination[~partition.mutual], minlength=partition.num_shards),
        first_out=np.searchsorted(partition.dep_source[order], np.arange(partition.num_shards + 1)),
        out_deps=order,
        destination=partition.dep_destination,
        local=~traffic.remote,
        counts=np.ones(partition.num_deps, dtype=np.bool_) if rules.mutual_deps_count else ~partition.mutual,
        link=_links(partition, traffic, rules, placement),
        dep_rank=_dep_ranks(traffic, rules, placement),
        one_by_one=rules.contention,
    )
    complete, sums, active, ticks = run_step(step, cost.astype(np.float64), traffic.time.astype(np.float64))
    if not complete:
        what = "some shards wait forever for their inputs"
        raise UserError(what, where=f"graph '{partition.graph.name}'", expected="a graph that can be executed")
    time, communication, computation, busy = sums.tolist()
    return Lookahead(time, communication, computation, active, ticks, busy)


def _dep_ranks(traffic: Traffic, rules: FlowRules, placement: Placement | None) -> np.ndarray:
    """Return int64[deps], the rank of each dep; of the deps on a link, the one with the highest rank goes first."""
    if not rules.contention:
        return srpt_dep_classes(traffic.time)
    if placement is None or placement.dep_ranks is None:
        return srpt_dep_ranks(traffic.time)
    return np.array(placement.dep_ranks, dtype=np.int64)


def _links(partition: Partition, traffic: Traffic, rules: FlowRules, placement: Placement | None) -> np.ndarray:
    """Return int64[deps]: the link (with contention, the channel) of each flow that interacts with others, else -1."""
    links = np.full(partition.num_deps, -1, dtype=np.int64)
    if rules.contention:
        together = traffic.remote & ~traffic.collective
    elif rules.ticks_by_priority:
        together = traffic.remote
    else:
        return links
    shared = traffic.link
    if rules.contention and placement is not None and placement.dep_channels is not None:
        numbers = np.array(placement.dep_channels, dtype=np.int64)
        shared = shared * (numbers.max(initial=0) + 1) + numbers
    links[together] = np.unique(shared[together], return_inverse=True)[1].reshape(-1)
    return links
