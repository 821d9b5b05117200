"""One window under one policy: from jobs, machine and rules of the simulation to the schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.jobs import Jobs, Machine, Prefill, require_runnable, require_submission_order
from schedlab.studies.batch.rules import PLANNER, LinearPriority, area, priority
from schedlab.studies.batch.scenario import Backfill, BackfillOrder
from schedlab.studies.batch.simulator.blocking import NO_KEYS, blocking_starts, queue_of
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
from schedlab.studies.batch.simulator.nan_scores import BlockingSimulation, run_scores
from schedlab.studies.batch.simulator.policies import policy_blocking_starts
from schedlab.studies.batch.simulator.rollouts import RolloutPolicy
from schedlab.studies.batch.simulator.scores import NO_LINEAR, linear_of, scores_of_rollouts
from schedlab.studies.batch.simulator.textbook import textbook_starts

Priorities = str | LinearPriority | RolloutPolicy
_SCANS = {"fcfs": FCFS, "area": BY_AREA, "rule": BY_RULE}


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

    def of_started(self) -> Schedule:
        """Return what became of the jobs that have started."""
        begun = np.flatnonzero(~np.isnan(self.start))
        return Schedule(
            self.jobs.take(begun), self.start[begun], tuple(self.held[job] for job in begun) if self.held else ()
        )


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

    backfill     none: the chosen job blocks everything; legacy: the published simulator's; easy, conservative: those of
                 the textbook
    backfill_order  in which order jobs are looked at when they are backfilled (legacy, easy): by submission, by
                    requested time times
                 nodes, or by the policy; default: by submission (legacy), by the policy (easy)
    kill         end jobs at their requested time
    prefill      what already runs at the submit time of the first job; None: nothing
    track_nodes  give every job concrete nodes, the first free ones, in place of counting them; start times are the same
    Raises UserError for a rule that is none, an order that the mode does not have, jobs that the machine can never run,
    and, with easy or conservative, jobs that are not in the order of submission.
    """
    require_order(backfill, backfill_order)
    require_runnable(jobs, machine)
    if backfill in ("easy", "conservative"):
        require_submission_order(jobs, machine)
    jobs = jobs.killed_at_request() if kill else jobs
    prefill = prefill or Prefill(jobs.take(slice(0, 0)), np.empty(0))
    columns = columns_of(jobs, prefill)
    policy = PLANNER if policy == "planner" else policy
    if isinstance(policy, LinearPriority | RolloutPolicy):
        rolls = isinstance(policy, RolloutPolicy)
        linear = (
            scores_of_rollouts(policy, jobs, machine, easy=backfill == "easy")
            if rolls
            else linear_of(policy, jobs, machine)
        )
        order = Order(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0), linear.scores, WRITTEN)
    else:
        found = priority(policy, jobs)
        if found.published is not None and _as_published(backfill, backfill_order):
            simulation = BlockingSimulation(jobs, machine, backfill=backfill == "legacy", prefill=prefill)
            start = np.array(run_scores(simulation, found.published.tolist()))
            return Schedule(jobs, start, tuple(map(np.array, simulation.held[: len(jobs)])) if track_nodes else ())
        linear, order = NO_LINEAR, order_of(found)
    scan = Scan(scan_of(backfill, backfill_order), area(jobs), linear)
    running = running_of(columns, prefill, machine, track=track_nodes)
    if backfill in ("easy", "conservative"):
        textbook_starts(columns, order, scan, running, backfill == "conservative")
    elif order.power == WRITTEN or (backfill == "legacy" and scan.by == BY_RULE):
        policy_blocking_starts(queue_of(columns), columns, order, scan, running, backfill == "legacy")
    else:
        keys = scan.area if scan.by == BY_AREA else NO_KEYS
        blocking_starts(queue_of(columns), columns, order, running, backfill == "legacy", keys)
    held = ()
    if track_nodes:
        held = tuple(
            running.held[first : first + nodes] for first, nodes in zip(running.first, jobs.nodes, strict=False)
        )
    return Schedule(jobs, running.start[: len(jobs)], held)


def _as_published(backfill: Backfill, backfill_order: BackfillOrder) -> bool:
    """Tell whether a simulation is one that the published simulator makes, too."""
    return backfill == "none" or (backfill == "legacy" and scan_of(backfill, backfill_order) == FCFS)


def scan_of(backfill: Backfill, backfill_order: BackfillOrder) -> int:
    """Return the order of backfilling as a number of kernel_cluster: by submission (legacy) or by the policy where none
    is named.
    """
    if backfill_order == "default":
        return FCFS if backfill == "legacy" else BY_RULE
    return _SCANS[backfill_order]


def require_order(backfill: Backfill, backfill_order: BackfillOrder, where: str = "backfill_order") -> None:
    """Raise UserError for an order in a mode that looks at jobs in none, or in one that is part of its definition."""
    if backfill_order != "default" and backfill not in ("legacy", "easy"):
        raise UserError(
            f"'{backfill_order}' has no meaning with backfilling '{backfill}'",
            where=where,
            expected="backfill legacy or easy",
        )
