"""Tests of the figures of what policies reach."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from small_figures import KINDS, SPECS, TWO_SCORES, compared, draw, legend_labels, markers, repeated, summarised

from schedlab.config.contract import StudyTables

pytestmark = pytest.mark.usefixtures("themed")


def differences(tables: StudyTables) -> pd.Series:
    rows = tables.scores[tables.scores["metric"] == "regret"]
    losses = rows.pivot_table(index=["policy", "policy_seed"], columns="scenario", values="value")
    return (losses - losses.loc[("constant", 0)]).mean(axis=1)


def test_the_headline_shows_mean_differences_learned_first(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["versus"])
    left = drawing.figure.axes[0]
    order = [label.get_text() for label in left.get_yticklabels()]
    assert sorted(order) == ["clever", "never", "poor", "random"]
    assert [KINDS[name] for name in order] == ["learned", "learned", "rule", "rule"]
    expected = differences(tables).groupby(level="policy").mean()
    assert markers(left)[:, 0] == pytest.approx([expected[name] for name in order])
    ranges = [line.get_xdata() for line in left.get_lines() if line.get_marker() == "|" and len(line.get_xdata()) == 2]
    seeds = differences(tables).loc["clever"]
    assert ranges == [pytest.approx([seeds.min(), seeds.max()])]
    early = drawing.figure.axes[1]
    rows = tables.comparisons[
        (tables.comparisons["scenario"] == "early") & (tables.comparisons["metric"] == "regret")
    ].set_index("policy")
    assert markers(early)[:, 0] == pytest.approx([rows.loc[name, "difference"] for name in order])


def test_intervals_and_ranges_of_one_figure_are_both_in_its_key(tables: StudyTables) -> None:
    sure = tables.comparisons.assign(ci_low=-1.0, ci_high=1.0)
    alone, mixed = draw(tables, SPECS["versus"]), draw(replace(tables, comparisons=sure), SPECS["versus"])
    assert (bool(alone.values["interval"]), bool(alone.values["range"])) == (False, True)
    assert mixed.values["interval"] and mixed.values["range"]
    assert {mixed.values["interval"], mixed.values["range"]} < set(legend_labels(mixed.figure))


def test_the_headline_says_when_nothing_learned_wins(tables: StudyTables) -> None:
    worse = tables.scores.assign(value=tables.scores["value"].where(tables.scores["policy"] != "constant", 0.0))
    values = draw(replace(tables, scores=worse, comparisons=compared(worse)), SPECS["versus"]).values
    losses = worse[worse["metric"] == "regret"].groupby(["policy", "scenario"])["value"].mean().unstack().mean(axis=1)
    closest = losses[["clever", "poor"]].idxmin()
    assert (values["closest"], values["ahead"]) == (closest, {}) and not values["beyond"]
    assert values["least"] == pytest.approx(losses[closest])


@pytest.mark.parametrize(("gain", "expected"), [(0.004, "none"), (0.9, "clever")])
def test_the_headline_holds_a_win_against_the_noise(tables: StudyTables, gain: float, expected: str) -> None:
    shifted = tables.scores.copy()
    reference = shifted[(shifted["policy"] == "constant") & (shifted["metric"] == "regret")].set_index("scenario")[
        "value"
    ]
    for policy, change in (
        ("clever", -gain),
        ("poor", -0.0001),
    ):  # what is not seen in the third digit counts for nothing
        mine = (shifted["policy"] == policy) & (shifted["metric"] == "regret")
        shifted.loc[mine, "value"] = shifted.loc[mine, "scenario"].map(reference) + change
    values = draw(replace(tables, scores=shifted, comparisons=compared(shifted)), SPECS["versus"]).values
    assert values["ahead"] == {"clever": pytest.approx(-gain)}
    assert (values["behind"], values["learned"], values["beyond"].split(",")[0]) == (1, 2, expected)


def test_a_scenario_that_compares_other_policies_is_left_out_of_the_headline(tables: StudyTables) -> None:
    more = repeated(tables, "late", 1)
    fewer = more.scores[(more.scores["scenario"] != "late_00") | more.scores["policy"].isin(["never", "exhaustive"])]
    spec = replace(SPECS["versus"], scenarios=("early", "late", "late_00"))
    drawing = draw(replace(more, scores=fewer), spec)
    assert drawing.left_out == {"late_00": "compares other policies"}
    assert drawing.figure.axes[0].get_title(loc="left") == "mean of all\n2 scenarios"
    shown = draw(
        replace(more, scores=fewer, summary=summarised(fewer)), replace(SPECS["regret"], scenarios=spec.scenarios)
    )
    assert [text.get_text() for text in shown.figure.axes[2].texts] == ["not run"] * 4
    assert shown.figure.axes[0].get_yticklabels()[0].get_text() == "never", "the others have no mean over all scenarios"


@pytest.mark.parametrize("half", [np.nan, 0.003])
def test_regrets_have_intervals_only_where_the_tables_give_them(tables: StudyTables, half: float) -> None:
    drawing = draw(replace(tables, summary=summarised(tables.scores, half)), SPECS["regret"])
    axes = drawing.figure.axes[1]
    order = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    rows = tables.summary[(tables.summary["scenario"] == "late") & (tables.summary["metric"] == "regret")].set_index(
        "policy"
    )
    assert "exhaustive" not in order
    assert markers(axes)[:, 0] == pytest.approx([rows.loc[name, "value"] for name in order])
    bars = [line for line in axes.get_lines() if line.get_linewidth() == 2.2]
    assert len(bars) == (0 if np.isnan(half) else len(order))
    known = {name for name in ("interval", "range") if drawing.values[name]}
    assert known == ({"range"} if np.isnan(half) else {"interval"})
    assert {drawing.values[name] for name in known} < set(legend_labels(drawing))


def test_final_results_are_those_of_the_summary(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["final"])
    for axes, (metric, scenario) in zip(drawing.figure.axes, product(TWO_SCORES, ("early", "late")), strict=True):
        rows = tables.summary[(tables.summary["metric"] == metric) & (tables.summary["scenario"] == scenario)]
        assert sorted(markers(axes)[:, 0]) == pytest.approx(sorted(rows["value"]))
        dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--" and line.get_ydata() == [0, 1]]
        assert [line.get_xdata()[0] for line in dashed] == pytest.approx(list(rows[rows["policy"] == "never"]["value"]))
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    assert titles == ["early\n60 s", "late\n190 s", "", ""]
    names = {label.get_text() for label in drawing.figure.axes[0].get_yticklabels()}
    assert {"never", "random", "clever", "exhaustive"} <= names
    labels = {axes.get_xlabel() for axes in drawing.figure.axes} - {""}
    assert labels == {"validation log loss (nat)", "test accuracy (fraction)"}
