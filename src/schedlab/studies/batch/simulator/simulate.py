"""Simulates one window under one policy: from jobs, machine and rules of the simulation to the schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.constraints.dependencies import follow, followed_schedule
from schedlab.studies.batch.constraints.limited_kernel import limited_blocking_starts, limited_easy_starts
from schedlab.studies.batch.constraints.limits import limits_of
from schedlab.studies.batch.jobs import (
    Jobs,
    LastRuns,
    Machine,
    Prefill,
    Schedule,
    require_runnable,
    require_submission_order,
)
from schedlab.studies.batch.legacy import nan_schedule
from schedlab.studies.batch.rules import PLANNER, LinearPriority, backfill_keys, priority
from schedlab.studies.batch.scenario import PREDICTING_BACKFILLS, TEXTBOOK, Backfill, BackfillOrder, require_order
from schedlab.studies.batch.simulator.blocking import NO_KEYS, blocking_starts, policy_blocking_starts, queue_of
from schedlab.studies.batch.simulator.cluster import (
    BY_KEY,
    BY_RULE,
    FCFS,
    WRITTEN,
    Columns,
    Order,
    Running,
    Scan,
    columns_of,
    order_of,
    running_of,
)
from schedlab.studies.batch.simulator.easy_predicted import predicted_starts
from schedlab.studies.batch.simulator.fair_share import SlurmPriority
from schedlab.studies.batch.simulator.history import HistoryPriority
from schedlab.studies.batch.simulator.rollouts import RolloutPolicy
from schedlab.studies.batch.simulator.run_time_regression import regression_of
from schedlab.studies.batch.simulator.scores import (
    NO_LINEAR,
    Linear,
    linear_of,
    scores_of_history,
    scores_of_rollouts,
    scores_of_rule,
    scores_of_slurm,
)
from schedlab.studies.batch.simulator.textbook import textbook_starts

KnowsJobs = RolloutPolicy | SlurmPriority | HistoryPriority  # policies that know something of each job of a window
Priorities = str | LinearPriority | KnowsJobs
_SCANS = {"fcfs": FCFS, "sjf": BY_KEY, "area": BY_KEY, "rule": BY_RULE}


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
    most_wait: float = np.inf,
) -> Schedule:
    """Return the schedule of jobs under a rule, `planner`, a linear priority, rollouts, Slurm's priority or history.

    backfill     none: the chosen job blocks everything; legacy: the published simulator's; easy, conservative;
                 easy_predicted, easy_learned: EASY++ of Tsafrir et al., and with the regression of Gaussier et al.
                 (easy_predicted.py), for rules by name
    backfill_order  which jobs are looked at first when they are backfilled (legacy, easy): by submission, by requested
                 time, that times nodes, or by the policy; default: by submission (legacy), by the policy (easy)
    kill         end jobs at their requested time
    prefill      what already runs at the submit time of the first job, and what users ran before; None: nothing
    track_nodes  give every job concrete nodes, the first free ones, in place of counting them; start times are the same
    most_wait    s after which a waiting job precedes all that were submitted later, in the textbook's modes; inf: never
    Jobs that follow others (jobs.preceding) arrive after these (followed_schedule).
    Raises UserError for a rule that is none, an order that the mode does not have, jobs that the machine can never run,
    and, with easy or conservative, jobs that are not in the order of submission.
    """
    require_order(backfill, backfill_order)
    require_runnable(jobs, machine)
    if (follows := follow(jobs)) or backfill in TEXTBOOK:
        require_submission_order(jobs, machine)
    if follows:
        how: dict[str, Any] = {
            "backfill_order": backfill_order,
            "kill": kill,
            "track_nodes": track_nodes,
            "most_wait": most_wait,
        }

        def simulate_once(arriving: Jobs, order: np.ndarray) -> Schedule:
            known = policy.reordered(order) if isinstance(policy, KnowsJobs) else policy
            return simulate(arriving, machine, known, backfill, prefill=prefill and prefill.reordered(order), **how)

        return followed_schedule(jobs, simulate_once)
    jobs = jobs.killed_at_request() if kill else jobs
    by = scan_of(backfill, backfill_order)
    prefill = prefill or Prefill(jobs.take(slice(0, 0)), np.empty(0))
    if isinstance(policy, str) and policy != "planner":
        plain = backfill not in TEXTBOOK and by == FCFS and not (machine.limits or np.count_nonzero(jobs.priority))
        published = nan_schedule(policy, jobs) if plain else None
        if published:
            return published(jobs, machine, backfill == "legacy", prefill, track_nodes)
    linear, order = _order_of_queue(policy, jobs, machine, most_wait, easy=backfill == "easy")
    columns = columns_of(jobs, prefill)
    scan = Scan(by, backfill_keys(backfill_order, jobs) if by == BY_KEY else NO_KEYS, linear)
    running = running_of(columns, prefill, machine, track=track_nodes)
    _fill_starts(backfill, jobs, machine, columns, order, scan, running, prefill)
    places = zip(running.first, jobs.nodes, strict=False) if track_nodes else ()
    held = tuple(running.held[first : first + nodes] for first, nodes in places)
    return Schedule(jobs, running.start[: len(jobs)], held)


def _order_of_queue(
    policy: Priorities, jobs: Jobs, machine: Machine, most_wait: float, *, easy: bool
) -> tuple[Linear, Order]:
    """What writes the scores at each decision, if something does, and the order of the queue."""
    first = -jobs.priority if np.count_nonzero(jobs.priority) else None
    if isinstance(policy, str) and policy != "planner":
        order = order_of(priority(policy, jobs), most_wait, first)
        if first is None or order.power == 0:
            return NO_LINEAR, order
        linear = scores_of_rule(order)
    else:
        linear = _written_scores(PLANNER if isinstance(policy, str) else policy, jobs, machine, easy=easy)
    if first is not None and not (isinstance(policy, SlurmPriority) and policy.settings.queue_weight):
        linear = linear._replace(first=first)
    nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
    return linear, Order(*nothing, linear.scores, WRITTEN, most_wait)


def _fill_starts(
    backfill: Backfill,
    jobs: Jobs,
    machine: Machine,
    columns: Columns,
    order: Order,
    scan: Scan,
    running: Running,
    prefill: Prefill,
) -> None:
    """Fill running.start with the start time of each job, in a mode of backfilling."""
    limits = limits_of(jobs, prefill.jobs, machine, backfill)
    reserves = backfill == "legacy"
    if limits is not None and backfill == "easy":
        limited_easy_starts(columns, order, scan, running, limits)
    elif limits is not None:
        limited_blocking_starts(queue_of(columns), columns, order, scan, running, limits)
    elif backfill in PREDICTING_BACKFILLS:
        _require_rule(order)
        known, model = prefill.known or LastRuns.unknown(jobs), prefill.model or regression_of(jobs)
        predicted_starts(columns, order, running, known, model, learned=backfill == "easy_learned")
    elif backfill in TEXTBOOK:
        textbook_starts(columns, order, scan, running, backfill == "conservative")
    elif order.power == WRITTEN or (reserves and scan.by == BY_RULE):
        policy_blocking_starts(queue_of(columns), columns, order, scan, running, reserves)
    else:
        keys = scan.keys if scan.by == BY_KEY else NO_KEYS
        blocking_starts(queue_of(columns), columns, order, running, reserves, keys)


def _require_rule(order: Order) -> None:
    """Raise UserError for a policy whose scores are written at each decision."""
    if order.power == WRITTEN:
        what = "only rules can have the predictions of EASY++, and with queue_priority those that ignore the wait"
        raise UserError(what, where="backfill", expected="easy, or such a rule as the policy")


def _written_scores(
    policy: LinearPriority | RolloutPolicy | SlurmPriority | HistoryPriority,
    jobs: Jobs,
    machine: Machine,
    *,
    easy: bool,
) -> Linear:
    """What writes the scores at each decision."""
    if isinstance(policy, HistoryPriority):
        return scores_of_history(policy, jobs, machine)
    if isinstance(policy, SlurmPriority):
        return scores_of_slurm(policy, jobs, machine)
    if isinstance(policy, RolloutPolicy):
        return scores_of_rollouts(policy, jobs, machine, easy=easy)
    return linear_of(policy, jobs, machine)


def scan_of(backfill: Backfill, backfill_order: BackfillOrder) -> int:
    """Return the order of backfilling as a number of cluster.py; the default depends on the mode."""
    if backfill_order == "default":
        return BY_RULE if backfill in TEXTBOOK else FCFS
    return _SCANS[backfill_order]
