"""Figures of policies in the batch study: boxes of windows, ratios to the chosen rule, and the published table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import Patch
from small_batch_tables import BSLD, comparison_rows, draw, made, rows_of, score_rows

import shipped_conf
from schedlab.config.contract import StudyTables
from schedlab.config.errors import UserError
from schedlab.config.settings import ThemeSettings
from schedlab.evaluation.claims import read_claims
from schedlab.evaluation.facts import Facts
from schedlab.figures import theme
from schedlab.studies.batch.figures.windows import same_as_rules

CONF = Path(__file__).parents[4] / "conf"
SWEEP = {"label": "load", "x": "load"}
LOADS = Facts({"fills": {"load": 0.9}, "blocks": {"load": 0.6}}, {}, {})


def swept() -> StudyTables:
    scores = LOADS.joined(made().scores)
    rows = scores.groupby(["scenario", "policy", "kind", "split", "metric"])["value"]
    summary = rows.agg(value="mean", range_low="min", range_high="max").reset_index()
    return replace(made(), scores=scores, summary=summary.assign(ci_low=np.nan, ci_high=np.nan))


PANEL = {"title": "A", "scenario": "blocks", "published": {"fcfs": 10.0, "sjf": 5.01}, "learned": 5.5}
LEGACY = {"wfp3": "wfp3_legacy", "unicep": "unicep_legacy"}  # what the published columns were run with


@pytest.fixture(autouse=True)
def themed() -> Iterator[None]:
    with theme.applied(ThemeSettings()):
        yield


def points(axes, marker: str) -> dict[int, list[float]]:
    """The horizontal places of the points of one marker, by the row that they are nearest to."""
    found: dict[int, list[float]] = {}
    for line in axes.get_lines():
        if line.get_marker() == marker:
            for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True):
                found.setdefault(round(float(y)), []).append(float(x))
    return found


def test_every_window_is_a_dot_and_policies_stand_from_best_to_worst_mean():
    drawing = draw(made(), "windows", "blocks", "fills")
    first, second = drawing.figure.axes
    assert rows_of(first) == ["learner", "sjf", "f1", "fcfs"] and rows_of(second) == ["f1", "sjf", "fcfs"]
    dots, means = points(first, "."), points(first, "D")
    learner = np.mean(BSLD["blocks"]["learner"], axis=0)
    assert sorted(dots[0]) == pytest.approx(sorted(learner)) and means[0] == pytest.approx([learner.mean()])
    assert sorted(dots[3]) == sorted(BSLD["blocks"]["fcfs"][0])
    assert first.get_xscale() == "log"
    written = {text.get_text() for text in first.texts}
    assert {f"{learner.mean():#.3g}", f"{np.median(learner):#.3g}", "mean", "median"} <= written
    found = drawing.values["scenarios"][0]
    assert [found[name] for name in ("windows", "best", "worst", "heavy")] == [6, "learner", "fcfs", 3]
    amounts = [found[name].value for name in ("mean", "worst_mean", "median")]
    assert amounts == pytest.approx([5.5, 14.7, 3.5], abs=0.04) and found["share"] == pytest.approx(0.79, abs=0.005)
    assert {"scenario": "blocks", "policy": "chosen", "rule": "sjf"} in drawing.values["same"]


def test_values_are_of_the_scenarios_that_are_drawn_alone():
    values = draw(made(), "windows", "blocks").values
    assert [scenario["title"] for scenario in values["scenarios"]] == ["blocks"]
    assert {row["scenario"] for row in values["same"]} == {"blocks"}


def test_rules_are_of_one_grey_and_learned_policies_of_their_colour():
    (axes,) = draw(made(), "windows", "blocks").figure.axes
    dots = {
        round(float(line.get_ydata().mean())): line.get_color() for line in axes.get_lines() if line.get_marker() == "."
    }
    assert rows_of(axes) == ["learner", "sjf", "f1", "fcfs"]
    assert {dots[row] for row in (1, 2, 3)} == {theme.MUTED} and dots[0] != theme.MUTED


@pytest.mark.parametrize(("windows", "marked"), [(1, False), (2, False), (3, True)])
def test_mean_and_median_of_two_windows_are_numbers_alone(windows, marked):
    rows = score_rows(values={"blocks": {"fcfs": [[2.0, 4.0, 9.0][:windows]], "sjf": [[1.0, 3.0, 5.0][:windows]]}})
    drawing = draw(made(rows), "windows", "blocks")
    (axes,) = drawing.figure.axes
    keys = {text.get_text() for text in drawing.figure.legends[0].get_texts()}
    assert bool(points(axes, "D")) == marked == ({"mean", "median"} <= keys)
    assert len(points(axes, ".")) == 2 and {"mean", "median"} <= {text.get_text() for text in axes.texts}
    assert drawing.values["scenarios"][0]["windows"] == windows


def test_a_mean_does_not_hide_the_windows_that_it_equals():
    rows = score_rows(values={"blocks": {"fcfs": [[4.0, 4.0, 4.0]], "sjf": [[1.0, 3.0, 5.0]]}})
    (axes,) = draw(made(rows), "windows", "blocks").figure.axes
    assert {line.get_markerfacecolor() for line in axes.get_lines() if line.get_marker() == "D"} == {"none"}


def test_waits_of_0_stand_on_an_axis_that_has_a_0():
    waits = {"blocks": {"fcfs": [[0.0, 3600.0, 7200.0]], "sjf": [[0.0, 0.0, 3600.0]]}}
    axes = draw(made(score_rows("avg_wait", waits)), "windows", "blocks", metric="avg_wait").figure.axes[0]
    assert axes.get_xscale() == "symlog" and axes.get_xlim()[0] == 0 and axes.get_xlabel() == "mean wait (h)"
    assert sorted(points(axes, ".")[0]) == [0, 0, 1]


def test_few_windows_are_dots_without_a_box():
    values = {"blocks": {"fcfs": [[2.0, 4.0, 9.0, 1.0, 3.0]]}, "fills": {"fcfs": [[2.0, 4.0, 9.0, 1.0, 3.0, 5.0]]}}
    few, enough = draw(made(score_rows(values=values)), "windows", "blocks", "fills").figure.axes
    assert len(few.patches) == 0 and len(enough.patches) == 1
    assert [3.0, 3.0] in [list(line.get_xdata()) for line in few.get_lines()]  # the median
    legends = [draw(made(score_rows(values=values)), "windows", name).figure.legends[0] for name in values]
    boxes = [sum(isinstance(handle, Patch) for handle in legend.legend_handles) for legend in legends]
    assert boxes == [0, 1]


def test_dots_are_called_what_their_windows_are():
    kinds = ("window", "published, overlapping", "published, disjoint")
    found = {}
    for name in kinds:
        rows = [row | {"unit_kind": name} for row in score_rows()]
        (legend,) = draw(made(rows), "windows", "blocks").figure.legends
        found[name] = legend.get_texts()[0].get_text()
    assert all(name in label for name, label in found.items()) and len(set(found.values())) == len(kinds)


def test_panels_have_headings_and_published_means_of_learned_policies():
    drawing = draw(
        made(), "windows", "blocks", "fills", titles={"blocks": "No backfilling"}, learned={"blocks": [6.5, 7.0]}
    )
    first, second = drawing.figure.axes
    assert (first.get_title(loc="left"), second.get_title(loc="left")) == ("No backfilling", "fills")
    upright = [
        [list(line.get_xdata()) for line in axes.get_lines() if list(line.get_ydata()) == [0, 1]]
        for axes in (first, second)
    ]
    assert upright == [[[6.5, 6.5], [7.0, 7.0]], []]
    head = [drawing.values["scenarios"][0][name] for name in ("title", "backfilling", "windows")]
    assert head == ["No backfilling", "without backfilling", 6]
    assert any("published" in text.get_text() for text in drawing.figure.legends[0].get_texts())


@pytest.mark.parametrize("name", ["published_tests", "published_tests_waits"])
def test_published_means_of_the_tests_are_those_of_the_ledger(name):
    claims = read_claims(CONF, "batch")["batch"].claims
    params = shipped_conf.values("figure/batch", name)["params"]
    found = {}
    for claim in claims:
        if match := re.fullmatch(r"(?:test-)?(hpc2n|sdsc-sp2)(-backfill)?-ppo(?:-[ab])?(?:-test|-trained)?", claim.id):
            found.setdefault(f"published_test_{match[1]}{match[2] or ''}".replace("-", "_"), []).append(claim.published)
    waits = {"published_test_hpc2n": [claim.published for claim in claims if claim.id == "wait-mean-hpc2n-ppo"]}
    expected = waits if name.endswith("waits") else found
    assert {scenario: sorted(values) for scenario, values in params["learned"].items()} == {
        key: sorted(all_) for key, all_ in expected.items()
    }


def test_where_more_is_better_the_highest_mean_is_best():
    rows = score_rows("util_makespan", {"blocks": {"fcfs": [[0.5, 0.6]], "sjf": [[0.7, 0.9]]}})
    drawing = draw(made(rows), "windows", "blocks", metric="util_makespan")
    (found,) = drawing.values["scenarios"]
    assert rows_of(drawing.figure.axes[0]) == ["sjf", "fcfs"]
    assert [found[name].value for name in ("mean", "worst_mean", "median")] == pytest.approx([0.8, 0.55, 0.8])
    assert found["share"] is None


def chosen(best: str, rows: list[dict] | None = None) -> StudyTables:
    """Tables with a validation window on which one policy of `blocks` is best; a trained policy is better still."""
    rows = score_rows() if rows is None else rows
    here = {row["policy"]: row | {"unit": "validation"} for row in rows if row["scenario"] == "blocks"}
    values = {best: 2.0, "learner": 1.0}
    return made([*rows, *(row | {"split": "validation", "value": values.get(name, 3.0)} for name, row in here.items())])


def test_ratios_are_to_the_untrained_policy_that_is_best_on_validation():
    drawing = draw(chosen("sjf"), "ratios", "blocks")
    (axes,) = drawing.figure.axes
    assert rows_of(axes) == ["learner", "f1", "fcfs"]  # chosen is sjf itself
    learner, sjf = np.mean(BSLD["blocks"]["learner"], axis=0), np.array(BSLD["blocks"]["sjf"][0])
    assert sorted(points(axes, "|")[0]) == pytest.approx(sorted(learner / sjf))
    assert points(axes, "D")[0] == pytest.approx([learner.sum() / sjf.sum()])
    logs = np.log(np.array(BSLD["blocks"]["learner"]) / sjf)
    assert points(axes, "o")[0] == pytest.approx([np.exp(logs.mean())])
    assert "100 %" in {text.get_text() for text in axes.texts}
    effect = (logs_of := logs.mean(axis=0)).mean() / logs_of.std(ddof=1)
    (first,) = drawing.values["panels"][0]["first"]
    assert first["ratio"] == pytest.approx(learner.sum() / sjf.sum())
    assert first["standardised_log_ratio"] == pytest.approx(effect)
    assert [first[name] for name in ("policy", "win_rate", "windows_differing", "windows")] == ["learner", 1.0, 5, 6]


def test_a_trained_policy_that_is_a_rule_is_drawn_as_that_rule():
    drawing = draw(chosen("f1"), "ratios", "blocks")
    (axes,) = drawing.figure.axes
    rows = rows_of(axes)
    assert rows[0] == "learner" and any(row.startswith("chosen") and row.endswith("sjf") for row in rows)
    colours = {line.get_color() for line in axes.get_lines() if line.get_marker() == "|"}
    assert theme.MUTED in colours and len(colours) == 2
    assert drawing.values["same"] == [{"scenario": "blocks", "policy": "chosen", "rule": "sjf"}]


def test_windows_beyond_the_panel_stand_at_its_edge_as_triangles():
    far = score_rows(values={"blocks": {"f1": [[1.0, 1.0, 100.0]], "sjf": [[9.0, 2.0, 10.0]]}})
    (axes,) = draw(chosen("f1", far), "ratios", "blocks").figure.axes
    assert [points(axes, marker)[0] for marker in ("<", "|", ">")] == [[1 / 8], [2.0], [8.0]]


def test_a_rule_keeps_its_name_where_another_scores_the_same():
    tied = score_rows(values={"blocks": {"f1": [[2.0, 4.0]], "f2": [[2.0, 4.0]], "sjf": [[3.0, 4.0]]}})
    drawing = draw(chosen("f1", tied), "ratios", "blocks")
    assert drawing.values["panels"][0]["against"] == "f1"
    assert drawing.figure.axes[0].get_title(loc="left").endswith(" f1")


def test_without_validation_windows_ratios_are_to_the_baseline():
    named = [{**row, "role": "baseline"} for row in comparison_rows(blocks="fcfs")]
    drawing = draw(made(comparisons=named), "ratios", "blocks")
    assert drawing.values["panels"][0]["against"] == "fcfs"
    assert drawing.figure.axes[0].get_title(loc="left").endswith(" fcfs")


def test_a_learned_policy_is_a_rule_whatever_rounding_made_of_its_mean():
    table = pd.DataFrame({"sjf": [1.1, 2.0], "f1": [3.0, 4.0], "learner": [1.1 * (1 + 1e-15), 2.0], "own": [1.1, 2.1]})
    assert same_as_rules(table, {"learner", "own"}) == {"learner": "sjf"}


def test_policies_of_equal_scores_are_drawn_where_there_are_no_others():
    alike = score_rows(values={"blocks": {"fcfs": [[2.0, 4.0]], "sjf": [[2.0, 4.0]]}})
    assert rows_of(draw(chosen("sjf", alike), "ratios", "blocks").figure.axes[0]) == ["fcfs"]
    (same,) = draw(made(alike), "windows", "blocks").values["scenarios"]
    assert (same["windows"], same["alike"], same["mean"].value) == (2, True, 3.0)


def summary(**values: float) -> list[dict]:
    texts = {
        "scenario": "blocks",
        "kind": "rule",
        "metric": "avg_bsld",
        "unit": "-",
        "statistic": "mean",
        "range_over": "blocks",
    }
    rest = {
        "split": "test",
        "mode": "default",
        "trained_on": "",
        "config_hash": "0",
        "seeds": 1,
        "units": 10,
        "blocks": 1,
        **dict.fromkeys(("decisions", "episodes", "trainings")),
    }
    bounds = {"ci_low": None, "ci_high": None, "range_low": 0.0, "range_high": 0.0}
    return [{"policy": policy, "value": value, **texts, **rest, **bounds} for policy, value in values.items()]


def test_published_values_are_rings_around_ours():
    drawing = draw(
        made(summary=summary(fcfs=10.004, sjf=5.0, f1=5.4)),
        "published",
        "blocks",
        panels=[PANEL],
        order=["sjf", "fcfs"],
    )
    (axes,) = drawing.figure.axes
    assert rows_of(axes) == ["sjf", "fcfs", "f1"]
    assert {row: sorted(values) for row, values in points(axes, "o").items()} == {
        0: [5.0, 5.01],
        1: [10.0, 10.004],
        2: [5.4],
    }
    assert [drawing.values[name] for name in ("equal", "values", "decimals", "side")] == [1, 2, 2, "below"]
    rules = [{"rule": "sjf", "value": "5.00"}, {"rule": "f1", "value": "5.40"}]
    assert drawing.values["traces"] == {"A": {"learned": "5.50", "rules": rules, "none": False}}


def test_where_more_is_better_rules_above_the_published_learned_policy_are_told():
    panel = {"title": "A", "scenario": "blocks", "published": {"fcfs": 0.65, "sjf": 0.751}, "learned": 0.7}
    rows = [{**row, "metric": "util_makespan"} for row in summary(fcfs=0.6504, sjf=0.75, f1=0.71)]
    drawing = draw(made(summary=rows), "published", "blocks", panels=[panel], metric="util_makespan", decimals=3)
    assert drawing.figure.axes[0].get_xscale() == "linear"
    assert [drawing.values[name] for name in ("equal", "values", "decimals", "side")] == [1, 2, 3, "above"]
    assert [row["value"] for row in drawing.values["traces"]["A"]["rules"]] == ["0.710", "0.750"]


@pytest.mark.parametrize(("name", "measure"), [("published_table", "bsld"), ("published_utilisation", "util")])
def test_the_published_numbers_of_the_figure_are_those_of_the_ledger(name, measure):
    claims = {claim.id: claim.published for claim in read_claims(CONF, "batch")["batch"].claims}
    figure = shipped_conf.values("figure/batch", name)
    shown = {}
    for panel in figure["params"]["panels"]:
        start = f"{measure}-{panel['scenario'].removeprefix('published_').replace('_', '-')}"
        shown |= {f"{start}-{rule.removesuffix('_legacy')}": value for rule, value in panel["published"].items()}
        assert {rule for rule in panel["published"] if rule.startswith(("wfp3", "unicep"))} == set(LEGACY.values())
        shown[f"{start}-rl"] = panel["learned"]
    assert shown == {name: claims[name] for name in shown}


def test_a_sweep_shows_policies_that_every_scenario_scores():
    drawing = draw(swept(), "sweep", "blocks", "fills", **SWEEP)
    (axes,) = drawing.figure.axes
    lines = {tuple(line.get_ydata()) for line in axes.get_lines() if not line.get_label().startswith("_")}
    means = {name: tuple(np.mean(BSLD[scenario][name]) for scenario in ("blocks", "fills")) for name in BSLD["fills"]}
    assert lines == set(means.values()) and drawing.values["range"]
    assert {at: found["mean"] for at, found in drawing.values["best"].items()} == pytest.approx(
        {"0.6": 25 / 3, "0.9": 5 / 3}
    )


def test_a_matrix_tells_the_ratio_to_the_best_rule_of_each_scenario():
    drawing = draw(made(), "matrix", "blocks", "fills", policies=("learner", "fcfs", "sjf"))
    axes = drawing.figure.axes[0]
    assert rows_of(axes) == ["learner", "fcfs", "sjf"]
    texts = [text.get_text() for text in axes.texts]
    learner = np.mean(BSLD["blocks"]["learner"]) / np.mean(BSLD["blocks"]["sjf"])
    assert f"{learner:.2f}" in texts and f"{np.mean(BSLD['fills']['fcfs']) / np.mean(BSLD['fills']['f1']):.2f}" in texts
    assert drawing.values["rules"] == {"blocks": "sjf", "fills": "f1"}
    assert drawing.values["ratio"] == pytest.approx(learner) and drawing.values["policy"] == "learner"


LACKING = {"comparisons": [{**comparison_rows(blocks="sjf")[0], "role": "baseline"}], "summary": summary(sjf=5.0)}


@pytest.mark.parametrize(
    ("kind", "tables", "params", "where", "named"),
    [
        ("windows", {}, {"titles": {"elsewhere": "X"}}, "figure figure: params", "elsewhere"),
        ("windows", {}, {"metric": "max_wait"}, "figure figure: policies", "max_wait"),
        ("ratios", {}, {}, "scenario blocks", ""),
        ("ratios", LACKING, {"policies": ("sjf",)}, "figure figure: policies", "sjf"),
        ("published", LACKING, {"panels": [PANEL]}, "figure figure: params.panels", "blocks"),
        ("sweep", {}, {"policies": ("learner",), **SWEEP}, "figure figure: params.x", "load"),
        ("matrix", {}, {"policies": ("nobody",)}, "figure figure: policies", ""),
    ],
)
def test_what_cannot_be_drawn_is_refused_where_it_is_asked_for(kind, tables, params, where, named):
    with pytest.raises(UserError) as error:
        draw(made(**tables), kind, "blocks", **params)
    assert error.value.where == where and named in str(error.value)


def test_the_figure_of_the_published_windows_shows_what_their_scenarios_score():
    figure = shipped_conf.values("figure/batch", "published_windows")
    scored = {name for each in figure["scenarios"] for name in shipped_conf.values("scenario/batch", each)["policies"]}
    assert scored <= set(figure["policies"])
