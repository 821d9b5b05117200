"""Compiled linear priorities: the scores of all waiting jobs at one decision."""

from __future__ import annotations

from math import log, log10, sqrt
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.jobs import SHORT, Jobs, Machine
from schedlab.studies.batch.rules import DAY, FIXED, MOST_DAYS, PLAN, LinearPriority, area, positive_request, priority
from schedlab.studies.batch.simulator.cluster import (
    COUNT,
    FREE,
    Array,
    Columns,
    Order,
    Running,
    counted,
    score,
)
from schedlab.studies.batch.simulator.fair_share import NO_SHARES, Shares, SlurmPriority, shares_of, slurm_scores
from schedlab.studies.batch.simulator.history import HistoryPriority, Memory, history_scores, memory_of, no_memory
from schedlab.studies.batch.simulator.rollout_kernel import rollout_scores
from schedlab.studies.batch.simulator.rollouts import NO_ROLLOUT, Rollout, RolloutPolicy, rollout_of

PLANNED_BY = ("sjf", "smallest", "f1", "area")
CANDIDATES = 8


def planning_orders(jobs: Jobs) -> Array:
    """Return the jobs in the order of each of PLANNED_BY, (4, n) int64; ties in the order of the jobs."""
    scores = (area(jobs) if rule == "area" else np.asarray(priority(rule, jobs).score) for rule in PLANNED_BY)
    return np.stack([np.argsort(score, kind="stable") for score in scores])


class _Queue(NamedTuple):
    """The queue that is planned: jobs in the order of a rule, and by job - first the bounded slowdown if started now.

    base: their sum; ends, freed: room for the ends of running and planned jobs and the nodes that become free then
    """

    jobs: np.ndarray
    now: np.ndarray
    first: int
    base: float
    ends: np.ndarray
    freed: np.ndarray


@compiled(error_model="numpy")
def excess_costs(
    columns: Columns, request: Array, orders: Array, running: Running, jobs: Array, clock: float, excess: Array
) -> None:
    """Write the excess cost, 0 to 1, of each waiting job of `jobs` (in order of submission); 1: no plan begins
    with it.
    """
    first, last = jobs[0], jobs[-1]
    now = np.zeros(last - first + 1)  # 0: does not wait
    for job in jobs:
        now[job - first] = max(1.0, (clock - columns.submit[job] + request[job]) / max(request[job], SHORT))
        excess[job] = np.inf
    room = running.size[COUNT] + len(jobs)
    order, ends, freed = np.empty(len(jobs), dtype=np.int64), np.empty(room), np.empty(room, dtype=np.int64)
    base, least = 0.0, np.inf
    for rule in range(len(orders)):
        size = 0
        for job in orders[rule]:
            if first <= job <= last and now[job - first] > 0:
                order[size] = job
                size += 1
        if rule == 0:
            for job in order:
                base += now[job - first]
        queue = _Queue(order, now, first, base, ends, freed)
        for place in range(min(size, CANDIDATES)):
            cost = _cost(columns, request, running, queue, place, clock, 2.0 * least)
            least = min(least, cost)
            excess[order[place]] = min(excess[order[place]], cost)
    for job in jobs:
        excess[job] = min(excess[job] / least - 1.0, 1.0)


@compiled(error_model="numpy")
def _cost(
    columns: Columns, request: Array, running: Running, queue: _Queue, head: int, clock: float, most: float
) -> float:
    """The cost of the plan that begins with queue.jobs[head]; anything above `most` where it is more."""
    ends, freed, size = queue.ends, queue.freed, running.size[COUNT]
    for place in range(size):
        job = running.by_request[place]
        ends[place], freed[place] = max(running.expected[job], clock + 1.0), columns.nodes[job]
    free, time, done, cost = running.size[FREE], clock, 0, queue.base
    for step in range(len(queue.jobs)):
        job = queue.jobs[head] if step == 0 else queue.jobs[step - 1] if step <= head else queue.jobs[step]
        while free < columns.nodes[job]:
            time = ends[done]
            free += freed[done]
            done += 1
        free -= columns.nodes[job]
        if time > clock:
            cost += (
                max(1.0, (time - columns.submit[job] + request[job]) / max(request[job], SHORT))
                - queue.now[job - queue.first]
            )
            if cost > most:
                break
        end, place = time + request[job], size
        while place > done and ends[place - 1] > end:
            ends[place], freed[place] = ends[place - 1], freed[place - 1]
            place -= 1
        ends[place], freed[place] = end, columns.nodes[job]
        size += 1
    return cost


NO_MEMORY = no_memory()
_NONE = np.empty(0)


class Linear(NamedTuple):
    """A linear priority on the jobs of a window.

    weights (12,); fixed (n,): the part of the sum that does not change; request (n,) s, above 0
    orders  (rules, n): the jobs in the order of each rule that plans begin with, where the policy plans
    excess  (n,): room for the plan features; scores (n,): what was found at the last decision, lowest first
    rollout what writes the scores instead, where it holds bases; easy: whether it plays EASY
    shares  what writes the scores instead, where it holds terms: Slurm's priority
    memory  what writes the scores instead, where it holds terms: an order from history
    power   of the scores, if it is not 0: those of a rule of the wait, with its scale in `fixed` and its weight in
            `request`
    first   (n,) what is compared before the scores, lowest first; empty: nothing
    """

    weights: np.ndarray
    fixed: np.ndarray
    request: np.ndarray
    orders: np.ndarray
    excess: np.ndarray
    scores: np.ndarray
    rollout: Rollout = NO_ROLLOUT
    easy: bool = False
    shares: Shares = NO_SHARES
    memory: Memory = NO_MEMORY
    power: int = 0
    first: np.ndarray = _NONE


NO_LINEAR = Linear(_NONE, _NONE, _NONE, np.empty((0, 0), dtype=np.int64), _NONE, _NONE)


def linear_of(policy: LinearPriority, jobs: Jobs, machine: Machine) -> Linear:
    """Return the arrays of a policy."""
    request, weights = positive_request(jobs), np.ascontiguousarray(policy.weights, dtype=float)
    fixed = _fixed(weights, request, jobs.procs.astype(float), float(machine.processors))
    orders = planning_orders(jobs) if policy.plans else np.empty((0, 0), dtype=np.int64)
    return Linear(weights, fixed, request, orders, np.empty(len(jobs)), np.empty(len(jobs)))


def scores_of_rollouts(policy: RolloutPolicy, jobs: Jobs, machine: Machine, *, easy: bool) -> Linear:
    """Return the arrays of a policy that rolls out."""
    return NO_LINEAR._replace(scores=np.empty(len(jobs)), rollout=rollout_of(policy, jobs, machine), easy=easy)


def scores_of_slurm(policy: SlurmPriority, jobs: Jobs, machine: Machine) -> Linear:
    """Return the arrays of Slurm's priority."""
    return NO_LINEAR._replace(scores=np.empty(len(jobs)), shares=shares_of(policy, jobs, machine))


def scores_of_history(policy: HistoryPriority, jobs: Jobs, machine: Machine) -> Linear:
    """Return the arrays of an order from history."""
    return NO_LINEAR._replace(scores=np.empty(len(jobs)), memory=memory_of(policy, jobs, machine))


def scores_of_rule(order: Order) -> Linear:
    """Return the arrays of a rule of the wait."""
    return NO_LINEAR._replace(
        fixed=order.scale, request=order.weight, scores=np.empty(len(order.scale)), power=order.power
    )


@compiled(error_model="numpy")
def _fixed(weights: Array, request: Array, procs: Array, processors: float) -> Array:
    total = np.empty(len(request))
    for job in range(len(request)):
        logarithm, share = log(request[job]), procs[job] / processors
        value = weights[0] * (logarithm / 10.0)
        value += weights[1] * (log(procs[job]) / 5.0)
        value += weights[2] * share
        value += weights[3] * (share * logarithm / 10.0)
        total[job] = value + weights[4] * (share * sqrt(request[job]) / 100.0)
    return total


@counted
def write_scores(columns: Columns, linear: Linear, running: Running, jobs: Array, clock: float) -> None:
    """Write linear.scores of the waiting `jobs`, in order of submission, at a time."""
    if len(linear.rollout.bases):
        rollout_scores(columns, linear.rollout, linear.easy, running, jobs, clock, linear.scores)
    elif len(linear.shares.terms):
        slurm_scores(columns, linear.shares, running, jobs, clock, linear.scores)
    elif len(linear.memory.terms):
        history_scores(columns, linear.memory, running, jobs, clock, linear.scores)
    elif linear.power != 0:
        rule = Order(jobs, jobs, linear.fixed, linear.request, linear.power, np.inf)
        for job in jobs:
            linear.scores[job] = score(columns, rule, job, clock)
    else:
        weights = linear.weights
        plans = len(linear.orders) > 0
        if plans:
            excess_costs(columns, linear.request, linear.orders, running, jobs, clock, linear.excess)
        count, free = running.size[COUNT], running.size[FREE]
        freed = np.empty(count, dtype=np.int64)
        for place in range(count):
            free += columns.nodes[running.by_request[place]]
            freed[place] = free
        free = running.size[FREE]
        for job in jobs:
            wait = clock - columns.submit[job]
            value = linear.fixed[job] + weights[FIXED] * (log(1.0 + wait) / 10.0)
            value += weights[FIXED + 1] * (log(1.0 + wait / linear.request[job]) / 5.0)
            value += weights[FIXED + 2] * min(wait / DAY, MOST_DAYS)
            if columns.nodes[job] <= free:
                value += weights[FIXED + 3]
            else:
                ending = running.by_request[np.searchsorted(freed, columns.nodes[job])]
                delay = max(running.expected[ending] - clock, 1.0)
                value += weights[FIXED + 4] * (log(1.0 + delay) / 10.0)
            if plans:
                value += weights[PLAN] * (log10(0.001 + linear.excess[job]) / 3.0 + 1.0)
                value += weights[PLAN + 1] * linear.excess[job]
            linear.scores[job] = -value
    if len(linear.first):
        order = jobs[np.argsort(linear.scores[jobs], kind="mergesort")]
        order = order[np.argsort(linear.first[order], kind="mergesort")]
        for place in range(len(order)):
            linear.scores[order[place]] = place
