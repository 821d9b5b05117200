"""Compiled rules that are no pairs: the scheduler `easy` on managed cores, and smallest area first with a reserve.

The first is defined in plain Python by `schedlab.batsim.schedulers.easy` on `ManagedCores`, the second by
`ReserveRule`.
"""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.hetero.kernels.cluster_kernel import (
    JOB_CODES,
    RUNNING,
    WAITING,
    KernelCluster,
    KernelJobs,
    fits,
    set_speeds,
    start_job,
    take_cores,
)
from schedlab.studies.hetero.kernels.run_kernel import Run, new_run, to_decision

AREA = JOB_CODES["saf"]


@compiled
def run_easy(
    jobs: KernelJobs,
    cluster: KernelCluster,
    walltime: np.ndarray,
    score: np.ndarray,
    core_policy: int,
    rng: np.random.Generator,
) -> tuple[Run, bool]:
    """Return the run of EASY backfilling, and whether it is valid; it is not if the memory of a job to start was not
    free.

    walltime  (jobs,) s, from which the scheduler expects the ends      score  (jobs,): smallest first
    """
    run, now = new_run(cluster, len(jobs.time)), 0.0
    state = run.state
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return run, True
        waiting = state.queue[: state.counts[WAITING]].copy()
        order = waiting[np.argsort(score[waiting], kind="mergesort")]
        first, shadow, extra = -1, np.inf, 0
        for job in order:
            free = state.cores.sum()
            if jobs.cores[job] > free:
                if first < 0:
                    first = job
                    shadow, extra = shadow_of(run, jobs, now, walltime, jobs.cores[job])
                continue
            late = now + walltime[job] > shadow
            if first >= 0 and late and jobs.cores[job] > extra:
                continue
            if not fits(state, cluster, jobs.cores[job], jobs.memory[job]):
                return run, False
            if first >= 0 and late:
                extra -= jobs.cores[job]
            take_cores(state, jobs, cluster, core_policy, job, rng)
            start_job(state, jobs, cluster, job)
            run.started[job] = now
        set_speeds(state, cluster)


@compiled
def shadow_of(run: Run, jobs: KernelJobs, now: float, walltime: np.ndarray, wanted: int) -> tuple[float, int]:
    """Return the earliest date (s) at which a job of so many cores can start if running jobs end at their walltimes,
    and the number of cores that it leaves free then.
    """
    running = run.state.running[: run.state.counts[RUNNING]]
    ends = run.started[running] + walltime[running]
    free, shadow = run.state.cores.sum(), np.inf
    for place in np.argsort(ends, kind="mergesort"):
        if ends[place] > shadow:
            break
        free += jobs.cores[running[place]]
        if free >= wanted and shadow == np.inf:
            shadow = max(ends[place], now)
    return (shadow, free - wanted) if shadow < np.inf else (shadow, 0)


@compiled
def run_reserve(
    jobs: KernelJobs,
    cluster: KernelCluster,
    longest: float,
    reserve: int,
    core_policy: int,
    rng: np.random.Generator,
) -> Run:
    """Return the run of smallest area first with cores kept free: a job that requests more than `longest` s starts only
    if `reserve` cores stay free or no job runs. A job that does not start does not block others.
    """
    run, now = new_run(cluster, len(jobs.time)), 0.0
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return run
        start_with_reserve(run, jobs, cluster, now, longest, reserve, core_policy, rng)


@compiled
def start_with_reserve(
    run: Run,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    longest: float,
    reserve: int,
    core_policy: int,
    rng: np.random.Generator,
) -> None:
    """Start the jobs that the rule with a reserve starts at one date."""
    state = run.state
    waiting = state.queue[: state.counts[WAITING]].copy()
    for job in waiting[np.argsort(jobs.keys[AREA][waiting], kind="mergesort")]:
        left = state.cores.sum() - jobs.cores[job]
        allowed = jobs.time[job] <= longest or left >= reserve or not state.counts[RUNNING]
        if allowed and fits(state, cluster, jobs.cores[job], jobs.memory[job]):
            take_cores(state, jobs, cluster, core_policy, job, rng)
            start_job(state, jobs, cluster, job)
            run.started[job] = now
    set_speeds(state, cluster)
