"""The figures of the hetero study, drawn from the tables of a small run: what they show are the tables' values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import yaml
from small_hetero import part, prepared, scenario

import shipped_conf
from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.runtime.parts import dump
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme, units
from schedlab.figures.panels.timeline import means_within
from schedlab.figures.save import caption_of
from schedlab.stages.draw import drawing_function, read_tables
from schedlab.stages.evaluate import evaluate
from schedlab.stages.summarise import summarise
from schedlab.studies.hetero import prepare
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import Score
from schedlab.studies.hetero.study import STUDY

RULES = ("fcfs", "filler", "easy")
SPEED = {"like": {"clock_rate": [2.72, 2.72], "flops_per_cycle": [8], "power": [12.0, 12.0]}, "unlike": {"seed": 36}}


def evaluated(name: str, folder: Path) -> tuple[dict[str, Any], dict[str, Path], Path, dict[str, list[Path]]]:
    """Score three rules on five test workloads of a scenario: problem part, inputs, scores, details."""
    machine = {"clusters": 3, "nodes": [2, 2], "processors": [2, 2], "cores": [4, 4], **SPEED[name]}
    platform = {"name": name, "synthetic": machine, "pstates": {"managed": False}}
    workload = part("workload/lublin.yaml")
    workload["lublin"] |= {"processors": 48, "jobs": 30, "load": 1.5}  # so that jobs wait
    settings = scenario(name=name, platform=platform, workload=workload, replicates={"validation": 1, "test": 5})
    prepared(settings, folder)
    problem = {"name": name, "mode": "default", "seed": 1, **prepare.problem_values(settings), "upstream": {}}
    policies = [
        {"name": rule, "kind": "rule", "mode": "default", "target": rule, "params": {}, "seeds": [0], "trained_on": ""}
        for rule in RULES
    ]
    values = {
        "study": "hetero",
        "results_version": 1,
        "seed": 1,
        "scenario": name,
        "problem": problem,
        "policies": policies,
    }
    (folder / "evaluate.yaml").write_text(dump(values))
    inputs = {
        "platform": folder / "platform.xml",
        "resources": folder / "resources.json",
        "workloads": folder / "workloads.zip",
    }
    evaluate(
        folder / "evaluate.yaml", inputs, {}, folder / "rules.parquet", folder / "details", folder / "provenance.json"
    )
    return (
        problem,
        inputs,
        folder / "rules.parquet",
        {table: [folder / f"details/{table}.parquet"] for table in STUDY.details},
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> StudyTables:
    folder = tmp_path_factory.mktemp("hetero")
    made = {name: evaluated(name, folder / name) for name in SPEED}
    statistics = {"statistic": "mean", "resamples": 200, "confidence": 0.95, "baseline": "easy"}
    jobs = {name: {"rules": list(RULES)} for name in made}
    part = {
        "study": "hetero",
        "results_version": 1,
        "seed": 1,
        "statistics": statistics,
        "scenarios": jobs,
        "policies": {},
    }
    (folder / "summarise.yaml").write_text(yaml.safe_dump(part))
    details = {table: [path for name in made for path in made[name][3][table]] for table in STUDY.details}
    summarise(folder / "summarise.yaml", [made[name][2] for name in made], [], details, folder / "summary")
    inputs = {name: made[name][1] for name in made}
    return read_tables(
        STUDY, folder / "summary", {"scenarios": {name: made[name][0] for name in made}, "policies": {}}, inputs
    )


@pytest.fixture(autouse=True)
def themed() -> Iterator[None]:
    with theme.applied(ThemeSettings()):
        yield


def draw(tables: StudyTables, kind: str, *scenarios: str, policies: tuple[str, ...] = (), **params: Any) -> Drawing:
    spec = FigureSpec("figure", kind, "title", "Caption.", "", scenarios, policies, params)
    drawing = drawing_function(STUDY, kind)(tables, spec)
    drawing.figure.draw_without_rendering()
    assert not set("{}[]") & set(caption_of(drawing)), caption_of(drawing)
    return drawing


def shown_workload(tables: StudyTables, *policies: str) -> data.Workload:
    return data.Workload(tables, "unlike", "test-00", policies)


def value(tables: StudyTables, policy: str, metric: str, scenario: str = "unlike") -> float:
    return data.split_means(tables.summary, metric, scenario)[policy]


def test_every_metric_has_a_panel_unless_it_is_0_everywhere(tables):
    drawing = draw(tables, "metrics", "unlike", "like")
    titles = [
        " ".join(axes.get_title(loc="left").lower().split()) for axes in drawing.figure.axes if axes.get_visible()
    ]
    zero = data.BY_NAME["unsuccessful"].label
    assert len(titles) == len(set(tables.scores["metric"])) - 1 and zero not in titles
    assert drawing.values["zero"] == [zero] and drawing.values["workloads"] == "5"
    order = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert set(order) == set(RULES)
    slowdowns = [value(tables, policy, "mean_bounded_slowdown") for policy in RULES]
    best, worst = RULES[int(np.argmin(slowdowns))], RULES[int(np.argmax(slowdowns))]
    ends = drawing.values["ends"][0]
    assert (ends["scenario"], ends["best"], ends["worst"]) == ("unlike", [best], [worst])
    assert ends["value"].value == pytest.approx(min(slowdowns))


def test_a_scenario_looks_alike_in_every_figure(tables):
    looks = []
    for names in (("like", "unlike"), ("unlike", "like")):
        found = draw(tables, "metrics", *names).figure.legends[0].legend_handles
        looks.append({handle.get_label(): (handle.get_color(), handle.get_marker()) for handle in found})
    assert looks[0] == looks[1] and looks[0]["scenario like"] != looks[0]["scenario unlike"]


def test_points_stand_at_the_values_of_the_summary_in_the_panels_unit(tables):
    axes = draw(tables, "metrics", "unlike", policies=("easy", "fcfs"), metrics=["makespan"]).figure.axes[0]
    shown = {
        round(float(line.get_ydata()[0])): float(line.get_xdata()[0])
        for line in axes.get_lines()
        if len(line.get_xdata()) == 1
    }
    size = {"h": 3600.0, "min": 60.0}[axes.get_xlabel().split()[0]]
    wanted = {0: value(tables, "easy", "makespan") / size, 1: value(tables, "fcfs", "makespan") / size}
    assert shown == pytest.approx(wanted)


def test_differences_are_in_percent_of_the_baselines_mean(tables):
    axes = draw(
        tables, "metrics", "unlike", metrics=["mean_wait"], against="easy", policies=("fcfs", "easy")
    ).figure.axes[0]
    shown = [float(line.get_xdata()[0]) for line in axes.get_lines() if len(line.get_xdata()) == 1]
    wait = {policy: value(tables, policy, "mean_wait") for policy in RULES}
    assert shown == pytest.approx([100 * (wait["fcfs"] - wait["easy"]) / wait["easy"]])
    assert axes.get_xlabel().startswith("%")


def test_any_scheduler_may_be_compared_with(tables):
    """Differences to the study's baseline stand in the comparisons; others are made of the scores."""
    shown = {}
    for one, other in (("easy", "filler"), ("filler", "easy")):
        drawing = draw(tables, "metrics", "unlike", metrics=["mean_wait"], against=one, policies=(other,))
        (shown[one],) = [
            float(line.get_xdata()[0]) for line in drawing.figure.axes[0].get_lines() if len(line.get_xdata()) == 1
        ]
    waits = {policy: value(tables, policy, "mean_wait") for policy in RULES}
    assert shown["filler"] == pytest.approx(100 * (waits["easy"] - waits["filler"]) / waits["filler"])
    assert shown["easy"] == pytest.approx(100 * (waits["filler"] - waits["easy"]) / waits["easy"])


def test_a_scheduler_may_be_compared_with_itself_in_another_scenario(tables):
    drawing = draw(tables, "metrics", "unlike", metrics=["energy"], beside="like")
    (axes,) = (each for each in drawing.figure.axes if each.get_visible())
    order = [label.get_text() for label in axes.get_yticklabels()]
    shown = {
        order[round(float(line.get_ydata()[0]))]: float(line.get_xdata()[0])
        for line in axes.get_lines()
        if len(line.get_xdata()) == 1
    }
    both = {policy: [value(tables, policy, "energy", name) for name in ("unlike", "like")] for policy in RULES}
    assert shown == pytest.approx({policy: 100 * (here / there - 1) for policy, (here, there) in both.items()})
    assert axes.get_xlabel().startswith("%")
    (found,) = drawing.values["between"]
    assert found["metric"] == data.BY_NAME["energy"].label and drawing.values["beside"] == "like"


@pytest.mark.parametrize(
    ("kind", "params", "key", "given", "remedy"),
    [
        ("metrics", {"against": "conservative"}, "against", "conservative", "easy"),
        ("metrics", {"metrics": ["unsuccessful"], "against": "fcfs"}, "metrics", "fcfs", ""),
        ("gantt", {"unit": "test-9"}, "unit", "test-9", "test-0"),
        ("gantt", {"unti": "test-03"}, "unti", "unti", "unit"),
    ],
)
def test_a_value_that_cannot_be_drawn_is_refused_at_its_key(tables, kind, params, key, given, remedy):
    with pytest.raises(UserError) as error:
        draw(tables, kind, "unlike", **params)
    (found,) = error.value.errors
    assert found.where == f"figure figure: params.{key}" and f"'{given}'" in found.what and remedy in found.remedy


def test_a_difference_that_is_asked_for_and_has_no_panel_is_named(tables):
    drawing = draw(tables, "metrics", "unlike", metrics=["makespan", "unsuccessful"], against="fcfs")
    assert len([axes for axes in drawing.figure.axes if axes.get_visible()]) == 1
    assert drawing.values["missing"] == [data.BY_NAME["unsuccessful"].label]


def test_the_best_and_the_worst_of_a_tie_are_named_together(tables):
    rows = tables.summary["metric"] == "makespan"
    alike = tables.summary.assign(value=tables.summary["value"].where(~rows, 7200.0))
    (ends,) = draw(replace(tables, summary=alike), "metrics", "unlike", metrics=["makespan"]).values["ends"]
    assert (ends["best"], str(ends["value"]), ends["worst"]) == (sorted(RULES), "2 h", [])
    one = alike.assign(value=alike["value"].where(~(rows & (alike["policy"] == "easy")), 3600.0))
    (ends,) = draw(replace(tables, summary=one), "metrics", "unlike", metrics=["makespan"]).values["ends"]
    assert (ends["best"], str(ends["value"])) == (["easy"], "1 h")
    assert (ends["worst"], str(ends["worst_value"])) == (["fcfs", "filler"], "2 h")


def test_the_gantt_chart_shows_every_job_on_its_cores(tables):
    drawing = draw(tables, "gantt", "unlike", policies=RULES)
    panels = [axes for axes in drawing.figure.axes if axes.get_title(loc="left") in RULES]
    assert [axes.get_title(loc="left") for axes in panels] == list(RULES)
    for axes, policy in zip(panels, RULES, strict=True):
        jobs = shown_workload(tables, policy).detail("jobs")[policy]
        boxes = [path.get_extents() for path in axes.collections[0].get_paths()]
        area = sum(box.width * box.height for box in boxes)
        size = 3600.0 if "(h)" in panels[-1].get_xlabel() else 60.0
        assert area * size == pytest.approx(float(((jobs["finish"] - jobs["start"]) * jobs["hosts"]).sum()))
        assert axes.get_ylim() == (-0.5, 47.5)
        several = jobs[jobs["allocation"].str.contains(" ")]
        joins = [line for each in axes.collections[1:] for line in each.get_segments()]
        assert len(joins) == several["allocation"].str.count(" ").sum() > 0
        starts = {round(start, 3) for start in (several["start"] - jobs["submit"].min()) / size}
        assert {round(float(line[0][0]), 3) for line in joins} == starts
    assert sum("Gflop/s" in text.get_text() for text in panels[0].texts) == 3
    assert [drawing.values[name] for name in ("unit", "scenario", "jobs")] == ["test-00", "unlike", 30]


@pytest.mark.parametrize("kind", ["gantt", "course"])
def test_a_drawing_of_one_scenario_names_the_others(tables, kind):
    assert list(draw(tables, kind, "unlike", "like", policies=RULES).left_out) == ["like"]


def test_the_gantt_chart_can_show_another_workload(tables):
    drawing = draw(tables, "gantt", "unlike", policies=("easy",), unit="test-03")
    assert drawing.values["unit"] == "test-03"


def test_the_course_shows_the_longest_queue_the_utilisation_and_the_energy(tables):
    drawing = draw(tables, "course", "unlike", policies=("fcfs", "easy"))
    assert [axes.get_ylabel().split(" (")[0] for axes in drawing.figure.axes] == [
        "waiting jobs",
        "utilisation",
        "energy so far",
    ]
    scores = tables.scores[(tables.scores["unit"] == "test-00") & (tables.scores["scenario"] == "unlike")]
    for policy in ("fcfs", "easy"):
        of_policy = scores[scores["policy"] == policy].set_index("metric")["value"]
        longest = int(shown_workload(tables, policy).detail("load")[policy]["waiting"].max())
        shown = drawing.values["outcomes"][policy]
        assert shown["queue"] == longest
        assert shown["utilisation"] == pytest.approx(of_policy["utilisation"])
        assert shown["energy"].value == pytest.approx(of_policy["energy"], rel=0.01)
    drawn = list(drawing.figure.axes[1].patches)
    size = {"h": 3600.0, "min": 60.0}[re.search(r"\((\w+)\)", drawing.figure.axes[-1].get_xlabel())[1]]
    for policy, steps in zip(("fcfs", "easy"), drawn, strict=True):
        times = shown_workload(tables, policy).detail("load")[policy]["time"]
        assert steps.get_data().edges[-1] * size == pytest.approx(times.iloc[-1] - times.iloc[0])


def test_the_course_without_energy_has_two_panels(tables):
    empty = tables.details["energy"].iloc[:0]
    bare = StudyTables(**{**vars(tables), "details": {**tables.details, "energy": empty}})
    assert len(draw(bare, "course", "unlike", policies=("easy",)).figure.axes) == 2


def test_lines_of_rules_differ_in_colour_and_dashes(tables):
    looks = shown_workload(tables, *RULES).looks()
    assert (
        len({(look.colour, str(look.dashes)) for look in looks.values()})
        == len({look.colour for look in looks.values()})
        == 3
    )


def test_means_of_a_step_function_within_intervals():
    times, values = np.array([1.0, 3.0, 4.0]), np.array([2.0, 6.0, 0.0])
    assert means_within(times, values, np.array([0.0, 2.0, 4.0, 6.0])).tolist() == [1.0, 4.0, 0.0]
    stream = np.random.default_rng(3)
    times, values = np.sort(stream.uniform(0, 9, 20)), stream.uniform(0, 1, 20)
    fine = np.linspace(0, 10, 100_001)
    middle = (fine[1:] + fine[:-1]) / 2
    at = np.where(middle < times[0], 0.0, values[np.maximum(np.searchsorted(times, middle, side="right") - 1, 0)])
    means = means_within(times, values, np.linspace(0, 10, 11))
    assert means == pytest.approx(at.reshape(10, -1).mean(1), abs=1e-3)


def test_quantities_are_shown_in_units_of_their_size():
    energy = data.BY_NAME["energy"]
    assert units.scaled(energy, 2.5e6).text(2.5e6) == "2.5 MJ"
    assert units.scaled(energy, 12.0).text(12.0) == "12 J"
    assert units.scaled(data.BY_NAME["makespan"], 7200.0).label == "makespan (h)"
    assert units.scaled(data.BY_NAME["utilisation"], 0.5).text(0.5) == "0.5"


@pytest.mark.parametrize("name", shipped_conf.names("figure/hetero"))
def test_the_shipped_figures_are_of_known_kinds(name):
    values = shipped_conf.values("figure/hetero", name)
    assert values["kind"] in STUDY.figures and STUDY.figure_settings[values["kind"]](**values.get("params", {}))


def test_the_scores_named_for_figures_are_the_studys():
    assert set(get_args(Score)) == {metric.name for metric in STUDY.metrics}
