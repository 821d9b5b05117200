"""Figures of policies: what is drawn, the values that go with it, and what a scale without them shows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import shipped_conf
from schedlab.config.composition import Composer
from schedlab.config.contract import FigureSpec, StudyTables
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.studies.ramp.figures.policies import draw_pairs, draw_placements, draw_scores, draw_validation

CONF = Path(__file__).parents[4] / "conf"
SCENARIOS = ("uniform", "published_a")
RATES = {"para_max": 0.3, "para_min": 0.4, "afterstate": 0.2}


@pytest.fixture(autouse=True)
def applied_theme():
    with theme.applied(ThemeSettings()):
        yield


def tables() -> StudyTables:
    scores, curves = [], []
    for scenario in SCENARIOS:
        learned = f"afterstate-{scenario.replace('_', '-')}"
        for name, rate in RATES.items():
            policy = learned if name == "afterstate" else name
            for split in ("validation", "test"):
                for unit in range(2):
                    key = {"scenario": scenario, "policy": policy, "split": split, "unit": f"{split}-{unit}"}
                    key |= {"recipe": name, "trained_on": scenario if name == "afterstate" else ""}
                    scores += [{**key, "metric": "blocking_rate", "value": rate + 0.01 * unit}]
                    scores += [{**key, "metric": "jct", "value": 1000.0 / rate + 100 * unit}]
        for seed in range(2):
            for step in (0, 10):
                key = {"policy": learned, "policy_seed": seed, "step": step, "split": "validation"}
                curves.append({**key, "metric": "blocking_rate", "value": 0.25 - 0.005 * step + 0.01 * seed})
                curves.append({**key, "metric": "jct", "value": 7200.0 + 360 * step})
    frame = pd.DataFrame(scores).assign(
        kind=lambda rows: np.where(rows["policy"].str.startswith("afterstate"), "learned", "rule")
    )
    by = ["scenario", "policy", "kind", "split", "metric", "recipe", "trained_on"]
    summary = frame.groupby(by)["value"].agg(value="mean", range_low="min", range_high="max").reset_index()
    summary = summary.assign(ci_low=np.nan, ci_high=np.nan)
    none = pd.DataFrame()
    return StudyTables(frame, pd.DataFrame(curves), summary, none, {}, {}, {name: {} for name in SCENARIOS}, {})


def spec(kind, scenarios=SCENARIOS, **params):
    return FigureSpec(kind, kind, "Title", "What is shown.", scenarios=scenarios, params=params)


def test_a_search_is_drawn_against_the_means_of_rules_with_what_it_keeps():
    drawing = draw_validation(tables(), spec("validation", baselines=["para_max"], labels={"uniform": "A"}))
    panels = drawing.figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["A", "published_a"]
    curve, rule, kept = panels[0].get_lines()
    assert curve.get_ydata() == pytest.approx([0.255, 0.205])
    assert np.allclose(rule.get_ydata(), 0.305)
    assert kept.get_xdata() == pytest.approx([10, 10]) and kept.get_ydata() == pytest.approx([0.2, 0.21])
    assert len(panels[0].collections) == 1, "one band, of the seeds"
    blocking = {"first": 0.255, "last": 0.205, "generations": 10, "least": 0.205}
    assert drawing.values["blocking"]["A"] == pytest.approx(blocking)


def test_scores_are_points_with_their_uncertainty_in_their_own_unit():
    names = ["afterstate", "para_max", "none"]
    drawing = draw_scores(tables(), spec("scores", policies=names, metrics=["blocking_rate", "jct"]))
    blocking, _, jct, _ = drawing.figure.axes
    points = [line.get_xdata()[0] for line in blocking.get_lines() if len(line.get_xdata()) == 1]
    assert points == pytest.approx([0.205, 0.305])
    assert blocking.get_lines()[0].get_xdata() == pytest.approx([0.2, 0.21])
    times = [line.get_xdata()[0] for line in jct.get_lines() if len(line.get_xdata()) == 1]
    assert times == pytest.approx([(1000 / rate + 50) / 3600 for rate in (0.2, 0.3)])
    assert [text.get_text() for text in blocking.texts] == ["not run"] and drawing.values["range"]
    assert drawing.values["least"]["uniform"] == {"policy": "afterstate", "rate": pytest.approx(0.205)}


def test_an_oracle_has_no_least_blocking():
    found = tables()
    names, oracle = ["afterstate", "para_max", "para_min"], found.summary["policy"] == "para_max"
    better = found.summary["value"].where(~oracle | (found.summary["metric"] != "blocking_rate"), 0.1)
    summary = found.summary.assign(kind=found.summary["kind"].where(~oracle, "oracle"), value=better)
    given = spec("scores", ("uniform",), policies=names, metrics=["blocking_rate"])
    assert draw_scores(replace(found, summary=summary), given).values["least"]["uniform"]["policy"] == "afterstate"


def test_placements_are_points_in_the_row_of_their_policy():
    panels = {"A": {"first fit": "uniform", "inside": "published_a"}, "B": {"first fit": "bare"}}
    given = spec("placements", policies=["afterstate", "para_max", "none"], panels=panels)
    drawing = draw_placements(tables(), given)
    (axes,) = drawing.figure.axes
    points = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.get_lines() if len(line.get_xdata()) == 1]
    assert [x for x, _ in points] == pytest.approx([0.205, 0.305, 0.205, 0.305])
    heights = [y for _, y in points]
    assert heights[0] < heights[2] and heights[0] + heights[2] == pytest.approx(0), "on both sides of the row"
    assert drawing.values["least"] == {"A": {"policy": "afterstate", "place": "inside", "rate": pytest.approx(0.205)}}


def test_published_rates_are_rings_and_their_distance_is_told():
    drawing = draw_pairs(
        tables(), spec("pairs", ("published_a",), published={"published_a": {"para_max": 0.31, "pac_ml": 0.2}})
    )
    assert len(drawing.figure.axes[0].get_lines()) == 5
    assert drawing.values["distances"] == pytest.approx({"published_a": 0.005})


ANY = {draw_scores: {"policies": ["para_max"]}}
ANY[draw_placements] = {"policies": ["para_max"], "panels": {"A": {"first fit": "uniform", "inside": "bare"}}}


@pytest.mark.parametrize("draw", [draw_validation, draw_scores, draw_pairs, draw_placements])
def test_a_scenario_without_its_policies_is_left_out_and_told_of(draw):
    params = ANY.get(draw, {})
    assert list(draw(tables(), spec("any", ("uniform", "bare"), **params)).left_out) == ["bare"]


@pytest.mark.parametrize("draw", [draw_validation, draw_scores, draw_pairs, draw_placements])
def test_a_scale_without_them_says_so(draw):
    params = ANY.get(draw, {})
    drawing = draw(tables(), spec("any", ("loose",), **params))
    assert not drawing.figure.axes[0].has_data() and drawing.figure.axes[0].texts


def test_the_pairs_say_at_which_scale_the_published_learner_is_run_again():
    found = {}
    for scale in ("full", "paper"):
        composer = Composer(CONF, scale, shipped_conf.COMPOSED)
        figure = composer.compose("figure/ramp", "published_pairs").values
        assert scale in figure["scales"]
        policies = {
            policy
            for name in figure["scenarios"]
            for policy in composer.compose("scenario/ramp", name).values["policies"]
        }
        again = [policy for policy in sorted(policies) if policy.startswith("apex-dqn")]
        found[scale] = [policy for policy in again if scale in composer.compose("policy/ramp", policy).values["scales"]]
    assert found == {"full": [], "paper": ["apex-dqn-published-a"]}
