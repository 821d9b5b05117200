"""The compiled cluster for learning: sets of servers are 64-bit masks, and each arrival is one decision.

Where memory and contention have no effect, a job takes the union of the first fits of its distinct degrees, and its
servers become free when its duration is over. The state of the cluster is therefore the time at which each server
becomes free. `cluster.py` implements the same rules in plain Python and is the oracle of the tests.
See docs/reference/ramp_model.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled

DUE = 1e-7  # s; an event that is nearer than this counts as reached
REJECT = -1
NO_DEGREES = np.empty(0, dtype=np.int64)


class Tables(NamedTuple):
    """Tables of jobs and of blocks of servers. Other arrays refer to actions and degrees by their index.

    actions     int64[A], maximum number of shards of an op, rising
    durations   float64[graphs, A], s
    sequential  float64[graphs], time on one device, s
    parts       int64[graphs, A, P], the distinct degrees of a graph's ops under an action, then -1
    degree      int64[A], the degree that equals the action itself
    first       int64[D + 1]: the legal blocks of degree d are masks[first[d]:first[d + 1]], in the order of first fit
    masks       uint64[blocks], bit s for server s
    servers     number of servers
    cut_off     whether jobs that run at the end count as blocked
    anywhere    int64[D]: number of servers of each degree, if jobs take the first free servers instead of a block; else
                empty
    """

    actions: np.ndarray
    durations: np.ndarray
    sequential: np.ndarray
    parts: np.ndarray
    degree: np.ndarray
    first: np.ndarray
    masks: np.ndarray
    servers: int
    cut_off: bool
    anywhere: np.ndarray = NO_DEGREES


class Arrivals(NamedTuple):
    """The jobs of an episode.

    times      float64[n], arrivals, s
    graphs     int64[n]
    meets      int64[n], bit a where action a meets the limit of the job
    undecided  number of jobs that arrive when the episode ends: they count as arrivals, but no action is taken on them
    """

    times: np.ndarray
    graphs: np.ndarray
    meets: np.ndarray
    undecided: int = 0

    @property
    def arrived(self) -> int:
        """Number of arrivals, as the exact cluster counts them."""
        return len(self.times) + self.undecided


class Futures(NamedTuple):
    """Independently drawn jobs for rollouts: the gap before each (float64[n], s); graphs and meets as in Arrivals."""

    gaps: np.ndarray
    graphs: np.ndarray
    meets: np.ndarray


class Situation(NamedTuple):
    """What a decision depends on: when each server becomes free (`ends`, float64[servers], s), the time, the end of the
    episode (`stop`, s), and graph and `meets` of the waiting job.
    """

    ends: np.ndarray
    time: float
    stop: float
    graph: int
    meets: int


class Rollouts(NamedTuple):
    """How rollouts continue after an action, each for `jobs` jobs of the futures.

    choice   int64[graphs, A + 1], a table that decides
    weights  float64[F], linear values that decide instead of the table; empty: none
    """

    choice: np.ndarray
    weights: np.ndarray
    futures: Futures
    jobs: int


@compiled
def taken_at(ends: np.ndarray, time: float) -> np.uint64:
    """Return the bits of the servers that are not free at a time; ends: float64[servers], s."""
    taken = np.uint64(0)
    for server in range(len(ends)):
        if ends[server] > time + DUE:
            taken |= np.uint64(1) << np.uint64(server)
    return taken


@compiled
def first_free(tables: Tables, degree: int, taken: np.uint64, start: int) -> int:
    """Return the index of the first free block of a degree from `start` on, or the end of its blocks."""
    place, end = start, tables.first[degree + 1]
    while place < end and tables.masks[place] & taken:
        place += 1
    return place


@compiled
def lowest_free(taken: np.uint64, count: int, servers: int) -> np.uint64:
    """Return the bits of the first `count` free servers, or 0 if fewer are free."""
    found, bit, number = np.uint64(0), np.uint64(1), 0
    for _ in range(servers):
        if number == count:
            break
        if not taken & bit:
            found |= bit
            number += 1
        bit <<= np.uint64(1)
    return found if number == count else np.uint64(0)


@compiled
def first_fits(
    parts: np.ndarray,
    first: np.ndarray,
    masks: np.ndarray,
    anywhere: np.ndarray,
    servers: int,
    graph: int,
    action: int,
    taken: np.uint64,
) -> np.uint64:
    """Return the bits of the servers that a graph takes under an action (first fit), or 0 if a degree finds no block;
    arrays as in Tables.
    """
    found = np.uint64(0)
    if len(anywhere):
        degree = parts[graph, action, 0]
        return found if degree < 0 else lowest_free(taken, anywhere[degree], servers)
    for part in range(parts.shape[2]):
        degree = parts[graph, action, part]
        if degree < 0:
            break
        place, end = first[degree], first[degree + 1]
        while place < end and masks[place] & taken:
            place += 1
        if place == end:
            return np.uint64(0)
        found |= masks[place]
    return found


@compiled
def servers_for(tables: Tables, graph: int, action: int, taken: np.uint64) -> np.uint64:
    """Return the bits of the servers that a graph takes under an action (first fit), or 0 if a degree finds no
    block.
    """
    parts, first, masks = tables.parts, tables.first, tables.masks
    return first_fits(parts, first, masks, tables.anywhere, tables.servers, graph, action, taken)


@compiled
def largest_degree(tables: Tables, graph: int, action: int) -> int:
    """Return the index of the largest degree of a graph under an action."""
    part = tables.parts.shape[2] - 1
    while tables.parts[graph, action, part] < 0:
        part -= 1
    return tables.parts[graph, action, part]


@compiled
def servers_on(tables: Tables, graph: int, action: int, block: int, taken: np.uint64) -> np.uint64:
    """Return the bits of the servers that a graph takes under an action if its largest degree takes a given block (its
    number among the legal ones); 0 if this block is not free, or if another degree finds no block.
    """
    largest = largest_degree(tables, graph, action)
    found = tables.masks[tables.first[largest] + block]
    if found & taken:
        return np.uint64(0)
    for part in range(tables.parts.shape[2]):
        degree = tables.parts[graph, action, part]
        if degree < 0 or degree == largest:
            break
        place = first_free(tables, degree, taken, tables.first[degree])
        if place == tables.first[degree + 1]:
            return np.uint64(0)
        found |= tables.masks[place]
    return found


@compiled
def occupy(ends: np.ndarray, mask: np.uint64, until: float) -> None:
    """Mark the servers of a mask as occupied until a time (s)."""
    server = 0
    while mask:
        if mask & np.uint64(1):
            ends[server] = until
        mask >>= np.uint64(1)
        server += 1


@compiled
def counts(tables: Tables, until: float, stop: float) -> float:
    """Return what a placed job adds to the number of accepted jobs: 1, or 0 if it still runs at the end of the episode
    and therefore counts as blocked.
    """
    return 0.0 if tables.cut_off and until > stop + DUE else 1.0


@compiled
def play_actions(tables: Tables, arrivals: Arrivals, stop: float, actions: np.ndarray, masks: np.ndarray) -> int:
    """Simulate an episode with given actions (int64[n], indices or REJECT), write the servers of each job into masks
    (uint64[n], 0: blocked), and return the number of accepted jobs.
    """
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
    """Return the index of the smallest action that meets the job's limit, or `count` if none does."""
    for action in range(count):
        if meets >> action & 1:
            return action
    return count


@compiled
def table_action(tables: Tables, choice: np.ndarray, ends: np.ndarray, time: float, graph: int, meets: int) -> int:
    """Return the action of a table, choice[graph, smallest action that meets the limit]; if it finds no free block, the
    next smaller action that finds one and meets the limit; else REJECT.
    """
    lowest = needed(meets, len(tables.actions))
    taken = taken_at(ends, time)
    for action in range(choice[graph, lowest], lowest - 1, -1):
        if meets >> action & 1 and servers_for(tables, graph, action, taken):
            return action
    return REJECT


@compiled
def running_jobs(ends: np.ndarray, time: float, until: np.ndarray, held: np.ndarray) -> int:
    """Write for each running job when it ends (`until`, float64[servers + 1], s) and which servers it occupies (`held`,
    uint64[servers + 1]); return the number of running jobs. Jobs that end at the same time count as one.
    """
    number = 0
    for server in range(len(ends)):
        if ends[server] > time + DUE:
            place = 0
            while place < number and until[place] != ends[server]:
                place += 1
            if place == number:
                until[place], held[place] = ends[server], np.uint64(0)
                number += 1
            held[place] |= np.uint64(1) << np.uint64(server)
    return number


@compiled
def played_on(
    tables: Tables,
    rollouts: Rollouts,
    time: float,
    stop: float,
    until: np.ndarray,
    held: np.ndarray,
    number: int,
    starts: np.ndarray,
) -> int:
    """Return the number of jobs that all samples together accept after now under a table.

    until, held, number  the running jobs, as running_jobs writes and returns them
    starts               int64[samples], where each sample begins in the drawn futures
    """
    # It decides as table_action does, but without calls: those with arrays made an episode 1.7 times as long.
    gaps, graphs, limits = rollouts.futures.gaps, rollouts.futures.graphs, rollouts.futures.meets
    parts, first, masks, durations, cut_off = tables.parts, tables.first, tables.masks, tables.durations, tables.cut_off
    choice, jobs, count, anywhere = rollouts.choice, rollouts.jobs, len(tables.actions), tables.anywhere
    ends, servers, total = np.empty(len(until)), np.empty(len(held), np.uint64), 0
    for start in starts:
        ends[:], servers[:] = until, held
        running, clock, taken = number, time, np.uint64(0)
        for place in range(running):
            taken |= servers[place]
        for job in range(start, start + jobs):
            clock += gaps[job]
            if clock >= stop - DUE:
                break
            place = 0
            while place < running:
                if ends[place] > clock + DUE:
                    place += 1
                    continue
                taken &= ~servers[place]
                running -= 1
                ends[place], servers[place] = ends[running], servers[running]
            graph, meets, lowest = graphs[job], limits[job], needed(limits[job], count)
            mask, action = np.uint64(0), choice[graph, lowest] + 1
            while not mask and action > lowest:
                action -= 1
                if not meets >> action & 1:
                    continue
                if len(anywhere):
                    mask = lowest_free(taken, anywhere[parts[graph, action, 0]], tables.servers)
                    continue
                for part in range(parts.shape[2]):
                    degree = parts[graph, action, part]
                    if degree < 0:
                        break
                    block, last = first[degree], first[degree + 1]
                    while block < last and masks[block] & taken:
                        block += 1
                    if block == last:
                        mask = np.uint64(0)
                        break
                    mask |= masks[block]
            if mask:
                ends[running], servers[running] = clock + durations[graph, action], mask
                total += 0 if cut_off and ends[running] > stop + DUE else 1
                running += 1
                taken |= mask
    return total


@compiled
def play_table(tables: Tables, arrivals: Arrivals, stop: float, choice: np.ndarray) -> float:
    """Return the number of jobs that an episode accepts under a table (int64[graphs, A + 1] of actions). The first job
    arrives at time 0.
    """
    gaps = arrivals.times.copy()
    gaps[1:] -= arrivals.times[:-1]
    rollouts = Rollouts(choice, np.empty(0), Futures(gaps, arrivals.graphs, arrivals.meets), len(gaps))
    until, held = np.empty(tables.servers + 1), np.zeros(tables.servers + 1, np.uint64)
    return float(played_on(tables, rollouts, 0.0, stop, until, held, 0, np.zeros(1, np.int64)))
