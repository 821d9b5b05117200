"""An order of the queue by run times estimated from users' ended and running jobs: one policy for all logs.

Three things are predicted of a waiting job, all relative to its requested time r and so free of units: the mean of the
logarithm of run time / r, the mean of run time / r, and the mean of r / run time (the cost of a second of its wait,
times r; both times at least 10 s). Each is estimated at five levels, every one of which leans on the one above it as if
it had `trust` more jobs like that: all jobs; those of about the same request; those of the user; those of the user with
the same request; and of these, those with as many processors. Of the last three, an ended job counts `keep` times as
much as the next. A running job that has outlived what is predicted of it counts as well (a censored observation), as if
it ran `longer` times as long as so far, at most as long as requested. The job with the lowest weighted sum of TERMS
starts first. Predictions are renewed at each decision; nothing of a log is kept but these sums, so one set of
parameters serves every log.

Sources: partial pooling as in Efron and Morris, "Data analysis using Stein's estimator and its generalizations", JASA
70, 1975; users' last jobs as in Tsafrir, Etsion, Feitelson, IEEE TPDS 18(6), 2007.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, log
from typing import NamedTuple

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.jobs import SHORT, Jobs, Machine
from schedlab.studies.batch.rules import positive_request
from schedlab.studies.batch.simulator.cluster import BEGUN, Array, Columns, Running
from schedlab.studies.batch.simulator.predictions import Past

LEVELS = ("all", "request_class", "user", "user_request", "user_request_size")
TERMS = {
    "log_mean_run": "ln of the mean run time in s",
    "log_run": "mean of ln of the run time in s",
    "log_nodes": "ln of the nodes",
    "log_cost": "-ln of the slowdown that a second of wait adds",
    "log_slowdown": "-ln(1 + wait times that)",
    "log_wait": "-ln(1 + wait in h)",
    "share": "nodes over those of the machine",
    "log_request": "ln of the requested time in s",
}
PARAMETERS = (*(f"trust_{level}" for level in LEVELS), "keep", "siblings", "longer", *TERMS)
START = np.array([20.0, 20.0, 3.0, 2.0, 1.0, 0.8, 1.0, 2.0, 0.5, 0.5, 1.0, 0.5, 0.3, 0.0, 0.0, 0.0])
_KEEP, _SIBLINGS, _LONGER, _ORDER = 5, 6, 7, 8  # places in the parameters
KEEP_ABOVE = (0.999, 0.99)  # how much an ended job counts of the next, at the first two levels
PRIOR = (-1.0, 0.5, 3.0)  # of the three predictions, before any job has ended
MOST_RATIO = 1.5  # of run time over request in the second prediction: jobs that are not killed may overrun
HOUR = 3600.0  # s
NUMBER, LOG_RATIO, RATIO, COST = range(4)  # sums of a group
TAKEN, ACTIVE = 0, 1  # of Memory.state


@dataclass(frozen=True)
class HistoryPriority:
    """The policy: a value for each of PARAMETERS (16,), and the sums (5, 4, groups) of what had ended when a window
    begins, with the groups (5, n) of its jobs; None: nothing.
    """

    values: np.ndarray
    groups: np.ndarray | None = None
    sums: np.ndarray | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.shape != (len(PARAMETERS),) or not np.isfinite(values).all() or (values[:_ORDER] < 0).any():
            expected = f"{len(PARAMETERS)} finite numbers, the first {_ORDER} at least 0: {', '.join(PARAMETERS)}"
            raise UserError(f"an order from history cannot have {self.values}", where="values", expected=expected)

    def at(self, past: Past, start: int, count: int) -> HistoryPriority:
        """Return the policy with what had ended in the log when the window of `count` jobs from `start` on begins."""
        groups = groups_of(past.jobs)
        sums = np.zeros((len(LEVELS), 4, int(groups.max()) + 1))
        ended = np.flatnonzero(past.ended <= past.jobs.submit[start])
        ended = ended[np.argsort(past.ended[ended], kind="stable")]
        _add_all(sums, groups, _keeps(self.values), past.jobs.run, _request(past.jobs), ended)
        return replace(self, groups=np.ascontiguousarray(groups[:, start : start + count]), sums=sums)

    def reordered(self, order: np.ndarray) -> HistoryPriority:
        """Return the policy for the jobs of the window in another order (n,)."""
        return replace(self, groups=None if self.groups is None else np.ascontiguousarray(self.groups[:, order]))


def history_priority(**order: float) -> HistoryPriority:
    """Return an untrained policy: START's predictor, and the weights of TERMS by name, 0 for the others."""
    weights = [float(order.get(name, 0.0)) for name in TERMS]
    return HistoryPriority(np.concatenate([START[:_ORDER], weights]))


class Memory(NamedTuple):
    """The policy on the jobs of a window.

    groups (5, n) int64        the group of each job at each level, -1: none, because its user is not known
    sums, open (5, 4, groups)  decayed sums over ended jobs; room for those over running jobs
    trust, keep (5,); terms    siblings, ln of longer, and the weights of TERMS (10,)
    request (n,) s, nodes_of   at least 1 s; nodes of the machine
    expected (n,)              the last prediction of ln of run time over request
    active (n,) int64          running jobs of the window that have been noted; state (2,): jobs begun that were looked
                               at, and how many are active
    """

    groups: np.ndarray
    sums: np.ndarray
    open: np.ndarray
    trust: np.ndarray
    keep: np.ndarray
    terms: np.ndarray
    request: np.ndarray
    nodes_of: float
    expected: np.ndarray
    active: np.ndarray
    state: np.ndarray


def groups_of(jobs: Jobs) -> np.ndarray:
    """Return the group of each job at each level, (5, n) int64; -1 at the levels of users where the user is missing."""
    request = _request(jobs)
    classes = np.rint(2.0 * np.log2(request)).astype(np.int64)
    asked = request.astype(np.int64)
    columns = (
        (np.zeros(len(jobs), dtype=np.int64),),
        (classes,),
        (jobs.user,),
        (jobs.user, asked),
        (jobs.user, asked, jobs.procs),
    )
    groups = np.array([np.unique(np.stack(of, axis=1), axis=0, return_inverse=True)[1].ravel() for of in columns])
    groups[2:, jobs.user < 0] = -1
    return groups.astype(np.int64)


def memory_of(policy: HistoryPriority, jobs: Jobs, machine: Machine) -> Memory:
    """Return the arrays of a policy for a window."""
    groups = groups_of(jobs) if policy.groups is None else policy.groups
    sums = np.zeros((len(LEVELS), 4, int(groups.max()) + 1)) if policy.sums is None else policy.sums.copy()
    values = np.asarray(policy.values, dtype=float)
    terms = np.concatenate([[values[_SIBLINGS], log(max(values[_LONGER], 1e-300))], values[_ORDER:]])
    room = np.zeros(len(jobs)), np.empty(len(jobs), dtype=np.int64), np.zeros(2, dtype=np.int64)
    trust = np.maximum(values[: len(LEVELS)], 1e-9)
    request = _request(jobs)
    return Memory(groups, sums, np.zeros_like(sums), trust, _keeps(values), terms, request, float(machine.nodes), *room)


def _keeps(values: np.ndarray) -> np.ndarray:
    return np.array([*KEEP_ABOVE, *[float(values[_KEEP])] * (len(LEVELS) - len(KEEP_ABOVE))])


def _request(jobs: Jobs) -> np.ndarray:
    return np.maximum(positive_request(jobs), 1.0)


def no_memory() -> Memory:
    """Return what a kernel gets where another policy writes the scores."""
    number, table, whole = np.empty(0), np.empty((0, 0, 0)), np.empty(0, dtype=np.int64)
    return Memory(
        np.empty((0, 0), dtype=np.int64), table, table, number, number, number, number, 0.0, number, whole, whole
    )


@compiled(error_model="numpy")
def _add(sums: Array, groups: Array, keep: Array, run: float, request: float, job: int) -> None:
    """Add an ended job to the sums of its groups."""
    ran = max(run, 1.0)
    for level in range(len(groups)):
        group = groups[level, job]
        if group >= 0:
            kept = keep[level]
            sums[level, NUMBER, group] = kept * sums[level, NUMBER, group] + 1.0
            sums[level, LOG_RATIO, group] = kept * sums[level, LOG_RATIO, group] + log(ran / request)
            sums[level, RATIO, group] = kept * sums[level, RATIO, group] + min(ran / request, MOST_RATIO)
            sums[level, COST, group] = kept * sums[level, COST, group] + max(request, SHORT) / max(ran, SHORT)


@compiled(error_model="numpy")
def _add_all(sums: Array, groups: Array, keep: Array, run: Array, request: Array, jobs: Array) -> None:
    for job in jobs:
        _add(sums, groups, keep, run[job], request[job], job)


@compiled(error_model="numpy")
def predicted(memory: Memory, job: int) -> tuple[float, float, float]:
    """Return what is now predicted of a job: the means of ln(run / request), run / request and request / run."""
    log_ratio, ratio, cost = PRIOR
    for level in range(len(memory.groups)):
        group = memory.groups[level, job]
        if group >= 0:
            sums, extra, trust = memory.sums[level], memory.open[level], memory.trust[level]
            number = sums[NUMBER, group] + extra[NUMBER, group] + trust
            log_ratio = (sums[LOG_RATIO, group] + extra[LOG_RATIO, group] + trust * log_ratio) / number
            ratio = (sums[RATIO, group] + extra[RATIO, group] + trust * ratio) / number
            cost = (sums[COST, group] + extra[COST, group] + trust * cost) / number
    return log_ratio, ratio, cost


def predictions(policy: HistoryPriority, past: Past) -> np.ndarray:
    """Return the run time predicted of each job when it was submitted, (n,) s, from ended jobs alone."""
    jobs, groups = past.jobs, groups_of(past.jobs)
    known = np.flatnonzero(np.isfinite(past.ended))
    by_end = known[np.argsort(past.ended[known], kind="stable")]
    memory = memory_of(replace(policy, groups=groups), jobs, Machine(1, 1))
    found = np.empty(len(jobs))
    _predict_all(memory, jobs.submit, jobs.run, past.ended, by_end, found)
    return found


@compiled(error_model="numpy")
def _predict_all(memory: Memory, submit: Array, run: Array, ended: Array, by_end: Array, found: Array) -> None:
    done = 0
    for job in range(len(submit)):
        while done < len(by_end) and ended[by_end[done]] <= submit[job]:
            _add(memory.sums, memory.groups, memory.keep, run[by_end[done]], memory.request[by_end[done]], by_end[done])
            done += 1
        found[job] = memory.request[job] * exp(predicted(memory, job)[0])


@compiled(error_model="numpy")
def history_scores(
    columns: Columns, memory: Memory, running: Running, jobs: Array, clock: float, scores: Array
) -> None:
    """Write the scores of the waiting `jobs` at a time, after the ends and the running jobs until then."""
    _take_in(columns, memory, running, clock)
    _note_running(memory, running, clock, 1.0)
    weights = memory.terms[2:]
    for job in jobs:
        log_ratio, ratio, cost = predicted(memory, job)
        memory.expected[job] = log_ratio
        request = memory.request[job]
        wait, nodes, log_cost = clock - columns.submit[job], columns.nodes[job], log(cost / max(request, SHORT))
        value = weights[0] * log(ratio * request) + weights[1] * (log_ratio + log(request)) + weights[2] * log(nodes)
        value -= weights[3] * log_cost
        if weights[4] != 0.0:
            value -= weights[4] * log(1.0 + wait * exp(log_cost))
        if weights[5] != 0.0:
            value -= weights[5] * log(1.0 + wait / HOUR)
        scores[job] = value + weights[6] * nodes / memory.nodes_of + weights[7] * log(request)
    _note_running(memory, running, clock, 0.0)


@compiled(error_model="numpy")
def _take_in(columns: Columns, memory: Memory, running: Running, clock: float) -> None:
    """Add the jobs that have ended to the sums, in the order of their ends, of equals the first started first."""
    state = memory.state
    for place in range(state[TAKEN], running.size[BEGUN]):
        job = running.begun[place]
        if job < len(memory.request):
            memory.active[state[ACTIVE]] = job
            state[ACTIVE] += 1
    state[TAKEN] = running.size[BEGUN]
    while True:
        first = -1
        for place in range(state[ACTIVE]):
            end = running.end[memory.active[place]]
            if end <= clock and (first < 0 or end < running.end[memory.active[first]]):
                first = place
        if first < 0:
            return
        job = memory.active[first]
        _add(memory.sums, memory.groups, memory.keep, columns.run[job], memory.request[job], job)
        for place in range(first, state[ACTIVE] - 1):
            memory.active[place] = memory.active[place + 1]
        state[ACTIVE] -= 1


@compiled(error_model="numpy")
def _note_running(memory: Memory, running: Running, clock: float, factor: float) -> None:
    """Set the evidence of running jobs that have outlived their prediction; factor 0 clears it."""
    siblings, longer = memory.terms[0], memory.terms[1]
    if siblings <= 0.0:
        return
    for place in range(memory.state[ACTIVE]):
        job = memory.active[place]
        request = memory.request[job]
        log_ratio = min(log(max(clock - running.start[job], 1.0) / request) + longer, 0.0)
        if log_ratio <= memory.expected[job]:
            continue
        ratio = exp(log_ratio)
        cost = max(request, SHORT) / max(ratio * request, SHORT)
        for level in range(len(memory.groups)):
            group = memory.groups[level, job]
            if group >= 0 and factor == 0.0:
                memory.open[level, :, group] = 0.0
            elif group >= 0:
                memory.open[level, NUMBER, group] += siblings
                memory.open[level, LOG_RATIO, group] += siblings * log_ratio
                memory.open[level, RATIO, group] += siblings * ratio
                memory.open[level, COST, group] += siblings * cost
