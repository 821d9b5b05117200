"""One window under one policy: from jobs, machine and rules of the simulation to the schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedlab.studies.batch.jobs import Jobs, Machine, Prefill, require_runnable, require_submission_order
from schedlab.studies.batch.legacy import nan_schedule
from schedlab.studies.batch.rules import PLANNER, LinearPriority, area, priority
from schedlab.studies.batch.scenario import TEXTBOOK, Backfill, BackfillOrder, require_order
from schedlab.studies.batch.simulator.blocking import NO_KEYS, blocking_starts, policy_blocking_starts, queue_of
from schedlab.studies.batch.simulator.cluster import (
    BY_AREA,
    BY_RULE,
    FCFS,
    WRITTEN,
    Order,
    Scan,
    columns_of,
    order_of,
    running_of,
)
from schedlab.studies.batch.simulator.rollouts import RolloutPolicy
from schedlab.studies.batch.simulator.scores import NO_LINEAR, Linear, linear_of, scores_of_rollouts
from schedlab.studies.batch.simulator.textbook import textbook_starts

Priorities = str | LinearPriority | RolloutPolicy
_SCANS = {"fcfs": FCFS, "area": BY_AREA, "rule": BY_RULE}


@dataclass(frozen=True)
class Schedule:
    """What became of the jobs of a window.

    jobs   as simulated: where jobs are killed at their request, run times are those that they got
    start  (n,) s of the trace
    held   the nodes of each job (n arrays of int64), where nodes are distinguished
    """

    jobs: Jobs
    start: np.ndarray
    held: tuple[np.ndarray, ...] = ()

    def of_started(self) -> Schedule:
        """Return what became of the jobs that have started."""
        begun = np.flatnonzero(~np.isnan(self.start))
        held = tuple(self.held[job] for job in begun) if self.held else ()
        return Schedule(self.jobs.take(begun), self.start[begun], held)


def simulate(
    jobs: Jobs,
    machine: Machine,
    policy: Priorities,
    backfill: Backfill = "none",
    *,
    backfill_order: BackfillOrder = "default",
    kill: bool = False,
    prefill: Prefill | None = None,
    track_nodes: bool = False,
) -> Schedule:
    """Return the schedule of jobs under a rule, `planner`, a linear priority or rollouts.

    backfill     none: the chosen job blocks everything; legacy: the published simulator's; easy, conservative
    backfill_order  which jobs are looked at first when they are backfilled (legacy, easy): by submission, by requested
                 time times nodes, or by the policy; default: by submission (legacy), by the policy (easy)
    kill         end jobs at their requested time
    prefill      what already runs at the submit time of the first job; None: nothing
    track_nodes  give every job concrete nodes, the first free ones, in place of counting them; start times are the same
    Raises UserError for a rule that is none, an order that the mode does not have, jobs that the machine can never run,
    and, with easy or conservative, jobs that are not in the order of submission.
    """
    require_order(backfill, backfill_order)
    require_runnable(jobs, machine)
    if backfill in TEXTBOOK:
        require_submission_order(jobs, machine)
    jobs = jobs.killed_at_request() if kill else jobs
    by, reserves = scan_of(backfill, backfill_order), backfill == "legacy"
    prefill = prefill or Prefill(jobs.take(slice(0, 0)), np.empty(0))
    if isinstance(policy, str) and policy != "planner":
        published = nan_schedule(policy, jobs) if backfill not in TEXTBOOK and by == FCFS else None
        if published:
            return published(jobs, machine, reserves, prefill, track_nodes)
        linear, order = NO_LINEAR, order_of(priority(policy, jobs))
    else:
        linear = _written_scores(PLANNER if isinstance(policy, str) else policy, jobs, machine, easy=backfill == "easy")
        order = Order(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), linear.scores, WRITTEN)
    columns = columns_of(jobs, prefill)
    scan = Scan(by, area(jobs), linear)
    running = running_of(columns, prefill, machine, track=track_nodes)
    if backfill in TEXTBOOK:
        textbook_starts(columns, order, scan, running, backfill == "conservative")
    elif order.power == WRITTEN or (reserves and by == BY_RULE):
        policy_blocking_starts(queue_of(columns), columns, order, scan, running, reserves)
    else:
        keys = scan.area if by == BY_AREA else NO_KEYS
        blocking_starts(queue_of(columns), columns, order, running, reserves, keys)
    places = zip(running.first, jobs.nodes, strict=False) if track_nodes else ()
    held = tuple(running.held[first : first + nodes] for first, nodes in places)
    return Schedule(jobs, running.start[: len(jobs)], held)


def _written_scores(policy: LinearPriority | RolloutPolicy, jobs: Jobs, machine: Machine, *, easy: bool) -> Linear:
    """What writes the scores at each decision."""
    if isinstance(policy, RolloutPolicy):
        return scores_of_rollouts(policy, jobs, machine, easy=easy)
    return linear_of(policy, jobs, machine)


def scan_of(backfill: Backfill, backfill_order: BackfillOrder) -> int:
    """Return the order of backfilling as a number of cluster.py; the default depends on the mode."""
    if backfill_order == "default":
        return BY_RULE if backfill in TEXTBOOK else FCFS
    return _SCANS[backfill_order]
