"""Figures of the study: what is drawn is what the tables hold, and what is missing is reported."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("moocore")
pytest.importorskip("matplotlib")

from small_problems import problem

from schedlab.config.contract import Drawing, FigureSpec, PolicySpec, StudyTables
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.figures.save import caption_of
from schedlab.stages.draw import drawing_function
from schedlab.stages.policies import make_rule
from schedlab.studies.cloud.figures.comparisons import seed_means, speed
from schedlab.studies.cloud.figures.episodes import objective_parts
from schedlab.studies.cloud.figures.pareto import points_by_seed
from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.replay.reward import PREFERENCES
from schedlab.studies.cloud.rules.pareto import front_report, measures
from schedlab.studies.cloud.study import STUDY

PUBLISHED = {"time": 67.2, "cost": 68.8, "sla": 73.4}
POLICIES = {"static_start": "static_start", "reinforce-example": "oracle_dynamic", "oracle_dynamic": "oracle_dynamic"}
POLICIES |= {"static_max": "static_max", "static_min": "static_min", "threshold": "threshold"}


VARIANTS = {"variants": {"cold": "reinforce-example", "start": "static_start"}}
PARAMS = {
    "ablations": VARIANTS,
    "weights": VARIANTS,
    "beginnings": VARIANTS,
    "trainings": {"searches": {"start": "static_start"}},
}
CURVES = {
    "reinforce-example": (0.5, 0.0),
    "static_start": (0.04, 0.0),
}  # shares of the way from the best plan to random actions


def point(policy: str, preference: str, episodes: int) -> dict:
    """A point of a learning curve: the example's random actions are 1 above its best plan."""
    objective = problem().oracle[preference]["dynamic"] + CURVES[policy][episodes // 64 - 1]
    place = {"policy": policy, "policy_seed": 0, "phase": 0, "train_scenario": "example", "split": "train"}
    return {
        **place,
        "step": episodes,
        "episode": episodes,
        "update": episodes // 64,
        "metric": "objective",
        "preference": preference,
        "acting": "greedy",
        "value": objective,
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> StudyTables:
    """The example's tables, with the oracle in the place of a learned policy."""
    return tables_of(problem(), tmp_path_factory.mktemp("inputs"))


def tables_of(here: CloudProblem, folder: Path) -> StudyTables:
    scores, details = [], {}
    for name, rule in POLICIES.items():
        for unit in here.units("test"):
            outcome = here.rollout(make_rule(STUDY, PolicySpec(rule, "rule", rule), here, 0), unit)
            key = {"scenario": "example", "policy": name, "policy_seed": 0, "split": "test", "unit": unit.id}
            origin = {"recipe": name.removesuffix("-example"), "trained_on": "example" if "-example" in name else ""}
            facts = origin | dict(unit.facts)
            scores += [key | facts | {"metric": metric, "value": value} for metric, value in outcome.scores.items()]
            for table, rows in outcome.details.items():
                details.setdefault(table, []).append(rows.assign(**key))
    file = folder / "oracle.json"
    found = {
        "preferences": here.oracle,
        "time_ref": here.replay.time_ref,
        "cost_ref": here.replay.cost_ref,
        **front_report(here.replay),
    }
    file.write_text(json.dumps(found))
    joined = {name: pd.concat(rows, ignore_index=True) for name, rows in details.items()}
    known = [preference for preference in here.oracle if preference in PREFERENCES]
    curves = pd.DataFrame(
        [point(policy, preference, episodes) for policy in CURVES for preference in known for episodes in (64, 128)]
    )
    empty = pd.DataFrame()
    return StudyTables(pd.DataFrame(scores), curves, empty, empty, joined, {"example": {"oracle": file}}, {}, {})


OWN = ["5e-1:0.25:0.25", "0.1:0.1:0.8", "cost"]


@pytest.fixture(scope="module")
def own_tables(tmp_path_factory) -> StudyTables:
    """The tables of preferences that have no name."""
    return tables_of(problem(preferences=OWN), tmp_path_factory.mktemp("own"))


@pytest.mark.parametrize("kind", ["outcomes", "allocations", "pareto", "weights"])
def test_own_weights_as_a_preference_are_drawn(own_tables, kind):
    drawn = drawing_function(STUDY, kind)(own_tables, spec(kind, preferences=OWN, **PARAMS.get(kind, {})))
    labels = {text.get_text() for legend in drawn.figure.legends for text in legend.get_texts()}
    labels |= {label.get_text() for axes in drawn.figure.axes for label in axes.get_xticklabels()}
    assert all(any(name in label for label in labels) for name in OWN)


def test_the_headline_leaves_out_claims_about_preferences_that_are_not_there(own_tables):
    drawn = drawing_function(STUDY, "headline")(own_tables, spec("headline", preferences=OWN))
    (gain,) = drawn.values["gains"]
    ours, static = (value(own_tables, policy, "cost", "cost") for policy in ("reinforce-example", "static_start"))
    assert "preference cost" in gain["claim"] and gain["mean"] == pytest.approx(100 * (1 - ours / static))
    assert len(cells_of(drawn)) == 2


def cells_of(drawn: Drawing, columns: int = 3) -> list[list[str]]:
    """The texts of a table, row by row."""
    texts = [text.get_text() for text in drawn.figure.axes[0].texts]
    return [texts[start : start + columns] for start in range(0, len(texts), columns)]


def spec(kind: str, scenarios: tuple[str, ...] = ("example",), **params) -> FigureSpec:
    return FigureSpec(kind, kind, kind, "Caption.", "", scenarios, (), params)


def value(tables: StudyTables, policy: str, preference: str, metric: str) -> float:
    rows = tables.scores
    rows = rows[(rows["policy"] == policy) & (rows["unit"] == f"{preference}-test-00") & (rows["metric"] == metric)]
    return float(rows["value"].iloc[0])


@pytest.mark.parametrize("kind", STUDY.figures)
def test_every_figure_is_drawn_and_says_what_is_missing(tables, kind):
    params = PARAMS.get(kind, {})
    drawing = drawing_function(STUDY, kind)(tables, spec(kind, **params))
    assert not set("{}[]") & set(caption_of(drawing)), caption_of(drawing)
    assert drawing.figure.axes
    (empty,) = drawing_function(STUDY, kind)(tables, spec(kind, ("other",), **params)).figure.axes
    assert not empty.lines and empty.texts


def test_the_table_of_ablations_holds_the_means_of_preferences(tables):
    drawn = drawing_function(STUDY, "ablations")(
        tables, spec("ablations", variants={**VARIANTS["variants"], "none": "not-learned"})
    )
    header, *rows = cells_of(drawn, 6)
    assert [row[0] for row in rows] == ["cold", "start"] and header[3] == "cost ($)"
    for row, policy in zip(rows, ("reinforce-example", "static_start"), strict=True):
        cost = np.mean(
            [value(tables, policy, preference, "cost") for preference in ("balanced", "cost", "time", "resource")]
        )
        assert float(row[3]) == pytest.approx(cost, abs=6e-4)
    assert drawn.values["missing"] == ["none"]
    assert drawn.values["regrets"]["start"] == pytest.approx(
        np.mean([value(tables, "static_start", name, "regret") for name in PREFERENCES])
    )


def test_the_table_of_ablations_fits_its_page(tables):
    other = tables.scores.assign(policy_seed=1, value=tables.scores["value"] * 1.1)
    both = replace(tables, scores=pd.concat([tables.scores, other]))
    names = {"variants": {"one policy for all": "reinforce-example", "start": "static_start"}}
    with theme.applied(ThemeSettings()):
        figure = drawing_function(STUDY, "ablations")(both, spec("ablations", **names)).figure
        figure.draw_without_rendering()
        texts = figure.axes[0].texts
        extents = [text.get_window_extent() for text in texts if text.get_text()]
    assert any("\n(" in text.get_text() for text in texts)
    assert min(each.x0 for each in extents) >= 0.0 and max(each.x1 for each in extents) <= figure.bbox.width
    assert min(each.y0 for each in extents) >= 0.0 and max(each.y1 for each in extents) <= figure.bbox.height


def test_means_of_preferences(tables):
    mean = np.mean([value(tables, "static_start", name, "regret") for name in PREFERENCES])
    assert seed_means(tables, "example", "static_start", "regret", tuple(PREFERENCES)) == pytest.approx([mean])


def test_beginnings_are_counted_against_the_cold_start(tables):
    curves = tables.curves
    cold, start = (curves[curves["policy"] == policy] for policy in ("reinforce-example", "static_start"))
    randoms = {name: values["random"] for name, values in problem().oracle.items()}
    assert (speed(cold, cold, randoms), speed(start, cold, randoms)) == ([128.0] * 4, [64.0] * 4)
    sampled = start.assign(acting="sample", value=start["value"] + 100.0)
    assert speed(sampled, cold, randoms) == [None] * 4, "where nothing else was recorded"
    assert speed(pd.concat([start, sampled]), cold, randoms) == [64.0] * 4


def test_the_headline_is_the_change_against_the_static_allocation(tables):
    drawn = drawing_function(STUDY, "headline")(tables, spec("headline", published=PUBLISHED))
    _, *rows = cells_of(drawn)
    for row, gain, metric in zip(rows, drawn.values["gains"], ("time", "cost"), strict=False):
        less = 100.0 * (
            1.0 - value(tables, "reinforce-example", metric, metric) / value(tables, "static_start", metric, metric)
        )
        assert gain["mean"] == pytest.approx(less)
        assert float(row[1].replace("\N{MINUS SIGN}", "-")) == pytest.approx(less, abs=0.06)
        assert row[2] == f"{PUBLISHED[metric]:.1f}"


@pytest.mark.parametrize("kind", ["outcomes", "headline", "pareto", "allocations", "objective_parts", "service_levels"])
def test_a_scenario_without_a_learned_policy_is_left_out_and_told_of(tables, kind):
    bare = tables.scores[tables.scores["policy"] == "static_start"].assign(scenario="spot_price")
    more = replace(tables, scores=pd.concat([tables.scores, bare]))
    ((name, why),) = drawing_function(STUDY, kind)(more, spec(kind, ("example", "spot_price"))).left_out.items()
    assert name == "spot_price" and "reinforce" in why
    assert drawing_function(STUDY, kind)(tables, spec(kind)).left_out == {}


def test_a_scenario_without_the_static_allocation_is_left_out_and_told_of(tables):
    learned = tables.scores[tables.scores["policy"] == "reinforce-example"].assign(
        scenario="bare", policy="reinforce-bare", trained_on="bare"
    )
    more = replace(tables, scores=pd.concat([tables.scores, learned]))
    ((name, why),) = drawing_function(STUDY, "outcomes")(more, spec("outcomes", ("example", "bare"))).left_out.items()
    assert name == "bare" and "static_start" in why and "reinforce" not in why


@pytest.mark.parametrize("preference", ["balanced", "time"])
def test_parts_of_an_episode_add_up_to_its_objective(tables, preference):
    rows = tables.details["performance_metrics"]
    rows = rows[(rows["policy"] == "static_start") & (rows["unit"] == f"{preference}-test-00")]
    parts = objective_parts(rows, json.loads(tables.inputs["example"]["oracle"].read_text()), preference)
    assert sum(np.sum(each) for each in parts.values()) == pytest.approx(
        value(tables, "static_start", preference, "objective")
    )
    assert set(parts) == {"time", "cost", "waste"} and weights_of(preference)["time"] > 0


def test_axes_of_an_episode_hold_both_courses(tables):
    rows = tables.details["performance_metrics"]
    top = {}
    for policy in ("reinforce-example", "static_start"):
        own = rows[(rows["policy"] == policy) & (rows["unit"] == "balanced-test-00")]
        parts = objective_parts(own, json.loads(tables.inputs["example"]["oracle"].read_text()), "balanced")
        top[policy] = float(np.max(sum(parts.values())))
    for axes in drawing_function(STUDY, "objective_parts")(tables, spec("objective_parts")).figure.axes:
        assert axes.get_ylim()[0] == 0.0 and axes.get_ylim()[1] >= max(top.values())


def test_no_policy_has_a_larger_hypervolume_than_the_front(tables):
    front = np.array(json.loads(tables.inputs["example"]["oracle"].read_text())["front"])
    (points,) = points_by_seed(tables, "example", "reinforce-example", list(PREFERENCES))
    assert 0.0 < measures(points, front)["hypervolume"] <= 1.0


def test_a_scenario_without_a_front_is_left_out_of_its_figure(tables, tmp_path):
    """Where decisions come by time, none is computed (prepare.solve_oracle)."""
    oracle = json.loads(tables.inputs["example"]["oracle"].read_text())
    file = tmp_path / "oracle.json"
    file.write_text(json.dumps({key: value for key, value in oracle.items() if not key.endswith("front")}))
    timed = tables.scores.assign(scenario="timed", policy=tables.scores["policy"].str.replace("-example", "-timed"))
    both = replace(
        tables, scores=pd.concat([tables.scores, timed]), inputs={**tables.inputs, "timed": {"oracle": file}}
    )
    draw = drawing_function(STUDY, "pareto")
    drawn = draw(both, spec("pareto", ("example", "timed")))
    assert [axes.get_title() for axes in drawn.figure.axes if axes.get_title()] == ["example"]
    assert list(drawn.left_out) == ["timed"] and not draw(both, spec("pareto", ("timed",))).figure.axes[0].lines


def test_episodes_are_plain_numbers_that_do_not_overlap(tables):
    """Labels such as 3 x 10^2 ran into each other where curves span less than two decades."""
    figure = drawing_function(STUDY, "beginnings")(tables, spec("beginnings", **VARIANTS)).figure
    figure.draw_without_rendering()
    for axes in figure.axes:
        low, high = axes.get_xlim()
        ticks = [*axes.xaxis.get_major_ticks(), *axes.xaxis.get_minor_ticks()]
        shown = [tick.label1 for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]
        assert shown and all(label.get_text().isdigit() for label in shown)
        boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


def test_many_preferences_stand_as_one_in_the_front_s_figure(tmp_path):
    """Beside the rules that the scenario has."""
    own = ["1:0:0", "0.75:0.25:0", "0.5:0.5:0", "0.25:0.75:0", "0:1:0"]
    found = tables_of(problem(preferences=own), tmp_path)
    few = replace(found, scores=found.scores[~found.scores["policy"].isin(["static_max", "threshold"])])
    figure = drawing_function(STUDY, "pareto")(few, spec("pareto", preferences=own)).figure
    labels = {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert "static_start" in labels and not {"static_max", "threshold"} & labels
    (rings,) = (line for line in figure.axes[0].get_lines() if line.get_label().startswith("learned"))
    assert rings.get_label() in labels and str(len(own)) in rings.get_label()
    drawn = points_by_seed(found, "example", "reinforce-example", own)
    assert np.allclose(np.transpose(rings.get_data()), np.concatenate(drawn))


def test_the_front_s_figure_takes_each_seed_as_a_set(tables):
    learned = tables.scores["policy"] == "reinforce-example"
    slower = tables.scores[learned].assign(policy_seed=1)
    slower.loc[slower["metric"].isin(["time", "cost"]), "value"] *= 1.01
    both = replace(tables, scores=pd.concat([tables.scores, slower]))
    first, second = points_by_seed(both, "example", "reinforce-example", ("cost", "time"))
    assert second == pytest.approx(1.01 * first)


def test_every_violation_is_marked(tables):
    drawn = drawing_function(STUDY, "service_levels")(tables, spec("service_levels"))
    rows = tables.details["sla_metrics"]
    rows = rows[(rows["policy"] == "static_start") & (rows["unit"] == "balanced-test-00")]
    violated = int((rows.filter(regex="^sla_.*_severity$") > 0).to_numpy().sum())
    static = next(axes for axes in drawn.figure.axes if axes.get_ylabel() == "static_start")
    assert violated and sum(len(line.get_xdata()) for line in static.lines) == violated
