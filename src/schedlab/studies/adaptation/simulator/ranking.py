"""Rankings of the sequences of a simulation table, by experiment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.seeds import generator
from schedlab.studies.adaptation.simulator.table import METRICS, TableView, view

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Reliability:
    """Components of the variance of results with equally many replicates of every sequence.

    sd_sequence  standard deviation of the sequences' true means, without the noise
    sd_residual  standard deviation of the noise of one result, in the unit of the result
    share        sd_sequence^2 / (sd_sequence^2 + sd_residual^2): share of the variance that is due to the sequence
    correlation  mean correlation of the results between two replicates
    """

    sd_sequence: float
    sd_residual: float
    share: float
    correlation: float


def reliability(results: np.ndarray) -> Reliability:
    """Return the components of the variance of one job's results (replicates, sequences), by analysis of variance.

    An effect of a replicate on all its sequences alike is not noise, because they use common random numbers. Raises
    UserError for fewer than two replicates or sequences.
    """
    results = np.asarray(results, dtype=float)
    replicates, sequences = results.shape
    if replicates < 2 or sequences < 2:
        what = f"{replicates} replicate(s) of {sequences} sequence(s)"
        raise UserError(what, expected="at least two of each", remedy="simulate more replicates")
    by_sequence = results.mean(0)
    rest = results - by_sequence - results.mean(1, keepdims=True) + results.mean()
    residual = (rest**2).sum() / ((replicates - 1) * (sequences - 1))
    between = max(float(by_sequence.var(ddof=1) - residual / replicates), 0.0)
    total = between + residual
    off = ~np.eye(replicates, dtype=bool)
    moved = results - results.mean(1, keepdims=True)
    scale = np.sqrt((moved**2).sum(1))
    correlation = float(((moved @ moved.T) / np.outer(scale, scale))[off].mean()) if (scale > 0).all() else float("nan")
    return Reliability(
        float(np.sqrt(between)), float(np.sqrt(residual)), float(between / total) if total else 0.0, correlation
    )


def top_probability(
    results: np.ndarray, k: int, seed: int, noise: float | None = None, draws: int = 4000
) -> np.ndarray:
    """Return for each sequence the probability that its true mean is among the k largest: (sequences,), with sum k.

    results  (replicates, sequences), larger is better
    noise    standard deviation of one result; needed for a single replicate, else estimated if it is None

    The true means are modelled as normally distributed around a common mean, with a spread that is estimated from the
    results (empirical Bayes): the noisier the observed means, the closer each is moved to the common one. The
    probability is the frequency among `draws` random draws of all true means.
    """
    results = np.asarray(results, dtype=float)
    replicates, sequences = results.shape
    mean = results.mean(0)
    if noise is None:
        parts = reliability(results)
        noise, spread = parts.sd_residual, parts.sd_sequence**2
    else:
        spread = max(float(mean.var(ddof=1)) - noise**2 / replicates, 0.0)
    of_mean = noise**2 / replicates
    keep = spread / (spread + of_mean) if spread + of_mean else 0.0
    centre = mean.mean() + keep * (mean - mean.mean())
    if not k < sequences:
        return np.ones(sequences)
    sampled = generator(seed, "top-probability").normal(centre, np.sqrt(keep * of_mean), (draws, sequences))
    # breaks ties at random, so that equal values have the same probability
    sampled += generator(seed, "top-ties").normal(0, 1e-12, sampled.shape) * (np.ptp(mean) + noise + 1e-300)
    top = np.argpartition(-sampled, k - 1, axis=1)[:, :k]
    return np.bincount(top.ravel(), minlength=sequences) / draws


def noise_from_tail(last: np.ndarray, mean_of_three: np.ndarray) -> float:
    """Estimate the noise of one final result from the last value and the mean of the last three values of each run.

    For records with a single replicate; last, mean_of_three: (runs,). If a run no longer improves, last - mean has 2/3
    of the variance of one value.
    """
    return float(np.sqrt(1.5 * np.var(np.asarray(last) - np.asarray(mean_of_three), ddof=1)))


def ranking(table: pd.DataFrame, metric: str = "test_accuracy", where: str = "table") -> dict[str, dict[str, Any]]:
    """Return experiment -> its ranking by a metric's mean over units (jobs and replicates).

    Keys: best, best_sequence, mean, worst, worst_sequence, none_sequence, none and none_rank (no adaptation: the
    highest digit throughout), sequences, units, noise (standard deviation of one result), reliability (variance due to
    the sequence) and metric. The column `experiment` names the experiments; without it, each scenario is one. Equal
    results share the better rank. Raises UserError for tables that are not complete.
    """
    if metric not in METRICS:
        raise UserError(f"unknown metric '{metric}'", where="--metric", remedy=did_you_mean(metric, METRICS))
    by = next((name for name in ("experiment", "scenario") if name in table), None)
    groups = [("table", table)] if by is None else table.groupby(by, sort=False)
    return {str(name): _ranking(rows, metric, f"{where}, {name}") for name, rows in groups}


def _ranking(rows: pd.DataFrame, metric: str, where: str) -> dict[str, Any]:
    seen = view(rows, metric, where, timed=False)
    reward = seen.reward.mean(0)
    value = seen.metrics[metric].mean(0)
    none = seen.tree.index(seen.tree.nothing)
    best, worst = int(reward.argmax()), int(reward.argmin())
    noise, share = _noise(rows, seen, metric)
    return {
        "metric": metric,
        "best": float(value[best]),
        "best_sequence": seen.tree.sequences[best],
        "mean": float(value.mean()),
        "worst": float(value[worst]),
        "worst_sequence": seen.tree.sequences[worst],
        "none_sequence": seen.tree.nothing,
        "none": float(value[none]),
        "none_rank": int(seen.ranks(reward)[none]),
        "sequences": len(value),
        "units": len(seen.units),
        "noise": noise,
        "reliability": share,
    }


def _noise(rows: pd.DataFrame, seen: TableView, metric: str) -> tuple[float | None, float | None]:
    """Return the noise of one result and the share of the variance due to the sequence; None where unknown."""
    jobs = sorted({job for job, _ in seen.units})
    parts = []
    for job in jobs:
        own = seen.reward[[row for row, unit in enumerate(seen.units) if unit[0] == job]]
        if len(own) > 1:
            parts.append(reliability(own))
    if parts:
        residual = sum(part.sd_residual**2 for part in parts) / len(parts)
        between = sum(part.sd_sequence**2 for part in parts) / len(parts)
        return residual**0.5, between / (between + residual) if between + residual else 0.0
    if metric == "test_accuracy" and "test_accuracy_last3" in rows:
        return noise_from_tail(rows["test_accuracy"].to_numpy(), rows["test_accuracy_last3"].to_numpy()), None
    return None, None
