"""Repeats random draws of recorded runs that their inputs do not contain. The runs seeded the global generators of
Python and of numpy.

numpy's generator draws first the beta of each job of the pool, if it is random; then, for each arrival, the place of
the job in the pool and the gap to the next arrival. Python's generator draws, for each flow, the order in which
channels are tried, and nothing else.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

import numpy as np

UNIFORM = re.compile(r"uniform\.Uniform'> \| min_val: (\S+) \| max_val: (\S+) \|.* decimals: (\d+)", re.ASCII)


class DrawnArrivals:
    """The arrivals that a seed draws from a pool of jobs.

    pool         number of jobs in the pool
    betas, gaps  as in the inputs: a description of a distribution in words, or numbers, which are not drawn
    repeats      whether an empty pool is filled again, with ids that are larger by its size
    """

    def __init__(self, seed: int, pool: int, betas: object, gaps: object, repeats: bool) -> None:
        self._random = np.random.RandomState(seed)
        self._pool, self._repeats = pool, repeats
        self._betas, self._gaps = _values(betas), _values(gaps)

    def gap_after(self, ids: Sequence[int], times: Sequence[float]) -> float:
        """Return the seconds from the last of these arrivals to the next one; infinity if gaps are not drawn, or if the
        draws do not give these arrivals.
        """
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
    """The channel of each flow of a run: the first one that is tried, because jobs do not share servers and therefore
    all channels are free.
    """

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
