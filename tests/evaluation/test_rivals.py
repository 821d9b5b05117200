"""Tests of schedlab.evaluation.rivals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.rivals import Ratio, Side, against_chosen, pooled, verdict
from schedlab.evaluation.statistics import Sample

SETTINGS = StatisticsSettings(resamples=500)


def make(
    values: np.ndarray, *, seeded: bool | None = None, first: int = 0, blocks: Sequence[int | str] | None = None
) -> Sample:
    values = np.atleast_2d(np.asarray(values, dtype=float))
    rows, columns = values.shape
    units = tuple(f"u{number:03d}" for number in range(first, first + columns))
    names = np.array(units if blocks is None else blocks)
    return Sample(
        values, np.ones_like(values), names, tuple(range(rows)), units, rows > 1 if seeded is None else seeded
    )


def against(
    policy: Sample,
    others: dict[str, tuple[Sample, Sample | None]],
    better: str = "lower",
    seed: int = 0,
    name: str = "ours",
    **changed: str,
) -> Ratio:
    sides = {name: Side(test, choosing) for name, (test, choosing) in others.items()}
    given = SETTINGS.model_copy(update=changed)
    return against_chosen(name, Side(policy), sides, better, given, partial(generator, seed))


def noise(seed: int, *shape: int, size: float = 0.1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, size, shape)


def test_the_rival_is_chosen_on_its_own_units() -> None:
    policy = make(8 + noise(1, 5, 20))
    found = against(
        policy,
        {
            "best_in_validation": (make(10 + noise(2, 20)), make(9 + noise(3, 12))),
            "best_in_test": (make(9 + noise(4, 20)), make(10 + noise(5, 12))),
        },
    )
    assert (found.rival, found.hindsight) == ("best_in_validation", "best_in_test")
    assert found.ratio == pytest.approx(0.8, abs=0.02)
    assert found.to_hindsight == pytest.approx(8 / 9, abs=0.02)
    assert found.ci_low < found.ratio < found.ci_high < 1
    assert found.difference_low < found.difference < found.difference_high < 0
    assert (found.verdict, found.share_won) == ("better", 1.0)
    assert (found.seeds, found.units, found.blocks) == (5, 20, 20)
    assert found.not_chosen_from == ()


@pytest.mark.parametrize("statistic", ["mean", "iqm"])
def test_higher_turns_choice_and_verdict(statistic: str) -> None:
    policy = make(8 + noise(1, 5, 20))
    others = {
        "high": (make(10 + noise(2, 20)), make(10 + noise(3, 12))),
        "low": (make(6 + noise(4, 20)), make(6 + noise(5, 12))),
    }
    higher, lower = (against(policy, others, better, statistic=statistic) for better in ("higher", "lower"))
    assert (higher.rival, higher.verdict, higher.share_won) == ("high", "worse", 0.0)
    assert (lower.rival, lower.verdict, lower.share_won) == ("low", "worse", 0.0)
    assert higher.hindsight == "high"
    assert lower.hindsight == "low"


def test_a_fragile_choice_widens_the_interval() -> None:
    policy, hard = make(10 + noise(1, 5, 20)), noise(9, 20)
    one, other = make(9 + hard + noise(2, 20)), make(12 + hard + noise(3, 20))
    clear = against(policy, {"one": (one, make(9 + noise(4, 12))), "other": (other, make(12 + noise(5, 12)))})
    fragile = against(
        policy, {"one": (one, make(10 + noise(4, 12, size=1.0))), "other": (other, make(10.2 + noise(5, 12, size=1.0)))}
    )
    assert clear.rival == fragile.rival == "one"
    assert clear.ratio == fragile.ratio
    assert clear.verdict == "worse"
    assert fragile.ci_low < 0.9 < clear.ci_low
    assert fragile.verdict == "not distinguishable"


def test_test_units_may_be_those_of_choosing() -> None:
    """Then both draw the same blocks: whoever is chosen in a resample is best in it."""
    policy, hard = make(10 + noise(1, 5, 20)), noise(9, 20, size=2.0)
    one, other = make(10 + hard), make(10.1 - hard)
    shared = against(policy, {"one": (one, one), "other": (other, other)})
    others = np.array([f"validation-{number}" for number in range(20)])
    split = against(
        policy, {"one": (one, replace(one, blocks=others)), "other": (other, replace(other, blocks=others))}
    )
    assert shared.rival == split.rival
    assert np.std(shared.change.draws) < 0.8 * np.std(split.change.draws)


def test_lucky_seeds_of_the_chosen_do_not_count_twice() -> None:
    """The chosen of many equal trained rivals has lucky seeds, on test units too; the interval allows for it."""
    random = np.random.default_rng(8)
    others, lucks = {}, random.normal(0, 1, (8, 5, 1))
    for number, luck in enumerate(lucks):
        others[f"r{number}"] = make(20 + luck + noise(number, 5, 20)), make(20 + luck + noise(50 + number, 5, 12))
    found = against(make(20 + random.normal(0, 1, (5, 1)) + noise(99, 5, 20)), others)
    assert found.rival == f"r{lucks.mean(axis=1).ravel().argmin()}"
    assert found.logarithm.draws.mean() < found.logarithm.value + 0.01


def test_nothing_depends_on_the_order_of_rivals() -> None:
    policy = make(8 + noise(1, 5, 20))
    others = {name: (make(8 + noise(seed, 4, 20)), make(8 + noise(seed + 9, 4, 6))) for seed, name in enumerate("abc")}
    first, second = against(policy, others), against(policy, dict(reversed(others.items())))
    assert replace(first, change=None, logarithm=None) == replace(second, change=None, logarithm=None)


def test_a_ratio_has_no_unit() -> None:
    policy, rival, choosing = 8 + noise(1, 5, 20), 9 + noise(2, 3, 20), make(9 + noise(3, 3, 6))
    first = against(make(policy), {"a": (make(rival), choosing)})
    second = against(make(1000 * policy), {"a": (make(1000 * rival), choosing)})
    for name in ("ratio", "ci_low", "ci_high", "share_won", "to_hindsight"):
        assert getattr(first, name) == pytest.approx(getattr(second, name))


@pytest.mark.parametrize(
    ("seeds", "rivals_seeds", "blocks", "interval"),
    [(3, 1, 2, True), (2, 1, 9, False), (5, 2, 9, False), (5, 3, 9, True), (5, 5, 1, False)],
)
def test_too_little_has_no_interval(seeds: int, rivals_seeds: int, blocks: int, interval: bool) -> None:
    units = [number % blocks for number in range(10)]
    found = against(
        make(1 + noise(1, seeds, 10), blocks=units),
        {"a": (make(9 + noise(2, rivals_seeds, 10), blocks=units), make(9 + noise(3, rivals_seeds, 6)))},
    )
    assert found.ratio == pytest.approx(1 / 9, rel=0.1)
    assert (found.ci_low is not None, found.difference_high is not None) == (interval, interval)
    assert found.blocks == blocks
    if not interval:
        assert found.verdict == "not distinguishable"


@pytest.mark.parametrize("shift", [0.0, -20.0])
def test_the_difference_decides_where_no_ratio_is(shift: float) -> None:
    """Regrets that are 0 and rewards below 0 have a difference alone."""
    found = against(
        make(np.abs(noise(1, 5, 20)) + 3 + shift),
        {"a": (make(np.zeros(20) + shift), make(noise(3, 6) + shift)), "b": (make(np.ones(20)), make(5 + noise(4, 6)))},
    )
    assert (found.rival, found.ratio, found.ci_low, found.ci_high) == ("a", None, None, None)
    assert 2.5 < found.difference_low < found.difference < found.difference_high < 3.5
    assert found.verdict == "worse"
    assert found.to_hindsight is None
    lower = against(make(np.zeros((5, 20))), {"a": (make(1 + noise(2, 20)), make(np.ones(6)))})
    assert (lower.ratio, lower.verdict) == (None, "better")


def test_a_rival_that_could_be_nothing_has_no_ratio() -> None:
    """Its regret is 0 on most units: an interval of the ratio would have no end."""
    rival = np.zeros(20)
    rival[0] = 20.0
    found = against(make(1 + noise(1, 5, 20)), {"a": (make(rival), make(np.ones(6)))})
    assert (found.ratio, found.verdict) == (None, "not distinguishable")
    assert found.difference_low < 0 < found.difference_high


def test_units_and_seeds_may_be_missing() -> None:
    policy = make(8 + noise(1, 5, 20))
    weights = policy.weights.copy()
    weights[:, 3] = 0.0
    weights[2, 4] = 0.0
    gaps = replace(policy, values=np.where(weights > 0, policy.values, 0.0), weights=weights)
    short = make(9 + noise(2, 3, 12), first=6)
    found = against(
        gaps, {"short": (short, make(9 + noise(3, 3, 6))), "long": (make(np.full(20, 30.0)), make([40] * 6))}
    )
    assert (found.rival, found.units, found.blocks) == ("short", 12, 12)
    assert found.ratio == pytest.approx(policy.values[:, 6:18].mean() / short.values.mean())
    found = against(gaps, {"long": (make(np.full(20, 16.0)), make(np.ones(6)))})
    assert (found.units, found.blocks) == (19, 19)
    assert found.ratio == pytest.approx(gaps.values.sum() / weights.sum() / 16)
    assert found.ci_high < 1


def test_weights_count() -> None:
    values = np.array([[1.0, 3.0]] * 3)
    policy, rival = make(values), make([2.0, 2.0])
    heavy = np.array([3.0, 1.0])
    policy, rival = (replace(side, weights=np.broadcast_to(heavy, side.values.shape)) for side in (policy, rival))
    assert against(policy, {"a": (rival, make([1.0, 2.0]))}).ratio == pytest.approx(1.5 / 2)


def test_rivals_are_chosen_on_the_units_that_all_have() -> None:
    """What only one was given does not count against it."""
    test = make(9 + noise(2, 20))
    hard = replace(make([1.0, 1.0, 1.0, 50.0]), units=("u000", "u001", "u002", "hard"))
    found = against(make(8 + noise(1, 5, 20)), {"tried": (test, hard), "spared": (test, make([2.0, 2.0, 2.0]))})
    assert found.rival == "tried"


def test_a_rival_without_scores_to_choose_by_is_not_chosen() -> None:
    policy, test = make(8 + noise(1, 5, 20)), make(9 + noise(2, 20))
    found = against(policy, {"silent": (make(np.ones(20)), None), "known": (test, make(np.ones(4)))})
    assert (found.rival, found.hindsight, found.not_chosen_from) == ("known", "silent", ("silent",))
    with pytest.raises(ValueError, match="choosing"):
        against(policy, {"silent": (test, None)})


def test_what_cannot_be_compared_is_refused() -> None:
    policy, choosing = make(8 + noise(1, 5, 20)), make(np.ones(4))
    with pytest.raises(ValueError, match="unit"):
        against(policy, {"a": (make(np.ones(5), first=50), choosing)})
    with pytest.raises(ValueError, match="unit"):
        against(policy, {"a": (make(np.ones(20)), choosing), "b": (make(np.ones(20)), make(np.ones(4), first=70))})
    with pytest.raises(ValueError, match="blocks"):
        against(policy, {"a": (make(np.ones(20), blocks=[number // 2 for number in range(20)]), choosing)})


def test_ties_count_half() -> None:
    rival = make(np.full(20, 9.0))
    policy = make(np.repeat([[9.0], [8.0], [10.0]], 20, axis=1))
    assert against(policy, {"a": (rival, make(np.ones(4)))}).share_won == 0.5


@pytest.mark.parametrize("others", [9.0, 12.0])
def test_an_interval_holds_the_ratio_where_most_resamples_choose_another_rival(others: float) -> None:
    """The policy ties with the rival that was chosen; nearly every resample chooses one that is better, or worse."""
    rivals = {"chosen": (make(10 * np.ones(20)), make(10 * np.ones(12)))}
    for number in range(40):
        drawn = noise(number, 12, size=1.0)
        rivals[f"other{number}"] = (make(others * np.ones(20)), make(10.001 + drawn - drawn.mean()))
    found = against(make(np.full((5, 20), 10.0)), rivals)
    assert (found.rival, found.ratio, found.verdict) == ("chosen", 1.0, "not distinguishable")
    assert found.ci_low <= 1.0 <= found.ci_high
    assert found.ci_high - found.ci_low > 0.09  # the fragile choice shows


@pytest.mark.parametrize("sign", [1.0, -1.0])  # with a ratio, and without
@pytest.mark.parametrize("better", ["lower", "higher"])
def test_what_differs_by_rounding_alone_is_equal(sign: float, better: str) -> None:
    """Sums in another order differ in their last digit: no verdict may come from that."""
    values = sign * (8 + noise(1, 20))
    above = np.nextafter(values, np.inf)
    found = against(make(np.tile(above, (3, 1))), {"a": (make(values), make(np.ones(6)))}, better)
    assert (found.verdict, found.share_won, found.difference) == ("not distinguishable", 0.5, 0.0)
    assert (found.ratio, found.ci_low, found.ci_high) == ((1.0, 1.0, 1.0) if sign > 0 else (None, None, None))


def test_pooled_is_the_geometric_mean() -> None:
    parts = []
    for place, (mean, name) in enumerate([(8, "a"), (7, "b"), (9, "a")]):
        blocks = [f"{place}-{number}" for number in range(20)]
        policy, rival = (make(values, blocks=blocks) for values in (mean * (1 + noise(1, 5, 20)), 10 + noise(2, 20)))
        parts.append(against(policy, {name: (rival, make(np.ones(6)))}, name=f"ours-{place}"))
    found = pooled(parts)
    assert found.ratio == pytest.approx(np.prod([part.ratio for part in parts]) ** (1 / 3))
    assert found.to_hindsight == pytest.approx(found.ratio)
    assert found.ci_low < found.ratio < found.ci_high < 1
    widths = [np.log(part.ci_high / part.ci_low) for part in parts]
    assert np.log(found.ci_high / found.ci_low) < 0.8 * max(widths)
    assert (found.rival, found.seeds, found.units, found.blocks) == ("a + b", 5, 60, 60)
    assert found.verdict == "better"
    assert pooled(parts[:1]).ci_low == pytest.approx(parts[0].ci_low)


def test_what_scenarios_share_makes_their_mean_no_surer() -> None:
    """The same jobs and the same seeds in both: twice the same part says no more than one of them."""
    parts = [
        against(make(8 * (1 + noise(1, 5, 20))), {"a": (make(10 + noise(2, 20)), make(np.ones(6)))}) for _ in range(2)
    ]
    found = pooled(parts)
    assert (found.ci_low, found.ci_high) == pytest.approx((parts[0].ci_low, parts[0].ci_high))
    assert found.blocks == parts[0].blocks


def test_pooled_without_a_ratio_is_a_difference() -> None:
    ratio = against(make(8 + noise(1, 5, 20)), {"a": (make(10 + noise(2, 20)), make(np.ones(6)))})
    none = against(make(-8 + noise(1, 5, 20)), {"a": (make(-7 + noise(2, 20)), make(np.ones(6)))})
    found = pooled([ratio, none])
    assert (found.ratio, found.verdict) == (None, "better")
    assert found.difference == pytest.approx((ratio.difference + none.difference) / 2)
    few = against(make(8 + noise(1, 2, 20)), {"a": (make(10 + noise(2, 20)), make(np.ones(6)))})
    found = pooled([ratio, few])
    assert found.ratio == pytest.approx(np.sqrt(ratio.ratio * few.ratio))
    assert (found.ci_low, found.verdict) == (None, "not distinguishable")


@pytest.mark.parametrize(
    ("better", "interval", "equal", "expected"),
    [
        ("lower", (0.5, 0.9), 1.0, "better"),
        ("lower", (1.1, 1.2), 1.0, "worse"),
        ("higher", (1.1, 1.2), 1.0, "better"),
        ("higher", (0.5, 0.9), 1.0, "worse"),
        ("lower", (0.5, 1.0), 1.0, "not distinguishable"),
        ("lower", (None, None), 1.0, "not distinguishable"),
        ("lower", (0.5, 0.9), 0.0, "worse"),
        ("higher", (-0.5, 0.9), 0.0, "not distinguishable"),
    ],
)
def test_verdict(better: str, interval: tuple[float | None, float | None], equal: float, expected: str) -> None:
    assert verdict(better, interval, equal) == expected
