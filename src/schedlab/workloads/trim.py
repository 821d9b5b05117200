"""Cuts a piece out of a trace, by user, time, count or load of the machine, and scales its arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import model_validator

from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting
from schedlab.workloads.trace import Trace, job_processors, offered_load, whole_seconds

if TYPE_CHECKING:
    import pandas as pd


class TrimSettings(Settings):
    """The part of a trace that is used; the keys apply in this order. Jobs are taken in the order of the trace."""

    users: tuple[int, ...] = setting((), doc="users whose jobs are used; empty: all")
    start: float | None = setting(None, doc="first submit time of the part; null: the trace's start", unit="s")
    end: float | None = setting(None, doc="submit time before which the part ends; null: the trace's end", unit="s")
    first: int = setting(0, doc="number of jobs to skip at the start of the part", unit="jobs", ge=0)
    count: int | None = setting(None, doc="number of jobs after that; null: all", unit="jobs", ge=1)
    load: float | None = setting(
        None, doc="choose the sequence of `count` jobs whose load is nearest to this; null: the first one", gt=0
    )
    shift: bool = setting(True, doc="shift submit times so that the first job arrives at 0")

    @model_validator(mode="after")
    def _check(self) -> TrimSettings:
        if self.load is not None and self.count is None:
            raise ValueError("load needs count, the length of the piece")
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise ValueError("end must be later than start")
        return self


def within(jobs: pd.DataFrame, settings: TrimSettings) -> pd.DataFrame:
    """Return the jobs of the selected users and times."""
    if settings.users:
        jobs = jobs[jobs["user"].isin(settings.users)]
    if settings.start is not None:
        jobs = jobs[jobs["submit"] >= settings.start]
    if settings.end is not None:
        jobs = jobs[jobs["submit"] < settings.end]
    return jobs


def trim(trace: Trace, settings: TrimSettings, total: int | None = None) -> Trace:
    """Return the piece. Raises UserError if no job is left, or if `load` needs the size of the machine and the header
    lacks it.

    total: number of jobs of the whole trace, if jobs outside of the piece were already left out; None: none were
    """
    total = len(trace.jobs) if total is None else total
    jobs = within(trace.jobs, settings)
    jobs = jobs.iloc[settings.first :]
    if settings.load is not None and settings.count is not None:
        place = nearest_load(trace.with_jobs(jobs), settings.count, settings.load)
        jobs = jobs.iloc[place:]
    jobs = jobs.iloc[: settings.count]
    if not len(jobs):
        raise UserError("no job is left", where=f"{trace.source}: trimming", expected="a piece with at least one job")
    begin = jobs.iloc[0]
    note = f"trimmed by schedlab: {len(jobs)} of {total} jobs"
    note += f", the first of them job {begin['job_id']:.0f}, submitted at {begin['submit']:.0f} s"
    piece = trace.with_jobs(jobs, note) if len(jobs) < total else trace
    return piece.from_first_submit() if settings.shift else piece


def nearest_load(trace: Trace, count: int, load: float) -> int:
    """Return the place of the first job of the piece of `count` jobs whose offered load is nearest to `load`; of
    equally near pieces, the first.

    Raises UserError if the trace has fewer jobs, is not in order of submission, or has no piece whose jobs are
    submitted at different times.
    """
    submit = trace.jobs["submit"].to_numpy()
    where = f"{trace.source}: trimming"
    if len(submit) < count:
        raise UserError(f"the trace has {len(submit)} jobs", where=where, expected=f"at least the {count} of the piece")
    if (np.diff(submit) < 0).any():
        raise UserError("jobs out of order of submission", where=where, remedy="clean the trace first (order: submit)")
    work = np.concatenate(
        [[0.0], np.cumsum(np.maximum(trace.jobs["run"], 0) * np.maximum(job_processors(trace.jobs), 0))]
    )
    spans = submit[count - 1 :] - submit[: len(submit) - count + 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        loads = (work[count:] - work[:-count]) / (trace.machine_size() * spans)
    distances = np.where(spans > 0, np.abs(loads - load), np.inf)
    if not np.isfinite(distances).any():
        raise UserError(
            "every piece is submitted at one time, so its load is not defined",
            where=where,
            remedy="take a larger count",
        )
    return int(np.argmin(distances))


def scale_load(trace: Trace, load: float) -> Trace:
    """Return the trace with all submit times, counted from the first, multiplied by one factor so that its offered load
    is `load`.

    Times are rounded to whole seconds. Raises UserError if the present load is not defined, or `load` is not above 0.
    """
    if not 0 < load < np.inf:
        raise UserError(f"a load of {load:g}", where=trace.source, expected="a number above 0")
    now = offered_load(trace) if trace.machine_size() else None
    if not now:
        raise UserError(
            "the load of the trace is not defined",
            where=trace.source,
            expected="jobs with work, submitted at several times",
        )
    first = trace.jobs["submit"].min()
    submit = first + whole_seconds((trace.jobs["submit"] - first) * (now / load), trace.source)
    return trace.with_jobs(
        trace.jobs.assign(submit=submit), f"arrival times multiplied by {now / load:.6g} for a load of {load:g}"
    )
