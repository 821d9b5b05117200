"""Compiled rollouts: the mean number of accepted jobs from each action of a decision on, with the same drawn jobs for
all actions.

See docs/notebook/ramp.md.
"""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.ramp.learners.afterstate.kernel import Outlook, linear_on
from schedlab.studies.ramp.simulator.compiled_kernel import (
    REJECT,
    Arrivals,
    Rollouts,
    Situation,
    Tables,
    counts,
    largest_degree,
    occupy,
    played_on,
    running_jobs,
    servers_for,
    servers_on,
    taken_at,
)


@compiled
def rollout_returns(
    tables: Tables, outlook: Outlook, rollouts: Rollouts, now: Situation, starts: np.ndarray, found: np.ndarray
) -> None:
    """Write into found (float64[A + 1], the last for rejecting) the mean number of jobs accepted from each action on.

    starts  int64[samples]: where each sample begins in the drawn futures; all actions share them
    Actions without a free block, or with which the job would exceed its limit, get NaN. If only rejecting is possible,
    no rollouts are run.
    """
    count, (ends, time, stop, graph, meets) = len(tables.actions), now
    taken = taken_at(ends, time)
    found[:] = np.nan
    found[count] = 0.0
    chosen = np.zeros(count + 1, np.uint64)
    for action in range(count):
        if meets >> action & 1:
            chosen[action] = servers_for(tables, graph, action, taken)
            if chosen[action]:
                found[action] = 0.0
    if not chosen.any():
        return
    until, held = np.empty(len(ends) + 1), np.zeros(len(ends) + 1, np.uint64)
    number = running_jobs(ends, time, until, held)
    for action in range(count + 1):
        if np.isnan(found[action]):
            continue
        own = 0.0
        if chosen[action]:
            until[number], held[number] = time + tables.durations[graph, action], chosen[action]
            own = counts(tables, until[number], stop)
        after = number + (1 if chosen[action] else 0)
        if len(rollouts.weights):
            total = linear_on(tables, outlook, rollouts, now, until, held, after, starts)
        else:
            total = float(played_on(tables, rollouts, time, stop, until, held, after, starts))
        found[action] = own + total / len(starts)


@compiled
def block_returns(
    tables: Tables, rollouts: Rollouts, now: Situation, starts: np.ndarray, found: np.ndarray, blocks: np.ndarray
) -> int:
    """Choose the block, too: write into found (float64[A + 1]) the return of each action with its best free block, and
    into blocks (int64[A + 1]) the number of this block among the legal ones of the action's largest degree, the first
    of equals. Rollouts continue under a table. Return the number of choices that were tried, rejecting included.
    """
    count, (ends, time, stop, graph, meets) = len(tables.actions), now
    taken, until, held = taken_at(ends, time), np.empty(len(ends) + 1), np.zeros(len(ends) + 1, np.uint64)
    number = running_jobs(ends, time, until, held)
    found[:], blocks[:], played = np.nan, -1, 1
    for action in range(count):
        if not meets >> action & 1 or not servers_for(tables, graph, action, taken):
            continue
        degree = largest_degree(tables, graph, action)
        until[number] = time + tables.durations[graph, action]
        own = counts(tables, until[number], stop)
        for block in range(tables.first[degree + 1] - tables.first[degree]):
            held[number] = servers_on(tables, graph, action, block, taken)
            if held[number]:
                played += 1
                total = float(played_on(tables, rollouts, time, stop, until, held, number + 1, starts))
                if not own + total / len(starts) <= found[action]:  # NaN before the first block
                    found[action], blocks[action] = own + total / len(starts), block
    found[count] = float(played_on(tables, rollouts, time, stop, until, held, number, starts)) / len(starts)
    return played


@compiled
def play_block_rollouts(
    tables: Tables, rollouts: Rollouts, arrivals: Arrivals, stop: float, starts: np.ndarray
) -> tuple[float, int]:
    """Return the number of jobs that an episode accepts if rollouts choose actions and blocks, and the number of
    choices that were tried.

    starts  int64[jobs, samples], as in rollout_returns
    """
    count, ends, accepted, played = len(tables.actions), np.zeros(tables.servers), 0.0, 0
    found, blocks = np.empty(count + 1), np.empty(count + 1, np.int64)
    for job in range(len(arrivals.times)):
        time, graph = arrivals.times[job], arrivals.graphs[job]
        now = Situation(ends, time, stop, graph, arrivals.meets[job])
        played += block_returns(tables, rollouts, now, starts[job], found, blocks)
        best = best_return(found)
        if best != REJECT:
            until = time + tables.durations[graph, best]
            occupy(ends, servers_on(tables, graph, best, blocks[best], taken_at(ends, time)), until)
            accepted += counts(tables, until, stop)
    return accepted, played


@compiled
def best_return(found: np.ndarray) -> int:
    """Return the action with the highest return, the smallest of equals. REJECT only if rejecting, the last entry, has
    a higher return than all actions.
    """
    best = len(found) - 1
    for action in range(len(found) - 2, -1, -1):
        if found[action] >= found[best]:
            best = action
    return best if best < len(found) - 1 else REJECT
