"""Rewards of a window, from the running average B of a measure over the jobs that have started.

Sources: RLScheduler (Zhang et al., SC20) for `episodic`, the scores by user and the combined one; W. Zhang's
dissertation (Edinburgh, 2023) for `direct` and `sigmoid`; the others are ours. Compiled code reads numbers: the places
in MEASURES, REWARDS and USERS.
"""

from __future__ import annotations

from math import exp, log
from typing import get_args

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.env.settings import Measure, Reward, Users
from schedlab.studies.batch.jobs import SHORT

REWARDS, MEASURES, USERS = get_args(Reward), get_args(Measure), get_args(Users)
EPISODIC, DIRECT, SIGMOID, DIFFERENCE, IMPROVEMENT, ACCRUED = range(len(REWARDS))
BSLD, LOG_BSLD, SLOWDOWN, WAIT, TURNAROUND, UTILISATION, BSLD_AND_UTILISATION = range(len(MEASURES))
SIGMOID_MISS = -1e-6  # `sigmoid` at the last step, and for a row without a job
LARGEST_EXPONENT = 700.0  # exp overflows soon after


@compiled(error_model="numpy")
def job_score(measure: int, wait: float, run: float) -> float:
    """Return the contribution of a started job to the sum of a measure; lower is better, 0 for utilisation alone. Times
    in s.

    bsld, log_bsld (its natural logarithm), slowdown, wait and turnaround
    """
    if measure == UTILISATION:
        return 0.0
    if measure == WAIT:
        return wait
    if measure == TURNAROUND:
        return wait + run
    if measure == SLOWDOWN:
        return (wait + run) / run
    bounded = max(1.0, (wait + run) / max(run, SHORT))
    return log(bounded) if measure == LOG_BSLD else bounded


@compiled(error_model="numpy")
def score_of_wait(measure: int, wait: float, run: float) -> float:
    """Return what a wait has added so far to the score of a job, which need not have started. Times in s."""
    return job_score(measure, wait, run) - job_score(measure, 0.0, run)


@compiled(error_model="numpy")
def average(measure: int, mean: float, work: float, offered: float) -> float:
    """Return B, lower is better: the mean score of the started jobs, minus the utilisation if the measure
    contains it.

    mean     of job_score over the started jobs, or over users (0: none has started)
    work     processor seconds of the started jobs
    offered  processor seconds of the machine between the first submission and now
    """
    if measure in (UTILISATION, BSLD_AND_UTILISATION) and offered > 0:
        return mean - work / offered
    return mean


@compiled(error_model="numpy")
def user_average(users: int, total: np.ndarray, started: np.ndarray) -> float:
    """Return the mean, max or min (USERS) over users of the mean score of each user's started jobs.

    total, started  (users,): sums of scores, and numbers of jobs
    """
    found, value = 0, 0.0
    for user in range(len(total)):
        if started[user]:
            mean = total[user] / started[user]
            if users == 1:
                value += mean
            elif found == 0 or (mean > value if users == 2 else mean < value):
                value = mean
            found += 1
    return value / found if users == 1 and found else value


@compiled(error_model="numpy")
def reward(kind: int, now: float, change: float, last: bool, real: bool, scale: float, baseline: float) -> float:
    """Return the reward of a step, after its jobs were counted.

    now       B
    change    what the step added to B at the end of the window: by the jobs that it started (difference), or by the
              waits until the next decision (accrued)
    last      the window ends with this step
    real      the row that was chosen holds a job, or is the one for waiting (sigmoid)
    scale     k of the sigmoid
    baseline  B of this window under the rule to improve on, such as SJF (improvement)

    episodic      0, at the last step -B
    direct        -B, at the last step 0 (as published)
    sigmoid       1 / (1 + exp(B / scale)) for a real row, but -1e-6 otherwise and at the last step (as published)
    difference    -change; over a window it sums to the episodic one
    accrued       -change; over a window it sums to B without any wait - B
    improvement   0, at the last step baseline - B
    """
    if kind == SIGMOID:
        return 1.0 / (1.0 + exp(min(now / scale, LARGEST_EXPONENT))) if real and not last else SIGMOID_MISS
    if kind in (DIFFERENCE, ACCRUED):
        return -change
    if kind == DIRECT:
        return 0.0 if last else -now
    if not last:
        return 0.0
    return (baseline if kind == IMPROVEMENT else 0.0) - now
