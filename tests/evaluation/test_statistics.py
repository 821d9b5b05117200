"""Tests of schedlab.evaluation.statistics."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oracles.plain_intervals import one_level
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import statistics
from schedlab.evaluation.statistics import Sample

finite = st.floats(-1e6, 1e6, allow_nan=False)


def make_sample(
    values: np.ndarray, *, blocks: list[int] | None = None, weights: np.ndarray | None = None, seeded: bool = True
) -> Sample:
    values = np.atleast_2d(np.asarray(values, dtype=float))
    rows, columns = values.shape
    return Sample(
        values=values,
        weights=np.ones_like(values) if weights is None else np.broadcast_to(weights, values.shape).astype(float),
        blocks=np.array(blocks if blocks is not None else range(columns)),
        seeds=tuple(range(rows)),
        units=tuple(f"u{i:04d}" for i in range(columns)),
        seeded=seeded,
    )


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_one_difference_has_no_standardised_size() -> None:
    assert statistics.standardised(np.array([0.5])) is None
    assert statistics.standardised(np.array([1.0, 3.0])) == pytest.approx(2 / np.sqrt(2))


@given(st.lists(finite, min_size=1, max_size=40))
def test_interquartile_mean_is_scipys_trimmed_mean(values: list[float]) -> None:
    assert statistics.interquartile_mean(np.array(values)) == pytest.approx(
        stats.trim_mean(values, 0.25), rel=1e-12, abs=1e-9
    )


@given(st.lists(st.tuples(finite, st.integers(1, 5)), min_size=1, max_size=20))
def test_weighted_mean_is_the_mean_of_repeated_values(pairs: list[tuple[float, int]]) -> None:
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    repeated = np.repeat(values, weights)
    assert statistics.weighted_mean(values, weights) == pytest.approx(repeated.mean(), rel=1e-9, abs=1e-6)


def repeat_counts(
    sample: Sample, seeds: np.ndarray, blocks: np.ndarray, weighted: bool
) -> tuple[list[float], list[float]]:
    """Write a resample out by plain loops."""
    values, weights = [], []
    for row in range(len(sample.seeds)):
        for column in range(len(sample.units)):
            times = int(seeds[row] * blocks[sample.block_numbers[column]])
            if sample.weights[row, column] > 0:
                values += [sample.values[row, column]] * times
                weights += [sample.weights[row, column] if weighted else 1.0] * times
    return values, weights


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(2, 12), st.integers(0, 2**32 - 1), st.sampled_from(["mean", "iqm"]))
def test_resamples_are_those_of_plain_loops(seeds: int, units: int, seed: int, statistic: str) -> None:
    random = rng(seed)
    blocks = np.unique(random.integers(0, 4, units), return_inverse=True)[1]
    weights = random.choice([0.0, 0.5, 1.0, 3.0], (seeds, units))
    sample = make_sample(random.normal(size=(seeds, units)).round(1), blocks=list(blocks), weights=weights)
    counts = statistics.draw_counts(sample, 20, random)
    found = statistics.resample(sample, statistic, counts)
    for number in range(20):
        values, given = repeat_counts(sample, counts[0][number], counts[1][number], statistic == "mean")
        if not values:
            assert np.isnan(found[number])
            continue
        expected = stats.trim_mean(values, 0.25) if statistic == "iqm" else np.average(values, weights=given)
        assert found[number] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_counts_are_draws_with_replacement() -> None:
    seeds, blocks = statistics.draw_counts(make_sample(np.zeros((5, 8)), blocks=[0, 0, 1, 1, 2, 2, 3, 3]), 4000, rng())
    assert (seeds.sum(axis=1) == 5).all()
    assert (blocks.sum(axis=1) == 4).all()
    assert seeds.mean(axis=0) == pytest.approx(np.ones(5), abs=0.06)
    assert seeds.var(axis=0) == pytest.approx(np.full(5, 0.8), abs=0.06)  # binomial(5, 1/5)


@pytest.mark.parametrize("statistic", ["mean", "iqm"])
def test_one_level_agrees_with_scipy(statistic: str) -> None:
    values = rng(3).gamma(2.0, 1.0, 40)
    ours = statistics.estimate(
        make_sample(values, seeded=False), StatisticsSettings(statistic=statistic, resamples=20000), rng(1)
    )
    function = np.mean if statistic == "mean" else lambda x, axis: stats.trim_mean(x, 0.25, axis=axis)
    theirs = stats.bootstrap(
        (values,), function, n_resamples=20000, method="percentile", rng=rng(2)
    ).confidence_interval
    centre, width = function(values, axis=0), theirs.high - theirs.low
    shifted = list(values - values.mean() + centre)
    low, high = one_level(shifted, theirs.low, theirs.high, 0.95)
    within = 0.02 * width if statistic == "mean" else 0.06 * width  # to first order only for an interquartile mean
    assert (ours.ci_low, ours.ci_high) == pytest.approx((low, high), abs=within)


def coverage(seeds: int, blocks: int, trials: int = 400) -> float:
    """Share of intervals that hold the true mean 0 where seeds, blocks and single scores all vary."""
    random, hits = rng(11), 0
    for _ in range(trials):
        of_block = np.repeat(random.normal(size=blocks), 2)  # two units a block
        values = random.normal(size=(seeds, 1)) + of_block + random.normal(size=(seeds, 2 * blocks))
        sample = make_sample(values, blocks=list(np.repeat(np.arange(blocks), 2)))
        estimate = statistics.estimate(sample, StatisticsSettings(resamples=400), random, fewest=3)
        hits += estimate.ci_low <= 0.0 <= estimate.ci_high
    return hits / trials


@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_two_level_intervals_cover(seeds: int) -> None:
    assert 0.89 <= coverage(seeds, blocks=20) <= 0.985  # of 400 trials; recorded: docs/results/interval_coverage.csv


def test_ignoring_blocks_would_not_cover() -> None:
    """The same scores with every unit a block of its own give intervals that are too short."""
    random = rng(5)
    values = np.repeat(random.normal(size=(1, 10)), 20, axis=1)
    given = StatisticsSettings(resamples=2000)
    honest = statistics.estimate(
        make_sample(values, blocks=list(np.repeat(np.arange(10), 20)), seeded=False), given, rng()
    )
    naive = statistics.estimate(make_sample(values, seeded=False), given, rng())
    assert (honest.ci_high - honest.ci_low) > 3 * (naive.ci_high - naive.ci_low)


@pytest.mark.parametrize(
    ("seeds", "blocks", "seeded", "interval", "over"),
    [
        (4, 10, True, False, "seeds"),
        (5, 1, True, True, "seeds"),
        (1, 10, True, False, "blocks"),
        (1, 4, False, False, "blocks"),
        (1, 5, False, True, "blocks"),
    ],
)
def test_no_interval_below_five(seeds: int, blocks: int, seeded: bool, interval: bool, over: str) -> None:
    values = rng(4).normal(size=(seeds, blocks))
    found = statistics.estimate(make_sample(values, seeded=seeded), StatisticsSettings(), rng())
    assert (found.ci_low is not None, found.ci_high is not None) == (interval, interval)
    assert found.range_over == over
    singles = values.mean(axis=1) if over == "seeds" else values[0]
    assert (found.range_low, found.range_high) == pytest.approx((singles.min(), singles.max()))


def test_the_same_names_give_the_same_interval() -> None:
    sample = make_sample(rng(1).normal(size=(6, 9)))
    first, second, other = (statistics.estimate(sample, StatisticsSettings(), rng(seed)) for seed in (1, 1, 2))
    assert first == second
    assert (first.ci_low, first.ci_high) != (other.ci_low, other.ci_high)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10), st.floats(-5, 5))
def test_estimates_move_with_the_values(seed: int, scale: float, shift: float) -> None:
    values = rng(seed).normal(size=(5, 7))
    given = StatisticsSettings(resamples=100)
    first = statistics.estimate(make_sample(values), given, rng())
    moved = statistics.estimate(make_sample(values * scale + shift), given, rng())
    for name in ("value", "ci_low", "ci_high", "range_low", "range_high"):
        assert getattr(moved, name) == pytest.approx(getattr(first, name) * scale + shift, rel=1e-9, abs=1e-9)


# --- comparisons


def test_a_constant_gain_is_certain() -> None:
    base = rng(2).normal(size=(5, 12))
    found = statistics.compare(make_sample(base - 1.0), make_sample(base), "lower", StatisticsSettings(), rng())
    assert (found.difference.value, found.difference.ci_low, found.difference.ci_high) == pytest.approx(
        (-1.0, -1.0, -1.0)
    )
    assert found.win_rate == 1.0
    assert found.standardised is None or found.standardised > 1e6
    assert found.cliffs_delta > 0


def test_better_higher_turns_the_signs() -> None:
    first, second = make_sample(rng(1).normal(size=(5, 9))), make_sample(rng(2).normal(size=(5, 9)))
    lower, higher = (
        statistics.compare(first, second, better, StatisticsSettings(), rng()) for better in ("lower", "higher")
    )
    assert lower.difference == higher.difference
    assert lower.win_rate == pytest.approx(1 - higher.win_rate)
    assert lower.cliffs_delta == pytest.approx(-higher.cliffs_delta)
    assert lower.standardised == pytest.approx(-higher.standardised)


def test_comparing_with_oneself_shows_nothing() -> None:
    sample = make_sample(rng(1).normal(size=(5, 9)))
    found = statistics.compare(sample, sample, "lower", StatisticsSettings(), rng())
    assert (found.difference.value, found.win_rate, found.cliffs_delta, found.standardised) == (0.0, 0.5, 0.0, None)


def test_pairing_shortens_the_interval() -> None:
    """Units that are hard for both sides do not blur the difference."""
    hard = rng(1).normal(0, 10, 30)
    policy, baseline = make_sample(hard + rng(2).normal(0, 0.1, (5, 30)) - 0.5), make_sample(hard, seeded=False)
    found = statistics.compare(policy, baseline, "lower", StatisticsSettings(), rng())
    alone = statistics.estimate(policy, StatisticsSettings(), rng())
    assert found.difference.ci_high < 0
    assert (found.difference.ci_high - found.difference.ci_low) < 0.1 * (alone.ci_high - alone.ci_low)
    assert found.difference.seeds == 5


def test_one_learned_seed_is_not_enough_against_five() -> None:
    policy, baseline = make_sample(rng(1).normal(size=(1, 9))), make_sample(rng(2).normal(size=(5, 9)))
    assert statistics.compare(policy, baseline, "lower", StatisticsSettings(), rng()).difference.ci_low is None
    rule = make_sample(rng(1).normal(size=(1, 9)), seeded=False)
    assert statistics.compare(rule, baseline, "lower", StatisticsSettings(), rng()).difference.ci_low is not None


def test_only_what_both_scored_is_compared() -> None:
    values = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 30.0]])
    weights = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    first = make_sample(values, weights=weights, blocks=[1, 0, 1])
    second = Sample(np.zeros((2, 2)), np.ones((2, 2)), np.array([0, 1]), (0, 1), ("u0001", "u0002"), True)
    ours, theirs = statistics.pair(first, second)
    assert ours.units == theirs.units == ("u0001", "u0002")
    assert statistics.compare(first, second, "lower", StatisticsSettings(), rng()).difference.value == pytest.approx(
        (2 + 3 + 2) / 3
    )
    stranger = Sample(np.zeros((2, 1)), np.ones((2, 1)), np.array([0]), (7, 8), ("u0001",), True)
    with pytest.raises(ValueError, match="no unit or no seed in common"):
        statistics.pair(first, stranger)


@given(st.lists(finite, min_size=1, max_size=15), st.lists(finite, min_size=1, max_size=15))
def test_cliffs_delta_by_all_pairs(first: list[float], second: list[float]) -> None:
    pairs = [np.sign(a - b) for a in first for b in second]
    assert statistics.cliffs_delta(first, second) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_sample_from_a_scores_table() -> None:
    rows = [
        {
            "policy_seed": seed,
            "unit": unit,
            "block": block,
            "value": 10.0 * seed + number,
            "weight": 1.0 + number,
            "trained_on": "",
        }
        for seed in (3, 1)
        for number, (unit, block) in enumerate([("b", "late"), ("a", "early"), ("c", "late")])
        if (seed, unit) != (3, "c")
    ]
    found = statistics.sample(pd.DataFrame(rows))
    assert (found.seeds, found.units) == ((1, 3), ("a", "b", "c"))
    assert found.values.tolist() == [[11.0, 10.0, 12.0], [31.0, 30.0, 0.0]]
    assert found.weights.tolist() == [[2.0, 1.0, 3.0], [2.0, 1.0, 0.0]]
    assert found.block_numbers.tolist() == [0, 1, 1]
    assert found.seeded
    one_seed = pd.DataFrame(rows).query("policy_seed == 1")
    assert not statistics.sample(one_seed).seeded
    assert statistics.sample(one_seed.assign(trained_on="early")).seeded
    rows[0]["block"] = "elsewhere"
    with pytest.raises(ValueError, match="different blocks"):
        statistics.sample(pd.DataFrame(rows))
