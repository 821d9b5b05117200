"""The quantum of partitioning, and how short ops get degrees that no block of servers has.

A forward op of cost f is split min(2 ceil(ceil(f / q) / 2), cap) ways. Where f / q lies between 8 and 14 that is 10, 12 or 14, and the RAMP
of 4 x 4 x 2 servers has no legal block of such sizes: a job with such an op can never be placed at a cap of 16, on an empty cluster either.
Source: specification of the ramp study, sections 6 and 18.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

SLIGHTLY = 1 - 1e-12  # a quantum just below a bound


def degrees(costs: np.ndarray, quantum: float, cap: int) -> np.ndarray:
    """Return the degree of forward ops, int64[n]: 1 or even, at most `cap`. Costs and quantum in one unit."""
    even = 2 * np.ceil(np.ceil(np.asarray(costs, dtype=np.float64) / quantum) / 2)
    return np.maximum(1, np.minimum(even, cap)).astype(np.int64)


def legal_quantum(costs: np.ndarray, quantum: float, cap: int, legal: Iterable[int]) -> float:
    """Return the largest quantum up to the given one at which every degree of forward ops is legal, at every legal cap up to `cap`.

    costs  of the forward ops of one graph, or of all graphs of a pool. legal: degrees that have a block; 1 and `cap` must be among them
    """
    known = set(legal)
    bad = np.array([degree for degree in range(2, cap, 2) if degree not in known])
    costs = np.unique(np.asarray(costs, dtype=np.float64))
    costs = costs[costs > 0]
    while bad.size and (hit := np.isin(degrees(costs, quantum, cap), bad)).any():
        # a degree d ends where cost / q passes d; the widest step is that of the op that leaves its degree last
        found = degrees(costs[hit], quantum, cap)
        quantum = float((costs[hit] / found).min()) * SLIGHTLY
    return quantum


def round_down(degree: int, legal: Iterable[int]) -> int:
    """Return the largest legal degree up to `degree`: the other way out, which splits an op less than asked for."""
    return max(value for value in legal if value <= degree)
