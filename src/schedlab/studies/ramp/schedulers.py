"""In which order shards run on a worker and deps go over a channel: shortest remaining processing time.

Source: specification of the ramp study, section 8.
"""

from __future__ import annotations

import numpy as np


def srpt_ranks(cost: np.ndarray, worker: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return int64[shards]: each worker's shards ranked by cost descending; the highest rank, the cheapest shard, runs first.

    order  the shards as they were placed; among equal costs the earlier one gets the lower rank
    """
    ranks = np.empty(len(cost), dtype=np.int64)
    by_worker = order[np.lexsort((-cost[order], worker[order]))]
    workers = worker[by_worker]
    starts = np.flatnonzero(np.r_[True, workers[1:] != workers[:-1]])
    counts = np.diff(np.r_[starts, len(workers)])
    ranks[by_worker] = np.arange(len(workers)) - np.repeat(starts, counts)
    return ranks


def srpt_dep_ranks(time: np.ndarray) -> np.ndarray:
    """Return int64[deps]: the deps of a job ranked by run time descending; the highest rank, the shortest, goes first.

    Among equals the first dep goes first; the published order of equals followed hashes.
    """
    ranks = np.empty(len(time), dtype=np.int64)
    ranks[np.argsort(time, kind="stable")[::-1]] = np.arange(len(time))
    return ranks
