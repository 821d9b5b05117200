"""One window under one rule: from jobs, machine and rules of the simulation to the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from schedlab.studies.batch.jobs import Jobs, Machine, Prefill, require_runnable
from schedlab.studies.batch.kernel_blocking import blocking_starts
from schedlab.studies.batch.kernel_cluster import columns_of, order_of, running_of
from schedlab.studies.batch.kernel_textbook import textbook_starts
from schedlab.studies.batch.rules import priority

Backfill = Literal["none", "legacy", "easy", "conservative"]
BACKFILLS = ("none", "legacy", "easy", "conservative")


@dataclass(frozen=True)
class Schedule:
    """What became of the jobs of a window.

    jobs   as simulated: where jobs are killed at their request, run times are those that they got
    start  (n,) s of the trace
    held   the nodes of each job (n arrays of int64), where nodes are told apart
    """

    jobs: Jobs
    start: np.ndarray
    held: tuple[np.ndarray, ...] = ()


def simulate(
    jobs: Jobs,
    machine: Machine,
    rule: str,
    backfill: Backfill = "none",
    *,
    kill: bool = False,
    prefill: Prefill | None = None,
    track_nodes: bool = False,
) -> Schedule:
    """Return the schedule of jobs, in order of submission, under a rule.

    backfill     none: the chosen job blocks everything; legacy: the published simulator's; easy, conservative: those of the textbook
    kill         end jobs at their requested time
    prefill      what already runs at the submit time of the first job; None: nothing
    track_nodes  give every job concrete nodes, the first free ones, in place of counting them; start times are the same
    Raises UserError for a rule that is none and for jobs that the machine can never run.
    """
    require_runnable(jobs, machine)
    jobs = jobs.killed_at_request() if kill else jobs
    prefill = prefill or Prefill(jobs.take(slice(0, 0)), np.empty(0))
    columns = columns_of(jobs, prefill)
    order = order_of(priority(rule, jobs))
    running = running_of(columns, prefill, machine, track=track_nodes)
    if backfill in ("none", "legacy"):
        blocking_starts(columns, order, running, backfill == "legacy")
    else:
        textbook_starts(columns, order, running, backfill == "conservative")
    held = ()
    if track_nodes:
        held = tuple(running.held[first : first + nodes] for first, nodes in zip(running.first, jobs.nodes, strict=False))
    return Schedule(jobs, running.start[: len(jobs)], held)
