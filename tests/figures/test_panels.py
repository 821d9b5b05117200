"""Tests of schedlab.figures.panels: several panels in one figure, and curves of learning."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.panels.axes import key
from schedlab.figures.panels.curves import Curve, curve_ends, curves, line_over_values
from schedlab.figures.panels.facets import Grid, facets

STYLE = theme.Style("#123456", "o")


@pytest.fixture(autouse=True)
def themed():
    with theme.applied(ThemeSettings()):
        yield


def points(*seeds: list[float]) -> pd.DataFrame:
    """A curve with a point each ten episodes, from ten on."""
    rows = [
        {"policy_seed": seed, "step": place + 1, "episode": 10 * (place + 1), "value": value, "update": place}
        for seed, values in enumerate(seeds)
        for place, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_a_panel_a_group_with_labels_where_a_reader_looks_for_them():
    def panel(axes, height):
        axes.plot([0, 1], [0, height], label="height")
        return height

    grid = Grid(most=2, row_mm=30, x="time", y="height", subplots={"sharex": True})
    figure, values = facets({"one": 1, "two": 2, "three": 3, "": 4}, panel, grid)
    assert values == [1, 2, 3, 4]
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["one", "two", "three", ""]
    assert [axes.get_ylabel() for axes in figure.axes] == ["height", "", "height", ""]
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "", "time"], "once, below the last row"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["height"]


def test_rows_that_show_different_things_have_their_labels_and_no_empty_legend():
    grid = Grid(most=1, y=["first", "second"], x="time")
    figure, _ = facets([("a", 0), ("b", 0)], lambda axes, _: axes.plot([1, 2]), grid, keys=())
    assert [axes.get_ylabel() for axes in figure.axes] == ["first", "second"]
    assert [axes.get_xlabel() for axes in figure.axes] == ["time", "time"]
    assert not figure.legends
    each, _ = facets([("a", 0), ("b", 0)], lambda axes, _: None, Grid(x="x", y="y", each=True), keys=[key("k")])
    assert [(axes.get_xlabel(), axes.get_ylabel()) for axes in each.axes] == [("x", "y")] * 2 and each.legends


def test_curves_stand_beside_the_levels_that_they_are_compared_with():
    axes = theme.new_figure()[1]
    levels = {"rule": {"y": 3.0, "color": "#888888"}, "bound": {"y": 1.0}}
    ends = curves(axes, {"own": Curve(points([4.0, 2.0], [6.0, 3.0]), STYLE)}, levels, x="episode")
    assert axes.get_lines()[0].get_xydata().tolist() == [[10, 5.0], [20, 2.5]]
    assert ends == {"own": {"first": 5.0, "last": 2.5, "steps": 20, "low": 2.0, "high": 3.0}}
    heights = {line.get_label(): set(line.get_ydata()) for line in axes.get_lines()[1:]}
    assert heights == {"rule": {3.0}, "bound": {1.0}}


def test_the_ends_of_a_curve_are_means_of_its_window_over_places_that_all_seeds_reached():
    longer = pd.concat([points([4.0, 2.0, 1.0]), points([0.0], [6.0, 4.0]).query("policy_seed == 1")])
    assert curve_ends(longer) == {"first": 5.0, "last": 3.0, "steps": 2, "low": 2.0, "high": 4.0}
    assert curve_ends(points([4.0, 2.0, 1.0]), "step", 2)["last"] == pytest.approx(1.5)
    assert curve_ends(points([4.0]))["first"] is None and curve_ends(points([4.0]))["low"] is None
    assert curve_ends(points([4.0], [np.nan]).dropna().query("value > 9")) == {}


@pytest.mark.parametrize(
    ("places", "at", "scale"),
    [((1.0, 2.0, 4.0), [1, 4], "linear"), ((1.0, 2.0, 400.0), [1, 400], "log"), (("a", "b", "c"), [0, 2], "linear")],
)
def test_a_line_over_values_has_a_point_where_there_is_a_row(places, at, scale):
    ends = {"ci_low": np.nan, "ci_high": np.nan, "range_low": 1.0, "range_high": 3.0}
    rows = pd.DataFrame([{"policy": "p", "key": places[index], "value": index, **ends} for index in (2, 0)])
    _, axes = theme.new_figure()
    line_over_values(axes, rows, "key", places, {"p": STYLE})
    line, *spans = axes.get_lines()
    assert list(line.get_xdata()) == at and list(line.get_ydata()) == [0, 2] and len(spans) == 2
    assert axes.get_xscale() == scale
