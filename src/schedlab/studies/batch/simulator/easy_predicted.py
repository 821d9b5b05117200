"""EASY++: EASY backfilling with predicted run times in place of requested ones, and the shortest prediction first.

Source: Tsafrir, Etsion, Feitelson, "Backfilling using system-generated predictions rather than user runtime estimates",
IEEE TPDS 18(6), 2007. A prediction is made when a job is submitted: the mean run time of the last two jobs of its user
that have ended, at most the requested time, which stands in where none has ended. A running job that outlives its
prediction is expected for a while longer, at first a minute, later more, at most until its requested time. With a
regression in place of the mean (run_time_regression.py), this is the best combination of Gaussier et al. (SC15).
"""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.batch.jobs import LastRuns
from schedlab.studies.batch.simulator.cluster import (
    BY_KEY,
    COUNT,
    FREE,
    Array,
    Columns,
    Keys,
    Order,
    Running,
    insert,
    release,
    remove,
    uncounted,
)
from schedlab.studies.batch.simulator.run_time_regression import NO_REQUEST, Regression, learn_run, predicted_run
from schedlab.studies.batch.simulator.textbook import scored_easy_pass, smallest_waiting

MINUTE = 60.0
# s that a job is expected to run on beyond its prediction: the first time, the second, ... (Tsafrir et al.)
LONGER = np.array([1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000]) * MINUTE
FEWEST = 1.0  # s of the shortest prediction


def predicted_starts(
    columns: Columns,
    order: Order,
    running: Running,
    known: LastRuns,
    model: Regression,
    *,
    learned: bool,
) -> None:
    """Fill running.start with the start time of each job.

    known: the earlier run times of users; model, learned: the regression, and whether it predicts instead
    """
    requested = np.where(columns.requested > 0, columns.requested, np.inf)
    predicted = columns._replace(requested=columns.requested.copy())
    _follow(predicted, order, running, requested, known.user, known.runs.copy(), model, learned)


@compiled(error_model="numpy")
def _follow(
    columns: Columns,
    order: Order,
    running: Running,
    limit: Array,
    user: Array,
    runs: Array,
    model: Regression,
    learned: bool,
) -> None:
    """Make a pass at each time at which jobs end or arrive. columns.requested: predictions, written as jobs arrive;
    limit (n + k,) s: the requested times.
    """
    count, waiting, arrived, clock = len(columns.submit), 0, 0, columns.submit[0]
    queue, scores = np.empty(count, dtype=np.int64), np.empty(count)
    times = np.zeros(len(limit), dtype=np.int64)  # how often a job has outlived what was expected
    while waiting or arrived < count:
        if arrived:
            earliest = running.end[running.by_end[0]] if running.size[COUNT] else np.inf
            clock = max(clock, min(earliest, columns.submit[arrived] if arrived < count else np.inf))
        while running.size[COUNT] and running.end[running.by_end[0]] <= clock:
            job = running.by_end[0]
            release(running, columns)
            if learned and job < count:
                learn_run(model, job, columns.run[job], running.end[job])
            elif job < count and user[job] >= 0:
                runs[user[job], 1] = runs[user[job], 0]
                runs[user[job], 0] = columns.run[job]
        while arrived < count and columns.submit[arrived] <= clock:
            if learned:
                request = limit[arrived] if limit[arrived] < np.inf else NO_REQUEST
                columns.requested[arrived] = predicted_run(
                    model, arrived, request, columns.submit[arrived], running.by_end, running.size[COUNT], running.start
                )
            else:
                columns.requested[arrived] = _predicted(limit[arrived], runs, user[arrived])
            queue[waiting] = arrived
            waiting += 1
            arrived += 1
        if smallest_waiting(queue, waiting, columns) > running.size[FREE]:
            continue
        _correct(running, limit, times, clock)
        waiting = scored_easy_pass(
            queue, waiting, columns, order, Keys(BY_KEY, columns.requested), running, clock, scores
        )


@uncounted
def _predicted(limit: float, runs: Array, user: int) -> float:
    """The mean of the user's last two run times, at most the request; the request where none is known."""
    if user < 0 or np.isnan(runs[user, 0]):
        return limit if limit < np.inf else FEWEST
    mean = runs[user, 0] if np.isnan(runs[user, 1]) else 0.5 * (runs[user, 0] + runs[user, 1])
    return max(FEWEST, min(mean, limit))


@uncounted
def _correct(running: Running, limit: Array, times: Array, clock: float) -> None:
    """Expect jobs that have outlived their prediction for a while longer, at most until their requested time; beyond it
    they are overdue, as under EASY.
    """
    place = 0
    while place < running.size[COUNT]:
        job = running.by_request[place]
        if running.expected[job] > clock:
            return
        last = running.start[job] + limit[job]
        if last <= clock:
            place += 1
            continue
        longer = LONGER[min(times[job], len(LONGER) - 1)]
        times[job] += 1
        remove(running.by_request, running.size[COUNT], job)
        running.expected[job] = min(last, running.expected[job] + longer)
        insert(running.by_request, 0, running.size[COUNT] - 1, running.expected, job)
