"""The network and the devices of a scenario's cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.network.topology import Ramp, Topology
from schedlab.studies.ramp.network.torus import Torus, TorusPlacement
from schedlab.studies.ramp.placement.blocks import PlacementRules, RampPlacement
from schedlab.studies.ramp.scenario import ClusterSettings, RampScenario
from schedlab.studies.ramp.user_classes import Interface, UserClass, user_object

TOPOLOGY = Interface(
    "topology",
    "cluster.topology",
    ("symmetry_key", "spread", "collective_time", "one_to_one_times", "channel_name"),
    ("name", "channels", "workers", "num_servers", "channel_bandwidth", "labels", "num_workers", "worker_labels"),
)


def legal_degrees(rules: PlacementRules, most: int) -> list[int]:
    """Return the numbers of shards up to `most` for which an empty cluster has a block; 1 is always among them."""
    return [degree for degree in range(1, most + 1) if rules.is_legal(degree)]


def speeds_of(cluster: ClusterSettings, workers: int) -> np.ndarray | None:
    """Return float64[workers], the speed of each worker, or None if no speeds are given. Raises UserError."""
    return _by_worker(cluster.speeds, workers, "speed", "cluster.speeds") if cluster.speeds else None


def memory_of(cluster: ClusterSettings, workers: int) -> np.ndarray:
    """Return float64[workers], the memory of each in bytes. Raises UserError for invalid sizes."""
    return _by_worker(cluster.memories or (cluster.memory,), workers, "memory", "cluster.memories")


def _by_worker(given: tuple[float, ...], workers: int, what: str, where: str) -> np.ndarray:
    if len(given) > workers:
        raise UserError(
            f"{len(given)} values of {what} for {workers} workers", where=where, expected="at most one for each"
        )
    if any(not 0 < value < np.inf for value in given):
        raise UserError(f"a worker of {what} {min(given):g}", where=where, expected="finite numbers above 0")
    return np.resize(np.array(given, dtype=np.float64), workers)


def network(scenario: RampScenario) -> tuple[Topology, PlacementRules]:
    """Return the cluster's topology and its rules of placement. Raises UserError."""
    cluster, legacy = scenario.cluster, scenario.legacy
    shared = ("channels", "node_bandwidth", "propagation_latency", "io_latency")
    rates = {key: getattr(cluster, key) for key in shared}
    if isinstance(cluster.topology, UserClass):
        sizes = {key: getattr(cluster, key) for key in ("groups", "racks", "servers", "workers")}
        racks = {} if cluster.contending_racks == "one" else {"contending_racks": cluster.contending_racks}
        return _user_network(cluster.topology, sizes | rates | racks)
    if cluster.topology == "torus":
        torus = Torus((cluster.groups, cluster.racks, cluster.servers), **rates)
        return torus, TorusPlacement(torus)
    ramp = Ramp(
        **rates,
        **{key: getattr(cluster, key) for key in ("groups", "racks", "servers", "workers", "contending_racks")},
        free_inside_racks=legacy.free_inside_racks,
        bandwidth_shared_twice=legacy.bandwidth_shared_twice,
    )
    return ramp, RampPlacement(ramp)


def _user_network(given: UserClass, values: Mapping[str, Any]) -> tuple[Topology, PlacementRules]:
    """Return a user's topology with its placement rules, which it may inherit from its base class."""
    user = user_object(given, TOPOLOGY, **values)
    topology = user.made
    if callable(getattr(topology, "blocks", None)) and callable(getattr(topology, "is_legal", None)):
        return topology, topology
    if isinstance(topology, Ramp):
        return topology, RampPlacement(topology)
    if isinstance(topology, Torus):
        return topology, TorusPlacement(topology)
    what = f"class '{given.name}' does not say which blocks of servers a job may take"
    expected = "the methods is_legal and blocks, or a class derived from Ramp or Torus"
    raise UserError(what, where=user.where, expected=expected)
