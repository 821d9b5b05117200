"""Tests of the figures of learning and of the course of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_figures import SPECS, draw, legend_labels, markers, shown

from schedlab.config.contract import StudyTables
from schedlab.config.errors import UserError
from schedlab.config.files import write_table
from schedlab.figures.panels.curves import running_mean
from schedlab.studies.adaptation.figures.learning import settling_point

pytestmark = pytest.mark.usefixtures("themed")


def test_learning_shows_the_loss_with_its_running_mean(tables: StudyTables) -> None:
    figure = draw(tables, SPECS["learning"]).figure
    top, bottom = figure.axes
    points = tables.curves[(tables.curves["policy"] == "clever") & (tables.curves["metric"] == "reward")]
    dots, first, second = top.get_lines()[:3]
    assert dots.get_ydata() == pytest.approx(-points["value"].to_numpy())
    for line, (_, seed) in zip((first, second), points.groupby("policy_seed"), strict=True):
        assert line.get_ydata() == pytest.approx(running_mean(-seed["value"].to_numpy(), 5)), (
            "50 episodes are five points"
        )
    (late,) = shown(tables, "late")
    learned_on = late.values()[list(late.problem.rows("train"))].mean(0)
    heights = {round(float(line.get_ydata()[0]), 9) for line in top.get_lines()[3:]}
    assert heights == {round(float(learned_on.min()), 9), round(float(learned_on[late.nothing]), 9)}
    assert "loss (nat)" in top.get_ylabel() and "objective" in bottom.get_ylabel()
    assert bottom.get_xlabel() == "episode"


def test_the_legend_of_learning_tells_no_window_that_is_longer_than_the_runs(tables: StudyTables) -> None:
    def labels(window: int) -> list[str]:
        return legend_labels(
            draw(tables, replace(SPECS["learning"], params={**SPECS["learning"].params, "window": window}))
        )

    assert any("50" in label for label in labels(50))
    assert len(labels(50)) == len(labels(100_000)) and not any("100000" in label for label in labels(100_000))


def test_curves_are_cut_where_they_have_settled(tables: StudyTables) -> None:
    assert settling_point(np.array([[5.0, 3.0, 1.0, 1.0, 1.0], [4.0, 1.0, 1.0, 1.0, 1.0]])) == 2
    assert settling_point(np.full((2, 5), 0.3)) == 0
    assert settling_point(np.array([0.0, 1.0, 0.0, 1.0])) == 3
    risen = tables.curves["value"].where((tables.curves["metric"] != "reward") | (tables.curves["step"] <= 50), -0.2)
    at_once = replace(tables, curves=tables.curves.assign(value=risen))
    for kind in ("learning", "transfer"):
        spec = replace(SPECS[kind], params={**SPECS[kind].params, "window": 10})
        drawing = draw(at_once, spec)
        assert (drawing.values["settled"], drawing.values["episodes"]) == (60, 200)
        assert draw(tables, spec).values["settled"] is None
        ends = [line.get_xdata().max() for line in drawing.figure.axes[0].get_lines() if len(line.get_xdata()) > 2]
        assert max(ends) == 70


def test_a_policy_s_start_stands_in_the_legend_of_transfer(tables: StudyTables) -> None:
    parents = {"clever": {"policy": {"parent": None}}, "poor": {"policy": {"parent": "clever"}}}
    labels = legend_labels(draw(replace(tables, policies=parents), SPECS["transfer"]))
    assert [label.split()[0] for label in labels] == ["clever", "poor"]
    assert ["clever" in label.split(maxsplit=1)[1] for label in labels] == [False, True]


def test_transfer_has_an_arrow_from_scratch_to_transfer(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["transfer"])
    axes = drawing.figure.axes[0]
    starts = (
        tables.curves[(tables.curves["step"] == 10) & (tables.curves["metric"] == "reward")]
        .groupby("policy")["value"]
        .mean()
    )
    arrow = next(text for text in axes.texts if text.get_text() == "")
    assert (arrow.xyann[1], arrow.xy[1]) == pytest.approx((-starts["clever"], -starts["poor"]))
    gain = starts["poor"] - starts["clever"]
    (jump,) = drawing.values["jumpstarts"]
    assert jump["gain"] == pytest.approx(gain)
    assert [jump[name] for name in ("transfer", "direction", "scratch", "unit")] == ["poor", "better", "clever", "nat"]
    assert legend_labels(drawing) == ["clever", "poor"]
    line = next(line for line in axes.get_lines() if len(line.get_xdata()) == 20)
    reward = tables.curves[(tables.curves["policy"] == "clever") & (tables.curves["metric"] == "reward")]
    seeds = np.stack([running_mean(-seed["value"].to_numpy(), 5) for _, seed in reward.groupby("policy_seed")])
    assert line.get_ydata() == pytest.approx(seeds.mean(0))


@pytest.mark.parametrize(
    ("kind", "params", "key", "given", "remedy"),
    [
        ("transfer", {"groups": [{"scenario": "late", "policies": ["clever", "por"]}]}, "groups.0", "por", "poor"),
        ("transfer", {"groups": [{"policy": "clever"}]}, "groups.0.policy", "policy", "policies"),
        ("learning", {"metrics": ["loss"]}, "metrics.0", "loss", ""),
        ("moves", {"widen": "early", "stay": "early", "down": "up_down"}, "widen", "early", ""),
    ],
)
def test_what_cannot_be_drawn_is_refused_at_its_key(
    tables: StudyTables, kind: str, params: dict, key: str, given: str, remedy: str
) -> None:
    with pytest.raises(UserError) as error:
        draw(tables, replace(SPECS[kind], params=params))
    found = {each.where: each for each in error.value.errors}[f"figure f: params.{key}"]
    assert given in found.what and remedy in found.remedy


@pytest.mark.parametrize("kind", ["learning", "transfer"])
def test_runs_that_a_scale_lacks_are_left_out(tables: StudyTables, kind: str) -> None:
    axes = draw(replace(tables, curves=tables.curves.iloc[:0]), SPECS[kind]).figure.axes[0]
    assert len(axes.texts) == 1 and not axes.get_lines()


def test_decisions_stand_at_their_time_and_action(tables: StudyTables) -> None:
    clever, constant = draw(tables, SPECS["decisions"]).figure.axes
    rows = tables.details["decisions"]
    for number in range(3):
        found = np.asarray(constant.collections[number].get_offsets())
        expected = (
            rows[(rows["policy"] == "constant") & (rows["decision"] == number)][["time_left", "action"]]
            .drop_duplicates()
            .to_numpy()
        )
        found = sorted(zip(found[:, 0], np.round(found[:, 1]), strict=True))
        assert np.array(found) == pytest.approx(np.array(sorted(map(tuple, expected))))
    assert constant.get_xlim()[0] > constant.get_xlim()[1], "time runs out to the right"
    runs = rows[(rows["policy"] == "clever") & (rows["scenario"] == "early") & (rows["decision"] == 0)]
    start, shares = runs["time_left"].iloc[0], runs.groupby("action").size() / len(runs)
    assert len(runs) == 3 * runs["unit"].nunique(), "three seeds"
    marks = clever.collections[0]
    begin = [
        size
        for (time, _), size in zip(np.asarray(marks.get_offsets()), marks.get_sizes(), strict=True)
        if time == start
    ]
    assert sorted(begin) == pytest.approx(sorted(6 + 34 * shares)), "the area tells the share of seeds and replicates"


def test_the_trunk_is_drawn_where_it_is_given(tables: StudyTables, tmp_path: Path) -> None:
    without = draw(tables, SPECS["trunk"])
    times = {"job": 0, "time_left": [240.0, 230.0, 190.0, 180.0], "train_seconds": 8.5, "eval_seconds": 1.5}
    trunk = pd.DataFrame({**times, "validation_loss": [2.0, 1.5, 1.0, 0.5]})
    write_table(tmp_path / "trunk.parquet", trunk)
    inputs = {name: {**files, "trunk": tmp_path / "trunk.parquet"} for name, files in tables.inputs.items()}
    drawing = draw(replace(tables, inputs=inputs), SPECS["trunk"])
    line = drawing.figure.axes[0].get_lines()[0]
    assert list(line.get_xdata()) == [60.0, 70.0], "from the last epoch before the first start on"
    assert list(line.get_ydata()) == [1.0, 0.5]
    assert len(legend_labels(drawing)) == len(legend_labels(without)) + 1
    (early,) = shown(tables, "early")
    losses = early.mean("validation_loss")
    assert drawing.values["gains"][0] == {"gain": pytest.approx(losses[63] - losses.min()), "start": 60.0}
    assert drawing.values["begins"] == 60.0 and without.values["begins"] is None
    elsewhere = {**inputs, "late": {**inputs["late"], "trunk": tmp_path / "another.parquet"}}
    assert list(draw(replace(tables, inputs=elsewhere), SPECS["trunk"]).left_out) == ["late"]


def test_moves_compare_resources_kept_and_taken_away(tables: StudyTables) -> None:
    drawing = draw(tables, SPECS["moves"])
    cells, dumbbells = drawing.figure.axes[:2]
    widen, down, early = shown(tables, "widen", "up_down", "early")
    assert [text.get_text() for text in cells.texts] == [f"{value:.3f}" for value in widen.mean()]
    kept = [early.mean()[early.sequences.index(f"{sequence}3")] for sequence in down.sequences]
    assert markers(dumbbells)[:, 0] == pytest.approx([*kept, *down.mean()])
    assert [label.get_text() for label in dumbbells.get_yticklabels()][:2] == [
        "deepen 0, deepen 0",
        "deepen 0, deepen 1",
    ]
    ends = [drawing.values[name] for name in ("stay_none", "back_none")]
    assert ends == pytest.approx([kept[-1], down.mean()[-1]])
