"""How far a ranking of sequences can be trusted: variance due to the sequence, noise of one result, chance to be truly near the top."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.seeds import generator


@dataclass(frozen=True)
class Reliability:
    """Parts of the variance of results with equal replicates of every sequence.

    sd_sequence  spread of the sequences' true means, the noise removed
    sd_residual  noise of one result, in the unit of the result
    share        sd_sequence^2 / (sd_sequence^2 + sd_residual^2): the variance due to the sequence
    correlation  mean correlation of the results between two replicates
    """

    sd_sequence: float
    sd_residual: float
    share: float
    correlation: float


def reliability(results: np.ndarray) -> Reliability:
    """Return the parts of the variance of results (replicates, sequences) of one job, by a two-way analysis of variance.

    What a replicate adds to all sequences alike is no noise, since replicates use common random numbers. Needs two replicates (UserError).
    """
    results = np.asarray(results, dtype=float)
    replicates, sequences = results.shape
    if replicates < 2 or sequences < 2:
        raise UserError(
            f"{replicates} replicate(s) of {sequences} sequence(s)", expected="at least two of each", remedy="simulate more replicates"
        )
    by_sequence = results.mean(0)
    rest = results - by_sequence - results.mean(1, keepdims=True) + results.mean()
    residual = (rest**2).sum() / ((replicates - 1) * (sequences - 1))
    between = max(float(by_sequence.var(ddof=1) - residual / replicates), 0.0)
    total = between + residual
    off = ~np.eye(replicates, dtype=bool)
    moved = results - results.mean(1, keepdims=True)
    scale = np.sqrt((moved**2).sum(1))
    correlation = float(((moved @ moved.T) / np.outer(scale, scale))[off].mean()) if (scale > 0).all() else float("nan")
    return Reliability(float(np.sqrt(between)), float(np.sqrt(residual)), float(between / total) if total else 0.0, correlation)


def top_probability(results: np.ndarray, k: int, seed: int, noise: float | None = None, draws: int = 4000) -> np.ndarray:
    """Return for each sequence the probability that its true mean is among the k largest: (sequences,) numbers that sum to k.

    results  (replicates, sequences), larger is better
    noise    standard deviation of one result; needed where there is one replicate, else estimated

    True means are normal around a common mean with the spread that `reliability` finds (empirical Bayes), so that each observed
    mean is drawn towards the common one by as much as it is noise; the probability is that of `draws` draws of all of them.
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
    sampled += generator(seed, "top-ties").normal(0, 1e-12, sampled.shape) * (np.ptp(mean) + noise + 1e-300)  # equal values share places
    top = np.argpartition(-sampled, k - 1, axis=1)[:, :k]
    return np.bincount(top.ravel(), minlength=sequences) / draws


def noise_from_tail(last: np.ndarray, mean_of_three: np.ndarray) -> float:
    """Return the noise of one final result from the last value and the mean of the last three of each run.

    Where a run no longer rises, last - mean has 2/3 of the variance of one value; for records with a single replicate.
    """
    return float(np.sqrt(1.5 * np.var(np.asarray(last) - np.asarray(mean_of_three), ddof=1)))
