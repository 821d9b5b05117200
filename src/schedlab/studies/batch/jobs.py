"""The jobs and the machine of the batch study, and windows of jobs that are simulated separately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.constraints.settings import LimitSettings
from schedlab.workloads.trace import Trace, job_processors

UNKNOWN_REQUEST = 0.1  # s; stands for a requested time <= 0 where a rule divides by it or takes its logarithm
SHORT = 10.0  # s; a job that ran shorter counts as one of this length in the bounded slowdown


@dataclass(frozen=True)
class Machine:
    """A cluster of equal nodes. `source`: where its size comes from, for messages; limits: those of its queues and
    partitions, None: none.
    """

    nodes: int
    processors: int
    source: str = "machine"
    limits: LimitSettings | None = None


@dataclass(frozen=True)
class Jobs:
    """Jobs in the order of arrival, which is that of submission except in traces cleaned as published. Arrays
    (n,).

    job_id, user, group, executable, queue, partition   int64, as in the trace, -1: missing
    preceding      int64, number of the job that has to end first; 0: none, or the scenario ignores dependencies
    think          float64, s from the end of that job to the submission of this one; -1: missing
    priority       float64, that of the job's queue over the largest of any queue; 0: none is given
    memory         float64, requested KB a processor; -1: missing
    submit, run, requested   float64, s; requested <= 0: the trace does not say
    procs, nodes   int64: processors, and the whole nodes that they take
    """

    job_id: np.ndarray
    submit: np.ndarray
    run: np.ndarray
    requested: np.ndarray
    procs: np.ndarray
    nodes: np.ndarray
    user: np.ndarray
    group: np.ndarray
    executable: np.ndarray
    memory: np.ndarray
    queue: np.ndarray
    partition: np.ndarray
    preceding: np.ndarray
    think: np.ndarray
    priority: np.ndarray

    def __len__(self) -> int:
        return len(self.job_id)

    def take(self, places: slice | np.ndarray) -> Jobs:
        """Return some of the jobs, in the order of `places`."""
        return Jobs(*[column[places] for column in vars(self).values()])

    def killed_at_request(self) -> Jobs:
        """Return the jobs with run times cut to the requested times, for jobs that have one."""
        return replace(self, run=np.where(self.requested > 0, np.minimum(self.run, self.requested), self.run))


def machine_of(trace: Trace) -> Machine:
    """Return the machine in the header of a trace. Raises UserError if there is none, or if the header contradicts
    itself.
    """
    processors = trace.machine_size()
    nodes = trace.nodes or processors
    if nodes > processors:
        what = f"{nodes} nodes (MaxNodes) have {processors} processors (MaxProcs)"
        raise UserError(what, where=trace.source, expected="at least one processor a node")
    return Machine(nodes, processors, trace.source)


def out_of_order(trace: Trace) -> int:
    """Return how many jobs of a trace were submitted before a job that precedes them."""
    submit = trace.jobs["submit"].to_numpy()
    return int((submit < np.maximum.accumulate(submit)).sum()) if len(submit) else 0


def jobs_of(
    trace: Trace, machine: Machine, *, dependencies: bool = False, queue_priority: Mapping[int, float] | None = None
) -> Jobs:
    """Return the jobs of a cleaned trace in its order, which also numbers them for windows. Jobs take whole nodes.

    dependencies: keep the preceding jobs of the log
    queue_priority: the priority of jobs by the number of their queue, at least 0; others have 0
    """
    frame, priorities = trace.jobs, queue_priority or {}
    largest = max(priorities.values(), default=0.0) or 1.0
    procs = job_processors(frame).astype(np.int64)
    columns = {
        "job_id": frame["job_id"].to_numpy(np.int64),
        "submit": frame["submit"].to_numpy(float),
        "run": frame["run"].to_numpy(float),
        "requested": frame["time_requested"].to_numpy(float),
        "procs": procs,
        "nodes": -(-procs * machine.nodes // machine.processors),
        **{name: frame[name].to_numpy(np.int64) for name in ("user", "group", "executable", "queue", "partition")},
        "memory": frame["memory_requested"].to_numpy(float),
        "preceding": np.maximum(frame["preceding_job"].to_numpy(np.int64), 0) * dependencies,
        "think": frame["think_time"].to_numpy(float),
        "priority": frame["queue"].map(priorities).fillna(0.0).to_numpy(float) / largest,
    }
    return Jobs(**columns)


def recorded_ends(trace: Trace) -> np.ndarray:
    """Return when each job of `jobs_of` ended in the log, (n,) s; NaN if the log has no wait."""
    frame = trace.jobs
    submit, wait, run = (frame[name].to_numpy(float) for name in ("submit", "wait", "run"))
    return np.where(wait >= 0, submit + wait + run, np.nan)


def window(jobs: Jobs, machine: Machine, start: int = 0, count: int | None = None) -> Jobs:
    """Return jobs start .. start + count - 1 (count None: to the last one), checked for a simulation on the
    machine.

    Raises UserError where the window is empty or passes the end, or a job of it can never run.
    """
    where, last = f"{machine.source}: window", len(jobs) - 1
    if not len(jobs):
        remedy = "look at the counts of the cleaning"
        raise UserError("no job is left", where=machine.source, expected="at least one job", remedy=remedy)
    if not 0 <= start <= last:
        what = f"start {start} lies outside the {len(jobs)} jobs"
        raise UserError(what, where=where, expected=f"a number from 0 to {last}")
    count = len(jobs) - start if count is None else count
    if not 0 < count <= len(jobs) - start:
        what = f"{count} jobs from job {start} on, of {len(jobs)} that there are"
        raise UserError(what, where=where, expected=f"a number of jobs from 1 to {len(jobs) - start}")
    chosen = jobs.take(slice(start, start + count))
    require_runnable(chosen, machine)
    return chosen


def require_runnable(jobs: Jobs, machine: Machine) -> None:
    """Raise UserError if a job has no processors, more than the machine, or no run time."""
    what, size = "asks for {procs} processors", f"1 to {machine.processors} processors"
    drop, clean = "drop such jobs (cleaning default)", "clean the trace (cleaning default or rlscheduler)"
    cases = (
        (jobs.procs < 1, what, size, "drop such jobs (cleaning default, or no_processors: drop)"),
        (jobs.nodes > machine.nodes, what, size, drop),
        (~(jobs.run > 0), "has a run time of {run:g} s", "a run time above 0", clean),
    )
    for wrong, what, expected, remedy in cases:
        if wrong.any():
            first = int(np.argmax(wrong))
            others = f" (and {int(wrong.sum()) - 1} more)" if wrong.sum() > 1 else ""
            what = f"job {jobs.job_id[first]} {what.format(procs=jobs.procs[first], run=jobs.run[first])}{others}"
            raise UserError(what, where=machine.source, expected=expected, remedy=remedy)


def require_submission_order(jobs: Jobs, machine: Machine) -> None:
    """Raise UserError if a job was submitted before one that precedes it.

    The published simulator lets jobs arrive as they stand; the textbook's modes are defined on submission alone.
    """
    early = np.flatnonzero(np.diff(jobs.submit) < 0)
    if len(early):
        what = f"job {jobs.job_id[early[0] + 1]} stands below job {jobs.job_id[early[0]]}, which was submitted later"
        remedy = (
            "clean with order: submit (as the profile default does, --cleaning default), or take backfill none, legacy"
        )
        raise UserError(what, where=machine.source, expected="jobs in the order of submission", remedy=remedy)


class LastRuns(NamedTuple):
    """The last two run times of users. user (n,) int64: place of each job's user, -1: unknown; runs (users, 2) s, the
    last one first, NaN: none.
    """

    user: np.ndarray
    runs: np.ndarray

    @classmethod
    def unknown(cls, jobs: Jobs) -> LastRuns:
        """Return the run times for windows before which nothing is known."""
        names, user = np.unique(jobs.user, return_inverse=True)
        return cls(np.where(jobs.user >= 0, user, -1).astype(np.int64), np.full((len(names), 2), np.nan))

    def reordered(self, order: np.ndarray) -> LastRuns:
        """Return the same for the jobs in another order (n,)."""
        return self._replace(user=self.user[order])


@dataclass(frozen=True)
class Prefill:
    """Jobs that already run when a window begins, and the start of each (k,) s.

    known: what users ran before, for predictions of the window's jobs; None: nothing is known
    model: a regression of run times (simulator/run_time_regression.py); None: one that has learned nothing
    """

    jobs: Jobs
    start: np.ndarray
    known: LastRuns | None = None
    model: Any = None

    def reordered(self, order: np.ndarray) -> Prefill:
        """Return the same for the jobs of the window in another order (n,)."""
        known, model = (part and part.reordered(order) for part in (self.known, self.model))
        return replace(self, known=known, model=model)


def prefill(jobs: Jobs, machine: Machine, start: int, count: int, rng: np.random.Generator) -> Prefill:
    """Return the jobs that occupy the machine before the window of `count` jobs from `start` on.

    The preceding jobs, latest first, until one does not fit, at most count + U[0, count) of them; each runs as long as
    requested (its run time where nothing was) and started whole seconds before, drawn from U[0, that time).
    """
    most = count + int(rng.integers(count))
    free, places = machine.nodes, []
    for place in range(start - 1, max(start - 1 - most, -1), -1):
        if not 0 < jobs.nodes[place] <= free:
            break
        free -= jobs.nodes[place]
        places.append(place)
    chosen = jobs.take(np.array(places, dtype=np.int64))
    length = np.where(chosen.requested > 0, chosen.requested, np.maximum(chosen.run, 1.0))
    began = jobs.submit[start] - np.floor(rng.uniform(0.0, length))
    return Prefill(replace(chosen, run=length, requested=length), began)


@dataclass(frozen=True)
class Schedule:
    """The starts of the jobs of a window.

    jobs   as simulated: where jobs are killed at their request, run times are those that they got; where jobs follow
           others, submit times are their arrivals
    start  (n,) s of the trace
    held   the nodes of each job (n arrays of int64), where nodes are distinguished
    """

    jobs: Jobs
    start: np.ndarray
    held: tuple[np.ndarray, ...] = ()

    def of_started(self) -> Schedule:
        """Return the schedule of the jobs that have started."""
        begun = np.flatnonzero(~np.isnan(self.start))
        held = tuple(self.held[job] for job in begun) if self.held else ()
        return Schedule(self.jobs.take(begun), self.start[begun], held)
