"""What the value of a cluster looks at, what rollouts say of it, and how it is fitted to them.

Source: specification of the ramp study, section 18.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.config.seeds import derive_seed
from schedlab.learning.seeding import torch_stream, use_one_thread
from schedlab.studies.ramp.learners.afterstate.kernel import Network, Outlook, afterstates, summary_size
from schedlab.studies.ramp.learners.afterstate.rollout_kernel import best_return, rollout_returns
from schedlab.studies.ramp.simulator.compiled_kernel import REJECT, Arrivals, Rollouts, Situation, Tables, occupy

PERIODS = (1, 2, 3, 4, 5, 7, 9, 12, 15, 19, 23, 28)  # arrivals ahead at which free servers are counted
QUARTERS_AT = (0, 1, 3, 5)  # of them, where whole quarters of the cluster are
HORIZON = 48  # arrivals
RIDGE = 1e-3
LEAST_SPREAD = 1e-3  # of a feature that hardly varies
WARM = 0.3  # of the gradient steps, on squared errors alone


def make_outlook(tables: Tables, period: float) -> Outlook:
    """Return what V looks at on a cluster to which a job comes every `period` s on average."""
    quarter = int(np.searchsorted(tables.actions, max(tables.servers // 4, 1), side="right")) - 1
    degree = tables.own[quarter]
    quarters, taken = [], 0
    for mask in tables.masks[tables.first[degree] : tables.first[degree + 1]].tolist():
        if not mask & taken:
            quarters.append(mask)
            taken |= mask
    return Outlook(
        np.array(PERIODS) * period,
        tables.own[tables.actions > 1],
        np.array(quarters, dtype=np.uint64),
        np.array(QUARTERS_AT, dtype=np.int64),
        period,
        HORIZON * period,
    )


class Arrays(NamedTuple):
    """What a compiled episode writes into: rows, own and returns of every decision, as in Returns."""

    rows: np.ndarray
    own: np.ndarray
    returns: np.ndarray


@dataclass(frozen=True, eq=False)
class Returns:
    """Decisions and what rollouts say of them.

    rows     float32[n, A + 1, F], features of the cluster after each action, the last one rejecting
    own      float64[n, A + 1], what the action itself counts, NaN where it is impossible
    returns  float64[n, A + 1], mean accepted jobs from the action on, NaN likewise
    """

    rows: np.ndarray
    own: np.ndarray
    returns: np.ndarray


def stack(found: Sequence[Returns]) -> Returns:
    """Return the decisions of several episodes together."""
    return Returns(*(np.concatenate([getattr(one, name) for one in found]) for name in ("rows", "own", "returns")))


def draw_starts(random: np.random.Generator, rollouts: Rollouts, decisions: int, samples: int) -> np.ndarray:
    """Return int64[decisions, samples]: where the samples begin, so that the futures hold all their jobs."""
    return random.integers(len(rollouts.futures.gaps) - rollouts.jobs, size=(decisions, samples))


def collect(
    tables: Tables,
    outlook: Outlook,
    rollouts: Rollouts,
    arrivals: Arrivals,
    stop: float,
    random: np.random.Generator,
    samples: int,
) -> tuple[Returns, float]:
    """Play an episode, each decision by rollouts; return its decisions with a choice, and the accepted jobs."""
    starts = draw_starts(random, rollouts, len(arrivals.times), samples)
    count, size = len(tables.actions), summary_size(outlook) + tables.servers
    rows = np.zeros((len(arrivals.times), count + 1, size), dtype=np.float32)
    own, returns = (np.full((len(arrivals.times), count + 1), np.nan) for _ in range(2))
    accepted = _collect(tables, outlook, rollouts, arrivals, stop, starts, Arrays(rows, own, returns))
    open_ = np.isfinite(returns).sum(axis=1) > 1
    return Returns(rows[open_], own[open_], returns[open_]), accepted


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
    """Return features float64[m, size] and values float64[m] of V, each less its decision's mean."""
    valid = np.isfinite(found.returns)
    values = np.where(valid, found.returns - np.nan_to_num(found.own), 0.0)
    rows = np.where(valid[:, :, None], found.rows[:, :, :size], 0.0)
    weight = valid.sum(axis=1, keepdims=True)
    values = values - values.sum(axis=1, keepdims=True) / weight
    rows = rows - rows.sum(axis=1, keepdims=True) / weight[:, :, None]
    return rows[valid], values[valid]


def ridge(found: Returns, size: int) -> np.ndarray:
    """Return the weights of a linear V, float64[size], on the first features."""
    rows, values = centred(found, size)
    return np.linalg.solve(rows.T @ rows + RIDGE * len(rows) * np.eye(size), rows.T @ values)


@dataclass(frozen=True)
class Fit:
    """How a network is fitted.

    regret       weight of the loss's second part: how much less than the best action the softmax choice of the scores
                 returns; squared errors have the rest. The softmax begins after WARM of the gradient steps.
    temperature  of that choice, in accepted jobs
    """

    hidden: int
    epochs: int
    batch: int = 64
    rate: float = 2e-3
    regret: float = 0.0
    temperature: float = 0.1


def fit_network(found: Returns, fit: Fit, seed: int) -> Network:
    """Return a network fitted to the centred values of decisions.

    It is fitted on features of mean 0 and deviation 1, which then go into the first layer: as they are, waits of
    servers are so small that the network hardly reads them (blocking on A .204 against .183 of the same decisions).
    """
    import torch
    from torch import nn

    use_one_thread()
    open_ = np.isfinite(found.returns)
    valid = torch.from_numpy(open_)
    own, values = (
        torch.from_numpy(np.nan_to_num(each).astype(np.float32)) for each in (found.own, found.returns - found.own)
    )
    seen = found.rows[open_]
    middle, spread = seen.mean(axis=0), seen.std(axis=0) + LEAST_SPREAD
    rows = torch.from_numpy((seen - middle) / spread)
    place = torch.from_numpy(np.cumsum(open_).reshape(open_.shape) - 1)
    weight = valid.sum(dim=1, keepdim=True)

    def level(scores: torch.Tensor, some: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        kept = torch.where(some, scores, torch.zeros(()))
        return torch.where(some, kept - kept.sum(dim=1, keepdim=True) / count, torch.zeros(()))

    def lost(scores: torch.Tensor, returns: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        chosen = torch.softmax((scores / fit.temperature).masked_fill(~some, -torch.inf), dim=1)
        best = returns.masked_fill(~some, -torch.inf).max(dim=1, keepdim=True).values
        return (chosen * torch.where(some, best - returns, torch.zeros(()))).sum() / len(some)

    with torch_stream(derive_seed(seed, "ramp", "network")):
        layers = [layer for size in (rows.shape[1], fit.hidden) for layer in (nn.Linear(size, fit.hidden), nn.Tanh())]
        net = nn.Sequential(*layers, nn.Linear(fit.hidden, 1, bias=False))
        optimiser = torch.optim.Adam(net.parameters(), lr=fit.rate)
        steps = fit.epochs * ((len(valid) + fit.batch - 1) // fit.batch)
        schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.02, max(steps, 1))
        for epoch in range(fit.epochs):
            regret = fit.regret if epoch >= WARM * fit.epochs else 0.0
            for part in torch.randperm(len(valid)).split(fit.batch):
                some = valid[part]
                scores = torch.zeros(some.shape)
                scores[some] = net(rows[place[part][some]]).squeeze(1)
                gap = level(scores, some, weight[part]) - level(values[part], some, weight[part])
                loss = (1 - regret) * (gap**2).sum() / some.sum()
                if regret:
                    loss = loss + regret * lost(scores + own[part], values[part] + own[part], some)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
    first, second, last = (net[layer] for layer in (0, 2, 4))
    entry = first.weight.detach().numpy().T / spread[:, None]
    arrays = (second.weight.T, second.bias, last.weight[0])
    rest = (np.ascontiguousarray(array.detach().numpy()) for array in arrays)
    return Network(np.ascontiguousarray(entry), first.bias.detach().numpy() - middle @ entry, *rest)
