"""Jobs that follow others: such a job arrives when its preceding job has ended and the think time has passed.

Source: the Standard Workload Format, columns 17 (preceding job) and 18 (think time: s between the end of that job and
the submission of this one).

The arrivals depend on the schedule, and the schedule on the arrivals. Because a policy decides from the jobs that have
arrived, all starts before the first wrong arrival are right. So the simulation is repeated, each time with the arrivals
that follow from the last schedule, until they no longer change: at most once for each job that follows another, and
once more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.jobs import Jobs, Schedule

log = logging.getLogger("schedlab.batch")


def follow(jobs: Jobs) -> bool:
    """Return whether a job names a preceding one."""
    return int(np.count_nonzero(jobs.preceding)) > 0  # for short windows, several times as fast as a comparison


def predecessors(jobs: Jobs) -> np.ndarray:
    """Return the place of each job's preceding job, (n,) int64; -1: none, or it is not among the jobs."""
    by_number = np.argsort(jobs.job_id, kind="stable")
    numbers = jobs.job_id[by_number]
    place = np.minimum(np.searchsorted(numbers, jobs.preceding), len(jobs) - 1)
    return np.where((jobs.preceding > 0) & (numbers[place] == jobs.preceding), by_number[place], -1)


def require_dependencies(jobs: Jobs, source: str) -> None:
    """Raise UserError if no job of a log follows another, or one follows a job below it, as in every cycle. Warn of
    preceding jobs that are not there. source: the log, for messages.
    """
    where, off = f"{source}: dependencies", "or dependencies: false"
    following = np.flatnonzero(jobs.preceding)
    if not len(following):
        what = "no job has a preceding job (column 17 of the Standard Workload Format)"
        raise UserError(what, where=where, expected=f"a log that has some, {off}")
    before = predecessors(jobs)[following]
    wrong = following[before >= following]
    if len(wrong):
        what = f"job {jobs.job_id[wrong[0]]} follows job {jobs.preceding[wrong[0]]}, which does not stand above it"
        remedy = f"correct column 17, {off}"
        raise UserError(what, where=where, expected="a job that was submitted earlier", remedy=remedy)
    if missing := int((before < 0).sum()):
        what = "WARNING: the preceding jobs of %d of %d jobs are not in the trace, and count as ended"
        log.warning(what, missing, len(following))


def followed_schedule(jobs: Jobs, simulate_once: Callable[[Jobs, np.ndarray], Schedule]) -> Schedule:
    """Return the schedule in which each job arrives at its submit time or, if that is later, its think time after the
    end of its preceding job. A preceding job that is not among the jobs counts as ended. The submit times of the
    schedule are the arrivals, from which waits count.

    simulate_once: (jobs in order of arrival, their places (n,) in `jobs`) -> their schedule
    """
    before = predecessors(jobs)
    following = np.flatnonzero(before >= 0)
    think, arrival = np.maximum(jobs.think, 0.0), jobs.submit
    alone = replace(jobs, preceding=np.zeros_like(jobs.preceding))
    while True:
        order = np.argsort(arrival, kind="stable")
        schedule, back = simulate_once(replace(alone, submit=arrival).take(order), order), np.argsort(order)
        start, run = schedule.start[back], schedule.jobs.run[back]
        found = jobs.submit.copy()
        ends = (start + run)[before[following]] + think[following]
        found[following] = np.maximum(found[following], ends)
        if np.array_equal(found, arrival):
            held = tuple(schedule.held[place] for place in back) if schedule.held else ()
            return replace(schedule, jobs=replace(jobs, submit=arrival, run=run), start=start, held=held)
        arrival = found
