"""Predictions of a job's run time, and of the cost of a second of its wait, from earlier jobs of its user.

Requested times say little of either, and a user's next job resembles the last ones (Tsafrir, Etsion, Feitelson,
"Backfilling using system-generated predictions rather than user runtime estimates", IEEE TPDS 18(6), 2007). Two numbers
are predicted: the logarithm of run time over requested time, and the slowdown that a second of wait adds,
1 / max(run, 10 s). Each is the average of a prior, which depends on the requested time and is learned on the training
part, and of the user's ended jobs, each counting KEEP times as much as the next. Jobs of the window end as simulated
and count in the order in which they started; those before it as in the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.jobs import SHORT, Jobs, LastRuns
from schedlab.studies.batch.rules import positive_request
from schedlab.studies.batch.simulator.cluster import Columns, Running

KEEP = 0.8
CLASSES = 21  # of requested times, by powers of two: class c from 2^c s on, the last one without end
_FEW = 20.0  # a class of few jobs leans on the mean of all: as if it had so many jobs more, all like the mean


@dataclass(frozen=True)
class Prior:
    """The prediction for a job from its requested time alone.

    log_ratio (CLASSES,)  logarithm of the mean of run time over requested time, at most 1
    factor (CLASSES,)     mean of requested time over run time, both at least 10 s
    """

    log_ratio: np.ndarray
    factor: np.ndarray

    @classmethod
    def of(cls, jobs: Jobs) -> Prior:
        """Return the prior from jobs with known run times; without jobs, the one that predicts the requested time."""
        if not len(jobs):
            return cls(np.zeros(CLASSES), np.ones(CLASSES))
        request = positive_request(jobs)
        found, count = request_class(request), np.bincount(request_class(request), minlength=CLASSES)
        means = []
        for values in (np.minimum(jobs.run / request, 1.0), np.maximum(request, SHORT) / np.maximum(jobs.run, SHORT)):
            means.append((np.bincount(found, values, CLASSES) + _FEW * values.mean()) / (count + _FEW))
        return cls(np.log(means[0]), means[1])

    def log_ratios(self, request: np.ndarray) -> np.ndarray:
        """Return the first number for requested times (n,) s."""
        return self.log_ratio[request_class(request)]

    def weights(self, request: np.ndarray) -> np.ndarray:
        """Return the slowdown that a second of wait is expected to add, 1/s, for requested times (n,) s."""
        return self.factor[request_class(request)] / np.maximum(request, SHORT)


class Sums(NamedTuple):
    """Of users: the decayed number of their ended jobs and the sums of the two numbers over them, (users,) each."""

    number: np.ndarray
    log_ratio: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class History:
    """What is known of users when a window begins. user (n,): index of each job's user in `sums`, -1: unknown."""

    user: np.ndarray
    sums: Sums

    @classmethod
    def empty(cls, jobs: Jobs) -> History:
        """Return the history of a window before which nothing is known."""
        names, user = np.unique(jobs.user, return_inverse=True)
        return cls(
            np.where(jobs.user >= 0, user, -1).astype(np.int64), Sums(*(np.zeros(len(names)) for _ in Sums._fields))
        )


class Past:
    """The jobs of a log and their ends in it (n,) s. Nothing is learned from jobs whose end is NaN: the log does not
    have it.
    """

    def __init__(self, jobs: Jobs, ended: np.ndarray) -> None:
        self.jobs, self.ended = jobs, ended

    @cached_property
    def _by_user(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """user -> (ends in order (k,), sums after each and before the first (k + 1, 3))."""
        known = np.flatnonzero(np.isfinite(self.ended) & (self.jobs.user >= 0))
        known = known[np.lexsort((self.ended[known], self.jobs.user[known]))]
        request = positive_request(self.jobs)[known]
        numbers = np.column_stack(
            [np.ones(len(known)), np.log(self.jobs.run[known] / request), 1.0 / np.maximum(self.jobs.run[known], SHORT)]
        )
        users, first = np.unique(self.jobs.user[known], return_index=True)
        borders = [*first.tolist(), len(known)]
        found = {}
        for user, begin, end in zip(users.tolist(), borders, borders[1:], strict=False):
            found[user] = self.ended[known[begin:end]], _running_sums(numbers[begin:end])
        return found

    def sums(self, users: np.ndarray, times: np.ndarray) -> Sums:
        """Return what is known of users (k,) at times (k,) s."""
        nothing = np.empty(0), np.zeros((1, len(Sums._fields)))
        rows = []
        for user, time in zip(users.tolist(), times.tolist(), strict=True):
            ends, sums = self._by_user.get(user, nothing)
            rows.append(sums[np.searchsorted(ends, time, side="right")])
        return Sums(*np.array(rows).reshape(len(rows), len(Sums._fields)).T.copy())

    def history(self, start: int, count: int) -> History:
        """Return what is known when the window of `count` jobs from `start` on begins."""
        jobs = self.jobs.take(slice(start, start + count))
        empty, users = History.empty(jobs), np.unique(jobs.user)
        return History(empty.user, self.sums(users, np.full(len(users), jobs.submit[0])))

    def last_runs(self, start: int, count: int) -> LastRuns:
        """Return the last two run times of users when the window of `count` jobs from `start` on begins."""
        jobs = self.jobs.take(slice(start, start + count))
        found = LastRuns.unknown(jobs)
        names = np.unique(jobs.user)
        ended = np.flatnonzero((self.ended <= jobs.submit[0]) & (self.jobs.user >= 0))
        for job in ended[np.argsort(self.ended[ended], kind="stable")]:
            place = np.searchsorted(names, self.jobs.user[job])
            if place < len(names) and names[place] == self.jobs.user[job]:
                found.runs[place] = self.jobs.run[job], found.runs[place, 0]
        return found

    def means_of_last_two(self) -> np.ndarray:
        """Return the mean run time of the last two jobs of the user that ended before each job was submitted, (n,) s;
        NaN where none had ended.
        """
        found = np.full(len(self.jobs), np.nan)
        for user, (ends, _) in self._by_user.items():
            own = np.flatnonzero(self.jobs.user == user)
            known = own[np.isfinite(self.ended[own])]
            runs = self.jobs.run[known[np.argsort(self.ended[known], kind="stable")]]
            count = np.searchsorted(ends, self.jobs.submit[own], side="right")
            some, both = own[count > 0], count[count > 0]
            found[some] = 0.5 * (runs[both - 1] + runs[np.maximum(both - 2, 0)])
        return found

    def predictions(self, prior: Prior, end: int) -> tuple[np.ndarray, np.ndarray]:
        """(run times s, weights 1/s) of jobs 0 .. end - 1, each as predicted when it was submitted, (end,) each."""
        jobs = self.jobs.take(slice(0, end))
        sums, request = self.sums(jobs.user, jobs.submit), positive_request(jobs)
        log_ratio = (prior.log_ratios(request) + sums.log_ratio) / (1.0 + sums.number)
        return request * np.exp(log_ratio), (prior.weights(request) + sums.weight) / (1.0 + sums.number)


class Predictor(NamedTuple):
    """Predictions while a window is simulated.

    user (n,) and sums   as in History; sums change as jobs end
    request (n,) s, log_ratio (n,), weight_before (n,)   requested times, and what the prior says
    taken (n,)           whether a job's end has been taken in
    open (1,) int64      jobs begun before this place have been taken in
    run (n,) s, weight (n,) 1/s   room for what is predicted of the jobs that wait or run
    """

    user: np.ndarray
    sums: Sums
    request: np.ndarray
    log_ratio: np.ndarray
    weight_before: np.ndarray
    taken: np.ndarray
    open: np.ndarray
    run: np.ndarray
    weight: np.ndarray


def predictor_of(prior: Prior, jobs: Jobs, history: History | None) -> Predictor:
    """Return the arrays for a window."""
    history = history or History.empty(jobs)
    request = positive_request(jobs)
    sums = Sums(*(column.copy() for column in history.sums))
    taken, room = np.zeros(len(jobs), dtype=np.bool_), (np.empty(len(jobs)), np.empty(len(jobs)))
    first = np.zeros(1, dtype=np.int64)
    return Predictor(
        history.user, sums, request, prior.log_ratios(request), prior.weights(request), taken, first, *room
    )


def request_class(request: np.ndarray) -> np.ndarray:
    """Return the class of requested times (n,) s."""
    return np.clip(np.log2(np.maximum(request, 1.0)).astype(np.int64), 0, CLASSES - 1)


@compiled(error_model="numpy")
def take_in(columns: Columns, predictor: Predictor, running: Running, clock: float) -> None:
    """Update the sums with the window's jobs that have ended by now, in the order in which they started."""
    sums, before = predictor.sums, True
    for place in range(predictor.open[0], running.size[2]):
        job = running.begun[place]
        if before and job < len(predictor.taken) and running.end[job] > clock:
            predictor.open[0], before = place, False
        if job < len(predictor.taken) and not predictor.taken[job] and running.end[job] <= clock:
            predictor.taken[job] = True
            user = predictor.user[job]
            if user >= 0:
                sums.number[user] = KEEP * sums.number[user] + 1.0
                sums.log_ratio[user] = KEEP * sums.log_ratio[user] + np.log(columns.run[job] / predictor.request[job])
                sums.weight[user] = KEEP * sums.weight[user] + 1.0 / max(columns.run[job], SHORT)
    if before:
        predictor.open[0] = running.size[2]


@compiled(error_model="numpy")
def predict(predictor: Predictor, job: int) -> None:
    """Write what is now predicted of a job of the window."""
    user, log_ratio, weight = predictor.user[job], predictor.log_ratio[job], predictor.weight_before[job]
    if user >= 0:
        count = 1.0 + predictor.sums.number[user]
        log_ratio = (log_ratio + predictor.sums.log_ratio[user]) / count
        weight = (weight + predictor.sums.weight[user]) / count
    predictor.run[job] = predictor.request[job] * np.exp(log_ratio)
    predictor.weight[job] = weight


@compiled(error_model="numpy")
def predicted_end(predictor: Predictor, running: Running, job: int, clock: float) -> float:
    """Return when a running job is predicted to end: as predicted, but not before it has run half as long again as so
    far, and at the latest as requested.
    """
    end = running.expected[job]
    if job < len(predictor.taken):
        start = running.start[job]
        end = min(max(start + predictor.run[job], clock + 0.5 * (clock - start)), end)
    return max(end, clock + 1.0)


@compiled(error_model="numpy")
def _running_sums(numbers: np.ndarray) -> np.ndarray:
    sums = np.zeros((len(numbers) + 1, numbers.shape[1]))
    for place in range(len(numbers)):
        sums[place + 1] = KEEP * sums[place] + numbers[place]
    return sums
