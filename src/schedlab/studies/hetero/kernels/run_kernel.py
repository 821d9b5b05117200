"""Runs of a workload on the compiled kernel, which can be copied, continued to the next decision, and scored."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.hetero.kernels.backfill_kernel import play_pair
from schedlab.studies.hetero.kernels.cluster_kernel import (
    DONE,
    RUNNING,
    SUBMITTED,
    WAITING,
    KernelCluster,
    KernelJobs,
    KernelState,
    end_jobs,
    free_state,
    next_date,
    set_speeds,
    submit_jobs,
)


class Run(NamedTuple):
    """A run of a workload: its state, and the dates (jobs,) at which each job started and ended (s; NaN before)."""

    state: KernelState
    started: np.ndarray
    ended: np.ndarray


@compiled
def copied(run: Run) -> Run:
    """Return an independent copy of a run."""
    state = run.state
    own = KernelState(
        state.cores.copy(),
        state.bandwidth.copy(),
        state.memory.copy(),
        state.taken.copy(),
        state.done.copy(),
        state.speed.copy(),
        state.queue.copy(),
        state.running.copy(),
        state.counts.copy(),
    )
    return Run(own, run.started.copy(), run.ended.copy())


@compiled
def to_decision(run: Run, jobs: KernelJobs, cluster: KernelCluster, now: float) -> tuple[bool, float]:
    """Continue to the next decision, as `play_compiled` does; return whether there is one, and its date (s)."""
    state = run.state
    while state.counts[SUBMITTED] < len(jobs.time) or state.counts[RUNNING]:
        soonest = next_date(state, jobs, now)
        for job in state.running[: state.counts[RUNNING]]:
            state.done[job] += state.speed[job] * (soonest - now)
            if jobs.flops[job] - state.done[job] <= DONE * state.speed[job]:
                run.ended[job] = soonest
        now = soonest
        ended, _ = end_jobs(state, jobs, cluster, 0.0)
        came, _ = submit_jobs(state, jobs, now, 0.0)
        set_speeds(state, cluster)
        if (ended or came) and state.counts[WAITING]:
            return True, now
    return False, now


@compiled
def decide(
    run: Run, jobs: KernelJobs, cluster: KernelCluster, now: float, pair: np.ndarray, rng: np.random.Generator
) -> None:
    """Start the jobs that a pair starts, and store the date as their start."""
    state = run.state
    before = state.counts[RUNNING]
    play_pair(state, jobs, cluster, pair, rng)
    set_speeds(state, cluster)
    for job in state.running[before : state.counts[RUNNING]]:
        run.started[job] = now


@compiled
def slowdown(run: Run, jobs: KernelJobs, threshold: float) -> float:
    """Return the mean bounded slowdown of a run that has ended; threshold: lower bound on run times, s."""
    turnaround = run.ended - jobs.submitted
    return np.maximum(turnaround / np.maximum(run.ended - run.started, threshold), 1.0).mean()


@compiled
def new_run(cluster: KernelCluster, jobs: int) -> Run:
    """Return a run before the first submission."""
    none = np.full(jobs, np.nan)
    return Run(free_state(cluster, jobs), none, none.copy())


@compiled
def run_pair(jobs: KernelJobs, cluster: KernelCluster, pair: np.ndarray, rng: np.random.Generator) -> Run:
    """Return the run of a pair that is played at every decision."""
    run, now = new_run(cluster, len(jobs.time)), 0.0
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return run
        decide(run, jobs, cluster, now, pair, rng)
