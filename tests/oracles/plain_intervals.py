"""Intervals of a mean over seeds and blocks, stated by plain loops: one score a seed and block, equal weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from statistics import mean

from scipy import stats

Scores = Sequence[Sequence[float]]  # a row for each seed, a column for each block


def mean_squares(scores: Scores) -> tuple[float, float, float]:
    """Variances of the mean as the means of seeds, those of blocks and the residuals of both show them."""
    seeds, blocks = len(scores), len(scores[0])
    of_seeds, of_blocks = [mean(row) for row in scores], [mean(column) for column in zip(*scores, strict=True)]
    total = mean(of_seeds)
    rest = [score - of_seeds[i] - of_blocks[j] + total for i, row in enumerate(scores) for j, score in enumerate(row)]
    by_seed = sum((each - total) ** 2 for each in of_seeds) / (seeds - 1) / seeds if seeds > 1 else 0.0
    by_block = sum((each - total) ** 2 for each in of_blocks) / (blocks - 1) / blocks if blocks > 1 else 0.0
    degrees = (seeds - 1) * (blocks - 1)
    return by_seed, by_block, sum(each**2 for each in rest) / degrees / seeds / blocks if degrees else 0.0


def resampled_variance(scores: Scores) -> float:
    """The variance of the mean over every resample there is (for a handful of seeds and blocks)."""
    seeds, blocks = range(len(scores)), range(len(scores[0]))
    means = [
        mean(scores[i][j] for i in rows for j in columns)
        for rows in product(seeds, repeat=len(seeds))
        for columns in product(blocks, repeat=len(blocks))
    ]
    centre = mean(means)
    return mean((each - centre) ** 2 for each in means)


def one_level(scores: Sequence[float], low: float, high: float, level: float) -> tuple[float, float]:
    """Both ends of the interval of scores that vary at one level, from the quantiles of a percentile bootstrap."""
    size, centre = len(scores), mean(scores)
    wider = (size / (size - 1)) ** 0.5 * stats.t.ppf((1 + level) / 2, size - 1) / stats.norm.ppf((1 + level) / 2)
    return centre + wider * (low - centre), centre + wider * (high - centre)
