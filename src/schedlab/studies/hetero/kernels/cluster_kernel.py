"""The cluster and its jobs on the compiled kernel: free resources, waiting and running jobs, and the passing of time.

`ResourceModel` and `DecisionSystem` define them in plain Python; the tests compare the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.hetero.simulator.resources import ALL_ORDERS

CORES = ("random", "high_gflops", "low_power", "lowest", "high_cores", "high_mem_bw", "high_mem")
CORE_CODES = {name: number for number, name in enumerate(CORES)}
RANDOM_CORE, HIGH_GFLOPS, LOW_POWER, LOWEST, HIGH_CORES, HIGH_MEM_BW = range(6)
JOB_CODES = {name: number for number, name in enumerate((*ALL_ORDERS, "random"))}
RANDOM = JOB_CODES["random"]
WAITING, RUNNING, SUBMITTED = range(3)  # places of KernelState.counts
DONE = 1e-9  # s; remaining work up to this counts as none, because dates are sums of floats


class KernelCluster(NamedTuple):
    """A cluster, by processor: number of cores, bandwidth (kB/s), node, speed of a core (flop/s); by node: memory (kB).

    by_speed, by_power   processors in the order of the core policies high_gflops and low_power
    oversubscribed       share of the full speed on an over-subscribed processor
    """

    size: np.ndarray
    bandwidth: np.ndarray
    node: np.ndarray
    speed: np.ndarray
    memory: np.ndarray
    by_speed: np.ndarray
    by_power: np.ndarray
    oversubscribed: float


class KernelState(NamedTuple):
    """The free resources (cores and bandwidth in kB/s by processor, memory in kB by node) and the state of the jobs.

    taken    (jobs, processors): cores of each job         done             (jobs,): flop per core so far
    speed    (jobs,): of the slowest core, flop/s          queue, running   (jobs,): job numbers, `counts` of them valid
    counts   (3,): jobs that wait, run, and were submitted
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


class KernelJobs(NamedTuple):
    """The jobs in the order of submission, each array (jobs,) unless noted.

    submitted   dates (s)        time                requested times (s)        cores         numbers of cores
    memory      kB per core      bandwidth           kB/s per core              asked, flops  requested and true flop
    keys        (job policies, jobs): key by which each job policy other than `random` sorts
    limits      (2,): log(1 + requested time in s) and bandwidth (kB/s) that count as 1 in observations
    """

    submitted: np.ndarray
    time: np.ndarray
    cores: np.ndarray
    memory: np.ndarray
    bandwidth: np.ndarray
    asked: np.ndarray
    flops: np.ndarray
    keys: np.ndarray
    limits: np.ndarray


@compiled
def fits(state: KernelState, cluster: KernelCluster, cores: int, memory: int) -> bool:
    """Return whether the free cores and memory suffice for a job; memory: kB per core."""
    free = np.zeros(len(state.memory), np.int64)
    for processor in range(len(state.cores)):
        free[cluster.node[processor]] += state.cores[processor]
    if memory > 0:
        free = np.minimum(free, state.memory // memory)
    return free.sum() >= cores


@compiled
def in_order(
    cluster: KernelCluster, order: np.ndarray, free: np.ndarray, missing: int, room: np.ndarray, taken: np.ndarray
) -> None:
    """Take cores of one processor after another, each time up to `free` of them, until none is missing.

    order  processors, which may occur several times
    room   (nodes,): cores that the memory of each node still allows
    taken  (processors,): filled in
    """
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
    """Take a core of the group of processors with the highest level, and reduce the level by `step`, until no core is
    missing.

    group   (processors,): group of each processor
    levels  (groups,)
    room    (nodes,): cores that the memory of each node still allows
    taken   (processors,): filled in
    """
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


@compiled
def free_state(cluster: KernelCluster, jobs: int) -> KernelState:
    """Return a free cluster before the first submission."""
    cores, bandwidth, memory = cluster.size.copy(), cluster.bandwidth.copy(), cluster.memory.copy()
    taken, counts = np.zeros((jobs, len(cluster.size)), np.int64), np.zeros(3, np.int64)
    done, speed, queue, running = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs, np.int64), np.zeros(jobs, np.int64)
    return KernelState(cores, bandwidth, memory, taken, done, speed, queue, running, counts)


@compiled
def next_date(state: KernelState, jobs: KernelJobs, now: float) -> float:
    """Return the date (s) at which the next job is submitted or ends."""
    submitted = state.counts[SUBMITTED]
    soonest = jobs.submitted[submitted] if submitted < len(jobs.time) else np.inf
    for job in state.running[: state.counts[RUNNING]]:
        soonest = min(soonest, now + (jobs.flops[job] - state.done[job]) / state.speed[job])
    return soonest


@compiled
def end_jobs(state: KernelState, jobs: KernelJobs, cluster: KernelCluster, urgency: float) -> tuple[bool, float]:
    """End the jobs that are done; return whether there were any, and the remaining sum of 1 / requested time (1/s)."""
    left = 0
    for job in state.running[: state.counts[RUNNING]]:
        if jobs.flops[job] - state.done[job] <= DONE * state.speed[job]:
            urgency -= 1.0 / jobs.time[job]
            book(state, jobs, cluster, job, -state.taken[job])
        else:
            state.running[left] = job
            left += 1
    ended = left < state.counts[RUNNING]
    state.counts[RUNNING] = left
    return ended, urgency


@compiled
def submit_jobs(state: KernelState, jobs: KernelJobs, now: float, urgency: float) -> tuple[bool, float]:
    """Queue the jobs that are due; return whether there were any, and the sum of 1 / requested time (1/s) with them."""
    before = state.counts[SUBMITTED]
    while state.counts[SUBMITTED] < len(jobs.time) and jobs.submitted[state.counts[SUBMITTED]] <= now:
        state.queue[state.counts[WAITING]] = state.counts[SUBMITTED]
        urgency += 1.0 / jobs.time[state.counts[SUBMITTED]]
        state.counts[WAITING] += 1
        state.counts[SUBMITTED] += 1
    return state.counts[SUBMITTED] > before, urgency


@compiled
def start_jobs(
    state: KernelState, jobs: KernelJobs, cluster: KernelCluster, pair: np.ndarray, rng: np.random.Generator
) -> None:
    """Start jobs in the order of a pair's job policy until one does not fit."""
    while state.counts[WAITING]:
        waiting = state.counts[WAITING]
        job = state.queue[rng.integers(0, waiting)] if pair[0] == RANDOM else head(state, jobs, pair[0])
        if not fits(state, cluster, jobs.cores[job], jobs.memory[job]):
            return
        take_cores(state, jobs, cluster, pair[1], job, rng)
        start_job(state, jobs, cluster, job)


@compiled
def start_job(state: KernelState, jobs: KernelJobs, cluster: KernelCluster, job: int) -> None:
    """Start a waiting job on the cores in `state.taken`."""
    waiting = state.counts[WAITING]
    book(state, jobs, cluster, job, state.taken[job])
    state.running[state.counts[RUNNING]] = job
    state.counts[RUNNING] += 1
    state.queue[: waiting - 1] = state.queue[:waiting][state.queue[:waiting] != job]
    state.counts[WAITING] = waiting - 1


@compiled
def take_cores(
    state: KernelState, jobs: KernelJobs, cluster: KernelCluster, policy: int, job: int, rng: np.random.Generator
) -> None:
    """Fill in `state.taken` the number of cores of each processor that a core policy gives to a job that fits."""
    cores, memory, taken, order = jobs.cores[job], jobs.memory[job], state.taken[job], np.arange(len(state.cores))
    taken[:] = 0
    room = state.memory // memory if memory > 0 else np.full(len(state.memory), cores)
    if policy == RANDOM_CORE:
        owners = np.repeat(order, state.cores)
        rng.shuffle(owners)
        in_order(cluster, owners, np.ones_like(state.cores), cores, room, taken)
    elif policy == HIGH_GFLOPS:
        in_order(cluster, cluster.by_speed, state.cores, cores, room, taken)
    elif policy == LOW_POWER:
        in_order(cluster, cluster.by_power, state.cores, cores, room, taken)
    elif policy == LOWEST:
        in_order(cluster, order, state.cores, cores, room, taken)
    elif policy == HIGH_CORES:
        by_level(state, cluster, order, state.cores, 1, cores, room, taken)
    elif policy == HIGH_MEM_BW:
        by_level(state, cluster, order, state.bandwidth, jobs.bandwidth[job], cores, room, taken)
    else:
        by_level(state, cluster, cluster.node, state.memory, memory, cores, room, taken)


@compiled
def book(state: KernelState, jobs: KernelJobs, cluster: KernelCluster, job: int, taken: np.ndarray) -> None:
    """Subtract the resources of a job's cores, taken (processors,), or give them back if the numbers are negative."""
    for processor in range(len(taken)):
        state.cores[processor] -= taken[processor]
        state.bandwidth[processor] -= taken[processor] * jobs.bandwidth[job]
        state.memory[cluster.node[processor]] -= taken[processor] * jobs.memory[job]


@compiled
def set_speeds(state: KernelState, cluster: KernelCluster) -> None:
    """Set the speed of each running job to that of its slowest core, flop/s."""
    for job in state.running[: state.counts[RUNNING]]:
        slowest = np.inf
        for processor in range(len(cluster.size)):
            if state.taken[job, processor]:
                share = cluster.oversubscribed if state.bandwidth[processor] < 0 else 1.0
                slowest = min(slowest, cluster.speed[processor] * share)
        state.speed[job] = slowest


@compiled
def head(state: KernelState, jobs: KernelJobs, policy: int) -> int:
    """Return the job that a job policy other than `random` takes first. Ties: the job submitted earlier."""
    best = state.queue[0]
    for job in state.queue[1 : state.counts[WAITING]]:
        if jobs.keys[policy, job] < jobs.keys[policy, best]:
            best = job
    return best


@compiled
def expected_wait(state: KernelState, jobs: KernelJobs, wanted: int) -> float:
    """Return the same as `ResourceModel.expected_wait`, s."""
    missing = wanted - state.cores.sum()
    if missing <= 0:
        return 0.0
    running = state.running[: state.counts[RUNNING]]
    ends = np.maximum(jobs.asked[running] - state.done[running], 0.0) / state.speed[running]
    for place in np.argsort(ends):
        missing -= jobs.cores[running[place]]
        if missing <= 0:
            return ends[place]
    return np.inf
