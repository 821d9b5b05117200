"""Degrees from a quantum, and smaller ones in place of those that no block of servers has.

A forward op of cost f is split min(2 ceil(ceil(f / q) / 2), cap) ways. Where f / q lies between 8 and 14 that is 10, 12 or 14, and the
RAMP of 4 x 4 x 2 servers has no legal block of such sizes: a job with such an op can never be placed at a cap of 16, on an empty cluster
either. Graphs with short ops have them, so most of those drawn at random. Source: specification of the ramp study, sections 6 and 18.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


def degrees(costs: np.ndarray, quantum: float, cap: int) -> np.ndarray:
    """Return the degree of forward ops, int64[n]: 1 or even, at most `cap`. Costs and quantum in one unit."""
    even = 2 * np.ceil(np.ceil(np.asarray(costs, dtype=np.float64) / quantum) / 2)
    return np.maximum(1, np.minimum(even, cap)).astype(np.int64)


def round_down(degrees: np.ndarray, legal: Iterable[int]) -> np.ndarray:
    """Return the largest legal degree up to each given one, int64; 1 must be legal. It splits some ops less than asked for."""
    known = np.array(sorted(legal), dtype=np.int64)
    return known[np.searchsorted(known, degrees, side="right") - 1]
