"""Compares a policy with a rival chosen from several on other units: ratio, interval and verdict.

The rival is the best of its group on the units of choosing (validation). Each bootstrap resample draws the blocks of
these units and the seeds of each rival, chooses the rival again, and computes the statistics of policy and rival on
resampled test blocks, which are the same for all. An uncertain choice thus widens the interval. The random streams of
seeds and blocks are derived from the names of the policy and of the blocks, so scenarios that share a policy or blocks
use the same draws. Intervals are those of `schedlab.evaluation.intervals`; those of ratios are computed on a
logarithmic scale.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import intervals
from schedlab.evaluation.intervals import Effect, Influence
from schedlab.evaluation.statistics import (
    TIE,
    Sample,
    Statistic,
    draw,
    gains,
    influences,
    resample,
    statistic_of,
)

Verdict = Literal["better", "not distinguishable", "worse"]
Streams = Callable[..., np.random.Generator]  # names -> a random stream
FEWEST_SEEDS, FEWEST_BLOCKS = 3, 2  # seeds of a trained policy, blocks of test units; with fewer, no interval is given


@dataclass(frozen=True)
class Side:
    """A policy's scores on test units, and on the units on which rivals are chosen (None: it cannot be chosen; the same
    object as `test` if rivals are chosen on the test units).
    """

    test: Sample
    choosing: Sample | None = None


@dataclass(frozen=True)
class Ratio:
    """A policy compared with the rival that was chosen in a group.

    ratio, ci_low, ci_high  statistic of the policy over that of the rival on the test units that both have. There is no
      interval with fewer than three seeds of a trained policy or two blocks. There is no ratio if a statistic or an end
      of the interval is not positive; the interval of `difference` then decides the verdict
    difference, difference_low, difference_high  statistic of the policy minus that of the rival
    share_won  share of test units on which the policy is better than the rival (over all pairs of their seeds; a tie
      counts half)
    to_hindsight, hindsight  ratio to the rival that is best on the test units, and its name
    seeds, units, blocks  numbers of seeds of the policy, of test units and of their blocks
    not_chosen_from  rivals without scores on the units of choosing
    logarithm, change  logarithm of the ratio, and difference, each with its draws (for `pooled`)
    """

    rival: str
    ratio: float | None
    ci_low: float | None
    ci_high: float | None
    difference: float
    difference_low: float | None
    difference_high: float | None
    share_won: float
    to_hindsight: float | None
    hindsight: str
    seeds: int
    units: int
    blocks: int
    verdict: Verdict
    not_chosen_from: tuple[str, ...]
    better: str
    confidence: float
    logarithm: Effect | None
    change: Effect


def verdict(better: str, interval: tuple[float | None, float | None], equal: float = 1.0) -> Verdict:
    """Return the verdict from an interval of a ratio (or, with equal 0, of a difference); better: "lower" or
    "higher".
    """
    low, high = interval
    if low is None or high is None or low <= equal <= high:
        return "not distinguishable"
    return "better" if (high < equal) == (better == "lower") else "worse"


def against_chosen(
    name: str,
    policy: Side,
    rivals: Mapping[str, Side],
    better: str,
    settings: StatisticsSettings,
    streams: Streams,
) -> Ratio:
    """Compare a policy with the rival that is best on the units of choosing, on the test units that both have.

    The rival is chosen on the units of choosing that all rivals have; if several are equally good, the first by name is
    chosen. name: name of the policy. Raises ValueError if no rival can be chosen, if two sides have no unit in common,
    and if a unit is in different blocks.
    """
    names, statistic, sign = sorted(rivals), settings.statistic, 1.0 if better == "lower" else -1.0
    tests = {name: _facing(policy.test, rivals[name].test) for name in names}
    shared = all(rivals[name].choosing is rivals[name].test for name in names if rivals[name].choosing)
    choosing = _alike(rivals, tests, shared)
    values = {
        name: (statistic_of(ours, statistic), statistic_of(theirs, statistic)) for name, (ours, theirs) in tests.items()
    }
    chosen = min(choosing, key=lambda name: sign * statistic_of(choosing[name], statistic))
    hindsight = min(names, key=lambda name: sign * (values[name][1] - values[name][0]))
    ours, theirs = tests[chosen]
    draws = None
    blocks = len(_scored_blocks(ours))
    if blocks >= FEWEST_BLOCKS and all(len(side.seeds) >= FEWEST_SEEDS for side in (ours, theirs) if side.seeded):
        draws = _draws(name, choosing, tests, sign, settings, streams)
    change, logarithm = _effects({name: ours, chosen: theirs}, values[chosen], values, draws, statistic)
    return _ratio(
        Ratio(
            rival=chosen,
            ratio=None,
            ci_low=None,
            ci_high=None,
            difference=change.value,
            difference_low=None,
            difference_high=None,
            share_won=_share_won(ours, theirs, sign),
            to_hindsight=values[hindsight][0] / values[hindsight][1] if min(values[hindsight]) > 0 else None,
            hindsight=hindsight,
            seeds=len(ours.seeds),
            units=int((ours.weights.sum(axis=0) > 0).sum()),
            blocks=blocks,
            verdict="not distinguishable",
            not_chosen_from=tuple(name for name in names if name not in choosing),
            better=better,
            confidence=settings.confidence,
            change=change,
            logarithm=logarithm,
        )
    )


def pooled(parts: Sequence[Ratio]) -> Ratio:
    """Return the geometric mean of the ratios of parts (scenarios), or the mean of their differences if a part has no
    ratio.

    Different rivals' names are joined by " + ", in the order of the parts; `seeds` is the smallest number in a part.
    """
    logarithms, hindsights = [part.logarithm for part in parts], [part.to_hindsight for part in parts]
    known, ratios = [each for each in logarithms if each], [each for each in hindsights if each]
    return _ratio(
        replace(
            parts[0],
            rival=" + ".join(dict.fromkeys(part.rival for part in parts)),
            share_won=float(np.mean([part.share_won for part in parts])),
            to_hindsight=float(np.exp(np.mean(np.log(ratios)))) if len(ratios) == len(parts) else None,
            hindsight=" + ".join(dict.fromkeys(part.hindsight for part in parts)),
            seeds=min(part.seeds for part in parts),
            units=sum(part.units for part in parts),
            blocks=_distinct_blocks(parts),
            not_chosen_from=tuple(dict.fromkeys(name for part in parts for name in part.not_chosen_from)),
            change=intervals.mean([part.change for part in parts]),
            logarithm=intervals.mean(known) if len(known) == len(parts) else None,
        )
    )


def _ratio(found: Ratio) -> Ratio:
    """Set ratio, difference, their intervals and the verdict from the two effects."""
    change = found.change.interval(found.confidence)
    found = replace(found, difference=found.change.value, difference_low=change[0], difference_high=change[1])
    low, high = found.logarithm.interval(found.confidence) if found.logarithm else (None, None)
    measurable = low is None or high is None or bool(np.isfinite([low, high]).all())
    if found.logarithm is None or not measurable:
        return replace(found, ratio=None, ci_low=None, ci_high=None, verdict=verdict(found.better, change, 0.0))
    interval = None if low is None else float(np.exp(low)), None if high is None else float(np.exp(high))
    ratio = float(np.exp(found.logarithm.value))
    return replace(found, ratio=ratio, ci_low=interval[0], ci_high=interval[1], verdict=verdict(found.better, interval))


@dataclass(frozen=True)
class _Draws:
    """Statistics of the policy and of the rival chosen in each resample (resamples,), with that rival's name."""

    ours: np.ndarray
    theirs: np.ndarray
    rivals: np.ndarray


def _effects(
    sides: Mapping[str, Sample],
    found: tuple[float, float],
    values: Mapping[str, tuple[float, float]],
    draws: _Draws | None,
    statistic: Statistic,
) -> tuple[Effect, Effect | None]:
    """Return the difference and the logarithm of the ratio (None if a value is not positive).

    sides: the policy and the chosen rival; found: their statistics on the test units; values: the same for each rival
    """
    value, other = found
    positive = min(value, other) > 0
    if draws is None:
        return Effect(value - other), Effect(float(np.log(value / other))) if positive else None
    of_draws = np.array([values[name] for name in draws.rivals]).T
    apart = float(gains(np.array(value), np.array(other), -1.0))
    differences = _without_luck(gains(draws.ours, draws.theirs, -1.0), gains(of_draws[0], of_draws[1], -1.0))
    change = Effect(apart, differences, _influences(sides, statistic, (1.0, -1.0)))
    if not positive:
        return change, None
    logarithms = _without_luck(_log_ratio(draws.ours, draws.theirs), _log_ratio(*of_draws))
    relative = _influences(sides, statistic, (1 / value, -1 / other))
    return change, Effect(float(_log_ratio(np.array(value), np.array(other))), logarithms, relative)


def _influences(
    sides: Mapping[str, Sample], statistic: Statistic, factors: tuple[float, float]
) -> tuple[Influence, ...]:
    """Return the influences of policy and rival on the blocks with scores, each multiplied by a factor."""
    made = []
    for (name, side), factor in zip(sides.items(), factors, strict=True):
        scored = _scored_blocks(side)
        effects = factor * influences(side, statistic)[:, scored]
        names = tuple(side.block_names[place] for place in scored)
        made.append(Influence(effects, f"{name} {side.seeds}", names))
    return tuple(made)


def _scored_blocks(sample: Sample) -> np.ndarray:
    """Return the places of the blocks in which some seed has a score."""
    return np.unique(sample.block_numbers[sample.weights.sum(axis=0) > 0])


def _distinct_blocks(parts: Sequence[Ratio]) -> int:
    """Return the number of blocks of all parts, counting shared ones once. Parts without influences are assumed to
    share none.
    """
    known = {one.blocks for part in parts for one in part.change.influences}
    return sum(map(len, known)) + sum(part.blocks for part in parts if not part.change.influences)


def _log_ratio(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the logarithm of a ratio: 0 if both are 0 or tie, infinite if only one is 0 or negative."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = np.log(np.maximum(values, 0.0)), np.log(np.maximum(others, 0.0))
        return np.where((first == second) | (np.abs(first - second) <= TIE), 0.0, first - second)


def _without_luck(draws: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Subtract from draws their mean distance from the sample's own values for the rivals chosen in them.

    A rival has the same seeds on the units of choosing and on test units: one that is chosen for lucky seeds also seems
    better on test units. Resamples have the same bias as the sample.
    """
    with np.errstate(invalid="ignore"):
        errors = draws - values
    errors = errors[np.isfinite(errors)]
    return draws - errors.mean() if errors.size else draws


def _draws(
    policy: str,
    choosing: Mapping[str, Sample],
    tests: Mapping[str, tuple[Sample, Sample]],
    sign: float,
    settings: StatisticsSettings,
    streams: Streams,
) -> _Draws:
    """Resample seeds and blocks, and choose a rival in each resample."""
    size, statistic = settings.resamples, settings.statistic
    test, first = next(iter(tests.values()))[0], next(iter(choosing.values()))
    of_policy = draw(len(test.seeds), size, streams("seeds", policy, *test.seeds))
    blocks, choosing_blocks = (
        draw(side.block_count, size, streams("blocks", *side.block_names)) for side in (test, first)
    )
    seeds, scores = {}, []
    for name, there in choosing.items():
        known = sorted({*there.seeds, *tests[name][1].seeds})
        counts = dict(zip(known, draw(len(known), size, streams("seeds", name, *known)).T, strict=True))
        seeds[name] = np.stack([counts[seed] for seed in tests[name][1].seeds], axis=1)
        of_choosing = np.stack([counts[seed] for seed in there.seeds], axis=1)
        scores.append(sign * resample(there, statistic, (of_choosing, choosing_blocks)))
    names = np.array(list(choosing), dtype=object)
    chosen = names[np.argmin(np.nan_to_num(scores, nan=np.inf), axis=0)]
    ours, theirs = np.empty(size), np.empty(size)
    for name in choosing:
        rows = chosen == name
        ours[rows] = resample(tests[name][0], statistic, (of_policy[rows], blocks[rows]))
        theirs[rows] = resample(tests[name][1], statistic, (seeds[name][rows], blocks[rows]))
    return _Draws(ours, theirs, chosen)


def _alike(rivals: Mapping[str, Side], tests: Mapping[str, tuple[Sample, Sample]], shared: bool) -> dict[str, Sample]:
    """Return the samples for choosing, on the units of the first rival (shared: of the policy's test), with weight 0
    for units that some rival lacks.
    """
    samples = {name: tests[name][1] if shared else side for name in tests if (side := rivals[name].choosing)}
    if not samples:
        raise ValueError("no rival has scores on the units of choosing")
    common, first = set.intersection(*map(_scored, samples.values())), next(iter(samples.values()))
    if not common:
        raise ValueError(f"the rivals {', '.join(samples)} have no unit of choosing in common")
    return {name: _on_units(side, first.units, first.blocks, common) for name, side in samples.items()}


def _facing(policy: Sample, rival: Sample) -> tuple[Sample, Sample]:
    """Return both samples on the policy's units, with weight 0 for units that one of them lacks."""
    both = _scored(policy) & _scored(rival)
    if not both:
        raise ValueError("a policy and its rival have no test unit in common")
    ours, theirs = (_on_units(side, policy.units, policy.blocks, both) for side in (policy, rival))
    return ours, theirs


def _on_units(sample: Sample, units: Sequence[str], blocks: np.ndarray, scored: set[str]) -> Sample:
    """Return the sample with columns `units` in these blocks, and weight 0 for units that are not in `scored`."""
    places = [number for number, unit in enumerate(units) if unit in scored]
    columns = _columns(sample, [units[place] for place in places])
    if np.any(sample.blocks[columns] != blocks[places]):
        raise ValueError("a unit lies in different blocks for two policies")
    values, weights = np.zeros((2, len(sample.seeds), len(units)))
    values[:, places], weights[:, places] = sample.values[:, columns], sample.weights[:, columns]
    return Sample(values, weights, blocks, sample.seeds, tuple(units), sample.seeded)


def _scored(sample: Sample) -> set[str]:
    """Return the units for which some seed has a score."""
    return {unit for unit, weight in zip(sample.units, sample.weights.sum(axis=0), strict=True) if weight > 0}


def _columns(sample: Sample, units: Sequence[str]) -> list[int]:
    column = {unit: number for number, unit in enumerate(sample.units)}
    return [column[unit] for unit in units]


def _share_won(ours: Sample, theirs: Sample, sign: float) -> float:
    """Return the share of units won. On each unit, all pairs of scored seeds are compared; a tie counts half."""
    shares = []
    for unit in np.flatnonzero((ours.weights.sum(axis=0) > 0) & (theirs.weights.sum(axis=0) > 0)):
        mine, other = (side.values[side.weights[:, unit] > 0, unit] for side in (ours, theirs))
        shares.append((1 + np.sign(gains(mine[:, None], other, sign)).mean()) / 2)
    return float(np.mean(shares))
