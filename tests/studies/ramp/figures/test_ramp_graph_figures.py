"""Figures of graphs and of beta: what is drawn, what the caption tells, and what cannot be drawn."""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedlab.config.contract import FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.studies.ramp.figures import graphs as figures
from schedlab.studies.ramp.graphs.files import write_graphs
from schedlab.studies.ramp.graphs.generator import generated_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.graphs.settings import GeneratorSettings
from schedlab.studies.ramp.study import STUDY

BETAS = {
    "a": {"kind": "uniform", "low": 0.1, "high": 1.0},
    "a_again": {"kind": "uniform", "low": 0.1, "high": 1.0},
    "b": {"kind": "skew_normal", "skewness": 5.0, "low": 0.1, "high": 1.0},
    "one": {"kind": "fixed", "value": 0.5},
    "two": {"kind": "one_of", "choices": [{"kind": "fixed", "value": 0.2}, {"kind": "fixed", "value": 0.4}]},
}
SCENARIOS = {
    name: {"seed": 1, "jobs": {"beta": beta}, "legacy": {"sinks_unjoined": name == "one"}}
    for name, beta in BETAS.items()
}


@pytest.fixture(autouse=True)
def applied_theme():
    with theme.applied(ThemeSettings()):
        yield


def graph(name: str = "small", cost: float = 1.0, edges=((1, 2), (1, 3), (2, 4), (3, 4), (1, 4))) -> ForwardGraph:
    costs = [0.0, cost, 2 * cost, cost]
    kinds = ("Input", "Conv2d", "Conv2d", "Add")
    return ForwardGraph(
        name, (1, 2, 3, 4), kinds, costs, [2 * value for value in costs], [8.0] * 4, [0.0, 4.0, 4.0, 0.0], edges
    )


def tables(folder: Path, *graphs: ForwardGraph) -> StudyTables:
    write_graphs(folder / "graphs.zip", graphs or (graph(),))
    none = pd.DataFrame()
    return StudyTables(
        none, none, none, none, {}, {name: {"graphs": folder / "graphs.zip"} for name in SCENARIOS}, SCENARIOS, {}
    )


def spec(kind: str, scenarios: tuple[str, ...] = (), **params) -> FigureSpec:
    return FigureSpec(kind, kind, "Title", "What is shown.", scenarios=scenarios, params=params)


def test_every_drawing_is_there_and_has_its_settings() -> None:
    assert set(STUDY.figures) == set(STUDY.figure_settings)
    for place in STUDY.figures.values():
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name))


def test_ops_lie_in_layers_and_side_by_side() -> None:
    assert figures.layers(training_graph(graph())).tolist() == [[0, 0], [1, -0.5], [1, 0.5], [2, 0]]
    backwards = training_graph(graph(edges=((4, 3), (3, 2), (2, 1))))  # ids that fall along the edges
    assert figures.layers(backwards)[:, 0].tolist() == [3, 2, 1, 0]


def test_a_graph_is_drawn_with_a_dot_an_op_and_a_curve_a_dep(tmp_path: Path) -> None:
    drawing = figures.draw_graphs(tables(tmp_path, graph("first"), graph("second")), spec("graphs"))
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes] == [
        "first: 8 ops, 11 deps",
        "second: 8 ops, 11 deps",
    ]
    curves, dots = drawing.figure.axes[0].collections
    assert (len(curves.get_paths()), len(dots.get_offsets())) == (11, 8)
    sizes = dots.get_sizes()
    assert sizes.argmax() == 6 and sizes[0] == sizes.min(), "the mate of op 3 takes longest, the input nothing"
    assert np.allclose(dots.get_offsets()[:4] * [1, -1], dots.get_offsets()[4:])
    slowest = list(drawing.values["slowest"].values())
    assert [(row["kind"], row["op"], round(row["share"], 2)) for row in slowest] == [("Conv2d", 6, 0.33)] * 2


def test_areas_of_dots_follow_the_root_of_the_time_and_the_key_shows_them(tmp_path: Path) -> None:
    figure = figures.draw_graphs(tables(tmp_path), spec("graphs")).figure
    sizes = sorted(set(figure.axes[0].collections[1].get_sizes().round(6)))
    cost = training_graph(graph()).cost
    expected = 3.0 + (sizes[-1] - 3.0) * np.sqrt(np.unique(cost) / cost.max())
    assert sizes == pytest.approx(expected.tolist())
    keys = dict(
        zip((text.get_text() for text in figure.legends[0].get_texts()), figure.legends[0].legend_handles, strict=True)
    )
    shown = [handle.get_markersize() ** 2 for label, handle in keys.items() if "%" in label]
    assert shown == pytest.approx([3.0 + (sizes[-1] - 3.0) * root for root in (0.1, 0.1**0.5, 1.0)])


def test_graphs_of_one_figure_have_dots_of_one_scale(tmp_path: Path) -> None:
    chain = graph("chain", edges=((1, 2), (2, 3), (3, 4)))
    largest = [
        axes.collections[1].get_sizes().max()
        for axes in figures.draw_graphs(tables(tmp_path, graph("first"), chain), spec("graphs")).figure.axes
    ]
    assert largest[0] == largest[1]


def test_sinks_are_joined_as_the_scenario_says(tmp_path: Path) -> None:
    given = tables(tmp_path, graph(edges=((1, 2), (1, 3), (1, 4))))
    titles = [
        figures.draw_graphs(given, spec("graphs", (name,))).figure.axes[0].get_title(loc="left")
        for name in ("a", "one")
    ]
    assert titles == ["small: 8 ops, 9 deps", "small: 8 ops, 7 deps"]


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_have_the_unit_that_the_scenario_reads_them_in(tmp_path: Path, unit: str) -> None:
    scenarios = {"a": {**SCENARIOS["a"], "jobs": {"time_unit": unit}}}
    found = dataclasses.replace(tables(tmp_path), scenarios=scenarios)
    histograms = figures.draw_op_histograms(found, spec("op_histograms"))
    table = figures.draw_graph_table(found, spec("graph_table", training_steps=50))
    assert histograms.figure.axes[0].get_xlabel().endswith(f"({unit})")
    header = [text.get_text() for text in table.figure.axes[0].texts][:8]
    assert [place for place, text in enumerate(header) if text.endswith(f"({unit})")] == [3, 4]
    assert "50" in header[3], "the time of so many steps"


def test_histograms_count_every_op_that_costs_something(tmp_path: Path) -> None:
    drawing = figures.draw_op_histograms(tables(tmp_path), spec("op_histograms"))
    heights = [sum(bar.get_height() for bar in axes.patches) for axes in drawing.figure.axes]
    assert heights == [6, 8, 11]
    assert [axes.get_ylabel() for axes in drawing.figure.axes] == ["small\nops", "ops", "deps"]
    assert drawing.values["free"] == [{"graph": "small", "free": 2, "ops": 8}]


def test_the_table_of_graphs_has_sequential_times(tmp_path: Path) -> None:
    drawing = figures.draw_graph_table(tables(tmp_path), spec("graph_table", training_steps=50))
    texts = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert texts[8:16] == ["small", "8", "11", "600.0", "4.00", "0.00", "0.0", "4"]
    assert "50" in texts[3] and texts[3].endswith("(s)")


def test_densities_of_beta_are_drawn_once_each_and_sum_to_one(tmp_path: Path) -> None:
    drawing = figures.draw_betas(tables(tmp_path), spec("betas", labels={"b": "tight"}))
    (axes,) = drawing.figure.axes
    drawn = {patch.get_label(): patch.get_data() for patch in axes.patches}
    assert list(drawn) == ["a", "tight", "one", "two", "two (2)"]
    for steps in drawn.values():
        assert steps.values @ np.diff(steps.edges) == pytest.approx(1.0)
    betas = drawing.values["betas"]
    assert betas["a"] == pytest.approx({"mean": 0.55, "std": 0.263}, abs=5e-4) and 0.2 < betas["tight"]["mean"] < 0.4
    assert betas["one"] == pytest.approx({"mean": 0.5, "std": 0.0})


def test_graphs_of_one_op_and_drawn_ones_can_be_shown(tmp_path: Path) -> None:
    alone = ForwardGraph("alone", (1,), ("Input",), (1.0,), (0.0,), (0.0,), (0.0,), ())
    drawn = generated_graphs(validate(GeneratorSettings, {"count": 2, "forms": ["mixed"]}), 1)
    for draw in (figures.draw_graphs, figures.draw_op_histograms, figures.draw_graph_table):
        drawing = draw(tables(tmp_path, alone, *drawn), spec("graphs"))
        drawing.figure.savefig(tmp_path / "figure.png")


def test_what_cannot_be_shown_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="scenario 'c'"):
        figures.draw_betas(tables(tmp_path), spec("betas", scenarios=("c",)))
