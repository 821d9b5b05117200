"""Draws of recorded runs that their inputs do not hold: both of Python's and numpy's global generators were seeded.

Order of numpy's draws: the beta of each job of the pool, where betas are drawn; then at each arrival its place in the
pool, and the gap to the next. Python's `random` draws channels alone: of each flow the order in which they are tried.
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

    betas, gaps  as inputs have them: words that describe a distribution, or numbers, which draw nothing
    repeats      whether an empty pool is filled again, with ids raised by its size
    """

    def __init__(self, seed: int, pool: int, betas: object, gaps: object, repeats: bool) -> None:
        self._random = np.random.RandomState(seed)
        self._pool, self._repeats = pool, repeats
        self._betas, self._gaps = _values(betas), _values(gaps)

    def gap_after(self, ids: Sequence[int], times: Sequence[float]) -> float:
        """Return the seconds between the last of these arrivals and the next; infinity where they were not so drawn."""
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
    """The values of a uniform distribution, each as likely; None for what draws nothing or is not known."""
    found = UNIFORM.search(words) if isinstance(words, str) else None
    if found is None:
        return None
    low, high, decimals = float(found[1]), float(found[2]), int(found[3])
    step = 1 / 10**decimals
    return np.around(np.arange(low, high + step, step), decimals=decimals)


class DrawnChannels:
    """Which channel each flow of a run takes: all are free, for jobs share no servers, so the first that is tried."""

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
