"""Run times predicted by a regression that is renewed whenever a job ends.

Source: Gaussier, Glesser, Reis, Trystram, "Improving backfilling by using machine learning to predict running times",
SC15, with the features and constants of their program (predictsim): a linear model of 18 features of the job, of its
user's ended and running jobs and of the time of submission, their squares and the products of the first 16; a loss that
is quadratic above the run time and linear below it (E-loss), weighted by 1 + log(processors * run time), with an L2
penalty; and normalised adaptive gradients (Ross, Mineiro, Langford, "Normalized online learning", UAI 2013). Their
program reads the time since the submission of a user's last jobs where the paper states their run times; here it is
the run times.
"""

from __future__ import annotations

from math import cos, log, pi, sin, sqrt
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.jobs import Jobs
from schedlab.studies.batch.simulator.cluster import Array
from schedlab.studies.batch.simulator.predictions import Past

BASE, MULTIPLIED = 19, 16  # features with the constant; those of which products are taken, from the second on
FEATURES = BASE + MULTIPLIED * (MULTIPLIED - 1) // 2 + BASE - 1
RATE, PENALTY = 5000.0, 4e9
DAY = NO_REQUEST = 86400.0  # s; the second stands for a requested time that is not known
LAST, SECOND, THIRD, NUMBER, RUN_SUM, PROCS_SUM, ENDED = range(7)  # of Regression.users
SAMPLES, NORM = 0, 1  # of Regression.counts


class Regression(NamedTuple):
    """The model and what it knows.

    weights, largest, squares (FEATURES,)   weights; largest size of each feature; sums of squared gradients
    counts (2,)       jobs learned from, plus 1; sum of the squared norms of normalised features
    users (users, 7)  run times of the last three ended jobs (NaN: none), number of ended jobs, sums of their run times
                      and processors, and the last end (s)
    seen (n, BASE)    what was seen of each job when it was submitted
    user (n,) int64, procs (n,)   place of each job's user, -1: unknown; processors
    room (FEATURES,)  for the features of one job
    """

    weights: np.ndarray
    largest: np.ndarray
    squares: np.ndarray
    counts: np.ndarray
    users: np.ndarray
    seen: np.ndarray
    user: np.ndarray
    procs: np.ndarray
    room: np.ndarray

    def of_window(self, start: int, count: int) -> Regression:
        """Return a copy for a window of the jobs that this one knows; what is known of users stays."""
        learned = (self.weights.copy(), self.largest.copy(), self.squares.copy(), self.counts.copy())
        part = slice(start, start + count)
        seen, room = np.zeros((count, BASE)), np.empty(FEATURES)
        return Regression(*learned, self.users.copy(), seen, self.user[part].copy(), self.procs[part].copy(), room)

    def reordered(self, order: np.ndarray) -> Regression:
        """Return a copy for the same jobs in another order (n,)."""
        copy = self.of_window(0, len(order))
        return copy._replace(user=copy.user[order], procs=copy.procs[order])


def regression_of(jobs: Jobs) -> Regression:
    """Return a model of jobs that has learned nothing."""
    names, user = np.unique(jobs.user, return_inverse=True)
    users = np.zeros((len(names), 7))
    users[:, [LAST, SECOND, THIRD]] = np.nan
    known = np.where(jobs.user >= 0, user, -1).astype(np.int64)
    weights, largest, squares = np.zeros((3, FEATURES))
    counts, seen, room = np.array([1.0, 0.0]), np.zeros((len(jobs), BASE)), np.empty(FEATURES)
    return Regression(weights, largest, squares, counts, users, seen, known, jobs.procs.astype(float), room)


@compiled(error_model="numpy")
def predicted_run(
    model: Regression, job: int, request: float, clock: float, running: Array, count: int, start: Array
) -> float:
    """Note what is seen of a job when it is submitted, and return its predicted run time, 1 s to its request.

    running, count: the running jobs running[:count], of which those from len(model.user) on are not known; start (s)
    """
    _look(model, job, request, clock, running, count, start)
    _write_features(model, job)
    value = 0.0
    for place in range(FEATURES):
        value += model.weights[place] * model.room[place]
    return max(1.0, min(np.floor(abs(value)), request))


@compiled(error_model="numpy")
def _look(model: Regression, job: int, request: float, clock: float, running: Array, count: int, start: Array) -> None:
    x, user = model.seen[job], model.user[job]
    x[:] = 0.0
    x[0], x[4], x[18] = 1.0, request, model.procs[job]
    x[1:4] = request
    x[5:7] = request
    if user >= 0:
        known = model.users[user]
        for place in range(3):
            if not np.isnan(known[place]):
                x[1 + place] = min(request, known[place])
        if not np.isnan(known[LAST]):
            x[5] = x[1] if np.isnan(known[SECOND]) else 0.5 * (x[1] + x[2])
            x[6] = x[5] if np.isnan(known[THIRD]) else (x[1] + x[2] + x[3]) / 3.0
        if known[NUMBER] > 0:
            x[7] = known[RUN_SUM] / known[NUMBER]
            x[8] = clock - known[ENDED]
            x[9] = model.procs[job] / (known[PROCS_SUM] / known[NUMBER])
        for place in range(count):
            other = running[place]
            if other < len(model.user) and model.user[other] == user:
                x[10] += model.procs[other]
                x[11] += clock - start[other]
                x[12] += 1.0
                x[13] = max(x[13], clock - start[other])
    for place, period in ((14, DAY), (16, 7.0 * DAY)):
        angle = 2.0 * pi * (clock % period) / period
        x[place], x[place + 1] = cos(angle), sin(angle)


@compiled(error_model="numpy")
def _write_features(model: Regression, job: int) -> None:
    """Write the features of a job: what was seen of it, products of pairs, and squares."""
    x, features, place = model.seen[job], model.room, BASE
    features[:BASE] = x
    for one in range(1, MULTIPLIED + 1):
        for other in range(one + 1, MULTIPLIED + 1):
            features[place] = x[one] * x[other]
            place += 1
    for one in range(1, BASE):
        features[place] = x[one] * x[one]
        place += 1


@compiled(error_model="numpy")
def learn_run(model: Regression, job: int, run: float, clock: float) -> None:
    """Learn from a job that has ended, and add it to what is known of its user."""
    user = model.user[job]
    if user >= 0:
        known = model.users[user]
        known[THIRD], known[SECOND], known[LAST] = known[SECOND], known[LAST], run
        known[NUMBER] += 1.0
        known[RUN_SUM] += run
        known[PROCS_SUM] += model.procs[job]
        known[ENDED] = clock
    _write_features(model, job)
    x, weights, predicted = model.room, model.weights, 0.0
    for place in range(FEATURES):
        size = abs(x[place])
        if size > model.largest[place]:
            weights[place] *= model.largest[place] / size
            model.largest[place] = size
        if model.largest[place] > 0.0:
            model.counts[NORM] += (x[place] / model.largest[place]) ** 2
        predicted += weights[place] * x[place]
    error, weight = predicted - run, 1.0 + log(max(model.procs[job] * run, 1.0))
    slope = weight * (2.0 * error if error > 0.0 else -1.0 if error < 0.0 else 0.0)
    for place in range(FEATURES):
        gradient = slope * x[place] + PENALTY * weights[place]
        model.squares[place] += gradient * gradient
        if model.squares[place] > 0.0:
            length = sqrt(model.counts[NORM] * model.squares[place] / model.counts[SAMPLES])
            weights[place] -= RATE * gradient / (length * model.largest[place])
    model.counts[SAMPLES] += 1.0


class LogPass(NamedTuple):
    """The columns of a log, and how far a pass over it has come.

    submit, run, request (n,)         s
    start, ended (n,)                 s; NaN where the end is not known
    by_end (k,) int64                 the jobs with a known end, in its order
    predicted (n,)                    the run time predicted when a job was submitted, s; NaN where none was
    state (3,) int64, running (n,)    the next job, how many have ended, how many were submitted and had not ended at
                                      the last look, and these jobs
    """

    submit: np.ndarray
    run: np.ndarray
    request: np.ndarray
    start: np.ndarray
    ended: np.ndarray
    by_end: np.ndarray
    predicted: np.ndarray
    state: np.ndarray
    running: np.ndarray


@compiled(error_model="numpy")
def learn_log(model: Regression, log: LogPass, until: float) -> None:
    """Learn from the jobs of a log in the order of submissions and ends, ends at a time first. Only jobs submitted and
    ended until a time (s) count; a later call goes on from there.
    """
    submit, ended, running, state = log.submit, log.ended, log.running, log.state
    while True:
        job, done, count = state[0], state[1], state[2]
        now = min(submit[job], until) if job < len(submit) else until
        while done < len(log.by_end) and ended[log.by_end[done]] <= now:
            learn_run(model, log.by_end[done], log.run[log.by_end[done]], ended[log.by_end[done]])
            done += 1
        state[1] = done
        if job == len(submit) or submit[job] >= until:
            return
        state[0] = job + 1
        if np.isnan(ended[job]):
            continue
        kept = 0
        for place in range(count):
            if ended[running[place]] > now:
                running[kept] = running[place]
                kept += 1
        begun = 0  # those that run, before those that still wait in the log
        for place in range(kept):
            if log.start[running[place]] <= now:
                running[begun], running[place] = running[place], running[begun]
                begun += 1
        log.predicted[job] = predicted_run(model, job, log.request[job], now, running, begun, log.start)
        running[kept] = job
        state[2] = kept + 1


class LogRegression:
    """The model as it stands when windows of a log begin, in one pass over the log for windows in its order.

    The first `trained` jobs, those to learn from, count as run at once where the log does not have their ends.
    """

    def __init__(self, past: Past, trained: int) -> None:
        jobs = self._jobs = past.jobs
        alone = np.where(np.arange(len(jobs)) < trained, jobs.submit + jobs.run, np.nan)
        self._ended = np.where(np.isfinite(past.ended), past.ended, alone)
        self._begin()

    def _begin(self) -> None:
        jobs, ended, count = self._jobs, self._ended, len(self._jobs)
        known = np.flatnonzero(np.isfinite(ended))
        by_end = known[np.argsort(ended[known], kind="stable")]
        request = np.where(jobs.requested > 0, jobs.requested, NO_REQUEST)
        columns = jobs.submit, jobs.run, request, ended - jobs.run, ended, by_end
        room = np.full(count, np.nan), np.zeros(3, dtype=np.int64), np.empty(count, dtype=np.int64)
        self._model, self._log, self._until = regression_of(jobs), LogPass(*columns, *room), -np.inf

    def before(self, start: int, count: int) -> Regression:
        """Return the model of the window of `count` jobs from `start` on, renewed with all jobs that ended before it.
        A window before the last requested one restarts the pass.
        """
        until = float(self._jobs.submit[start])
        if until < self._until:
            self._begin()
        self._until = until
        learn_log(self._model, self._log, until)
        return self._model.of_window(start, count)

    def predictions(self) -> np.ndarray:
        """Return the run time predicted of each job when it was submitted, (n,) s; NaN where the end is not known."""
        learn_log(self._model, self._log, np.inf)
        self._until = np.inf
        return self._log.predicted
