"""Degrees from a quantum, and ways around degrees that no block of servers has: another quantum, or smaller degrees.

A forward op of cost f is split min(2 ceil(ceil(f / q) / 2), cap) ways. Where f / q lies between 8 and 14 that is 10, 12 or 14, and the
RAMP of 4 x 4 x 2 servers has no legal block of such sizes: a job with such an op can never be placed at a cap of 16, on an empty cluster
either. Graphs with short ops have them, so most of those drawn at random. Source: specification of the ramp study, sections 6 and 18.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from schedlab.studies.ramp.graph import TrainingGraph

SLIGHTLY = 1 - 1e-12  # a quantum just below a bound


def degrees(costs: np.ndarray, quantum: float, cap: int) -> np.ndarray:
    """Return the degree of forward ops, int64[n]: 1 or even, at most `cap`. Costs and quantum in one unit."""
    even = 2 * np.ceil(np.ceil(np.asarray(costs, dtype=np.float64) / quantum) / 2)
    return np.maximum(1, np.minimum(even, cap)).astype(np.int64)


def legal_quantum(graphs: Sequence[TrainingGraph], quantum: float, cap: int, legal: Iterable[int]) -> float:
    """Return the largest quantum up to the given one, s, at which ops of these graphs have legal degrees at every legal cap up to `cap`.

    legal  degrees that have a block, 1 and `cap` among them
    """
    bad = np.array(sorted(set(range(2, cap, 2)) - set(legal)), dtype=np.int64)
    costs = np.unique(np.concatenate([graph.cost[: graph.num_forward] for graph in graphs]))
    costs = costs[costs > 0]
    while True:
        found = degrees(costs, quantum, cap)
        hit = np.isin(found, bad)
        if not hit.any():
            return quantum
        quantum = float((costs[hit] / found[hit]).min()) * SLIGHTLY  # an op leaves degree d where cost / q passes d


def round_down(degrees: np.ndarray, legal: Iterable[int]) -> np.ndarray:
    """Return the largest legal degree up to each given one, int64; 1 must be legal. It splits some ops less than asked for."""
    known = np.array(sorted(legal), dtype=np.int64)
    return known[np.searchsorted(known, degrees, side="right") - 1]
