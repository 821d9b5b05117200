"""The compiled event loop of one training step; tests/oracles/ramp_lookahead.py implements it in plain Python.

All loops keep the published order of arithmetic, tick by tick, so that rounding leaves the same residues.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled

READY, FLOWS, LOCALS, DONE_SHARDS, DONE_DEPS = range(5)  # places in `number`
FIRST_TICKS = 256


class Step(NamedTuple):
    """Constants of a step.

    worker, rank, needed  int64[shards]: worker of a shard, its rank there (the highest runs first), number of its
                          inputs
    first_out, out_deps   int64[shards + 1], int64[deps]: the deps that leave shard s are
                          out_deps[first_out[s]:first_out[s + 1]]
    destination           int64[deps], the shard that a dep enters
    local                 bool[deps], whether the dep takes no time
    counts                bool[deps], whether the dep is an input of its destination
    link, dep_rank        int64[deps]: on a link, the flow with the highest rank is the first; of equal ranks, the one
                          with the least time left; link -1: the dep does not interact with others
    one_by_one            whether the other flows on a link wait for the first one; if not, they advance too, but only
                          the end of the first one is an event
    """

    worker: np.ndarray
    rank: np.ndarray
    needed: np.ndarray
    first_out: np.ndarray
    out_deps: np.ndarray
    destination: np.ndarray
    local: np.ndarray
    counts: np.ndarray
    link: np.ndarray
    dep_rank: np.ndarray
    one_by_one: bool


class State(NamedTuple):
    """State of a step.

    left, dep_left  float64[shards], float64[deps]: remaining time, s
    arrived         int64[shards], inputs that have arrived
    ready, flows, locals  shards and deps (crossing the network, or taking no time) that are ready; `number` counts them
    chosen, head    int64[workers], int64[links]: the shard that runs, the first flow; -1: none
    number          int64[5], counts at the places READY to DONE_DEPS
    """

    left: np.ndarray
    dep_left: np.ndarray
    arrived: np.ndarray
    ready: np.ndarray
    flows: np.ndarray
    locals: np.ndarray
    chosen: np.ndarray
    head: np.ndarray
    number: np.ndarray


@compiled(error_model="numpy")
def run_step(step: Step, cost: np.ndarray, dep_time: np.ndarray) -> tuple[bool, np.ndarray, np.ndarray, np.ndarray]:
    """Return whether the step ended; float64[4]: time, communication, computation, busy (s); and for each tick the
    number of computing workers (int64[ticks]) and its length (float64[ticks], s).
    """
    state = _start(step, cost, dep_time)
    number = state.number
    active, ticks = np.empty(FIRST_TICKS, np.int64), np.empty(FIRST_TICKS, np.float64)
    sums = np.zeros(4)
    num_ticks = 0
    while number[DONE_SHARDS] < len(cost) or number[DONE_DEPS] < len(dep_time):
        running, tick = _choose_shards(step, state)
        flows, arrivals = number[FLOWS], number[LOCALS]
        tick = 0.0 if arrivals else min(tick, _shortest_flow(step, state))
        if tick == np.inf:
            return False, sums, active[:num_ticks], ticks[:num_ticks]
        _run_shards(step, state, tick)
        if arrivals:
            _complete_locals(step, state, arrivals)
        elif flows:
            _advance_flows(step, state, tick, flows)
            sums[1] += tick
        sums[0] += tick
        if running:
            sums[2] += tick
            sums[3] += running * tick
        if num_ticks == len(ticks):
            active, ticks = np.append(active, np.empty_like(active)), np.append(ticks, np.empty_like(ticks))
        active[num_ticks], ticks[num_ticks] = running, tick
        num_ticks += 1
    return True, sums, active[:num_ticks], ticks[:num_ticks]


@compiled(inline="always")
def _start(step: Step, cost: np.ndarray, dep_time: np.ndarray) -> State:
    shards, deps = len(cost), len(dep_time)
    number = np.zeros(5, np.int64)
    ready = np.empty(shards, np.int64)
    for shard in range(shards):
        if step.needed[shard] == 0:
            ready[number[READY]] = shard
            number[READY] += 1
    links = max(step.link.max() + 1, 0) if deps else 0
    return State(
        cost.copy(),
        dep_time.copy(),
        np.zeros(shards, np.int64),
        ready,
        np.empty(deps, np.int64),
        np.empty(deps, np.int64),
        np.empty(step.worker.max() + 1, np.int64),
        np.empty(links, np.int64),
        number,
    )


@compiled(inline="always")
def _choose_shards(step: Step, state: State) -> tuple[int, float]:
    """Choose the ready shard with the highest rank on each worker; return their number and the shortest time left
    (s).
    """
    state.chosen[:] = -1
    for at in range(state.number[READY]):
        shard = state.ready[at]
        best = state.chosen[step.worker[shard]]
        if best < 0 or step.rank[shard] > step.rank[best]:
            state.chosen[step.worker[shard]] = shard
    running, shortest = 0, np.inf
    for shard in state.chosen:
        if shard >= 0:
            running += 1
            shortest = min(shortest, state.left[shard])
    return running, shortest


@compiled(inline="always")
def _shortest_flow(step: Step, state: State) -> float:
    """Return the shortest time left (s) of the ready flows; of flows that share a link, only the first one counts."""
    state.head[:] = -1
    for at in range(state.number[FLOWS]):
        dep = state.flows[at]
        link = step.link[dep]
        if link < 0:
            continue
        head = state.head[link]
        ahead = head < 0 or step.dep_rank[dep] > step.dep_rank[head]
        if ahead or (step.dep_rank[dep] == step.dep_rank[head] and state.dep_left[dep] < state.dep_left[head]):
            state.head[link] = dep
    shortest = np.inf
    for at in range(state.number[FLOWS]):
        dep = state.flows[at]
        if step.link[dep] < 0 or state.head[step.link[dep]] == dep:
            shortest = min(shortest, state.dep_left[dep])
    return shortest


@compiled(inline="always")
def _run_shards(step: Step, state: State, tick: float) -> None:
    """Run the chosen shards; the deps of those that finish are ready from the next tick on."""
    number, kept = state.number, 0
    for at in range(number[READY]):
        shard = state.ready[at]
        if state.chosen[step.worker[shard]] == shard:
            state.left[shard] -= tick
            if state.left[shard] <= 0.0:
                number[DONE_SHARDS] += 1
                for place in range(step.first_out[shard], step.first_out[shard + 1]):
                    dep = step.out_deps[place]
                    if step.local[dep]:
                        state.locals[number[LOCALS]] = dep
                        number[LOCALS] += 1
                    else:
                        state.flows[number[FLOWS]] = dep
                        number[FLOWS] += 1
                continue
        state.ready[kept] = shard
        kept += 1
    number[READY] = kept


@compiled(inline="always")
def _complete_locals(step: Step, state: State, arrivals: int) -> None:
    """Complete the first `arrivals` deps that take no time."""
    for at in range(arrivals):
        _complete(step, state, state.locals[at])
    for at in range(arrivals, state.number[LOCALS]):
        state.locals[at - arrivals] = state.locals[at]
    state.number[LOCALS] -= arrivals


@compiled(inline="always")
def _advance_flows(step: Step, state: State, tick: float, flows: int) -> None:
    """Advance the first `flows` ready flows (with `one_by_one`, only the first of each link) and complete those that
    have no time left.
    """
    kept = 0
    for at in range(state.number[FLOWS]):
        dep = state.flows[at]
        if at < flows and (not step.one_by_one or step.link[dep] < 0 or state.head[step.link[dep]] == dep):
            state.dep_left[dep] -= tick
            if state.dep_left[dep] <= 0.0:
                _complete(step, state, dep)
                continue
        state.flows[kept] = dep
        kept += 1
    state.number[FLOWS] = kept


@compiled(inline="always")
def _complete(step: Step, state: State, dep: int) -> None:
    """Complete a dep; its destination becomes ready when all its inputs have arrived."""
    state.number[DONE_DEPS] += 1
    if step.counts[dep]:
        shard = step.destination[dep]
        state.arrived[shard] += 1
        if state.arrived[shard] == step.needed[shard]:
            state.ready[state.number[READY]] = shard
            state.number[READY] += 1
