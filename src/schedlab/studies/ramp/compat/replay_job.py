"""Description of a placed job in a recorded run: shards, deps, priorities, collectives, look-ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedlab.studies.ramp.network.communication import Traffic
from schedlab.studies.ramp.placement.partitioning import Partition, sequential_sum
from schedlab.studies.ramp.placement.placers import placement_order
from schedlab.studies.ramp.placement.ranks import srpt_dep_ranks, srpt_ranks
from schedlab.studies.ramp.simulator.cluster import Cluster, JobPlan, RunningJob
from schedlab.studies.ramp.simulator.jobs import Job
from schedlab.studies.ramp.simulator.lookahead import Lookahead
from schedlab.studies.ramp.simulator.timing import Timing

UNSENT = "None"  # name of the channel of a dep without a channel


def describe_job(
    cluster: Cluster,
    job: Job,
    plan: JobPlan,
    timing: Timing,
    lookahead: Lookahead,
    running: RunningJob | None,
    numbers: np.ndarray,
) -> dict[str, Any]:
    """Return the description of a placed job; `running` is None if its duration exceeds its limit.

    numbers  int64[deps], numbers of the channels that flows use
    """
    split, times = plan.split, cluster.times
    server = times.workers(split, plan.placement)
    traffic = times.communication.traffic(split, server)
    labels, names = times.topology.worker_labels, split.named_shards(times.legacy.letters_run_on)
    order = placement_order(split, plan.placement)
    by_server = sorted(order.tolist(), key=lambda shard: server[shard])
    channels = [_channel(cluster, traffic, dep, int(numbers[dep])) for dep in range(split.num_deps)]
    described: dict[str, Any] = {
        "placed": True,
        "servers": sorted(labels[number] for number in set(server.tolist())),
        "sum_dep_run_time": sequential_sum(traffic.time),
        "placement": {names[shard]: labels[server[shard]] for shard in by_server},
        "ops": {
            names[shard]: [cost, memory]
            for shard, (cost, memory) in enumerate(zip(split.cost, split.memory, strict=True))
        },
        "deps": [
            [names[source], names[destination], size, time, [channel]]
            for source, destination, size, time, channel in zip(
                split.dep_source.tolist(),
                split.dep_destination.tolist(),
                split.dep_size.tolist(),
                traffic.time.tolist(),
                channels,
                strict=True,
            )
        ],
        "op_priority": _op_priorities(split, server, order, labels, names),
        "dep_priority": _dep_priorities(split, traffic, channels, names),
        "lookahead": _lookahead(job, timing, lookahead, running) | {"num_mounted_channels": len(plan.channels or ())},
    }
    collectives = times.communication.collectives(split, server)
    if collectives:
        described |= {
            "collectives": [_collective(split, item, names) for item in collectives],
            "num_collectives": len(collectives),
            "sum_collective_run_time": sum(item.time for item in collectives),
        }
    return described


def _channel(cluster: Cluster, traffic: Traffic, dep: int, number: int) -> str:
    if not traffic.remote[dep]:
        return UNSENT
    source, destination = divmod(int(traffic.link[dep]), cluster.times.topology.num_servers)
    return cluster.times.topology.channel_name(source, destination, number)


def _op_priorities(
    split: Partition, server: np.ndarray, order: np.ndarray, labels: tuple[str, ...], names: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    ranks = srpt_ranks(split.cost, server, order)
    found: dict[str, dict[str, int]] = {}
    for shard in np.lexsort((ranks, server)).tolist():
        found.setdefault(labels[server[shard]], {})[names[shard]] = int(ranks[shard])
    return found


def _dep_priorities(
    split: Partition, traffic: Traffic, channels: list[str], names: tuple[str, ...]
) -> dict[str, list[list[Any]]]:
    ranks = srpt_dep_ranks(traffic.time)
    found: dict[str, list[list[Any]]] = {}
    for dep in np.argsort(ranks).tolist():
        ends = [names[split.dep_source[dep]], names[split.dep_destination[dep]]]
        found.setdefault(channels[dep], []).append([*ends, int(ranks[dep])])
    return found


def _lookahead(job: Job, timing: Timing, lookahead: Lookahead, running: RunningJob | None) -> dict[str, Any]:
    described = {
        "jct": job.steps * lookahead.time,
        "communication_overhead": job.steps * lookahead.communication,
        "computation_overhead": job.steps * lookahead.computation,
        "num_ticks": len(lookahead.ticks),
        "ticks": [
            [active, tick] for active, tick in zip(lookahead.active.tolist(), lookahead.ticks.tolist(), strict=True)
        ],
        "max_acceptable_jct": job.time_limit,
        "num_mounted_workers": timing.workers,
    }
    if running is not None:
        described |= {"mean_mounted_worker_utilisation": running.utilisation, "total_flow_size": timing.flow_size}
    return described


def _collective(split: Partition, item: Any, names: tuple[str, ...]) -> dict[str, Any]:
    servers, groups, racks, nodes = item.spread
    return {
        "num_deps": len(item.deps),
        "deps": [[names[split.dep_source[dep]], names[split.dep_destination[dep]]] for dep in item.deps.tolist()],
        "groups": groups,
        "racks": racks,
        "nodes": nodes,
        "servers": servers,
        "contending_racks": 1,
        "message_size": item.message,
        "run_time": item.time,
    }
