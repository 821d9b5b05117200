"""A whole episode of the decision system, compiled: about 300 times as fast as `Episode`. Learners sample episodes on
it, and scenarios with `simulator: compiled` score learned pairs on it.

It supports one case only: observation `heads`, objective `avg_job_slowdown`, time-weighted, no void, no defect of
HDeepRM. `Episode` defines the rules; the tests compare the two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.hetero.kernels.backfill_kernel import play_pair
from schedlab.studies.hetero.kernels.cluster_kernel import (
    JOB_CODES,
    RUNNING,
    SUBMITTED,
    WAITING,
    KernelCluster,
    KernelJobs,
    KernelState,
    end_jobs,
    expected_wait,
    fits,
    free_state,
    head,
    next_date,
    set_speeds,
    submit_jobs,
)
from schedlab.studies.hetero.kernels.run_kernel import Run, decide, new_run, to_decision
from schedlab.studies.hetero.simulator.resources import ORDERS

SHORTEST = JOB_CODES["shortest"]
HEADS = len(ORDERS)  # job policies whose first job is observed
PER_HEAD = 6
SLOPE = 0.01  # of the leaky rectifier below 0


class KernelNetwork(NamedTuple):
    """Weights of a network with leaky rectifiers: first (hidden, size), inner (layers, hidden, hidden), last (actions,
    hidden).
    """

    first: np.ndarray
    first_bias: np.ndarray
    inner: np.ndarray
    inner_bias: np.ndarray
    last: np.ndarray
    last_bias: np.ndarray


@compiled
def play_compiled(
    jobs: KernelJobs,
    cluster: KernelCluster,
    network: KernelNetwork,
    pairs: np.ndarray,
    uniform: np.ndarray,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Run an episode by drawn actions; return observations (decisions, size), actions, dates (s) and rewards
    (decisions,).

    pairs    (actions, 2): codes of job policy and core policy
    uniform  (2 jobs,): a number in [0, 1) for each decision
    rng      generator from which the random policies draw
    """
    most = 2 * len(jobs.time)
    state = free_state(cluster, len(jobs.time))
    observations = np.zeros((most, network.first.shape[1]), np.float32)
    actions, dates, rewards = np.zeros(most, np.int64), np.zeros(most), np.zeros(most)
    decisions = 0
    now = urgency = lost = 0.0
    while state.counts[SUBMITTED] < len(jobs.time) or state.counts[RUNNING]:
        soonest = next_date(state, jobs, now)
        lost += urgency * (soonest - now)
        for job in state.running[: state.counts[RUNNING]]:
            state.done[job] += state.speed[job] * (soonest - now)
        now = soonest
        ended, urgency = end_jobs(state, jobs, cluster, urgency)
        came, urgency = submit_jobs(state, jobs, now, urgency)
        set_speeds(state, cluster)
        if not ((ended or came) and state.counts[WAITING]):
            continue
        if decisions:
            rewards[decisions - 1] = -lost
        lost = 0.0
        observe(observations[decisions], state, jobs, cluster, now)
        action = draw(network, observations[decisions], uniform[decisions])
        actions[decisions], dates[decisions] = action, now
        decisions += 1
        play_pair(state, jobs, cluster, pairs[action], rng)
        set_speeds(state, cluster)
    if decisions:
        rewards[decisions - 1] = -lost
    return observations[:decisions], actions[:decisions], dates[:decisions], rewards[:decisions]


@compiled
def observe(vector: np.ndarray, state: KernelState, jobs: KernelJobs, cluster: KernelCluster, now: float) -> None:
    """Fill in the observation that `HeadsObserver.observe` returns."""
    total, waiting = cluster.size.sum(), state.counts[WAITING]
    shortest = head(state, jobs, SHORTEST)
    delay = expected_wait(state, jobs, jobs.cores[shortest])
    for policy in range(HEADS):
        job, at = head(state, jobs, policy), policy * PER_HEAD
        time, waited = jobs.time[job], now - jobs.submitted[job]
        can_start = fits(state, cluster, jobs.cores[job], jobs.memory[job])
        vector[at] = can_start
        vector[at + 1] = min(np.log1p(time) / jobs.limits[0], 1.0)
        vector[at + 2] = min(jobs.cores[job] / total, 1.0)
        vector[at + 3] = min(jobs.bandwidth[job] / jobs.limits[1], 1.0)
        vector[at + 4] = waited / (waited + time)
        vector[at + 5] = time / (time + delay) if can_start and delay > 0 else 0.0
    free = 0.0
    for processor in range(len(cluster.size)):
        free += max(state.bandwidth[processor], 0) / max(cluster.bandwidth[processor], 1)
    at = HEADS * PER_HEAD
    vector[at] = state.cores.sum() / total
    vector[at + 1] = free / len(cluster.size)
    vector[at + 2] = waiting / (waiting + len(cluster.size))
    vector[at + 3] = 1.0 - jobs.time[shortest] / (delay + jobs.time[shortest])


@compiled
def draw(network: KernelNetwork, vector: np.ndarray, uniform: float) -> int:
    """Return an action drawn by its probability; uniform: a number in [0, 1)."""
    logits = logits_of(network, vector)
    chances = np.exp(logits - logits.max())
    reached, wanted = 0.0, uniform * chances.sum()
    for action in range(len(chances)):
        reached += chances[action]
        if wanted < reached:
            return action
    return len(chances) - 1


@compiled
def run_agent(
    jobs: KernelJobs,
    cluster: KernelCluster,
    network: KernelNetwork,
    pairs: np.ndarray,
    rng: np.random.Generator,
) -> Run:
    """Return the run of the most probable actions; arguments as in `play_compiled`."""
    run, now, vector = new_run(cluster, len(jobs.time)), 0.0, np.zeros(network.first.shape[1], np.float32)
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return run
        observe(vector, run.state, jobs, cluster, now)
        decide(run, jobs, cluster, now, pairs[np.argmax(logits_of(network, vector))], rng)


@compiled
def logits_of(network: KernelNetwork, vector: np.ndarray) -> np.ndarray:
    """Return the logits (actions,) of an observation."""
    values = rectified(network.first, network.first_bias, vector)
    for layer in range(len(network.inner)):
        values = rectified(network.inner[layer], network.inner_bias[layer], values)
    logits = network.last_bias.copy()
    for action in range(len(logits)):
        for place in range(len(values)):
            logits[action] += network.last[action, place] * values[place]
    return logits


@compiled
def rectified(weights: np.ndarray, bias: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return a layer's values after the leaky rectifier."""
    made = bias.copy()
    for row in range(len(made)):
        for place in range(len(values)):
            made[row] += weights[row, place] * values[place]
        made[row] = max(made[row], SLOPE * made[row])
    return made
