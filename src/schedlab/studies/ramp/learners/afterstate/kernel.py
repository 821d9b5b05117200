"""Decisions by the cluster after them, compiled: score(action, or rejecting) = accepted + V(cluster after it).

V is linear in what the cluster will look like at the arrivals to come, or a small tanh network of that and of when each
server is free.
See docs/notebook/ramp.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.ramp.simulator.compiled_kernel import (
    DUE,
    REJECT,
    Arrivals,
    Futures,
    Rollouts,
    Situation,
    Tables,
    counts,
    first_fits,
    first_free,
    occupy,
    servers_for,
    taken_at,
)

LOOKS = 4  # number of offsets with features of single degrees


class Outlook(NamedTuple):
    """Settings of the features of V. Offsets count from now, in s.

    offsets   float64[O], rising: when free servers are counted; at the first LOOKS also free blocks of each degree
    degrees   int64[B], places of those degrees
    quarters  uint64[Q], disjoint blocks; at: int64[K], the offsets at which free ones are counted
    period, horizon  s: mean time between arrivals; how far the end of the episode and of jobs is seen
    """

    offsets: np.ndarray
    degrees: np.ndarray
    quarters: np.ndarray
    at: np.ndarray
    period: float
    horizon: float


class Network(NamedTuple):
    """Two hidden tanh layers: float32 arrays (features, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden,)."""

    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray
    last: np.ndarray


@compiled
def count_bits(mask: np.uint64) -> int:
    """Return the number of set bits."""
    mask -= (mask >> np.uint64(1)) & np.uint64(0x5555555555555555)
    mask = (mask & np.uint64(0x3333333333333333)) + ((mask >> np.uint64(2)) & np.uint64(0x3333333333333333))
    mask = (mask + (mask >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((mask * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def look(
    tables: Tables, outlook: Outlook, ends: np.ndarray, time: float, taken: np.ndarray, places: np.ndarray
) -> None:
    """Write the shared features: bits taken at each offset (uint64[O]), first free blocks (int64[LOOKS, B])."""
    for number in range(len(outlook.offsets)):
        taken[number] = taken_at(ends, time + outlook.offsets[number])
    for number in range(LOOKS):
        for place in range(len(outlook.degrees)):
            degree = outlook.degrees[place]
            places[number, place] = first_free(tables, degree, taken[number], tables.first[degree])


@compiled
def summary_size(outlook: Outlook) -> int:
    """Return the number of features that do not describe single servers."""
    return len(outlook.offsets) + LOOKS * len(outlook.degrees) + len(outlook.at) + 1


@compiled
def summarise(
    tables: Tables,
    outlook: Outlook,
    taken: np.ndarray,
    places: np.ndarray,
    left: float,
    mask: np.uint64,
    lasts: float,
    found: np.ndarray,
) -> None:
    """Write the features of an afterstate without single servers, each in [0, 1].

    left  time to the end of the episode, s; the job holds `mask` for `lasts` s, 0 for none
    """
    size = len(outlook.offsets)
    place = size
    for number in range(size):
        held = taken[number]
        if lasts > outlook.offsets[number] + 1e-7:
            held |= mask
        found[number] = 1.0 - count_bits(held) / tables.servers
        if number < LOOKS:
            for kind in range(len(outlook.degrees)):
                degree = outlook.degrees[kind]
                # nothing before the first free one is free
                free = first_free(tables, degree, held, places[number, kind])
                found[place] = 1.0 if free < tables.first[degree + 1] else 0.0
                place += 1
    for number in outlook.at:
        held = taken[number]
        if lasts > outlook.offsets[number] + 1e-7:
            held |= mask
        free = 0
        for quarter in outlook.quarters:
            free += 0 if held & quarter else 1
        found[place] = free / max(len(outlook.quarters), 1)
        place += 1
    found[place] = min(left, outlook.horizon) / outlook.horizon


@compiled
def wait_for_servers(
    outlook: Outlook, ends: np.ndarray, time: float, mask: np.uint64, until: float, found: np.ndarray
) -> None:
    """Write for each server the time until it is free, as a share of the horizon, at most 1."""
    for server in range(len(ends)):
        end = until if mask >> np.uint64(server) & np.uint64(1) else ends[server]
        found[server] = min(max(end - time, 0.0), outlook.horizon) / outlook.horizon


@compiled
def afterstates(
    tables: Tables, outlook: Outlook, now: Situation, rows: np.ndarray, own: np.ndarray, masks: np.ndarray
) -> None:
    """Write each afterstate's features (float64[A + 1, F]), what it counts (float64[A + 1], NaN: none) and servers.

    The last row is that of rejecting. A row of summary_size features has no single servers.
    """
    count, size = len(tables.actions), summary_size(outlook)
    ends, time, stop, graph, meets = now
    taken, places = np.empty(len(outlook.offsets), np.uint64), np.empty((LOOKS, len(outlook.degrees)), np.int64)
    look(tables, outlook, ends, time, taken, places)
    held = taken_at(ends, time)
    for action in range(count + 1):
        own[action] = np.nan
        mask, until = np.uint64(0), 0.0
        if action < count:
            if not meets >> action & 1:
                continue
            mask = servers_for(tables, graph, action, held)
            if not mask:
                continue
            until = time + tables.durations[graph, action]
            own[action] = counts(tables, until, stop)
        else:
            own[action] = 0.0
        masks[action] = mask
        summarise(tables, outlook, taken, places, stop - time, mask, until - time, rows[action])
        if rows.shape[1] > size:
            wait_for_servers(outlook, ends, time, mask, until, rows[action, size:])


@compiled
def best_linear(weights: np.ndarray, rows: np.ndarray, own: np.ndarray) -> int:
    """The action of the highest score, the smallest of equals; REJECT for the last row."""
    best, chosen = -np.inf, REJECT
    for action in range(len(own)):
        if np.isnan(own[action]):
            continue
        score = own[action]
        for feature in range(len(weights)):
            score += weights[feature] * rows[action, feature]
        if score > best:
            best, chosen = score, action
    return chosen if chosen < len(own) - 1 else REJECT


@compiled
def network_value(network: Network, row: np.ndarray) -> float:
    """V of one afterstate."""
    hidden = np.tanh(np.dot(row.astype(np.float32), network.first) + network.first_bias)
    hidden = np.tanh(np.dot(hidden, network.second) + network.second_bias)
    return float(np.dot(hidden, network.last))


@compiled
def best_by_network(network: Network, rows: np.ndarray, own: np.ndarray) -> int:
    """The action of the highest score, the smallest of equals; REJECT for the last row."""
    best, chosen = -np.inf, REJECT
    for action in range(len(own)):
        if np.isnan(own[action]):
            continue
        score = own[action] + network_value(network, rows[action])
        if score > best:
            best, chosen = score, action
    return chosen if chosen < len(own) - 1 else REJECT


@compiled
def free_block(first: np.ndarray, masks: np.ndarray, degree: int, taken: np.uint64) -> int:
    """Return the index of the first free block of a degree, -1 for none; arrays as in Tables."""
    for block in range(first[degree], first[degree + 1]):
        if not masks[block] & taken:
            return block
    return -1


@compiled
def go_to(
    clock: float, until: np.ndarray, held: np.ndarray, running: int, offsets: np.ndarray, taken_then: np.ndarray
) -> tuple[int, np.uint64]:
    """Take ended jobs out of `until` and `held` (as in running_jobs), write servers held at offsets (uint64[O]).

    Return how many jobs run and which servers they hold.
    """
    taken, place = np.uint64(0), 0
    taken_then[:] = taken
    while place < running:
        left = until[place] - clock
        if left <= DUE:
            running -= 1
            until[place], held[place] = until[running], held[running]
            continue
        taken |= held[place]
        number = 0
        while number < len(offsets) and left > offsets[number] + DUE:
            taken_then[number] |= held[place]
            number += 1
        place += 1
    return running, taken


@compiled
def split_weights(outlook: Outlook, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a linear V's weights by offset: of free servers [O], blocks [LOOKS, B] and quarters [O], float64."""
    size, kinds = len(outlook.offsets), len(outlook.degrees)
    of_quarters = np.zeros(size)
    of_quarters[outlook.at] = weights[size + LOOKS * kinds : len(weights) - 1] / max(len(outlook.quarters), 1)
    return weights[:size], weights[size : size + LOOKS * kinds].copy().reshape(LOOKS, kinds), of_quarters


@compiled(inline="always")
def _with_blocks(
    tables: Tables,
    degrees: np.ndarray,
    weights: np.ndarray,
    seen: np.ndarray,
    own: np.ndarray,
    busy: np.uint64,
    is_new: bool,
    score: float,
) -> float:
    """Add the weights of the degrees that have a free block; `own` is where the block lies, -1 until one is free."""
    for kind in range(len(degrees)):
        if is_new and (seen[kind] < 0 or not tables.masks[seen[kind]] & busy):
            own[kind] = seen[kind]
        elif own[kind] < 0:
            own[kind] = free_block(tables.first, tables.masks, degrees[kind], busy)
        if not is_new:
            seen[kind] = own[kind]
        score += weights[kind] if own[kind] >= 0 else 0.0
    return score


@compiled
def linear_sample(
    tables: Tables,
    outlook: Outlook,
    rollouts: Rollouts,
    now: Situation,
    until: np.ndarray,
    held: np.ndarray,
    running: int,
    start: int,
) -> float:
    """Return the accepted jobs of one sample under a linear V, from running jobs on; it writes into `until` and `held`.

    It decides as best_linear does, offset by offset: what a job changes ends with it, and free blocks stay free.
    """
    parts, first, masks, durations, cut_off = tables.parts, tables.first, tables.masks, tables.durations, tables.cut_off
    gaps, graphs, limits = rollouts.futures
    offsets, degrees, quarters, stop = outlook.offsets, outlook.degrees, outlook.quarters, now.stop
    count, size, kinds = len(tables.actions), len(outlook.offsets), len(outlook.degrees)
    of_free, of_blocks, of_quarters = split_weights(outlook, rollouts.weights)
    # at each offset: servers held, and their score, without the new job; a free block of each degree, -1 for none
    taken_then, shared = np.empty(size, np.uint64), np.empty(size)
    seen, own = np.empty((LOOKS, kinds), np.int64), np.empty(kinds, np.int64)
    accepted, clock = 0.0, now.time
    for job in range(start, start + rollouts.jobs):
        clock += gaps[job]
        if clock >= stop - DUE:
            break
        graph, meets = graphs[job], limits[job]
        running, taken = go_to(clock, until, held, running, offsets, taken_then)
        best, chosen, chosen_mask = -np.inf, REJECT, np.uint64(0)
        for action in range(count, -1, -1):  # rejecting, then rising preference among equals
            mask, lasts, score, own[:] = np.uint64(0), 0.0, 0.0, -1
            if action < count:
                if meets >> action & 1:
                    mask = first_fits(parts, first, masks, tables.anywhere, tables.servers, graph, action, taken)
                if not mask:
                    continue
                lasts = durations[graph, action]
                score = 0.0 if cut_off and clock + lasts > stop + DUE else 1.0
            for number in range(size):
                if mask and lasts <= offsets[number] + DUE:
                    score += shared[number]
                    continue
                busy = taken_then[number] | mask
                here = of_free[number] * (1.0 - count_bits(busy) / tables.servers)
                if number < LOOKS:
                    here = _with_blocks(tables, degrees, of_blocks[number], seen[number], own, busy, mask != 0, here)
                if of_quarters[number] != 0.0:
                    for quarter in quarters:
                        here += 0.0 if quarter & busy else of_quarters[number]
                if not mask:
                    shared[number] = here
                score += here
            if score >= best and (mask or chosen == REJECT):
                best, chosen, chosen_mask = score, action if mask else REJECT, mask
        if chosen_mask:
            until[running], held[running] = clock + durations[graph, chosen], chosen_mask
            accepted += 0.0 if cut_off and until[running] > stop + DUE else 1.0
            running += 1
    return accepted


@compiled
def linear_on(
    tables: Tables,
    outlook: Outlook,
    rollouts: Rollouts,
    now: Situation,
    until: np.ndarray,
    held: np.ndarray,
    running: int,
    starts: np.ndarray,
) -> float:
    """Return the accepted jobs after now, of all samples, under a linear V; running jobs as in running_jobs."""
    ends, servers, total = np.empty(tables.servers + 1), np.empty(tables.servers + 1, np.uint64), 0.0
    for start in starts:
        ends[:running], servers[:running] = until[:running], held[:running]
        total += linear_sample(tables, outlook, rollouts, now, ends, servers, running, start)
    return total


@compiled
def play_linear(tables: Tables, outlook: Outlook, arrivals: Arrivals, stop: float, weights: np.ndarray) -> float:
    """Return the accepted jobs of an episode under a linear V, float64[F]; the first job arrives at time 0."""
    gaps = arrivals.times.copy()
    gaps[1:] -= arrivals.times[:-1]
    ends, held = np.empty(tables.servers + 1), np.empty(tables.servers + 1, np.uint64)
    rollouts = Rollouts(np.empty((0, 0), np.int64), weights, Futures(gaps, arrivals.graphs, arrivals.meets), len(gaps))
    return linear_sample(tables, outlook, rollouts, Situation(ends, 0.0, stop, 0, 0), ends, held, 0, 0)


@compiled
def play_network(tables: Tables, outlook: Outlook, arrivals: Arrivals, stop: float, network: Network) -> float:
    """Return the accepted jobs of an episode under a network's V."""
    count, ends = len(tables.actions), np.zeros(tables.servers)
    rows, own = np.empty((count + 1, network.first.shape[0])), np.empty(count + 1)
    masks = np.empty(count + 1, np.uint64)
    accepted = 0.0
    for job in range(len(arrivals.times)):
        time, graph = arrivals.times[job], arrivals.graphs[job]
        now = Situation(ends, time, stop, graph, arrivals.meets[job])
        afterstates(tables, outlook, now, rows, own, masks)
        action = best_by_network(network, rows, own)
        if action != REJECT:
            occupy(ends, masks[action], time + tables.durations[graph, action])
            accepted += own[action]
    return accepted
