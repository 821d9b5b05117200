"""Tests of schedlab.evaluation.intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oracles.plain_intervals import mean_squares, resampled_variance
from schedlab.evaluation import intervals


def influences(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean()) / scores.size


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_variances_are_those_of_plain_loops(seeds: int, blocks: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.normal(size=(seeds, 1)) + random.normal(size=blocks) + random.normal(size=(seeds, blocks))
    found = intervals.spread([influences(scores)])
    by_seed, by_block, both = mean_squares(scores.tolist())
    expected = max(by_seed - both, 0.0) + max(by_block - both, 0.0) + both
    assert found.variance == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.resampled == pytest.approx(resampled_variance(scores.tolist()), rel=1e-9, abs=1e-12)


def test_one_level_has_students_interval() -> None:
    scores = np.random.default_rng(1).normal(size=(7, 1))
    found = intervals.spread([influences(scores)])
    assert found.freedom == pytest.approx(6)
    expected = np.sqrt(7 / 6) * stats.t.ppf(0.975, 6) / stats.norm.ppf(0.975)
    assert found.stretch(0.95) == pytest.approx(expected)
    assert intervals.spread([influences(scores.T)]) == found


def test_degrees_of_freedom_are_satterthwaites() -> None:
    parts = ((2.0, 4), (1.0, 9))
    assert intervals.Spread(3.0, 1.0, parts).freedom == pytest.approx(3**2 / (2**2 / 4 + 1**2 / 9))
    assert intervals.Spread(0.5, 1.0, parts).freedom == 4  # never below those of one part


def test_two_samples_vary_as_their_draws_do() -> None:
    """Blocks are drawn jointly for both, seeds of each alone."""
    random = np.random.default_rng(2)
    of_blocks = random.normal(size=6)
    first, second = (influences(of_blocks + random.normal(size=(seeds, 6))) for seeds in (4, 3))
    found = intervals.spread([first, -second])
    blocks = random.multinomial(6, np.full(6, 1 / 6), 200_000)
    seeds, others = (random.multinomial(size, np.full(size, 1 / size), 200_000) for size in (4, 3))
    draws = ((seeds @ first - others @ second) * blocks).sum(axis=1)
    assert draws.var() == pytest.approx(found.resampled, rel=0.02)


def test_what_never_varies_is_certain() -> None:
    effect = intervals.Effect(2.0, np.full(100, 2.0), intervals.spread([np.zeros((5, 8))]))
    assert effect.interval(0.95) == (2.0, 2.0)
    assert intervals.Effect(2.0).interval(0.95) == (None, None)


def test_the_mean_of_independent_effects() -> None:
    random = np.random.default_rng(3)
    parts = [influences(random.normal(size=(5, 8))) for _ in range(2)]
    effects = [intervals.Effect(1.0 + k, random.normal(1.0 + k, 1, 500), intervals.spread([parts[k]])) for k in (0, 1)]
    found = intervals.mean(effects)
    assert found.value == 1.5
    assert found.draws == pytest.approx((effects[0].draws + effects[1].draws) / 2)
    assert found.spread.variance == pytest.approx(sum(each.spread.variance for each in effects) / 4)
    assert intervals.mean([effects[0], intervals.Effect(2.0)]) == intervals.Effect(1.5)
