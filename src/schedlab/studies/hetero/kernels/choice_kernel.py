"""Decisions by a score for each option, compiled. An option is to start one of the first waiting jobs on the cores that
a core policy chooses, or to wait until the next job is submitted or ends.

The first jobs are those of the smallest area (requested time x cores). An option is described by numbers that all
options of the decision share and by further numbers of the option alone (`env/options.py`); none depends on the true
run time of a job that has not ended. The same small network scores each option, so that the order of the options does
not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log1p
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.hetero.env.options import LONG, SHORTEST_RUN
from schedlab.studies.hetero.kernels.cluster_kernel import (
    CORE_CODES,
    JOB_CODES,
    RUNNING,
    SUBMITTED,
    WAITING,
    KernelCluster,
    KernelJobs,
    KernelState,
    fits,
    set_speeds,
    start_job,
    take_cores,
)
from schedlab.studies.hetero.kernels.run_kernel import Run, new_run, to_decision

AREA = JOB_CODES["saf"]
SHARED, OWN = 11, 16  # how many numbers all options of a decision share, and how many each option has alone
SLOPE = 0.01  # of the leaky rectifier below 0
WAIT = -1  # instead of the number of a job


class KernelScorer(NamedTuple):
    """The weights of the network and the options that it scores. The weights have a row for each input: shared (SHARED,
    hidden) and own (OWN, hidden) with first_bias, inner (hidden, hidden), last (hidden,).

    window  number of waiting jobs that may be started      cores  (core policies,): their codes
    unused  generator for core policies that draw, none of which is among `cores`
    """

    shared: np.ndarray
    own: np.ndarray
    first_bias: np.ndarray
    inner: np.ndarray
    inner_bias: np.ndarray
    last: np.ndarray
    window: int
    cores: np.ndarray
    unused: np.random.Generator


class Options(NamedTuple):
    """The options of a decision, at most `most`: numbers shared (SHARED,) and own (most, OWN), and chosen (most, 2),
    the job or WAIT and the code of the core policy.
    """

    shared: np.ndarray
    own: np.ndarray
    chosen: np.ndarray


def empty_scorer(window: int, cores: Sequence[str]) -> KernelScorer:
    """Return a scorer that only defines the options; all its scores are 0."""
    none = np.zeros((1, 1))
    codes = np.array([CORE_CODES[name] for name in cores])
    weights = (np.zeros((SHARED, 1)), np.zeros((OWN, 1)), none[0], none, none[0], none[0])
    return KernelScorer(*weights, window, codes, np.random.default_rng(0))


@compiled
def no_options(scorer: KernelScorer) -> Options:
    """Return arrays with room for the options of a decision."""
    most = 1 + scorer.window * len(scorer.cores)
    return Options(np.zeros(SHARED), np.zeros((most, OWN)), np.zeros((most, 2), np.int64))


@compiled
def find_options(
    options: Options, scorer: KernelScorer, state: KernelState, jobs: KernelJobs, cluster: KernelCluster, now: float
) -> int:
    """Fill in the options of a decision and return their number, 0 if no job of the window fits.

    Waiting is the first option unless no job runs. Of core policies that give a job the same numbers, only the first is
    an option.
    """
    queue = state.queue[: state.counts[WAITING]]
    order = queue[np.argsort(jobs.keys[AREA][queue], kind="mergesort")]
    count, blocked = 0, 0
    next_end = fill_shared(options.shared, state, jobs, cluster, now)
    if state.counts[RUNNING]:
        options.own[0] = 0.0
        options.own[0, 0] = 1.0
        options.chosen[0] = WAIT
        count = 1
    first = count
    for rank in range(min(scorer.window, len(order))):
        job = order[rank]
        if not fits(state, cluster, jobs.cores[job], jobs.memory[job]):
            blocked += 1
            continue
        of_job = count
        for code in scorer.cores:
            take_cores(state, jobs, cluster, code, job, scorer.unused)
            fill_own(options.own[count], state, jobs, cluster, now, job, next_end)
            options.own[count, 14] = rank / scorer.window
            options.own[count, 15] = blocked / scorer.window
            options.chosen[count, 0], options.chosen[count, 1] = job, code
            if not known(options.own, of_job, count):
                count += 1
    return count if count > first else 0


@compiled
def known(own: np.ndarray, first: int, last: int) -> bool:
    """Return whether the numbers of the option `last` equal those of an option from `first` on before it."""
    for other in range(first, last):  # noqa: SIM110  (numba compiles no generator)
        if (own[other] == own[last]).all():
            return True
    return False


@compiled
def fill_shared(shared: np.ndarray, state: KernelState, jobs: KernelJobs, cluster: KernelCluster, now: float) -> float:
    """Fill in the numbers that all options share, and return the time until the next end (s) that is expected from the
    requested work.
    """
    total, came = cluster.size.sum(), state.counts[SUBMITTED]
    waiting, running = state.queue[: state.counts[WAITING]], state.running[: state.counts[RUNNING]]
    next_end, left = np.inf, 0.0
    for job in running:
        rest = max(jobs.asked[job] - state.done[job], 0.0) / state.speed[job]
        next_end = min(next_end, rest)
        left += rest * jobs.cores[job]
    area, shortest = 0.0, np.inf
    for job in waiting:
        area += jobs.time[job] * jobs.cores[job]
        shortest = min(shortest, jobs.time[job])
    free = 0.0
    for processor in range(len(cluster.size)):
        free += max(state.bandwidth[processor], 0) / max(cluster.bandwidth[processor], 1)
    shared[0] = state.cores.sum() / total
    shared[1] = state.memory.sum() / max(cluster.memory.sum(), 1)
    shared[2] = free / len(cluster.size)
    shared[3] = log1p(len(waiting)) / 4.0
    shared[4] = log1p(area / total) / LONG
    shared[5] = log1p(next_end) / LONG if len(running) else 0.0
    shared[6] = log1p(left / total) / LONG
    shared[7] = log1p((now - jobs.submitted[0]) / came) / LONG
    shared[8] = np.log1p(jobs.time[:came]).mean() / LONG
    shared[9] = log1p(now - jobs.submitted[came - 1]) / LONG
    shared[10] = log1p(shortest) / LONG
    return next_end if len(running) else 0.0


@compiled
def fill_own(
    own: np.ndarray,
    state: KernelState,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    job: int,
    next_end: float,
) -> None:
    """Fill in the numbers of the option to start a job on the cores in `state.taken`, except for the last two."""
    total, taken = cluster.size.sum(), state.taken[job]
    time, cores, waited = jobs.time[job], jobs.cores[job], now - jobs.submitted[job]
    slowest, crowded, slowed, used = np.inf, 0.0, 0.0, 0
    for processor in range(len(cluster.size)):
        if not taken[processor]:
            continue
        used += 1
        speed = cluster.speed[processor]
        if state.bandwidth[processor] < taken[processor] * jobs.bandwidth[job]:
            speed *= cluster.oversubscribed
            crowded += taken[processor]
            if state.bandwidth[processor] >= 0:
                slowed += cluster.size[processor] - state.cores[processor]
        slowest = min(slowest, speed)
    run = jobs.asked[job] / slowest
    own[0] = 0.0
    own[1] = 1.0
    own[2] = log1p(time) / LONG
    own[3] = np.log2(cores) / np.log2(total)
    own[4] = log1p(time * cores) / (LONG + 4.0)
    own[5] = jobs.bandwidth[job] / max(cluster.bandwidth.max() / cluster.size.max(), 1.0)
    own[6] = log1p(waited) / LONG
    own[7] = np.log((waited + max(run, SHORTEST_RUN)) / max(run, SHORTEST_RUN)) / 4.0
    own[8] = log1p(run) / LONG
    own[9] = np.log(run / time) * 2.0
    own[10] = crowded / cores
    own[11] = slowed / total
    own[12] = (state.cores.sum() - cores) / total
    own[13] = np.log((run + 1.0) / (next_end + 1.0)) / 6.0 if state.counts[RUNNING] else 0.0


@compiled
def scores_of(options: Options, count: int, scorer: KernelScorer, made: np.ndarray) -> None:
    """Fill in the scores (count,) of the options."""
    hidden = len(scorer.first_bias)
    base, first, second = scorer.first_bias.copy(), np.empty(hidden), np.empty(hidden)
    for place in range(SHARED):
        for unit in range(hidden):
            base[unit] += scorer.shared[place, unit] * options.shared[place]
    for number in range(count):
        first[:] = base
        for place in range(OWN):
            value = options.own[number, place]
            for unit in range(hidden):
                first[unit] += scorer.own[place, unit] * value
        second[:] = scorer.inner_bias
        for place in range(hidden):
            value = max(first[place], SLOPE * first[place])
            for unit in range(hidden):
                second[unit] += scorer.inner[place, unit] * value
        made[number] = 0.0
        for unit in range(hidden):
            made[number] += scorer.last[unit] * max(second[unit], SLOPE * second[unit])


def score_rows(rows: np.ndarray, scorer: KernelScorer) -> np.ndarray:
    """Return the scores (options,) of rows of numbers (options, SHARED + OWN), in plain NumPy."""
    weights = np.concatenate([scorer.shared, scorer.own])
    first = rows @ weights + scorer.first_bias
    second = np.maximum(first, SLOPE * first) @ scorer.inner + scorer.inner_bias
    return np.maximum(second, SLOPE * second) @ scorer.last


@compiled
def carry_out(
    run: Run, jobs: KernelJobs, cluster: KernelCluster, now: float, scorer: KernelScorer, job: int, code: int
) -> None:
    """Start a job on the cores that a core policy chooses."""
    take_cores(run.state, jobs, cluster, code, job, scorer.unused)
    start_job(run.state, jobs, cluster, job)
    set_speeds(run.state, cluster)
    run.started[job] = now


@compiled
def choose(
    run: Run,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    scorer: KernelScorer,
    options: Options,
    made: np.ndarray,
) -> int:
    """Take the option with the highest score at one date, again and again until it is waiting; return the number of
    decisions.
    """
    decisions = 0
    while run.state.counts[WAITING]:
        count = find_options(options, scorer, run.state, jobs, cluster, now)
        if not count:
            break
        scores_of(options, count, scorer, made)
        decisions += 1
        job, code = options.chosen[np.argmax(made[:count])]
        if job == WAIT:
            break
        carry_out(run, jobs, cluster, now, scorer, job, code)
    return decisions


@compiled
def go_on(run: Run, jobs: KernelJobs, cluster: KernelCluster, now: float, scorer: KernelScorer) -> int:
    """Continue a run to its end by the options with the highest scores; return the number of decisions."""
    options, decisions = no_options(scorer), 0
    made = np.empty(len(options.own))
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return decisions
        decisions += choose(run, jobs, cluster, now, scorer, options, made)


@compiled
def run_scorer(jobs: KernelJobs, cluster: KernelCluster, scorer: KernelScorer) -> tuple[Run, int]:
    """Return the run of a workload by the options with the highest scores, and the number of decisions."""
    run = new_run(cluster, len(jobs.time))
    return run, go_on(run, jobs, cluster, 0.0, scorer)
