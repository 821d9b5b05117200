"""Means, interquartile means, bootstrap intervals over seeds and blocks, and paired comparisons.

Every policy is scored with several seeds (rows) on the same units (columns), and units that overlap or share an origin
form a block. Seeds and blocks are thus crossed, and both are resampled independently in each bootstrap resample (A. B.
Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2), 2007); with one seed or one block this is the
ordinary one-level bootstrap. `schedlab.evaluation.intervals` computes intervals from the draws. The interquartile mean
for few runs is that of R. Agarwal et al., "Deep reinforcement learning at the edge of the statistical precipice",
NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.intervals import Effect, of_one_scenario

if TYPE_CHECKING:
    import pandas as pd

Statistic = Literal["mean", "iqm"]
SMALLEST = 5  # seeds (for a policy without seeds: blocks); with fewer, no interval is given
TIE = 1e-12  # largest relative difference of equal scores, so that rounding decides no win
CHUNK = 2_000_000  # numbers in memory at once while interquartile means are resampled


@dataclass(frozen=True)
class Sample:
    """One metric of one policy: values and weights (seeds, units). A pair that was not scored has weight 0 and value 0.

    blocks: name of each unit's block (units,). seeds, units: the names of rows and columns.
    seeded: the policy is learned or draws random numbers, so that seeds, not blocks, decide whether an interval is
      given.
    """

    values: np.ndarray
    weights: np.ndarray
    blocks: np.ndarray
    seeds: tuple[int, ...]
    units: tuple[str, ...]
    seeded: bool

    @cached_property
    def block_names(self) -> tuple[str, ...]:
        """Names of the blocks, sorted."""
        return tuple(str(name) for name in np.unique(self.blocks))

    @cached_property
    def block_numbers(self) -> np.ndarray:
        """The place of each unit's block in `block_names` (units,)."""
        return np.unique(self.blocks, return_inverse=True)[1]

    @property
    def block_count(self) -> int:
        return len(self.block_names)


@dataclass(frozen=True)
class Estimate:
    """A value with its uncertainty; the interval is None if there are too few seeds or blocks.

    range_low, range_high: smallest and largest value of a single seed (range_over "seeds") or, if there is only one
      seed, of a single block ("blocks")
    """

    value: float
    ci_low: float | None
    ci_high: float | None
    range_low: float
    range_high: float
    range_over: Literal["seeds", "blocks"]
    seeds: int
    units: int
    blocks: int


@dataclass(frozen=True)
class Comparison:
    """A policy compared with a baseline on the same units and seeds.

    difference    statistic of the policy minus that of the baseline, resampled together
    relative      difference over the absolute value of the baseline; None if that is 0
    win_rate      share of units on which the policy is better (mean over seeds; a tie counts half)
    cliffs_delta  P(better) - P(worse) over all pairs of scores of the two (N. Cliff, Psychological Bulletin 114(3),
                  1993)
    standardised  mean over standard deviation of the units' differences, positive if the policy is better; None if all
                  are equal
    """

    difference: Estimate
    relative: float | None
    win_rate: float
    cliffs_delta: float
    standardised: float | None


def weighted_mean(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the mean of `values` with non-negative `weights` of the same shape (None: equal)."""
    return float(np.average(values, weights=weights))


def interquartile_mean(values: np.ndarray) -> float:
    """Return the mean without the floor(n/4) smallest and largest values: scipy.stats.trim_mean(values, 0.25)."""
    ordered = np.sort(np.ravel(values))
    cut = ordered.size // 4
    return float(ordered[cut : ordered.size - cut].mean())


def sample(scores: pd.DataFrame) -> Sample:
    """Return the sample of one policy, split and metric from its rows of the scores table. Raises ValueError for a unit
    in two blocks.
    """
    seeds, rows = np.unique(scores["policy_seed"].to_numpy(), return_inverse=True)
    units, first, columns = np.unique(scores["unit"].to_numpy(dtype=object), return_index=True, return_inverse=True)
    names = scores["block"].to_numpy(dtype=object)
    if np.any(names != names[first][columns]):
        raise ValueError("a unit lies in different blocks for different seeds")
    values, weights = np.zeros((seeds.size, units.size)), np.zeros((seeds.size, units.size))
    values[rows, columns] = scores["value"].to_numpy()
    weights[rows, columns] = scores["weight"].to_numpy()
    return Sample(
        values=values,
        weights=weights,
        blocks=names[first],
        seeds=tuple(int(seed) for seed in seeds),
        units=tuple(str(unit) for unit in units),
        seeded=seeds.size > 1 or bool(scores["trained_on"].iloc[0]),
    )


def averaged(sample: Sample) -> Sample:
    """Return the mean over seeds, as a sample with one seed, so that an interval covers blocks only."""
    values, weights = sample.values.mean(axis=0, keepdims=True), sample.weights.mean(axis=0, keepdims=True)
    return replace(sample, values=values, weights=weights, seeds=sample.seeds[:1], seeded=False)


def statistic_of(sample: Sample, statistic: Statistic) -> float:
    """Return the weighted mean of a sample, or the interquartile mean of all its scores (seeds pooled, weights not
    used).
    """
    scored = sample.weights > 0
    if statistic == "iqm":
        return interquartile_mean(sample.values[scored])
    return weighted_mean(sample.values[scored], sample.weights[scored])


def draw_counts(sample: Sample, resamples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw how often each seed (resamples, seeds) and each block (resamples, blocks) occurs in each resample."""
    return draw(len(sample.seeds), resamples, rng), draw(sample.block_count, resamples, rng)


def draw(size: int, resamples: int, rng: np.random.Generator) -> np.ndarray:
    """Draw `size` of `size` with replacement in each resample, and count how often each was drawn: (resamples,
    size).
    """
    drawn = rng.integers(0, size, (resamples, size)) + size * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * size).reshape(resamples, size)


def resample(sample: Sample, statistic: Statistic, counts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return the statistic of each resample (resamples,); NaN for a resample without scores."""
    return _resample_iqm(sample, *counts) if statistic == "iqm" else _resample_mean(sample, *counts)


def _resample_mean(sample: Sample, seeds: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    sums, totals = _by_block(sample, sample.values * sample.weights), _by_block(sample, sample.weights)
    with np.errstate(invalid="ignore"):
        means: np.ndarray = ((seeds @ sums) * blocks).sum(axis=1) / ((seeds @ totals) * blocks).sum(axis=1)
    return means


def _by_block(sample: Sample, values: np.ndarray) -> np.ndarray:
    """Sum values (seeds, units) over the units of each block: (seeds, blocks)."""
    return np.stack([np.bincount(sample.block_numbers, row, minlength=sample.block_count) for row in values])


def _resample_iqm(sample: Sample, seeds: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the interquartile mean of each resample. The scores are sorted once; a score that is drawn n times fills n
    places in this order, and the places between the first and the last quarter are averaged.
    """
    row, column = np.nonzero(sample.weights > 0)
    order = np.argsort(sample.values[row, column], kind="stable")
    row, block = row[order], sample.block_numbers[column[order]]
    values = sample.values[row, column[order]]
    means = np.empty(len(seeds))
    step = max(1, CHUNK // max(1, values.size))
    for start in range(0, len(seeds), step):
        part = slice(start, start + step)
        counts = seeds[part][:, row] * blocks[part][:, block]
        last = np.cumsum(counts, axis=1)
        cut = last[:, -1:] // 4
        kept = np.clip(np.minimum(last, last[:, -1:] - cut) - np.maximum(last - counts, cut), 0, None)
        with np.errstate(invalid="ignore"):
            means[part] = (kept @ values) / kept.sum(axis=1)
    return means


def influences(sample: Sample, statistic: Statistic) -> np.ndarray:
    """Return the first-order effect of the scores of each seed in each block on the statistic (seeds, blocks). The
    effects sum to 0.

    For an interquartile mean, scores outside of the quartiles have the effect of the nearest quartile (F. R. Hampel et
    al., "Robust Statistics", 1986, section 2.3: the influence function of the trimmed mean).
    """
    scored = sample.weights > 0
    effects = np.zeros_like(sample.values)
    if statistic == "iqm":
        values = sample.values[scored]
        cut = values.size // 4
        ordered = np.partition(values, (cut, values.size - cut - 1))
        moved = np.clip(values, ordered[cut], ordered[values.size - cut - 1])
        effects[scored] = (moved - moved.mean()) / (values.size - 2 * cut)
    else:
        effects = (sample.values - statistic_of(sample, statistic)) * sample.weights / sample.weights.sum()
    return _by_block(sample, effects)


def estimate(
    sample: Sample, settings: StatisticsSettings, rng: np.random.Generator, fewest: int = SMALLEST
) -> Estimate:
    """Return value, interval and range of one policy's sample. fewest: smallest number of seeds (without seeds: of
    blocks) for an interval.
    """
    value = statistic_of(sample, settings.statistic)
    effect = Effect(value)
    if (len(sample.seeds) if sample.seeded else sample.block_count) >= fewest:
        draws = resample(sample, settings.statistic, draw_counts(sample, settings.resamples, rng))
        effect = Effect(value, draws, of_one_scenario(influences(sample, settings.statistic)))
    return _estimate(sample, effect, _single_values(sample, settings.statistic), settings.confidence)


def compare(
    policy: Sample, baseline: Sample, better: str, settings: StatisticsSettings, rng: np.random.Generator
) -> Comparison:
    """Compare a policy with a baseline on the units on which both were scored.

    Seeds are paired by number; a side with one seed, such as a rule, is compared with every seed of the other. Seeds
    and blocks are resampled together for both sides. better: "lower" or "higher". Raises ValueError if both sides have
    no unit or no seed in common.
    """
    ours, theirs = pair(policy, baseline)
    seeds = [len(side.seeds) for side in (policy, baseline) if side.seeded]
    value, reference = statistic_of(ours, settings.statistic), statistic_of(theirs, settings.statistic)
    effect = Effect(value - reference)
    if (min(*seeds, len(ours.seeds)) if seeds else ours.block_count) >= SMALLEST:
        counts = draw_counts(ours, settings.resamples, rng)
        draws = resample(ours, settings.statistic, counts) - resample(theirs, settings.statistic, counts)
        together = influences(ours, settings.statistic) - influences(theirs, settings.statistic)
        effect = Effect(value - reference, draws, of_one_scenario(together))
    singles = _single_values(ours, settings.statistic) - _single_values(theirs, settings.statistic)
    scored, sign = ours.weights > 0, 1.0 if better == "higher" else -1.0
    gain = gains(ours.values, theirs.values, -sign)
    wins = np.average((np.sign(gain) + 1) / 2, axis=0, weights=scored.astype(float))
    return Comparison(
        difference=_estimate(ours, effect, singles, settings.confidence),
        relative=(value - reference) / abs(reference) if reference else None,
        win_rate=float(wins.mean()),
        cliffs_delta=sign * cliffs_delta(ours.values[scored], theirs.values[scored]),
        standardised=standardised(np.average(gain, axis=0, weights=scored.astype(float))),
    )


def gains(values: np.ndarray, others: np.ndarray, sign: float) -> np.ndarray:
    """Return how much better `values` are than `others`, 0 for a tie; sign: 1 if lower is better, else -1."""
    gain = np.asarray(sign * (others - values))
    gain[np.abs(gain) <= TIE * np.maximum(np.abs(values), np.abs(others))] = 0.0
    return gain


def pair(first: Sample, second: Sample) -> tuple[Sample, Sample]:
    """Restrict two samples to the seeds and units that both have. If one has a single seed, it is repeated for each
    seed of the other.
    """
    units = sorted(set(first.units) & set(second.units))
    seeds = sorted(set(first.seeds) & set(second.seeds))
    if len(first.seeds) == 1 or len(second.seeds) == 1:
        seeds = list(first.seeds if len(first.seeds) >= len(second.seeds) else second.seeds)
    if not units or not seeds:
        raise ValueError("two policies have no unit or no seed in common")
    first, second = _cut(first, seeds, units), _cut(second, seeds, units)
    if np.any(first.blocks != second.blocks):
        raise ValueError("a unit lies in different blocks for the two policies of a comparison")
    both = (first.weights > 0) & (second.weights > 0)
    kept = np.asarray(both.any(axis=0))
    if not kept.any():
        raise ValueError("two policies have no scored unit in common")
    return _masked(first, both, kept), _masked(second, both, kept)


def cliffs_delta(first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray) -> float:
    """Return P(first > second) - P(first < second) over all pairs; -1 to 1."""
    ordered = np.sort(np.asarray(second, dtype=float))
    below = np.searchsorted(ordered, first, side="left").sum()
    above = (ordered.size - np.searchsorted(ordered, first, side="right")).sum()
    return float(below - above) / (len(first) * ordered.size)


def _cut(sample: Sample, seeds: list[int], units: list[str]) -> Sample:
    row = {seed: number for number, seed in enumerate(sample.seeds)}
    column = {unit: number for number, unit in enumerate(sample.units)}
    rows = [0 if len(sample.seeds) == 1 else row[seed] for seed in seeds]
    grid = np.ix_(rows, [column[unit] for unit in units])
    blocks = sample.blocks[grid[1].ravel()]
    return Sample(sample.values[grid], sample.weights[grid], blocks, tuple(seeds), tuple(units), sample.seeded)


def _masked(sample: Sample, both: np.ndarray, kept: np.ndarray) -> Sample:
    """Drop the pairs that only one side scored, and units without scored pairs."""
    values, weights = np.where(both, sample.values, 0.0)[:, kept], np.where(both, sample.weights, 0.0)[:, kept]
    units = tuple(unit for unit, keep in zip(sample.units, kept, strict=True) if keep)
    return Sample(values, weights, sample.blocks[kept], sample.seeds, units, sample.seeded)


def _single_values(sample: Sample, statistic: Statistic) -> np.ndarray:
    """Return the statistic of each seed alone, or, if there is one seed, of each block alone."""
    if len(sample.seeds) > 1:
        counts = np.eye(len(sample.seeds), dtype=int), np.ones((len(sample.seeds), sample.block_count), dtype=int)
    else:
        counts = np.ones((sample.block_count, 1), dtype=int), np.eye(sample.block_count, dtype=int)
    return resample(sample, statistic, counts)


def _estimate(sample: Sample, effect: Effect, singles: np.ndarray, level: float) -> Estimate:
    low, high = effect.interval(level)
    return Estimate(
        value=effect.value,
        ci_low=low,
        ci_high=high,
        range_low=float(np.nanmin(singles)),
        range_high=float(np.nanmax(singles)),
        range_over="seeds" if len(sample.seeds) > 1 else "blocks",
        seeds=len(sample.seeds),
        units=len(sample.units),
        blocks=sample.block_count,
    )


def standardised(gains: np.ndarray) -> float | None:
    """Return mean over standard deviation of paired differences, one for each unit (Cohen's d_z); None if all are
    equal.
    """
    deviation = float(np.std(gains, ddof=1)) if gains.size > 1 else 0.0
    return float(gains.mean()) / deviation if deviation > 0 else None
