"""Figures of traces and of learning in the batch study."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_batch_tables import curve_rows, draw, made

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.panels.curves import restarts
from schedlab.studies.batch.figures.trace import Waited, arrivals_a_day, percentile_panel, recorded_waits, wait_panel
from schedlab.studies.batch.prediction_errors import PREDICTORS
from schedlab.workloads.prepare import write_trace
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.swf import read_swf, write_swf

DAY = 86400.0
RATIO = {"metric": "ratio", "title": "ratio"}


@pytest.fixture(autouse=True)
def themed() -> Iterator[None]:
    with theme.applied(ThemeSettings()):
        yield


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    workload = {"source": "lublin", "lublin": {"jobs": 300, "processors": 32}}
    write_trace(validate(WorkloadSettings, workload), folder / "trace.swf.gz", folder / "report.json")
    return folder / "trace.swf.gz"


def job_rows(policy: str, waits: list[float]) -> pd.DataFrame:
    place = {"scenario": "blocks", "policy": policy, "policy_seed": 0, "split": "test", "unit": "test-000000"}
    run = np.full(len(waits), 100.0)
    return pd.DataFrame({**place, "run": run, "wait": waits, "bsld": (np.array(waits) + run) / run})


def test_waits_that_a_log_lacks_are_those_of_a_rule(trace):
    jobs = pd.concat([job_rows("fcfs", [0.0, 100.0, 300.0, 900.0]), job_rows("sjf", [0.0] * 4)])
    drawing = draw(made(jobs=jobs, inputs={"blocks": {"trace": trace}}), "trace", "blocks", window=20)
    found = drawing.values
    assert [found[name] for name in ("jobs", "window", "waited")] == [300, 20, 4]
    assert [found[name] for name in ("mean", "median", "at_once", "correlation")] == pytest.approx([4.25, 3, 0.25, 1])
    assert [axes.get_title(loc="left")[0] for axes in drawing.figure.axes] == list("abcdefghi")
    scatter = drawing.figure.axes[1].get_lines()[0]
    assert scatter.get_xdata() == pytest.approx(np.array([100, 300, 900]) / 3600)


def panel(draw_panel, waits: list[float]):
    """The axes of one panel of the figure of a trace, for jobs of 100 s."""
    figure, axes = theme.new_figure(3, 3, height_mm=150)
    draw_panel(axes[0, 0], Waited(np.array(waits), (np.array(waits) + 100) / 100, ""))
    figure.canvas.draw()
    return axes[0, 0]


@pytest.mark.parametrize(
    "waits", [[900.0, 3000.0, 8000.0], [3000.0, 4000.0, 4500.0], [10.0, 200.0, 900.0], [1.0, 1e3, 1e5]], ids=str
)
def test_labels_of_waits_do_not_run_into_each_other(trace, waits):
    inputs = {"blocks": {"trace": trace}}
    axes = draw(made(jobs=job_rows("fcfs", waits), inputs=inputs), "trace", "blocks", window=20).figure.axes[1]
    axes.figure.canvas.draw()
    labels = [label for label in axes.get_xticklabels(which="both") if label.get_text()]
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: box.x0)
    low, high = axes.get_window_extent().intervalx
    boxes = [box for box in boxes if low <= (box.x0 + box.x1) / 2 <= high]
    assert len(boxes) > 1
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes)), [label.get_text() for label in labels]


def test_waits_of_a_log_are_taken_from_it(trace, tmp_path):
    drawn = read_swf(trace)
    assert recorded_waits(drawn) is None
    waits = np.arange(len(drawn.jobs), dtype=float) * 60
    write_swf(tmp_path / "log.swf", drawn.with_jobs(drawn.jobs.assign(wait=waits)))
    log = read_swf(tmp_path / "log.swf")
    found = recorded_waits(log)
    run = log.jobs["run"].to_numpy()
    assert found.bsld == pytest.approx(np.maximum(1, (waits + run) / np.maximum(run, 10)))
    drawing = draw(made(inputs={"blocks": {"trace": tmp_path / "log.swf"}}), "trace", "blocks")
    assert drawing.values["mean"] == pytest.approx(found.bsld.mean())


def test_correlation_is_of_all_jobs_or_of_those_of_the_largest_slowdowns():
    rng = np.random.default_rng(1)
    wait, bsld = rng.random(50), rng.random(50)
    waited = Waited(wait, bsld, "")
    assert waited.correlation() == pytest.approx(np.corrcoef(wait, bsld)[0, 1])
    top = np.argsort(bsld)[-5:]
    assert waited.correlation(0.1) == pytest.approx(np.corrcoef(wait[top], bsld[top])[0, 1])
    assert Waited(np.zeros(5), bsld[:5], "").correlation() is None


def test_arrivals_are_counted_by_whole_days_and_by_hours_where_there_are_few():
    days = np.repeat(np.arange(40), np.arange(40) + 1) * DAY
    parts = arrivals_a_day(days + 1.0)
    assert [len(part) for part in parts] == [4] * 9 + [3], "the last day is not whole"
    assert parts[0].tolist() == [1, 2, 3, 4]
    assert sum(part.sum() for part in arrivals_a_day(np.arange(100) * 1800.0)) == 98


def test_predicted_run_times_are_drawn_over_jobs_and_over_users(tmp_path):
    lublin = {"jobs": 300, "processors": 32, "users": 4, "estimates": {"model": "factor", "factor": 5}}
    workload = validate(WorkloadSettings, {"source": "lublin", "lublin": lublin})
    write_trace(workload, tmp_path / "trace.swf.gz", tmp_path / "report.json")
    found = made(inputs={"blocks": {"trace": tmp_path / "trace.swf.gz"}})
    drawing = draw(found, "predictions", "blocks", titles={"blocks": "a log"})
    jobs, users = drawing.figure.axes
    assert jobs.get_title("left") == users.get_title("left") == "a log"
    assert len(jobs.get_lines()) == len(PREDICTORS) + 1 and len(users.get_lines()) == len(PREDICTORS)
    for line in (*jobs.get_lines()[:-1], *users.get_lines()):
        assert (np.diff(line.get_xdata()) >= 0).all() and (line.get_xdata() > 0).all()
        assert [line.get_ydata()[end] for end in (0, -1)] == [0.5, 99.5]
    requested, *_ = drawing.values["traces"]["a log"]["rows"]
    assert requested["predictor"] == "requested" and requested["under"] == 0 and 1 < requested["factor"] <= 5
    assert requested["user"] == pytest.approx(requested["factor"], rel=0.3)


def test_scenarios_that_a_drawing_has_no_place_for_are_told(trace):
    found = made(
        jobs=job_rows("fcfs", [0.0, 60.0]), inputs={"blocks": {"trace": trace}}, curves=curve_rows({0: [1.0, 0.8]})
    )
    assert list(draw(found, "trace", "blocks", "fills", window=20).left_out) == ["fills"]
    assert list(draw(found, "learning", "blocks", "fills", curves=[RATIO]).left_out) == ["fills"]
    assert draw(found, "learning", "blocks", curves=[RATIO]).left_out == {}


def test_a_rule_that_was_not_scored_is_told(trace):
    with pytest.raises(UserError) as error:
        draw(made(jobs=job_rows("fcfs", [0.0]), inputs={"blocks": {"trace": trace}}), "trace", "blocks", rule="f4")
    assert error.value.where == "figure figure: params.rule" and "'f4'" in error.value.what


def test_a_curve_is_the_mean_of_the_seeds_in_the_range_of_the_seeds():
    curves = curve_rows({0: [1.0, 0.8, 0.6], 1: [1.2, 1.0, 0.5]})
    drawing = draw(made(curves=curves), "learning", "blocks", curves=[{**RATIO, "line": 1.0}], counted="generation")
    (axes,) = drawing.figure.axes
    assert axes.get_lines()[0].get_ydata() == pytest.approx([1.1, 0.9, 0.55])
    band = axes.collections[0].get_paths()[0].vertices
    assert (band[:, 1].min(), band[:, 1].max()) == (0.5, 1.2)
    assert axes.get_xlabel() == "generation"
    ends = {"first": 1.1, "last": 0.55, "steps": 3, "low": 0.5, "high": 0.6}
    assert drawing.values["curves"] == [{"title": RATIO["title"], "policies": {"learner": pytest.approx(ends)}}]


def test_a_curve_of_one_point_has_no_first_value_beside_its_last():
    drawing = draw(
        made(curves=curve_rows({0: [1.0], 1: [1.2]})), "learning", "blocks", curves=[RATIO], counted="generation"
    )
    ends = drawing.values["curves"][0]["policies"]["learner"]
    assert ends == {"first": None, "last": pytest.approx(1.1), "steps": 1, "low": 1.0, "high": 1.2}


def test_the_legend_has_points_where_curves_are_points_and_the_dashed_line():
    shown = {**RATIO, "line": 1.0, "line_label": "as SJF"}
    for values in ([1.0], [1.0, 2.0]):
        legend = draw(made(curves=curve_rows({0: values})), "learning", "blocks", curves=[shown]).figure.legends[0]
        policy, dashed = legend.legend_handles
        assert [text.get_text() for text in legend.get_texts()] == ["learner", "as SJF"]
        assert (policy.get_linestyle() == "None") == (len(values) == 1) == (
            policy.get_marker() != "None"
        ) and dashed.get_linestyle() == "--"


@pytest.mark.parametrize("waits", [[0.0] * 8 + [3000.0, 9e4], [0.0, 10.0, 900.0]], ids=len)
def test_no_label_of_a_percentile_lies_on_the_line_of_the_mean(waits):
    axes = panel(percentile_panel, waits)
    mean = axes.transData.transform((0, np.mean((np.array(waits) + 100) / 100)))[1]
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 2
    assert all(mean < box.y0 or mean > box.y1 for box in boxes)


def test_a_trace_whose_jobs_wait_for_nothing_is_drawn():
    axes = panel(wait_panel, [0.0] * 20)
    assert not axes.get_lines() and axes.texts


def test_few_waits_are_dots_that_are_seen():
    few, many = (panel(wait_panel, [60.0, 600.0] * count) for count in (1, 1000))
    assert few.get_lines()[0].get_markersize() > 2 * many.get_lines()[0].get_markersize()


def test_averages_are_of_a_tenth_of_a_short_trace_and_every_class_of_sizes_has_its_label(trace):
    drawing = draw(made(jobs=job_rows("fcfs", [0.0, 60.0]), inputs={"blocks": {"trace": trace}}), "trace", "blocks")
    axes = drawing.figure.axes
    assert drawing.values["window"] == 30
    assert [len(axes[place].get_lines()[0].get_xdata()) for place in (7, 8)] == [271, 271]
    sizes = [label.get_text() for label in axes[4].get_xticklabels()]
    assert sizes == ["1", "2", "4", "8", "16", "32"] and axes[4].get_xlabel()


@pytest.mark.parametrize(("count", "few"), [(2, True), (9, False)])
def test_points_of_a_curve_that_has_few_are_marked(count, few):
    drawing = draw(made(curves=curve_rows({0: [1.0] * count})), "learning", "blocks", curves=[RATIO])
    assert (drawing.figure.axes[0].get_lines()[0].get_marker() != "None") == few == drawing.values["few"]


def test_a_curve_may_be_smoothed_exponentially():
    curves = curve_rows({0: [4.0, 2.0, 1.0], 1: [8.0, 8.0, 8.0]})
    drawing = draw(made(curves=curves), "learning", "blocks", curves=[{**RATIO, "smoothing": 0.5}], window=3)
    (axes,) = drawing.figure.axes
    own = [4.0, (0.5 * 4 + 2) / 1.5, (0.25 * 4 + 0.5 * 2 + 1) / 1.75]
    assert axes.get_lines()[0].get_ydata() == pytest.approx([(value + 8) / 2 for value in own])


def test_phases_follow_each_other_and_policies_without_the_curve_are_left_out():
    curves = (
        curve_rows({0: [4.0, 3.0]})
        + curve_rows({0: [2.0, 1.0]}, phase=1)
        + curve_rows({0: [9.0]}, policy="other", metric="loss")
    )
    drawing = draw(
        made(curves=curves), "learning", "blocks", curves=[RATIO, {"metric": "loss", "split": "train", "title": "loss"}]
    )
    (axes,) = drawing.figure.axes
    assert axes.get_lines()[0].get_xydata().tolist() == [[1, 4], [2, 3], [3, 2], [4, 1]]
    assert [list(curve["policies"]) for curve in drawing.values["curves"]] == [["learner"]]


def test_no_line_joins_searches_of_different_starts():
    curves = curve_rows({0: [4.0, 3.0, 2.0, 1.0, 5.0]}, updates=[0, 1, 0, 1, 0], metric="fitness", split="train")
    found = made(curves=curves)
    assert restarts(found.curves) == [3, 5]
    (axes,) = draw(
        found, "learning", "blocks", curves=[{"metric": "fitness", "split": "train", "title": "fitness"}]
    ).figure.axes
    lines = [line.get_xdata().tolist() for line in axes.get_lines() if len(line.get_xdata()) > 1]
    dots = [line.get_xdata().tolist() for line in axes.get_lines() if line.get_marker() not in ("None", None, "")]
    assert lines == [[1, 2], [3, 4]] and dots == [[1, 2], [3, 4], [5]], "few points are marked"


def test_a_scale_without_learning_has_a_figure_without_axes():
    (axes,) = draw(made(), "learning", "blocks", curves=[RATIO]).figure.axes
    assert not axes.get_lines() and not axes.axison
