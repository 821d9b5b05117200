"""Distributions of beta and of gaps: the published moments, what is refused, and the quirks behind their switches."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from schedlab.config.errors import UserError, UserErrors
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.studies.ramp.scenario import BETAS
from schedlab.studies.ramp.simulator.distributions import (
    DistributionSettings,
    alternatives,
    choose,
    require_shares,
    scaled_skew_normal,
    skew_normal_cdf,
)


def settings(kind: str, **values) -> DistributionSettings:
    return validate(DistributionSettings, {"kind": kind, **values})


def the_only(kind: str, **values):
    (found,) = alternatives(settings(kind, **values), generator(0, "test"))
    return found


def skewed(skewness: float, **values):
    return the_only("skew_normal", skewness=skewness, low=0.1, high=1.0, **values)


def test_a_fixed_distribution_has_one_value() -> None:
    found = the_only("fixed", value=1000.0)
    assert found.sample(generator(0, "a"), 3).tolist() == [1000.0] * 3
    assert (found.mean, found.std) == (1000.0, 0.0)


def test_the_uniform_distribution_of_the_experiments_has_91_values() -> None:
    found = the_only("uniform", low=0.1, high=1.0, decimals=2)
    assert found.values.tolist() == [number / 100 for number in range(10, 101)]
    assert np.allclose(found.probabilities, 1 / 91, rtol=1e-12)


@pytest.mark.parametrize(("decimals", "values"), [(0, [0.5, 1.5, 2.5]), (1, [0.5 + step / 10 for step in range(26)])])
def test_a_uniform_grid_starts_at_its_lowest_value_whatever_the_step(decimals: int, values: list[float]) -> None:
    assert the_only("uniform", low=0.5, high=3.0, decimals=decimals).values.tolist() == pytest.approx(values)


SKEWNESS = pytest.mark.parametrize(
    ("skewness", "mean", "std"), [(5, 0.284, 0.120), (0, 0.467, 0.110), (-5, 0.727, 0.109)]
)


@SKEWNESS
def test_drawn_skew_normals_have_the_published_moments(skewness: float, mean: float, std: float) -> None:
    """The extremes of a sample of 50,000 scale the shape, so its moments depend on the stream."""
    given = settings("skew_normal", skewness=skewness, low=0.1, high=1.0, shape="drawn")
    found = [alternatives(given, generator(seed, "beta"))[0] for seed in range(16)]
    for published, ours in ((mean, [one.mean for one in found]), (std, [one.std for one in found])):
        assert abs(np.mean(ours) - published) < 3 * np.std(ours, ddof=1) < 0.1
    for one in found:
        assert one.values.min() >= 0.1 and one.values.max() == 1.0
        assert np.array_equal(one.values, np.round(one.values, 2))
        assert one.probabilities.sum() == pytest.approx(1.0, abs=1e-12)


@SKEWNESS
def test_the_published_scenarios_have_the_published_moments(skewness: float, mean: float, std: float) -> None:
    """Samples of 50,000 scatter: the share of betas of D up to a half is between 0.04 and 0.13, and with it what
    fixed degrees block.
    """
    beta = {5: "B", 0: "C", -5: "D"}[skewness]
    (found,) = alternatives(validate(DistributionSettings, BETAS[beta]), generator(0, "test"))
    assert (found.mean, found.std) == (pytest.approx(mean, abs=1e-4), pytest.approx(std, abs=1e-4))
    assert (found.values.min(), found.values.max()) == (0.1, 1.0)


@SKEWNESS
def test_the_exact_shape_is_the_mean_of_drawn_ones_and_no_stream_changes_it(
    skewness: float, mean: float, std: float
) -> None:
    values = {"skewness": skewness, "low": 0.1, "high": 1.0}
    exact = [alternatives(settings("skew_normal", **values), generator(seed, "beta"))[0] for seed in range(2)]
    assert np.array_equal(exact[0].values, exact[1].values) and np.array_equal(
        exact[0].probabilities, exact[1].probabilities
    )
    drawn = [
        alternatives(settings("skew_normal", shape="drawn", **values), generator(seed, "beta"))[0] for seed in range(16)
    ]
    assert exact[0].mean == pytest.approx(np.mean([one.mean for one in drawn]), abs=0.012)
    assert exact[0].std == pytest.approx(np.mean([one.std for one in drawn]), abs=0.005)
    assert (exact[0].mean, exact[0].std) == (pytest.approx(mean, abs=0.05), pytest.approx(std, abs=0.02))
    assert exact[0].values.tolist() == pytest.approx([number / 100 for number in range(10, 101)])


def test_the_law_of_the_skew_normal_is_the_textbook_one() -> None:
    places = np.linspace(-4, 4, 41)
    assert np.allclose(skew_normal_cdf(places, 5.0), stats.skewnorm(5).cdf(places), atol=1e-9)


def test_draws_of_the_skew_normal_follow_its_textbook_law() -> None:
    drawn = scaled_skew_normal(settings("skew_normal", skewness=5, low=0.0, high=1.0), 20_000, generator(0, "law"))
    textbook = stats.skewnorm(5)
    location = drawn.mean() - textbook.mean() * drawn.std() / textbook.std()
    assert stats.kstest((drawn - location) * textbook.std() / drawn.std(), textbook.cdf).pvalue > 0.01


@pytest.mark.parametrize("shape", ["exact", "drawn"])
def test_values_below_the_lowest_are_piled_up_as_published_or_drawn_anew(shape: str) -> None:
    piled, spread = (skewed(5, below_low=choice, shape=shape) for choice in ("low", "redraw"))
    at_low = [float(found.probabilities[found.values <= 0.105].sum()) for found in (piled, spread)]
    assert at_low[0] > 0.02 > 2 * at_low[1]
    assert spread.mean > piled.mean


def test_samples_have_the_probabilities_and_one_number_each() -> None:
    found = the_only("pmf", probabilities={"0.25": 0.5, "0.5": 0.5, "1": 0.0})
    assert found.values.tolist() == [0.25, 0.5]
    drawn = found.sample(generator(1, "many"), 4000)
    assert np.mean(drawn == 0.25) == pytest.approx(0.5, abs=0.03)
    rng = generator(1, "many")
    assert [found.sample(rng) for _ in range(20)] == drawn[:20].tolist()


def test_probabilities_that_sum_to_one_but_for_rounding_are_refused_only_as_the_original_does() -> None:
    tenths = {str(number / 10): 0.1 for number in range(1, 11)}
    assert the_only("pmf", probabilities=tenths).mean == pytest.approx(0.55)
    with pytest.raises(UserErrors, match="probabilities"):
        settings("pmf", probabilities=tenths, exact_sum=True)


def test_an_episode_takes_one_of_several() -> None:
    found = alternatives(
        settings("one_of", choices=[{"kind": "fixed", "value": 0.2}, {"kind": "fixed", "value": 0.4}]),
        generator(0, "b"),
    )
    rng = generator(0, "episodes")
    means = [choose(found, rng).mean for _ in range(200)]
    assert set(means) == {0.2, 0.4} and 0.27 < np.mean(means) < 0.33
    alone = (found[0],)
    before = rng.bit_generator.state
    assert choose(alone, rng) is found[0] and rng.bit_generator.state == before


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"kind": "fixed"}, "value"),
        ({"kind": "fixed", "value": 1.0, "low": 0.1}, "low"),
        ({"kind": "uniform", "low": 0.1}, "high"),
        ({"kind": "uniform", "low": 1.0, "high": 0.1}, "low"),
        ({"kind": "uniform", "low": 0.0, "high": 1.0, "decimals": 9}, "decimals"),
        ({"kind": "skew_normal", "skewness": 1.0, "low": -1.0, "high": 1.0}, "low"),
        ({"kind": "pmf"}, "probabilities"),
        ({"kind": "pmf", "probabilities": {"1": 0.4}}, "probabilities"),
        ({"kind": "one_of"}, "choices"),
        ({"kind": "one_of", "choices": [{"kind": "one_of", "choices": [{"kind": "fixed", "value": 1.0}]}]}, "choices"),
        ({"kind": "normal"}, "normal"),
    ],
)
def test_what_is_no_distribution_is_told(values: dict, told: str) -> None:
    with pytest.raises(UserErrors, match=told):
        validate(DistributionSettings, values)


@pytest.mark.parametrize(
    "values",
    [
        {"extremes": [1, 1]},
        {"extremes": [-1, 1], "shape": "drawn"},
        {"kind": "uniform", "skewness": None, "extremes": [-1, 1]},
    ],
)
def test_extremes_are_for_the_exact_skew_normal(values: dict) -> None:
    given = {"kind": "skew_normal", "skewness": 1.0, "low": 0.1, "high": 1.0} | values
    with pytest.raises((UserError, UserErrors), match="extremes"):
        validate(DistributionSettings, given)


def test_a_beta_that_is_no_share_is_told() -> None:
    require_shares(alternatives(settings("uniform", low=0.1, high=1.0), generator(0, "b")), "beta")
    with pytest.raises(UserError, match=r"scenario x: beta: .*1\.01"):
        require_shares(alternatives(settings("uniform", low=0.1, high=1.05), generator(0, "b")), "scenario x: beta")


def test_the_same_stream_gives_the_same_shape() -> None:
    first, second = (skewed(5, shape="drawn") for _ in range(2))
    assert np.array_equal(first.values, second.values) and np.array_equal(first.probabilities, second.probabilities)
