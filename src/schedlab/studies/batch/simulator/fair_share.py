"""Slurm's multifactor priority from the age of a job, its size and the fair share of its user, highest first.

Source: Slurm's documentation, "Multifactor Priority Plugin" (https://slurm.schedmd.com/priority_multifactor.html) and
"Classic Fairshare Algorithm" (https://slurm.schedmd.com/classic_fair_share.html), for users with equal shares below one
account. Priority = age weight * min(wait / maximum age, 1) + size weight * size + queue weight * queue + share weight *
2^(-U / S). The queue's part is its priority over the largest of any queue, as a partition's in Slurm. S is one over the
number of users, U the user's part of the processor seconds used by all, each of which counts half after a half-life.
Size is the share of the machine's processors, or one less it where small jobs are favoured. Default values are those of
the documentation's example.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.jobs import Jobs, Machine
from schedlab.studies.batch.rules import SlurmSettings
from schedlab.studies.batch.simulator.cluster import BEGUN, Array, Columns, Running
from schedlab.studies.batch.simulator.predictions import Past

DAY = 86400.0  # s
CLOCK, OPEN = 0, 1  # of Shares.state
AGE, SHARE, MAX_AGE, HALF_LIFE = range(4)  # of Shares.terms


@dataclass(frozen=True)
class Usage:
    """What users had used when a window begins. user (n,) int64: place of each job's user; used (users,): decayed
    processor seconds. Jobs without a user belong to one user.
    """

    user: np.ndarray
    used: np.ndarray


@dataclass(frozen=True)
class SlurmPriority:
    """The policy: its settings, and what users had used before the window; None: nothing."""

    settings: SlurmSettings
    usage: Usage | None = None

    def at(self, past: Past, start: int, count: int) -> SlurmPriority:
        """Return the policy with the usage at the beginning of a window: that of the log's jobs until then."""
        names, user = np.unique(past.jobs.user, return_inverse=True)
        jobs, time, half_life = past.jobs, past.jobs.submit[start], self.settings.half_life * DAY
        begin, end = past.ended - jobs.run, np.minimum(past.ended, time)
        known = np.flatnonzero(np.isfinite(past.ended) & (begin < end))
        seconds = _decayed(begin[known], end[known], time, half_life)
        used = np.bincount(user[known], jobs.procs[known] * seconds, len(names)).astype(float)
        return replace(self, usage=Usage(user[start : start + count].astype(np.int64), used))

    def reordered(self, order: np.ndarray) -> SlurmPriority:
        """Return the policy for the jobs of the window in another order (n,)."""
        return replace(self, usage=self.usage and replace(self.usage, user=self.usage.user[order]))


class Shares(NamedTuple):
    """The policy on the jobs of a window.

    user (n,) int64, used (users,)   as in Usage; used changes with time
    procs (n,), fixed (n,)  processors, and the weighted sum of size and queue
    charged (n,)            whether all of a job's usage is taken in
    terms (4,)              weights of age and share; maximum age and half-life in s
    state (2,)              the time of `used` in s; jobs begun before this place are charged
    """

    user: np.ndarray
    used: np.ndarray
    procs: np.ndarray
    fixed: np.ndarray
    charged: np.ndarray
    terms: np.ndarray
    state: np.ndarray


_NONE = np.empty(0)
NO_SHARES = Shares(np.empty(0, dtype=np.int64), _NONE, _NONE, _NONE, np.empty(0, dtype=np.bool_), _NONE, _NONE)


def shares_of(policy: SlurmPriority, jobs: Jobs, machine: Machine) -> Shares:
    """Return the arrays of a policy for a window."""
    values, usage = policy.settings, policy.usage
    if usage is None:
        names, user = np.unique(jobs.user, return_inverse=True)
        usage = Usage(user.astype(np.int64), np.zeros(len(names)))
    share = jobs.procs / machine.processors
    size = values.size_weight * (1.0 - share if values.favor_small else share)
    return Shares(
        usage.user,
        usage.used.copy(),
        jobs.procs.astype(float),
        size + values.queue_weight * jobs.priority,
        np.zeros(len(jobs), dtype=np.bool_),
        np.array([values.age_weight, values.share_weight, values.max_age * DAY, values.half_life * DAY]),
        np.array([jobs.submit[0], 0.0]),
    )


@compiled(error_model="numpy")
def _decayed(begin: Array, end: Array, clock: float, half_life: float) -> Array:
    """The seconds (n,) from begin to end, each counting half after a half-life, at a later time."""
    return half_life / log(2.0) * (0.5 ** ((clock - end) / half_life) - 0.5 ** ((clock - begin) / half_life))


@compiled(error_model="numpy")
def slurm_scores(columns: Columns, shares: Shares, running: Running, jobs: Array, clock: float, scores: Array) -> None:
    """Write the scores of the waiting `jobs`, lowest first: the priorities with the sign turned."""
    _charge(shares, running, clock)
    total, users, terms = shares.used.sum(), len(shares.used), shares.terms
    for job in jobs:
        age = min((clock - columns.submit[job]) / terms[MAX_AGE], 1.0)
        share = 0.5 ** (shares.used[shares.user[job]] / total * users) if total > 0.0 else 1.0
        scores[job] = -(terms[AGE] * age + shares.fixed[job] + terms[SHARE] * share)


@compiled(error_model="numpy")
def _charge(shares: Shares, running: Running, clock: float) -> None:
    """Take in what the window's jobs have used until a time."""
    before, half_life = shares.state[CLOCK], shares.terms[HALF_LIFE]
    shares.used[:] *= 0.5 ** ((clock - before) / half_life)
    for place in range(int(shares.state[OPEN]), running.size[BEGUN]):
        job = running.begun[place]
        if job >= len(shares.user) or shares.charged[job]:
            continue
        begin, end = max(running.start[job], before), min(running.end[job], clock)
        if end > begin:
            shares.used[shares.user[job]] += shares.procs[job] * _decayed(begin, end, clock, half_life)
        shares.charged[job] = running.end[job] <= clock
    while shares.state[OPEN] < running.size[BEGUN]:
        job = running.begun[int(shares.state[OPEN])]
        if job < len(shares.user) and not shares.charged[job]:
            break
        shares.state[OPEN] += 1.0
    shares.state[CLOCK] = clock
