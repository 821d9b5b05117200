"""Figures of the study: numbers told in captions are those of the tables, and what is missing is said."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("moocore")
pytest.importorskip("matplotlib")

from test_cloud_reinforce import problem

from schedlab.config.contract import FigureSpec, PolicySpec, StudyTables
from schedlab.stages.draw import drawing_function
from schedlab.stages.policies import make_rule
from schedlab.studies.cloud.env import weights_of
from schedlab.studies.cloud.figures_episodes import objective_parts
from schedlab.studies.cloud.pareto import front_report
from schedlab.studies.cloud.study import STUDY

PUBLISHED = {"time": 67.2, "cost": 68.8, "sla": 73.4}
POLICIES = {"static_start": "static_start", "reinforce-example": "oracle_dynamic", "oracle_dynamic": "oracle_dynamic"}
POLICIES |= {"static_max": "static_max", "static_min": "static_min", "threshold": "threshold"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> StudyTables:
    """The example's tables, with the oracle in the place of a learned policy."""
    here, scores, details = problem(), [], {}
    for name, rule in POLICIES.items():
        for unit in here.units("test"):
            outcome = here.rollout(make_rule(STUDY, PolicySpec(rule, "rule", rule), here, 0), unit)
            key = {"scenario": "example", "policy": name, "policy_seed": 0, "split": "test", "unit": unit.id}
            scores += [key | {"metric": metric, "value": value} for metric, value in outcome.scores.items()]
            for table, rows in outcome.details.items():
                details.setdefault(table, []).append(rows.assign(**key))
    file = tmp_path_factory.mktemp("inputs") / "oracle.json"
    found = {"time_ref": here.replay.time_ref, "cost_ref": here.replay.cost_ref, **front_report(here.replay)}
    file.write_text(json.dumps(found))
    joined = {name: pd.concat(rows, ignore_index=True) for name, rows in details.items()}
    empty = pd.DataFrame()
    return StudyTables(pd.DataFrame(scores), empty, empty, empty, joined, {"example": {"oracle": file}}, {}, {})


def spec(kind: str, scenarios: tuple[str, ...] = ("example",), **params) -> FigureSpec:
    return FigureSpec(kind, kind, kind, "Caption.", "", scenarios, (), params)


def value(tables: StudyTables, policy: str, preference: str, metric: str) -> float:
    rows = tables.scores
    rows = rows[(rows["policy"] == policy) & (rows["unit"] == f"{preference}-test-00") & (rows["metric"] == metric)]
    return float(rows["value"].iloc[0])


@pytest.mark.parametrize("kind", STUDY.figures)
def test_every_figure_is_drawn_and_says_what_is_missing(tables, kind):
    assert drawing_function(STUDY, kind)(tables, spec(kind)).figure.axes
    assert "No policy is learned at this scale." in drawing_function(STUDY, kind)(tables, spec(kind, ("other",))).caption


def test_the_headline_is_the_change_against_the_static_allocation(tables):
    drawn = drawing_function(STUDY, "headline")(tables, spec("headline", published=PUBLISHED))
    cells = {key: cell.get_text().get_text() for key, cell in drawn.figure.axes[0].tables[0].get_celld().items()}
    for row, (metric, preference) in enumerate((("time", "time"), ("cost", "cost")), start=1):
        less = 100.0 * (1.0 - value(tables, "reinforce-example", preference, metric) / value(tables, "static_start", preference, metric))
        assert float(cells[row, 1].replace("\N{MINUS SIGN}", "-")) == pytest.approx(less, abs=0.06)
        assert cells[row, 2] == f"{PUBLISHED[metric]:.1f}"


@pytest.mark.parametrize("preference", ["balanced", "time"])
def test_parts_of_an_episode_add_up_to_its_objective(tables, preference):
    rows = tables.details["performance_metrics"]
    rows = rows[(rows["policy"] == "static_start") & (rows["unit"] == f"{preference}-test-00")]
    parts = objective_parts(rows, json.loads(tables.inputs["example"]["oracle"].read_text()), preference)
    assert sum(np.sum(each) for each in parts.values()) == pytest.approx(value(tables, "static_start", preference, "objective"))
    assert set(parts) == {"time", "cost", "waste"} and weights_of(preference)["time"] > 0


def test_no_policy_has_a_larger_hypervolume_than_the_front(tables):
    told = drawing_function(STUDY, "pareto")(tables, spec("pareto")).caption
    share = float(told.split("utility: example ")[1].split(" ")[0])
    assert 0.0 < share <= 1.0
