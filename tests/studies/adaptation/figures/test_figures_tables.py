"""Tests of the figures of the simulation tables."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from small_figures import CHOICES, SPECS, draw, legend_labels, shown

from schedlab.config.contract import Metric, StudyTables
from schedlab.studies.adaptation.figures import tables as figures_tables
from schedlab.studies.adaptation.simulator.ranking import reliability

pytestmark = pytest.mark.usefixtures("themed")


def test_the_heat_map_holds_every_regret_and_marks_the_best_and_the_chosen(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["sequences"])
    panels = drawing.figure.axes[:4]
    scenarios = shown(tables, "early", "late")
    cells = np.concatenate([np.asarray(axes.collections[0].get_array()).reshape(16, 2) for axes in panels])
    expected = np.stack(
        [found.mean("validation_loss") - found.mean("validation_loss").min() for found in scenarios], axis=1
    )
    assert cells == pytest.approx(expected)
    marks = {
        (line.get_marker(), 16 * first + int(line.get_ydata()[0]), int(line.get_xdata()[0]))
        for first, axes in enumerate(panels)
        for line in axes.get_lines()
        if line.get_label() == "_mark"
    }
    stars = {("*", int(expected[:, column].argmin()), column) for column in (0, 1)}
    index = scenarios[0].problem.tree.index
    clever = {("o", index(sequence), column) for sequence in CHOICES["clever"] for column in (0, 1)}
    assert marks == stars | clever | {("s", index("033"), column) for column in (0, 1)}
    actions = [row["action"] for row in drawing.values["digits"]]
    assert actions == ["deepen 0", "deepen 1", "deepen 2", "nothing"]


def test_the_ranking_names_best_worst_and_the_rank_of_nothing(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["ranking"])
    early, late = shown(tables, "early", "late")
    losses, later = early.mean("validation_loss"), late.mean("validation_loss")
    order = sorted(range(64), key=lambda position: losses[position])
    rank = 1 + order.index(63)
    ends = {found.sequences[end(found.mean())] for found, end in product((early, late), (np.argmin, np.argmax))}
    said = {text.get_text() for text in drawing.figure.axes[0].texts}
    assert said == ends | {f"#{rank}", f"#{1 + (later < later[63]).sum()}"}
    dots = np.asarray(drawing.figure.axes[0].collections[0].get_offsets())[:, 1]
    assert dots == pytest.approx(losses)
    found = drawing.values["ends"]["early"]
    marked = [found[name] for name in ("best", "mean", "worst", "none", "rank")]
    assert marked == pytest.approx([losses.min(), losses.mean(), losses.max(), losses[63], rank])
    assert [found[f"{name}_sequence"] for name in ("best", "worst")] == [
        early.sequences[n] for n in (order[0], order[-1])
    ]


def test_the_legend_of_the_ranking_tells_of_noise_where_some_is_drawn(
    tables: StudyTables, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = legend_labels(draw(tables, SPECS["ranking"]))
    monkeypatch.setattr(figures_tables, "_noise", lambda scenario, column: float("nan"))
    (told,) = set(labels) - set(legend_labels(draw(tables, SPECS["ranking"])))
    assert "noise" in told


def test_reliability_lines_follow_the_analysis_of_variance(tables: StudyTables) -> None:
    axes = draw(tables, SPECS["reliability"]).figure.axes[0]
    (late,) = shown(tables, "late")
    parts = reliability(late.values("validation_loss"))
    line = next(line for line in axes.get_lines() if line.get_label() == "late, 190 s")
    expected = [parts.sd_sequence**2 / (parts.sd_sequence**2 + parts.sd_residual**2 / count) for count in (1, 2, 3)]
    assert line.get_ydata() == pytest.approx(expected)
    assert list(line.get_xdata()) == [1, 2, 3]


def test_choosing_on_few_replicates_by_hand() -> None:
    losses = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 5.0], [4.0, 3.0, 2.0]])
    found = figures_tables.selection_regret(losses, Metric("loss", "nat", "lower"))
    assert found == [[1.0, 2.0, 1.0, 1.0, 2.0, 4.0], [2.0, 1.0, 1.0]]
