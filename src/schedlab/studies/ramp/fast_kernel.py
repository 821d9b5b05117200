"""The cluster as learning plays it, compiled: sets of servers as 64-bit masks, durations from a table, one decision an arrival.

Where memory and contention never decide, a job takes the union of the first fits of its distinct degrees, and its servers are free again
when its duration is over: all of a cluster's state is the time at which each server becomes free. `cluster.py` states the same rules in
plain Python and is the oracle of the tests. Source: specification of the ramp study, section 18.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.compiled import compiled

DUE = 1e-7  # s; what is nearer than this has happened
REJECT = -1


class Tables(NamedTuple):
    """What is known of jobs and blocks of servers. Actions and degrees are named by their places.

    actions    int64[A], shards, rising; durations: float64[graphs, A], s; sequential: float64[graphs], s
    parts      int64[graphs, A, P], the distinct degrees of a graph under an action, -1 behind the last; own: int64[A], an action's degree
    first      int64[D + 1]: the legal blocks of degree d are masks[first[d]:first[d + 1]], in the order in which they are tried
    masks      uint64[blocks], bit s for server s
    servers    number of servers; cut_off: whether jobs that run at the end count as blocked
    """

    actions: np.ndarray
    durations: np.ndarray
    sequential: np.ndarray
    parts: np.ndarray
    own: np.ndarray
    first: np.ndarray
    masks: np.ndarray
    servers: int
    cut_off: bool


class Arrivals(NamedTuple):
    """The jobs of an episode: when they arrive (float64[n], s), their graphs (int64[n]), and the actions that meet their limits (bits)."""

    times: np.ndarray
    graphs: np.ndarray
    meets: np.ndarray


class Futures(NamedTuple):
    """Jobs to come, drawn independently of each other: the gap before each (float64[n], s), graphs and meets as in Arrivals."""

    gaps: np.ndarray
    graphs: np.ndarray
    meets: np.ndarray


class Situation(NamedTuple):
    """A decision: when each server becomes free (float64[servers], s), the time, the episode's end, the job's graph, and its meets."""

    ends: np.ndarray
    time: float
    stop: float
    graph: int
    meets: int


class Rollouts(NamedTuple):
    """How actions are played on: under a table (int64[graphs, A + 1]), for so many jobs of the futures."""

    choice: np.ndarray
    futures: Futures
    jobs: int


@compiled
def taken_at(ends: np.ndarray, time: float) -> np.uint64:
    """Bits of the servers that are not free at a time; ends: float64[servers], s."""
    taken = np.uint64(0)
    for server in range(len(ends)):
        if ends[server] > time + DUE:
            taken |= np.uint64(1) << np.uint64(server)
    return taken


@compiled
def first_free(tables: Tables, degree: int, taken: np.uint64, start: int) -> int:
    """The place of the first free block of a degree from `start` on, or where its blocks end."""
    place, end = start, tables.first[degree + 1]
    while place < end and tables.masks[place] & taken:
        place += 1
    return place


@compiled
def servers_for(tables: Tables, graph: int, action: int, taken: np.uint64) -> np.uint64:
    """Bits of the servers that a graph takes under an action, 0 where a degree finds no block."""
    found = np.uint64(0)
    for degree in tables.parts[graph, action]:
        if degree < 0:
            break
        place = first_free(tables, degree, taken, tables.first[degree])
        if place == tables.first[degree + 1]:
            return np.uint64(0)
        found |= tables.masks[place]
    return found


@compiled
def occupy(ends: np.ndarray, mask: np.uint64, until: float) -> None:
    """Let servers be free at a time and not before."""
    server = 0
    while mask:
        if mask & np.uint64(1):
            ends[server] = until
        mask >>= np.uint64(1)
        server += 1


@compiled
def counts(tables: Tables, until: float, stop: float) -> float:
    """What a mounted job adds to the accepted ones: nothing where the episode stops before it ends and that blocks it."""
    return 0.0 if tables.cut_off and until > stop + DUE else 1.0


@compiled
def mount(tables: Tables, ends: np.ndarray, time: float, stop: float, graph: int, action: int) -> float:
    """Mount a job if it finds servers, and return what it counts."""
    mask = servers_for(tables, graph, action, taken_at(ends, time))
    if not mask:
        return 0.0
    until = time + tables.durations[graph, action]
    occupy(ends, mask, until)
    return counts(tables, until, stop)


@compiled
def play_actions(tables: Tables, arrivals: Arrivals, stop: float, actions: np.ndarray, masks: np.ndarray) -> int:
    """Play given actions (int64[n], places, REJECT); write the servers of each job (uint64[n], 0 if blocked); return the accepted jobs."""
    ends = np.zeros(tables.servers)
    accepted = 0.0
    for job in range(len(arrivals.times)):
        time, graph, action = arrivals.times[job], arrivals.graphs[job], actions[job]
        masks[job] = 0
        if action != REJECT and arrivals.meets[job] >> action & 1:
            mask = servers_for(tables, graph, action, taken_at(ends, time))
            if mask:
                until = time + tables.durations[graph, action]
                occupy(ends, mask, until)
                masks[job] = mask
                accepted += counts(tables, until, stop)
    return int(accepted)


@compiled
def needed(meets: int, count: int) -> int:
    """The place of the smallest action that meets a limit; `count` where none does."""
    for action in range(count):
        if meets >> action & 1:
            return action
    return count


@compiled
def table_action(tables: Tables, choice: np.ndarray, ends: np.ndarray, time: float, graph: int, meets: int) -> int:
    """The action of a table: choice[graph, smallest action that meets the limit], or the next below with a free block, or REJECT."""
    lowest = needed(meets, len(tables.actions))
    taken = taken_at(ends, time)
    for action in range(choice[graph, lowest], lowest - 1, -1):
        if meets >> action & 1 and servers_for(tables, graph, action, taken):
            return action
    return REJECT


@compiled
def play_table(tables: Tables, arrivals: Arrivals, stop: float, choice: np.ndarray) -> float:
    """Return the accepted jobs of an episode under a table, int64[graphs, A + 1] of actions or REJECT."""
    ends = np.zeros(tables.servers)
    accepted = 0.0
    for job in range(len(arrivals.times)):
        time, graph = arrivals.times[job], arrivals.graphs[job]
        action = table_action(tables, choice, ends, time, graph, arrivals.meets[job])
        if action != REJECT:
            accepted += mount(tables, ends, time, stop, graph, action)
    return accepted


@compiled
def rollout_returns(tables: Tables, rollouts: Rollouts, now: Situation, starts: np.ndarray, found: np.ndarray) -> None:
    """Write into found (float64[A + 1], the last for rejecting) the mean accepted jobs from each action on.

    starts  int64[samples]: where each sample begins in the futures; all actions share them
    Actions without a free block or beyond the limit get NaN; where only rejecting is left, nothing is played.
    """
    count, choice, futures = len(tables.actions), rollouts.choice, rollouts.futures
    ends, time, stop, graph, meets = now
    taken = taken_at(ends, time)
    found[:] = np.nan
    found[count] = 0.0
    any_action = False
    for action in range(count):
        if meets >> action & 1 and servers_for(tables, graph, action, taken):
            found[action] = 0.0
            any_action = True
    if not any_action:
        return
    after = np.empty(len(ends))
    start = np.empty(len(ends))
    for action in range(count + 1):
        if np.isnan(found[action]):
            continue
        start[:] = ends
        own = 0.0
        if action < count:
            own = mount(tables, start, time, stop, graph, action)
        total = 0.0
        for first in starts:
            after[:] = start
            clock = time
            for job in range(first, first + rollouts.jobs):
                clock += futures.gaps[job]
                if clock >= stop - DUE:
                    break
                kind = futures.graphs[job]
                next_action = table_action(tables, choice, after, clock, kind, futures.meets[job])
                if next_action != REJECT:
                    total += mount(tables, after, clock, stop, kind, next_action)
        found[action] = own + total / len(starts)


@compiled
def best_return(found: np.ndarray) -> int:
    """The action of the highest return, the smallest of equals, before rejecting (the last); REJECT for that."""
    best = len(found) - 1
    for action in range(len(found) - 2, -1, -1):
        if found[action] >= found[best]:
            best = action
    return best if best < len(found) - 1 else REJECT
