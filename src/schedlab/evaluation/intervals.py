"""Intervals of bootstrap draws, corrected for few seeds and blocks.

A percentile interval of the two-level bootstrap is too narrow if most of the variance comes from few seeds: the
variance of the mean of n resampled values is too small by the factor (n - 1) / n, and a normal quantile replaces
Student's (T. Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69(4), 2015). It is
too wide if most of the variance comes from the interaction of seeds and blocks, because both levels resample the
interaction (A. B. Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2), 2007).

The distances of the draws from the value are therefore multiplied by two factors: the standard deviation of the
statistic divided by that of the draws, and Student's quantile divided by the normal one. Both deviations are computed
to first order from the influence of the scores of each seed in each block. That of the statistic is estimated by the
variance components of a crossed layout, where negative components are set to 0 (S. R. Searle, G. Casella and C. E.
McCulloch, "Variance Components", 1992, chapter 4), with Satterthwaite's degrees of freedom ("An approximate
distribution of estimates of variance components", Biometrics Bulletin 2(6), 1946).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special


@dataclass(frozen=True)
class Spread:
    """First-order variance of a statistic and of its bootstrap draws, and (part of the variance, degrees of freedom) of
    each mean square in the former.
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
class Influence:
    """First-order effects of the seeds of a policy on the blocks of a scenario (seeds, blocks); they sum to 0.

    policy, blocks  names. Parts of a statistic with the same policy share its seeds. Parts with the same blocks, such
      as scenarios with the same jobs or windows, share these blocks.
    """

    effects: np.ndarray
    policy: str
    blocks: tuple[str, ...]


def of_one_scenario(*effects: np.ndarray) -> tuple[Influence, ...]:
    """Return the influences of samples whose seeds are drawn independently and whose blocks are drawn jointly. effects:
    (seeds, blocks) of each sample.
    """
    blocks = tuple(str(number) for number in range(effects[0].shape[1]))
    return tuple(Influence(each, str(place), blocks) for place, each in enumerate(effects))


@dataclass(frozen=True)
class Effect:
    """A value with its bootstrap draws (resamples,), None if there are too few seeds or blocks, and its influences."""

    value: float
    draws: np.ndarray | None = None
    influences: tuple[Influence, ...] = ()

    def interval(self, level: float) -> tuple[float | None, float | None]:
        """Return both ends of the interval, or None without draws. Draws that are NaN do not count.

        The interval always contains the value. Draws alone do not ensure this: if rivals tie, the draws with other
        rivals may all be on one side of it.
        """
        if self.draws is None:
            return None, None
        with np.errstate(invalid="ignore"):  # for interpolation between infinite draws
            low, high = np.nanquantile(self.draws, [(1 - level) / 2, (1 + level) / 2])
        stretch = spread(self.influences).stretch(level)
        below, above = stretch * min(low - self.value, 0.0), stretch * max(high - self.value, 0.0)
        return float(self.value + below), float(self.value + above)


def spread(influences: Sequence[Influence]) -> Spread:
    """Return the spread of a sum of statistics. Seeds of different policies, and different sets of blocks, are drawn
    independently; those with the same names are drawn jointly.

    A single seed or block adds no variance.
    """
    scenarios: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    for each in influences:
        of_policies = scenarios.setdefault(each.blocks, {})
        of_policies[each.policy] = of_policies.get(each.policy, np.zeros(())) + each.effects
    variance, resampled, parts = 0.0, 0.0, list[tuple[float, int]]()
    of_seeds, inside = dict[str, np.ndarray](), dict[str, list[tuple[float, int, bool]]]()
    for of_policies in scenarios.values():
        both = {policy: _interaction(effects) for policy, effects in of_policies.items()}
        of_blocks = np.sum([effects.sum(axis=0) for effects in of_policies.values()], axis=0)
        blocks, square = len(of_blocks), float(of_blocks @ of_blocks)
        block_variance = square * blocks / (blocks - 1) if blocks > 1 else 0.0
        block_counts = block_variance > sum(both.values())
        variance += max(block_variance, sum(both.values()))
        resampled += square
        parts += [(block_variance, blocks - 1)] if block_counts else []
        for policy, effects in of_policies.items():
            row, column = effects.sum(axis=1), effects.sum(axis=0)
            resampled += float((effects**2).sum() - (row @ row) / blocks - (column @ column) / len(effects))
            of_seeds[policy] = of_seeds.get(policy, np.zeros(())) + row
            inside.setdefault(policy, []).append((both[policy], blocks, block_counts))
    for policy, row in of_seeds.items():
        seeds, square, interaction = len(row), float(row @ row), sum(part for part, *_ in inside[policy])
        seed_variance = square * seeds / (seeds - 1) if seeds > 1 else 0.0
        seed_counts = seed_variance > interaction
        variance += max(seed_variance - interaction, 0.0)
        resampled += square
        parts += [(seed_variance, seeds - 1)] if seed_counts else []
        for part, blocks, block_counts in inside[policy]:
            if seeds > 1 and blocks > 1 and seed_counts == block_counts:
                parts.append((part, (seeds - 1) * (blocks - 1)))
    return Spread(variance, resampled, tuple(parts))


def mean(effects: Sequence[Effect]) -> Effect:
    """Return the mean of effects. Draws must be joint where influences name the same policy or blocks. The mean has no
    draws if one of the effects has none.
    """
    value, share = float(np.mean([each.value for each in effects])), 1 / len(effects)
    draws = [each.draws for each in effects if each.draws is not None]
    if len(draws) < len(effects):
        return Effect(value)
    shares = [replace(one, effects=share * one.effects) for each in effects for one in each.influences]
    return Effect(value, np.mean(draws, axis=0), tuple(shares))


def _interaction(influences: np.ndarray) -> float:
    """Return the part of a statistic's variance that comes from the interaction of seeds and blocks and from the noise
    of single scores.
    """
    seeds, blocks = influences.shape
    if seeds == 1 or blocks == 1:
        return 0.0
    alone = influences - influences.mean(axis=1, keepdims=True) - influences.mean(axis=0)
    return float((alone**2).sum() * seeds * blocks / ((seeds - 1) * (blocks - 1)))
