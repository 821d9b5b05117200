"""Compiled decisions by the value V of the afterstate, the state of the cluster after a decision.

The score of an action, or of rejecting the job, is the number of jobs that it accepts itself (1 or 0) plus
V(afterstate). V is linear in features of the cluster at several times from now on (`summarise`), or a network with two
tanh layers of these features and of the time until each server is free. See docs/notebook/ramp.md.
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
    """Settings of the features of V.

    offsets   float64[O], s from now, rising: at each, the share of free servers is a feature; at the first LOOKS also
              whether each degree has a free block
    degrees   int64[B], these degrees, as indices of `Tables.first`
    quarters  uint64[Q], servers (bits) of disjoint blocks, each about a quarter of the cluster
    at        int64[K], indices of the offsets at which the share of free quarters is a feature
    period    s, mean time between arrivals
    horizon   s, at which the time to the end of the episode, and until a server is free, are cut off
    """

    offsets: np.ndarray
    degrees: np.ndarray
    quarters: np.ndarray
    at: np.ndarray
    period: float
    horizon: float


class Network(NamedTuple):
    """A network with two hidden tanh layers: float32 arrays of the shapes (features, hidden), (hidden,),
    (hidden, hidden), (hidden,), (hidden,).
    """

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
    """Write what all actions have in common: into `taken` the servers that running jobs occupy at each offset (bits,
    uint64[O]), into `places` the first free block of each degree (int64[LOOKS, B]).
    """
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
    """Write into `found` the features of an afterstate that do not describe single servers, each in [0, 1].

    taken, places  as written by `look`
    left           time to the end of the episode, s
    mask, lasts    servers that the new job occupies (bits), and for how long, s; 0 if it is rejected
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
    """Write into `found` the time until each server is free, as a share of the horizon, at most 1."""
    for server in range(len(ends)):
        end = until if mask >> np.uint64(server) & np.uint64(1) else ends[server]
        found[server] = min(max(end - time, 0.0), outlook.horizon) / outlook.horizon


@compiled
def afterstates(
    tables: Tables, outlook: Outlook, now: Situation, rows: np.ndarray, own: np.ndarray, masks: np.ndarray
) -> None:
    """Write, for each action and last for rejecting, the features of the afterstate (`rows`, float64[A + 1, F]), the
    jobs that the action accepts (`own`, float64[A + 1], NaN if it is impossible) and the servers of the job (`masks`).

    If F is summary_size, features of single servers are left out.
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
    """Return the action with the highest score under a linear V, the smallest of equals; REJECT for the last row."""
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
    """Return a network's V of one afterstate."""
    hidden = np.tanh(np.dot(row.astype(np.float32), network.first) + network.first_bias)
    hidden = np.tanh(np.dot(hidden, network.second) + network.second_bias)
    return float(np.dot(hidden, network.last))


@compiled
def best_by_network(network: Network, rows: np.ndarray, own: np.ndarray) -> int:
    """Return the action with the highest score under a network's V, the smallest of equals; REJECT for the last row."""
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
    """Remove ended jobs from `until` and `held` (as in running_jobs), and write into `taken_then` the servers that the
    others occupy at each offset (bits, uint64[O]).

    Return how many jobs run, and the servers that they occupy now.
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
    """Return the weights of a linear V by offset: for free servers [O], blocks [LOOKS, B] and quarters [O], float64."""
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
    """Return the score plus the weights of the degrees that have a free block.

    seen, own  int64[B]: a free block of each degree without and with the new job, -1 if there is none; both are updated
    is_new     whether `busy` contains servers of the new job
    """
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
    """Return the number of jobs that one sample accepts under a linear V. Overwrites `until` and `held`. Decides like
    best_linear, but offset by offset: after its end a new job counts no more, and free blocks stay free.
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
    """Return the number of jobs that all samples together accept after now under a linear V.

    until, held, running  the running jobs, as in running_jobs
    starts                int64[samples], where each sample begins in the drawn futures
    """
    ends, servers, total = np.empty(tables.servers + 1), np.empty(tables.servers + 1, np.uint64), 0.0
    for start in starts:
        ends[:running], servers[:running] = until[:running], held[:running]
        total += linear_sample(tables, outlook, rollouts, now, ends, servers, running, start)
    return total


@compiled
def play_linear(tables: Tables, outlook: Outlook, arrivals: Arrivals, stop: float, weights: np.ndarray) -> float:
    """Return the number of jobs that an episode accepts under a linear V (weights float64[F]). The first job arrives at
    time 0.
    """
    gaps = arrivals.times.copy()
    gaps[1:] -= arrivals.times[:-1]
    ends, held = np.empty(tables.servers + 1), np.empty(tables.servers + 1, np.uint64)
    rollouts = Rollouts(np.empty((0, 0), np.int64), weights, Futures(gaps, arrivals.graphs, arrivals.meets), len(gaps))
    return linear_sample(tables, outlook, rollouts, Situation(ends, 0.0, stop, 0, 0), ends, held, 0, 0)


@compiled
def play_network(tables: Tables, outlook: Outlook, arrivals: Arrivals, stop: float, network: Network) -> float:
    """Return the number of jobs that an episode accepts under a network's V."""
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
