"""The demands of a parallel task on the platform: flop per host, bytes per channel of a link, and the latency before it
starts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from schedlab.batsim.simulator.tasks import NO_HOSTS, Task
from schedlab.config.errors import UserError
from schedlab.platforms.platform import Host, Platform


class Network:
    """Builds tasks on numbered hosts; with `ignore`, transfers take no time."""

    def __init__(self, platform: Platform, hosts: Sequence[Host], ignore: bool) -> None:
        self._platform, self._hosts, self._ignore = platform, hosts, ignore

    def latency(self, source: Host, target: Host) -> float:
        """Return the latency (s) from one host to another; 0 if no route joins them, as in SimGrid."""
        try:
            return 0.0 if self._ignore else self._platform.route(source, target).latency
        except UserError:
            return 0.0

    def homogeneous(self, executors: Sequence[int], cpu: float, com: float) -> Task:
        """Return the task in which every executor computes `cpu` flop and sends `com` bytes to each other one; executor
        k runs on host `executors[k]`.
        """
        distinct = len(set(executors)) == len(executors)
        exchanges = com > 0 and len(executors) > 1 and not self._ignore
        if exchanges or not distinct:
            volumes, latency = self._exchange(executors, com, distinct) if exchanges else ({}, 0.0)
            return self._task(executors, [cpu] * len(executors), volumes, latency)
        return Task(np.array(executors, np.int64), cpu) if cpu > 0 and executors else Task(NO_HOSTS, 0.0)

    def share_of_cores(self, host: int, usage: float, flops: float) -> Task:
        """Return the task in which a share of a host's cores, rounded to whole cores and at least one, computes `flops`
        flop on each core.
        """
        cores = max(1, math.floor(usage * self._hosts[host].cores + 0.5))
        task = Task(np.array([host]), cores * flops)
        task.cores = cores
        return task

    def matrix(self, executors: Sequence[int], cpu: Sequence[float], com: Sequence[float]) -> Task:
        """Return the task in which executor i of n computes `cpu[i]` flop and sends `com[i * n + j]` bytes to executor
        j.
        """
        volumes: dict[int, float] = {}
        latency = 0.0
        if not self._ignore:
            n = len(executors)
            for index, size in enumerate(com):
                if size > 0:
                    latency = max(latency, self._send(executors[index // n], executors[index % n], size, volumes))
        return self._task(executors, cpu, volumes, latency)

    def _send(self, source: int, target: int, size: float, volumes: dict[int, float]) -> float:
        route = self._platform.route(self._hosts[source], self._hosts[target])
        for channel in route.channels:
            volumes[channel] = volumes.get(channel, 0.0) + size
        return route.latency

    def _exchange(self, executors: Sequence[int], com: float, distinct: bool) -> tuple[dict[int, float], float]:
        """Return bytes per channel and the largest latency (s) of an all-to-all exchange; in a regular cluster this
        needs no loop over all pairs.
        """
        points = [self._hosts[host].point for host in executors]
        zone = points[0].zone
        volumes: dict[int, float] = {}
        if distinct and zone.regular and all(point.zone is zone for point in points):
            others = len(points) - 1
            for point in points:
                for channel in (*point.up, *point.down):
                    volumes[channel] = volumes.get(channel, 0.0) + com * others
            if zone.backbone is not None:
                volumes[zone.backbone] = com * others * len(points)
            return volumes, self._platform.route(self._hosts[executors[0]], self._hosts[executors[1]]).latency
        latency = 0.0
        for i, source in enumerate(executors):
            for j, target in enumerate(executors):
                if i != j:
                    latency = max(latency, self._send(source, target, com, volumes))
        return volumes, latency

    def _task(self, executors: Sequence[int], cpu: Sequence[float], volumes: dict[int, float], latency: float) -> Task:
        flops: dict[int, float] = {}
        for host, amount in zip(executors, cpu, strict=True):
            if amount > 0:
                flops[host] = flops.get(host, 0.0) + amount
        channels = sorted(volumes)
        return Task(
            np.array(list(flops), np.int64),
            np.array(list(flops.values())),
            np.array(channels, np.int64),
            np.array([volumes[channel] for channel in channels]),
            latency,
        )
