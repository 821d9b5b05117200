"""Random draws that the inputs of recorded runs lack; the global generators of Python and numpy were both seeded.

Order of numpy's draws: the beta of each job of the pool, if random; then for each arrival its place in the pool and the
gap to the next one. Python's `random` draws only, for each flow, the order in which channels are tried.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

import numpy as np

UNIFORM = re.compile(r"uniform\.Uniform'> \| min_val: (\S+) \| max_val: (\S+) \|.* decimals: (\d+)", re.ASCII)


class DrawnArrivals:
    """The arrivals that a seed draws from a pool of so many jobs.

    betas, gaps  as in the inputs: words that describe a distribution, or numbers, which need no draws
    repeats      whether an empty pool is filled again, with ids raised by its size
    """

    def __init__(self, seed: int, pool: int, betas: object, gaps: object, repeats: bool) -> None:
        self._random = np.random.RandomState(seed)
        self._pool, self._repeats = pool, repeats
        self._betas, self._gaps = _values(betas), _values(gaps)

    def gap_after(self, ids: Sequence[int], times: Sequence[float]) -> float:
        """Return the seconds from the last of these arrivals to the next; infinity if the draws do not match them."""
        if self._gaps is None:
            return math.inf
        if self._betas is not None:
            self._random.random_sample(self._pool)  # one number for each
        left, refills, clock, gap = list(range(self._pool)), 0, 0.0, 0.0
        for number, time in zip(ids, times, strict=True):
            clock += gap
            if not left:
                return math.inf
            drawn = left.pop(self._random.randint(low=0, high=len(left))) + refills * self._pool
            if drawn != number or not math.isclose(clock, time, rel_tol=1e-9, abs_tol=1e-7):
                return math.inf
            if not left and self._repeats:
                left, refills = list(range(self._pool)), refills + 1
            gap = float(self._random.choice(self._gaps, p=np.full(len(self._gaps), 1 / len(self._gaps))))
        return gap


def _values(words: object) -> np.ndarray | None:
    """Return the equally likely values of a uniform distribution; None for constants and unknown words."""
    found = UNIFORM.search(words) if isinstance(words, str) else None
    if found is None:
        return None
    low, high, decimals = float(found[1]), float(found[2]), int(found[3])
    step = 1 / 10**decimals
    return np.around(np.arange(low, high + step, step), decimals=decimals)


class DrawnChannels:
    """Channel of each flow of a run: the first one tried, since jobs share no servers and all channels are free."""

    def __init__(self, seed: int, channels: int) -> None:
        self._random, self._channels = random.Random(seed), channels

    def of_flows(self, remote: np.ndarray) -> np.ndarray:
        """Return int64[deps]: the channel's number of each dep that crosses the network (bool[deps]), else 0."""
        numbers = np.zeros(len(remote), dtype=np.int64)
        for dep in np.flatnonzero(remote).tolist():
            tried = list(range(self._channels))
            self._random.shuffle(tried)
            numbers[dep] = tried[0]
        return numbers
