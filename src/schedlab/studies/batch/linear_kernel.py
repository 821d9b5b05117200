"""Compiled form of linear_plain.LinearScore: the scores of all waiting jobs at one decision."""

from __future__ import annotations

from math import log, log10, sqrt
from typing import NamedTuple

import numpy as np

from schedlab.config.compiled import compiled
from schedlab.studies.batch.jobs import Jobs, Machine
from schedlab.studies.batch.kernel_cluster import counted
from schedlab.studies.batch.linear import DAY, FIXED, MOST_DAYS, PLAN, LinearPriority
from schedlab.studies.batch.plan_features import excess_costs, planning_orders
from schedlab.studies.batch.rollout_kernel import rollout_scores
from schedlab.studies.batch.rollouts import NO_ROLLOUT, Rollout, RolloutPolicy, rollout_of


class Linear(NamedTuple):
    """A linear priority on the jobs of a window.

    weights (12,); fixed (n,): the part of the sum that does not change; request (n,) s, above 0
    orders  (rules, n): the jobs in the order of each rule that plans begin with, where the policy plans
    excess  (n,): room for the plan features; scores (n,): what was found at the last decision, lowest first
    rollout what writes the scores instead, where it holds bases; easy: whether it plays EASY
    """

    weights: np.ndarray
    fixed: np.ndarray
    request: np.ndarray
    orders: np.ndarray
    excess: np.ndarray
    scores: np.ndarray
    rollout: Rollout = NO_ROLLOUT
    easy: bool = False


NO_LINEAR = Linear(*(np.empty(0) for _ in range(3)), np.empty((0, 0), dtype=np.int64), np.empty(0), np.empty(0))


def linear_of(policy: LinearPriority, jobs: Jobs, machine: Machine) -> Linear:
    """Return the arrays of a policy."""
    from schedlab.studies.batch.rules import positive_request

    request, weights = positive_request(jobs), np.ascontiguousarray(policy.weights, dtype=float)
    fixed = _fixed(weights, request, jobs.procs.astype(float), float(machine.processors))
    orders = planning_orders(jobs) if policy.plans else np.empty((0, 0), dtype=np.int64)
    return Linear(weights, fixed, request, orders, np.empty(len(jobs)), np.empty(len(jobs)))


def scores_of_rollouts(policy: RolloutPolicy, jobs: Jobs, machine: Machine, *, easy: bool) -> Linear:
    """Return the arrays of a policy that rolls out."""
    return NO_LINEAR._replace(scores=np.empty(len(jobs)), rollout=rollout_of(policy, jobs, machine), easy=easy)


@compiled(error_model="numpy")
def _fixed(weights, request, procs, processors):
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
def write_scores(columns, linear, running, jobs, clock):
    """Write linear.scores of the waiting `jobs` at a time."""
    if len(linear.rollout.bases):
        rollout_scores(columns, linear.rollout, linear.easy, running, jobs, clock, linear.scores)
        return
    weights = linear.weights
    plans = len(linear.orders) > 0
    if plans:
        excess_costs(columns, linear.request, linear.orders, running, jobs, clock, linear.excess)
    count, free = running.size[0], running.size[1]
    freed = np.empty(count, dtype=np.int64)
    for place in range(count):
        free += columns.nodes[running.by_request[place]]
        freed[place] = free
    free = running.size[1]
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
