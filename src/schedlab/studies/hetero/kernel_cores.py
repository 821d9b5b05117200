"""The core policies, compiled: how many cores of each processor a job takes. `core_policies` is the statement of the rules."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.compiled import compiled

CORE_CODES = {"random": 0, "high_gflops": 1, "low_power": 2, "lowest": 3, "high_cores": 4, "high_mem_bw": 5, "high_mem": 6}
RANDOM, HIGH_GFLOPS, LOW_POWER, LOWEST, HIGH_CORES, HIGH_MEM_BW, HIGH_MEM = range(7)


class KernelCluster(NamedTuple):
    """By processor: cores, bandwidth (kB/s), node, speed (flop/s) and power (W) of a core; by node: memory (kB); by rank: the processors
    from the fastest and from the most frugal on; share of full speed where bandwidth is over-subscribed."""

    size: np.ndarray
    bandwidth: np.ndarray
    node: np.ndarray
    speed: np.ndarray
    memory: np.ndarray
    by_speed: np.ndarray
    by_power: np.ndarray
    oversubscribed: float


class KernelState(NamedTuple):
    """What is free: cores and bandwidth (kB/s) by processor, memory (kB) by node; and the jobs.

    taken    (jobs, processors): cores that each job has or had       done   (jobs,): flop a core so far
    speed    (jobs,): of a running job's slowest core, flop/s          queue, running   (jobs,): numbers of jobs, as many as `counts` tells
    counts   jobs that wait, run, and were submitted
    """

    cores: np.ndarray
    bandwidth: np.ndarray
    memory: np.ndarray
    taken: np.ndarray
    done: np.ndarray
    speed: np.ndarray
    queue: np.ndarray
    running: np.ndarray
    counts: np.ndarray


@compiled
def fits(state: KernelState, cluster: KernelCluster, cores: int, memory: int) -> bool:
    """Whether a job finds its cores on nodes with enough memory."""
    free = np.zeros(len(state.memory), np.int64)
    for processor in range(len(state.cores)):
        free[cluster.node[processor]] += state.cores[processor]
    if memory > 0:
        free = np.minimum(free, state.memory // memory)
    return free.sum() >= cores


@compiled
def take_cores(
    state: KernelState,
    cluster: KernelCluster,
    policy: int,
    cores: int,
    memory: int,
    bandwidth: int,
    taken: np.ndarray,
    rng: np.random.Generator,
) -> None:
    """Fill in how many cores of each processor (processors,) a job that fits takes."""
    taken[:] = 0
    room = state.memory // memory if memory > 0 else np.full(len(state.memory), cores)
    if policy == RANDOM:
        owners = np.repeat(np.arange(len(state.cores)), state.cores)
        rng.shuffle(owners)
        in_order(cluster, owners, np.ones_like(state.cores), cores, room, taken)
    elif policy == HIGH_GFLOPS:
        in_order(cluster, cluster.by_speed, state.cores, cores, room, taken)
    elif policy == LOW_POWER:
        in_order(cluster, cluster.by_power, state.cores, cores, room, taken)
    elif policy == LOWEST:
        in_order(cluster, np.arange(len(state.cores)), state.cores, cores, room, taken)
    elif policy == HIGH_CORES:
        by_level(state, cluster, np.arange(len(state.cores)), state.cores, 1, cores, room, taken)
    elif policy == HIGH_MEM_BW:
        by_level(state, cluster, np.arange(len(state.cores)), state.bandwidth, bandwidth, cores, room, taken)
    else:
        by_level(state, cluster, cluster.node, state.memory, memory, cores, room, taken)


@compiled
def in_order(cluster: KernelCluster, order: np.ndarray, free: np.ndarray, missing: int, room: np.ndarray, taken: np.ndarray) -> None:
    """Take up to `free` cores of one processor after another; one may come several times."""
    for processor in order:
        granted = min(free[processor], missing, room[cluster.node[processor]])
        taken[processor] += granted
        room[cluster.node[processor]] -= granted
        missing -= granted


@compiled
def by_level(
    state: KernelState,
    cluster: KernelCluster,
    group: np.ndarray,
    levels: np.ndarray,
    step: int,
    missing: int,
    room: np.ndarray,
    taken: np.ndarray,
) -> None:
    """Take a core of the group (of processors) with the highest level, which sinks by `step`, again and again."""
    level = levels.copy()
    while missing:
        best = -1
        for processor in range(len(state.cores)):
            free = taken[processor] < state.cores[processor] and room[cluster.node[processor]] > 0
            if free and (best < 0 or level[group[processor]] > level[group[best]]):
                best = processor
        taken[best] += 1
        room[cluster.node[best]] -= 1
        level[group[best]] -= step
        missing -= 1
