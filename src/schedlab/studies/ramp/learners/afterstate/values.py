"""Features of afterstates, returns of rollouts, and linear weights fitted to them.

See docs/notebook/ramp.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.ramp.learners.afterstate.kernel import Outlook, afterstates, summary_size
from schedlab.studies.ramp.learners.afterstate.rollout_kernel import best_return, rollout_returns
from schedlab.studies.ramp.simulator.compiled_kernel import REJECT, Arrivals, Rollouts, Situation, Tables, occupy

PERIODS = (1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 23, 28)  # arrivals ahead at which free servers are counted
QUARTERS_AT = (0, 1, 3, 5)  # indices of those at which free quarters of the cluster are counted
HORIZON = 48  # arrivals
RIDGE = 1e-3


def make_outlook(tables: Tables, period: float) -> Outlook:
    """Return the outlook (features of V) on a cluster where a job arrives every `period` s on average."""
    quarter = int(np.searchsorted(tables.actions, max(tables.servers // 4, 1), side="right")) - 1
    degree = tables.degree[quarter]
    quarters, taken = [], 0
    for mask in tables.masks[tables.first[degree] : tables.first[degree + 1]].tolist():
        if not mask & taken:
            quarters.append(mask)
            taken |= mask
    return Outlook(
        np.array(PERIODS) * period,
        tables.degree[tables.actions > 1],
        np.array(quarters, dtype=np.uint64),
        np.array(QUARTERS_AT, dtype=np.int64),
        period,
        HORIZON * period,
    )


class Arrays(NamedTuple):
    """Output arrays of a compiled episode: rows, own and returns of every decision, as in Returns."""

    rows: np.ndarray
    own: np.ndarray
    returns: np.ndarray


@dataclass(frozen=True, eq=False)
class Returns:
    """Decisions and the returns that rollouts estimate.

    rows     float32[n, A + 1, F], features of the cluster after each action, the last one rejecting
    own      float64[n, A + 1], accepted jobs (0 or 1) of the action itself, NaN where it is impossible
    returns  float64[n, A + 1], mean accepted jobs from the action on, NaN likewise
    """

    rows: np.ndarray
    own: np.ndarray
    returns: np.ndarray


def stack(found: Sequence[Returns]) -> Returns:
    """Return the decisions of several episodes together."""
    return Returns(*(np.concatenate([getattr(one, name) for one in found]) for name in ("rows", "own", "returns")))


def draw_starts(random: np.random.Generator, rollouts: Rollouts, decisions: int, samples: int) -> np.ndarray:
    """Return int64[decisions, samples]: where each sample begins in the drawn futures, early enough for all its
    jobs.
    """
    return random.integers(len(rollouts.futures.gaps) - rollouts.jobs, size=(decisions, samples))


def collect(
    tables: Tables,
    outlook: Outlook,
    rollouts: Rollouts,
    arrivals: Arrivals,
    stop: float,
    random: np.random.Generator,
    samples: int,
) -> tuple[Returns, float, int]:
    """Simulate an episode in which rollouts take each decision.

    Returns the decisions that have a choice, the number of accepted jobs, and the number of decisions in rollouts: one
    for each drawn job that arrives before the episode's end.
    """
    starts = draw_starts(random, rollouts, len(arrivals.times), samples)
    count, size = len(tables.actions), summary_size(outlook) + tables.servers
    rows = np.zeros((len(arrivals.times), count + 1, size), dtype=np.float32)
    own, returns = (np.full((len(arrivals.times), count + 1), np.nan) for _ in range(2))
    accepted = _collect(tables, outlook, rollouts, arrivals, stop, starts, Arrays(rows, own, returns))
    played = np.isfinite(returns).sum(axis=1)
    open_ = played > 1
    arrives = np.append(0.0, np.cumsum(rollouts.futures.gaps))
    last = np.searchsorted(arrives, arrives[starts] + (stop - arrivals.times)[:, None], side="left") - 1
    imagined = np.clip(last - starts, 0, rollouts.jobs).sum(axis=1) * played
    return Returns(rows[open_], own[open_], returns[open_]), accepted, int(imagined[open_].sum())


@compiled
def _collect(
    tables: Tables,
    outlook: Outlook,
    rollouts: Rollouts,
    arrivals: Arrivals,
    stop: float,
    starts: np.ndarray,
    into: Arrays,
) -> float:
    count, ends = len(tables.actions), np.zeros(tables.servers)
    rows, own, returns = into
    found, masks = np.zeros((count + 1, rows.shape[2])), np.empty(count + 1, np.uint64)
    accepted = 0.0
    for job in range(len(arrivals.times)):
        time, graph, meets = arrivals.times[job], arrivals.graphs[job], arrivals.meets[job]
        now = Situation(ends, time, stop, graph, meets)
        afterstates(tables, outlook, now, found, own[job], masks)
        rows[job] = found
        rollout_returns(tables, outlook, rollouts, now, starts[job], returns[job])
        best = best_return(returns[job])
        if best != REJECT:
            occupy(ends, masks[best], time + tables.durations[graph, best])
            accepted += own[job, best]
    return accepted


def centred(found: Returns, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features float64[m, size] and values float64[m] of V, with the mean of each decision subtracted."""
    valid = np.isfinite(found.returns)
    values = np.where(valid, found.returns - np.nan_to_num(found.own), 0.0)
    rows = np.where(valid[:, :, None], found.rows[:, :, :size], 0.0)
    weight = valid.sum(axis=1, keepdims=True)
    values = values - values.sum(axis=1, keepdims=True) / weight
    rows = rows - rows.sum(axis=1, keepdims=True) / weight[:, :, None]
    return rows[valid], values[valid]


def ridge(found: Returns, size: int) -> np.ndarray:
    """Return the weights of a linear V on the first features, float64[size], by ridge regression."""
    rows, values = centred(found, size)
    return np.linalg.solve(rows.T @ rows + RIDGE * len(rows) * np.eye(size), rows.T @ values)
