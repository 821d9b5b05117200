"""The study's measures of compiled episodes, equal to those of an evaluation: blocking rate, throughput, completion
time and speed-up.

See docs/notebook/ramp.md.
"""

from __future__ import annotations

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.ramp.learners.afterstate.kernel import Outlook, afterstates, best_linear
from schedlab.studies.ramp.simulator.compiled_kernel import (
    DUE,
    REJECT,
    Arrivals,
    Situation,
    Tables,
    occupy,
    play_actions,
)


@compiled
def linear_actions(
    tables: Tables, outlook: Outlook, arrivals: Arrivals, stop: float, weights: np.ndarray
) -> np.ndarray:
    """Return the actions of an episode under a linear V, int64[n]: indices of `tables.actions`, or REJECT.

    This is slower than play_linear, which returns only the number of accepted jobs.
    """
    count, ends = len(tables.actions), np.zeros(tables.servers)
    rows, own, masks = np.zeros((count + 1, len(weights))), np.empty(count + 1), np.empty(count + 1, np.uint64)
    chosen = np.empty(len(arrivals.times), np.int64)
    for job in range(len(arrivals.times)):
        time, graph = arrivals.times[job], arrivals.graphs[job]
        afterstates(tables, outlook, Situation(ends, time, stop, graph, arrivals.meets[job]), rows, own, masks)
        chosen[job] = best_linear(weights, rows, own)
        if chosen[job] != REJECT:
            occupy(ends, masks[chosen[job]], time + tables.durations[graph, chosen[job]])
    return chosen


def measures(
    tables: Tables, demand: np.ndarray, arrivals: Arrivals, stop: float, actions: np.ndarray
) -> dict[str, float]:
    """Return the measures of an episode under these actions, by their names in METRICS. Means over completed jobs are
    left out if no job was completed.

    demand  float64[graphs], bytes of memory and deps of an unsplit job; a job that runs at the end counts with the
            share that is completed
    """
    masks = np.zeros(len(actions), dtype=np.uint64)
    accepted = play_actions(tables, arrivals, stop, actions, masks)
    graphs, times = arrivals.graphs[masks > 0], arrivals.times[masks > 0]
    durations = tables.durations[graphs, actions[masks > 0]]
    got_through = np.clip((stop - times) / durations, 0.0, 1.0)
    found = {
        "blocking_rate": (len(actions) - accepted) / arrivals.arrived,
        "demand_throughput": float(demand[graphs] @ got_through) / stop,
    }
    done = times + durations <= stop + DUE
    if done.any():
        found["speedup"] = float(np.mean(tables.sequential[graphs[done]] / durations[done]))
        found["jct"] = float(np.mean(durations[done]))
    return found
