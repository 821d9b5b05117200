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
    found = intervals.spread(intervals.of_one_scenario(influences(scores)))
    by_seed, by_block, both = mean_squares(scores.tolist())
    expected = max(by_seed - both, 0.0) + max(by_block - both, 0.0) + both
    assert found.variance == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert found.resampled == pytest.approx(resampled_variance(scores.tolist()), rel=1e-9, abs=1e-12)


def test_one_level_has_students_interval() -> None:
    scores = np.random.default_rng(1).normal(size=(7, 1))
    found = intervals.spread(intervals.of_one_scenario(influences(scores)))
    assert found.freedom == pytest.approx(6)
    expected = np.sqrt(7 / 6) * stats.t.ppf(0.975, 6) / stats.norm.ppf(0.975)
    assert found.stretch(0.95) == pytest.approx(expected)
    assert intervals.spread(intervals.of_one_scenario(influences(scores.T))) == found


def test_degrees_of_freedom_are_satterthwaites() -> None:
    parts = ((2.0, 4), (1.0, 9))
    assert intervals.Spread(3.0, 1.0, parts).freedom == pytest.approx(3**2 / (2**2 / 4 + 1**2 / 9))
    assert intervals.Spread(0.5, 1.0, parts).freedom == 4  # never below those of one part


def test_two_samples_vary_as_their_draws_do() -> None:
    """Blocks are drawn jointly for both, seeds of each alone."""
    random = np.random.default_rng(2)
    of_blocks = random.normal(size=6)
    first, second = (influences(of_blocks + random.normal(size=(seeds, 6))) for seeds in (4, 3))
    found = intervals.spread(intervals.of_one_scenario(first, -second))
    blocks = random.multinomial(6, np.full(6, 1 / 6), 200_000)
    seeds, others = (random.multinomial(size, np.full(size, 1 / size), 200_000) for size in (4, 3))
    draws = ((seeds @ first - others @ second) * blocks).sum(axis=1)
    assert draws.var() == pytest.approx(found.resampled, rel=0.02)


def test_what_never_varies_is_certain() -> None:
    effect = intervals.Effect(2.0, np.full(100, 2.0), intervals.of_one_scenario(np.zeros((5, 8))))
    assert effect.interval(0.95) == (2.0, 2.0)
    assert intervals.Effect(2.0).interval(0.95) == (None, None)


def test_the_mean_of_effects_is_as_sure_as_what_they_share_allows() -> None:
    """The deviation of the draws of two scenarios' mean, where seeds, blocks, both or none are shared."""
    random = np.random.default_rng(3)
    parts = [influences(random.normal(size=(4, 1)) + random.normal(size=6) + random.normal(size=(4, 6))) for _ in "ab"]

    def drawn(size: int) -> np.ndarray:
        return random.multinomial(size, np.full(size, 1 / size), 200_000)

    for same_seeds in (True, False):
        for same_blocks in (True, False):
            names = [("p" if same_seeds else f"p{k}", ("b" if same_blocks else f"b{k}",) * 6) for k in (0, 1)]
            influence = [intervals.Influence(part, *name) for part, name in zip(parts, names, strict=True)]
            effects = [intervals.Effect(1.0 + k, np.full(3, k), (influence[k],)) for k in (0, 1)]
            found = intervals.mean(effects)
            seeds, blocks = drawn(4), drawn(6)
            draws = ((seeds @ parts[0]) * blocks).sum(axis=1)
            seeds, blocks = seeds if same_seeds else drawn(4), blocks if same_blocks else drawn(6)
            draws += ((seeds @ parts[1]) * blocks).sum(axis=1)
            assert (draws / 2).var() == pytest.approx(intervals.spread(found.influences).resampled, rel=0.02)
            assert found.value == 1.5 and found.draws == pytest.approx(0.5)
    assert intervals.mean([effects[0], intervals.Effect(2.0)]) == intervals.Effect(1.5)


def test_independent_effects_add_their_variances() -> None:
    random = np.random.default_rng(4)
    parts = [influences(random.normal(size=(5, 8))) for _ in range(2)]
    alone = [intervals.Influence(part, f"p{k}", (f"b{k}",) * 8) for k, part in enumerate(parts)]
    variances = [intervals.spread([one]).variance for one in alone]
    assert intervals.spread(alone).variance == pytest.approx(sum(variances))
    shared = [intervals.Influence(part, "p", ("b",) * 8) for part in (parts[0], parts[0])]
    assert intervals.spread(shared).variance == pytest.approx(4 * variances[0])
