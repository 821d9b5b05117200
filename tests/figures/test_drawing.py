"""Tests of schedlab.figures: theme, helpers, saving."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import get_args

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from schedlab.config.contract import Drawing, Metric
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.captions import filled
from schedlab.figures.order import policy_order, ranked
from schedlab.figures.panels.axes import axis_label, direct_labels, legend_outside, log_ticks, spread
from schedlab.figures.panels.bars import grouped_bars
from schedlab.figures.panels.cells import heat_map
from schedlab.figures.panels.curves import Curve, learning_curve, running_mean
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, points_with_uncertainty
from schedlab.figures.save import save

COST = Metric("mean_cost", "s", "lower", label="mean cost")


@pytest.fixture
def themed() -> Iterator[None]:
    with theme.applied(ThemeSettings()):
        yield


def rows(**changes: list) -> pd.DataFrame:
    columns = {
        "policy": ["a", "b"],
        "kind": ["learned", "rule"],
        "scenario": "s",
        "split": "test",
        "mode": "default",
        "metric": "mean_cost",
        "value": [1.0, 2.0],
        "ci_low": [0.5, np.nan],
        "ci_high": [1.5, np.nan],
        "range_low": [0.2, 1.0],
        "range_high": [1.8, 4.0],
    }
    return pd.DataFrame({**columns, **changes})


def test_the_theme_leaves_nothing_behind() -> None:
    before = {key: value for key, value in mpl.rcParams.items() if not key.startswith("backend")}
    with theme.applied(ThemeSettings(width_mm=100.0, font_size=9.0, dpi=50)):
        assert mpl.rcParams["font.size"] == 9.0
        figure, _ = theme.new_figure(width=0.5, height_mm=50.8)
        assert figure.get_size_inches() == pytest.approx((50 / 25.4, 2.0))
    assert {key: value for key, value in mpl.rcParams.items() if not key.startswith("backend")} == before


@pytest.mark.parametrize("palette", get_args(ThemeSettings.model_fields["palette"].annotation))
def test_every_palette_has_colours_for_lines(palette: str) -> None:
    cycle = theme.rc(ThemeSettings(palette=palette))["axes.prop_cycle"].by_key()["color"]
    assert len(set(cycle)) >= 7


@pytest.mark.usefixtures("themed")
def test_the_typeface_comes_with_matplotlib() -> None:
    from matplotlib import font_manager

    found = Path(font_manager.findfont(mpl.rcParams["font.family"][0], fallback_to_default=False))
    assert found.is_relative_to(Path(mpl.__file__).parent)


@pytest.mark.usefixtures("themed")
def test_each_policy_has_a_look_of_its_own() -> None:
    fitted = [f"l{i}" for i in range(10)]
    kinds = dict.fromkeys(fitted, "learned") | {"l3": "search", "l4": "published"}
    kinds |= {f"r{i}": "rule" for i in range(10)} | {
        "r2": "planner",
        "best": "oracle",
        "least": "bound",
        "told": "informed",
    }
    styles = theme.policy_styles(kinds)
    assert len({(style.colour, style.marker) for style in styles.values()}) == len(kinds)
    assert styles == theme.policy_styles(dict(reversed(kinds.items())))
    for name, style in styles.items():
        red, green, blue = mpl.colors.to_rgb(style.colour)
        assert (red == green == blue) == (name not in (*fitted, "told")), "rules and bounds have no colour"
        assert theme.luminance(style.colour) < 0.5, "visible on white"


@given(st.tuples(*[st.floats(0, 1)] * 3))
def test_ink_is_readable_on_every_ground(colour: tuple[float, float, float]) -> None:
    light, dark = sorted((theme.luminance(colour), theme.luminance(theme.ink_on(colour))), reverse=True)
    worst = (1.05 / (theme.luminance(theme.INK) + 0.05)) ** 0.5  # on the ground on which white and ink do equally well
    assert (light + 0.05) / (dark + 0.05) >= worst - 1e-9 > 3.8


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=30), st.integers(1, 40))
def test_running_mean_by_loops(values: list[float], window: int) -> None:
    expected = [np.mean(values[max(0, i + 1 - window) : i + 1]) for i in range(len(values))]
    assert running_mean(values, window) == pytest.approx(expected, abs=1e-9)
    both = running_mean(np.array([values, values]), window)
    assert both.shape == (2, len(values))
    assert both[1] == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.01, 0.3))
def test_labels_are_moved_apart_and_no_more(heights: list[float], distance: float) -> None:
    moved = spread(heights, distance)
    gaps = np.diff(np.sort(moved))
    assert (gaps >= distance - 1e-9).all()
    if (np.diff(np.sort(heights)) >= distance).all():
        assert moved == pytest.approx(heights)
    assert np.mean(moved or [0]) == pytest.approx(np.mean(heights or [0]))
    assert list(np.argsort(moved, kind="stable")) == list(np.argsort(heights, kind="stable"))


def test_axis_labels_have_units() -> None:
    assert axis_label(COST) == "mean cost (s)"
    assert axis_label(Metric("share_met", "-", "higher")) == "share met"


def test_policy_order_follows_the_direction() -> None:
    table = pd.concat([rows(), rows(scenario="t", value=[3.0, 5.0]), rows(scenario="u", value=[9.0, 5.0])])
    assert policy_order(table, COST) == ["a", "b"]
    assert policy_order(table, Metric("mean_cost", "s", "higher")) == ["b", "a"]
    for kind in ("oracle", "bound", "informed"):
        assert policy_order(table.assign(kind=[kind, "rule"] * 3), COST) == ["b", "a"]
    assert policy_order(table.assign(kind=["planner", "rule"] * 3), COST) == ["a", "b"]


@pytest.mark.parametrize("apart", ["oracle", "bound", "informed"])
def test_what_knows_more_than_others_leads_no_order(apart: str) -> None:
    values, kinds = {"a": 2.0, "b": 2.0, "bound": 1.0}, {"a": "rule", "b": "search", "bound": apart}
    assert ranked(values, "lower") == ["bound", "a", "b"]
    assert ranked(values, "lower", kinds) == ["a", "b"]
    assert ranked(values, "higher", kinds) == ["a", "b"]
    assert ranked({"bound": 1.0}, "lower", kinds) == ["bound"]


@pytest.mark.usefixtures("themed")
def test_bars_are_means_with_the_range_of_the_seeds() -> None:
    _, axes = theme.new_figure()
    groups = {"one": {"a": np.array([1.0, 3.0]), "b": np.array([2.0])}, "two": {"b": np.array([4.0])}}
    grouped_bars(axes, groups, {"a": "red", "b": "blue"})
    assert [bar.get_height() for bar in axes.patches] == [2.0, 2.0, 4.0]
    (line,) = axes.get_lines()
    assert list(line.get_ydata()) == [1.0, 3.0]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["one", "two"]


@pytest.mark.usefixtures("themed")
def test_intervals_are_bars_and_ranges_thin_lines() -> None:
    figure, axes = theme.new_figure()
    table = rows()
    points_with_uncertainty(axes, table, ["a", "b", "c"], theme.styles_of(table))
    bar, point, line, other = axes.get_lines()
    assert list(bar.get_xdata()) == [0.5, 1.5]
    assert list(line.get_xdata()) == [1.0, 4.0]
    assert bar.get_linewidth() > line.get_linewidth()
    assert (point.get_xdata()[0], other.get_xdata()[0]) == (1.0, 2.0)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "c"]
    assert [text.get_text() for text in axes.texts] == ["not run"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1], "first on top"
    found = explain_uncertainty(figure, table, 0.5)
    assert found["interval"].startswith("50 % interval") and found["range"]
    assert filled(UNCERTAINTY, found).count(".") == 2
    assert len(figure.legends[0].get_texts()) == 2


@pytest.mark.usefixtures("themed")
def test_learning_curve_shows_mean_and_range() -> None:
    _, axes = theme.new_figure()
    points = pd.DataFrame(
        {"policy_seed": [0, 0, 0, 1, 1], "step": [0, 10, 20, 0, 10], "value": [1.0, 2.0, 3.0, 3.0, 4.0]}
    )
    learning_curve(axes, Curve(points, theme.policy_styles({"a": "learned"})["a"]), label="a")
    (line,) = axes.get_lines()
    assert line.get_xydata().tolist() == [[0, 2], [10, 3]], "a place that one seed has not reached is not drawn"
    assert len(axes.collections) == 1


@pytest.mark.usefixtures("themed")
def test_heat_map_writes_its_numbers() -> None:
    _, axes = theme.new_figure()
    table = pd.DataFrame([[0.0, -0.001], [np.nan, -1.5]], index=["r1", "r2"], columns=["c1", "c2"])
    heat_map(axes, table, label="gain (s)")
    assert [text.get_text() for text in axes.texts] == ["0.00", "0.00", "\N{MINUS SIGN}1.50"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["c1", "c2"]
    assert axes.figure.axes[1].get_ylabel() == "gain (s)"


@pytest.mark.usefixtures("themed")
def test_direct_labels_do_not_overlap() -> None:
    figure, axes = theme.new_figure()
    for number in range(4):
        axes.plot([0, 1], [0, 1 + 0.001 * number], label=f"policy {number}")
    direct_labels(axes)
    figure.draw_without_rendering()
    boxes = sorted((Text.get_window_extent(text) for text in axes.texts), key=lambda box: box.y0)
    assert [text.get_text() for text in axes.texts] == [f"policy {number}" for number in range(4)]
    assert all(lower.y1 <= upper.y0 + 1 for lower, upper in pairwise(boxes))
    assert all(Text.get_window_extent(text).x0 > axes.get_window_extent().x1 for text in axes.texts)


@pytest.mark.usefixtures("themed")
def test_legend_names_each_policy_once() -> None:
    figure, panels = theme.new_figure(1, 2)
    for axes in panels:
        axes.plot([0, 1], label="a")
        axes.plot([1, 0], label="b")
    legend_outside(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


DRAW = """
import sys
from schedlab.config.contract import Drawing
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.panels.axes import direct_labels
from schedlab.figures.panels.cells import heat_map
from schedlab.figures.save import save
import pandas as pd
with theme.applied(ThemeSettings(dpi=50)):
    figure, (left, right) = theme.new_figure(1, 2, height_mm=50)
    for name, style in theme.policy_styles({"a": "learned", "b": "rule", "c": "oracle"}).items():
        left.plot([0, 1, 2], [1, ord(name) % 7, 2], label=name, **style.line())
    left.fill_between([0, 1], [0, 1], [1, 2], alpha=0.2)
    heat_map(right, pd.DataFrame([[1.0, 2.0]]), label="x (s)")
    direct_labels(left)
    save(Drawing(figure, "What is   seen."), sys.argv[1] + "/figure")
"""


def test_files_depend_on_the_drawing_alone(tmp_path: Path) -> None:
    for name, seed, zone in (("one", "1", "UTC"), ("two", "2", "Asia/Tokyo")):
        (tmp_path / name).mkdir()
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone}
        subprocess.run([sys.executable, "-c", DRAW, str(tmp_path / name)], check=True, env=environment)
    for ending in ("svg", "pdf", "png", "txt"):
        first, second = ((tmp_path / name / f"figure.{ending}").read_bytes() for name in ("one", "two"))
        assert first == second, ending
    assert b"<dc:date>" not in (tmp_path / "one" / "figure.svg").read_bytes()
    assert b"CreationDate" not in (tmp_path / "one" / "figure.pdf").read_bytes()
    assert b"Software" not in (tmp_path / "one" / "figure.png").read_bytes()
    assert (tmp_path / "one" / "figure.txt").read_text() == "What is seen.\n"


@pytest.mark.usefixtures("themed")
def test_save_keeps_dots_in_names(tmp_path: Path) -> None:
    figure, _ = theme.new_figure(height_mm=20)
    paths = save(Drawing(figure, "c"), tmp_path / "v1.2")
    assert [path.name for path in paths] == ["v1.2.svg", "v1.2.pdf", "v1.2.png", "v1.2.txt"]


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [
        (0.77, 1.18, ["0.8", "0.9", "1", "1.1"]),
        (60, 170, ["70", "100", "150"]),
        (60, 300, ["100", "200"]),
        (2, 70, ["3", "10", "30"]),
        (3, 9000, ["10", "100", "1000"]),
    ],
)
@pytest.mark.usefixtures("themed")
def test_logarithmic_axes_have_plain_numbers_and_more_of_them_where_values_lie_close(low, high, written) -> None:
    figure, axes = theme.new_figure()
    axes.plot([low, high], [0, 1])
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    log_ticks(axes.xaxis, low, high)
    figure.draw_without_rendering()
    shown = [
        text.get_text()
        for text, place in zip(axes.get_xticklabels(), axes.get_xticks(), strict=True)
        if low <= place <= high
    ]
    assert shown == written
    assert not any(text.get_text() for text in axes.get_xticklabels(minor=True))
