"""Intervals of bootstrap draws, corrected for few seeds and blocks.

A percentile interval of the two-level bootstrap is too narrow where few seeds decide, since the mean of n resampled
values varies by (n - 1) / n of what it should and a normal quantile stands for Student's (T. Hesterberg, "What teachers
should know about the bootstrap", The American Statistician 69(4), 2015). It is too wide where the interaction of seeds
and blocks decides, which is resampled twice (A. B. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2),
2007). So draws are stretched about the value: by the standard deviation of the statistic over that of the draws, and by
Student's quantile over the normal one. Both deviations follow to first order from the influence of each seed on each
block: that of the statistic by the variance components of a crossed layout, negative ones set to 0 (S. R. Searle, G.
Casella and C. E. McCulloch, "Variance Components", 1992, chapter 4), with the degrees of freedom of Satterthwaite ("An
approximate distribution of estimates of variance components", Biometrics Bulletin 2(6), 1946).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True)
class Spread:
    """First-order variance of a statistic and of its bootstrap draws, and (part of the variance, degrees of freedom) of
    each mean square in it.
    """

    variance: float
    resampled: float
    parts: tuple[tuple[float, int], ...]

    @property
    def freedom(self) -> float:
        """Satterthwaite's degrees of freedom of the variance."""
        uncertain = sum(part**2 / freedom for part, freedom in self.parts)
        return max(self.variance**2 / uncertain, min(freedom for _, freedom in self.parts)) if uncertain else np.inf

    def stretch(self, level: float) -> float:
        """Return the factor by which draws are stretched for an interval that covers with probability `level`."""
        if self.resampled <= 0:
            return 1.0
        quantile = (1 + level) / 2
        students, normal = special.stdtrit(min(self.freedom, 1e9), quantile), special.ndtri(quantile)
        return float(np.sqrt(self.variance / self.resampled) * students / normal)


@dataclass(frozen=True)
class Effect:
    """A value with its bootstrap draws (resamples,) and its spread; both are None if there are too few seeds or
    blocks.
    """

    value: float
    draws: np.ndarray | None = None
    spread: Spread | None = None

    def interval(self, level: float) -> tuple[float | None, float | None]:
        """Return both ends of the interval, None without draws; draws that are NaN do not count.

        It always holds the value: where a rival ties with a policy, draws may hold other rivals on one side alone.
        """
        if self.draws is None or self.spread is None:
            return None, None
        with np.errstate(invalid="ignore"):  # between draws that are infinite
            low, high = np.nanquantile(self.draws, [(1 - level) / 2, (1 + level) / 2])
        stretch = self.spread.stretch(level)
        below, above = stretch * min(low - self.value, 0.0), stretch * max(high - self.value, 0.0)
        return float(self.value + below), float(self.value + above)


def spread(influences: Sequence[np.ndarray]) -> Spread:
    """Return the spread of a sum of statistics of samples whose seeds are drawn independently and blocks jointly.

    influences: of each sample the first-order effect of each seed on each block (seeds, blocks), with sum 0. One seed
      or one block stands for all there are: it adds no variance.
    """
    blocks = influences[0].shape[1]
    of_blocks = np.sum([part.sum(axis=0) for part in influences], axis=0)
    both = [_interaction(part) for part in influences]
    block_square = float(of_blocks @ of_blocks)
    block_variance = block_square * blocks / (blocks - 1) if blocks > 1 else 0.0
    block_counts = block_variance > sum(both)
    variance, resampled = max(block_variance, sum(both)), block_square
    parts = [(block_variance, blocks - 1)] if block_counts else []
    for part, interaction in zip(influences, both, strict=True):
        seeds = len(part)
        square, column = float((part.sum(axis=1) ** 2).sum()), part.sum(axis=0)
        resampled += float((part**2).sum() + (1 - 1 / blocks) * square - (column @ column) / seeds)
        seed_variance = square * seeds / (seeds - 1) if seeds > 1 else 0.0
        seed_counts = seed_variance > interaction
        variance += max(seed_variance - interaction, 0.0)
        parts += [(seed_variance, seeds - 1)] if seed_counts else []
        if seeds > 1 and blocks > 1 and seed_counts == block_counts:
            parts.append((interaction, (seeds - 1) * (blocks - 1)))
    return Spread(variance, resampled, tuple(parts))


def mean(effects: Sequence[Effect]) -> Effect:
    """Return the mean of independent effects, resampled together; without draws if one of them has none."""
    value, share = float(np.mean([each.value for each in effects])), 1 / len(effects) ** 2
    draws = [each.draws for each in effects if each.draws is not None]
    spreads = [each.spread for each in effects if each.spread is not None]
    if not len(draws) == len(spreads) == len(effects):
        return Effect(value)
    return Effect(
        value,
        np.mean(draws, axis=0),
        Spread(
            variance=share * sum(each.variance for each in spreads),
            resampled=share * sum(each.resampled for each in spreads),
            parts=tuple((share * part, freedom) for each in spreads for part, freedom in each.parts),
        ),
    )


def _interaction(influences: np.ndarray) -> float:
    """The part of a statistic's variance that the interaction of seeds and blocks makes, with what single scores add
    to it.
    """
    seeds, blocks = influences.shape
    if seeds == 1 or blocks == 1:
        return 0.0
    alone = influences - influences.mean(axis=1, keepdims=True) - influences.mean(axis=0)
    return float((alone**2).sum() * seeds * blocks / ((seeds - 1) * (blocks - 1)))
