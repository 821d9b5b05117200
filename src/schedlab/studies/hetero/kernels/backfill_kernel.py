"""EASY backfilling of pairs on the compiled kernel; `simulator/backfilling.py` defines it in plain Python."""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.hetero.kernels.cluster_kernel import (
    JOB_CODES,
    RANDOM,
    RUNNING,
    WAITING,
    KernelCluster,
    KernelJobs,
    KernelState,
    fits,
    set_speeds,
    start_job,
    start_jobs,
    take_cores,
)
from schedlab.studies.hetero.simulator.backfilling import ROUNDING
from schedlab.studies.hetero.simulator.resources import BACKFILLING

EASY = len(JOB_CODES)  # added to the code of a job policy that uses EASY backfilling
PAIR_CODES = {**JOB_CODES, **{name: JOB_CODES[policy] + EASY for name, policy in BACKFILLING.items()}}


@compiled
def play_pair(
    state: KernelState, jobs: KernelJobs, cluster: KernelCluster, pair: np.ndarray, rng: np.random.Generator
) -> None:
    """Start the jobs that a pair starts, with or without backfilling; pair: (2,) codes of its policies."""
    if pair[0] >= EASY:
        start_and_backfill(state, jobs, cluster, pair, rng)
    else:
        start_jobs(state, jobs, cluster, pair, rng)


@compiled
def start_and_backfill(
    state: KernelState, jobs: KernelJobs, cluster: KernelCluster, pair: np.ndarray, rng: np.random.Generator
) -> None:
    """Start jobs in the order of the job policy; jobs behind the first that does not fit start only if they do not
    delay it.
    """
    policy, waiting = pair[0] - EASY, state.counts[WAITING]
    queue = state.queue[:waiting].copy()
    order = rng.permutation(waiting) if policy == RANDOM else np.argsort(jobs.keys[policy][queue], kind="mergesort")
    cores, memory = np.zeros(len(state.memory), np.int64), state.memory.copy()
    first, wait = -1, 0.0
    for job in queue[order]:
        if not fits(state, cluster, jobs.cores[job], jobs.memory[job]):
            if first < 0:
                set_speeds(state, cluster)
                first, wait = job, reserve(state, jobs, cluster, job, cores, memory)
            continue
        take_cores(state, jobs, cluster, pair[1], job, rng)
        if first < 0 or admits(state, jobs, cluster, job, first, wait, cores, memory):
            start_job(state, jobs, cluster, job)


@compiled
def reserve(
    state: KernelState, jobs: KernelJobs, cluster: KernelCluster, job: int, cores: np.ndarray, memory: np.ndarray
) -> float:
    """Return the time until a job is expected to start (s), and fill in the cores and memory (kB) of each node that are
    free then.
    """
    memory[:] = state.memory
    cores[:] = 0
    for processor in range(len(state.cores)):
        cores[cluster.node[processor]] += state.cores[processor]
    running = state.running[: state.counts[RUNNING]]
    ends = np.maximum(jobs.asked[running] - state.done[running], 0.0) / state.speed[running]
    wait = np.inf
    for place in np.argsort(ends, kind="mergesort"):
        if ends[place] > wait:
            break
        other = running[place]
        for processor in range(len(cluster.size)):
            taken = state.taken[other, processor]
            cores[cluster.node[processor]] += taken
            memory[cluster.node[processor]] += taken * jobs.memory[other]
        if room_for(jobs, job, cores, memory):
            wait = ends[place]
    return wait


@compiled
def admits(
    state: KernelState,
    jobs: KernelJobs,
    cluster: KernelCluster,
    job: int,
    first: int,
    wait: float,
    cores: np.ndarray,
    memory: np.ndarray,
) -> bool:
    """Return whether a job may start on the cores in `state.taken`. If it may and lasts beyond the wait (s) of the
    first job, its cores and memory are subtracted from those that are free then.
    """
    slowest = np.inf
    for processor in range(len(cluster.size)):
        if state.taken[job, processor]:
            slowest = min(slowest, cluster.speed[processor])
    if jobs.asked[job] / slowest <= wait + ROUNDING:
        return True
    left, room = cores.copy(), memory.copy()
    for processor in range(len(cluster.size)):
        left[cluster.node[processor]] -= state.taken[job, processor]
        room[cluster.node[processor]] -= state.taken[job, processor] * jobs.memory[job]
    if not room_for(jobs, first, left, room):
        return False
    cores[:] = left
    memory[:] = room
    return True


@compiled
def room_for(jobs: KernelJobs, job: int, cores: np.ndarray, memory: np.ndarray) -> bool:
    """Return whether a job fits, given the free cores and the free memory (kB) of each node."""
    room = np.minimum(cores, memory // jobs.memory[job]) if jobs.memory[job] > 0 else cores
    return room.sum() >= jobs.cores[job]
