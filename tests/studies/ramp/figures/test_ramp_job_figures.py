"""Figures of single jobs and of sweeps over scenarios: what is drawn, and the values that go with it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from schedlab.config.contract import FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.settings import ThemeSettings
from schedlab.figures import theme
from schedlab.studies.ramp.figures.jobs import (
    CAUSES,
    FORCED,
    draw_attributes,
    draw_causes,
    draw_characteristics,
)
from schedlab.studies.ramp.figures.sweeps import draw_overheads, draw_sweep, places_of
from schedlab.studies.ramp.simulator.job_tables import JOB_COLUMNS

POLICIES = ["para_max", "para_min"]


@pytest.fixture(autouse=True)
def applied_theme():
    with theme.applied(ThemeSettings()):
        yield


SCENARIOS: dict[str, dict] = {"often": {}, "seldom": {}}
FACTS = {"often": {"interarrival": 100.0, "workers": 8}, "seldom": {"interarrival": 1000.0, "workers": 16}}


def job(number, model, beta, cause="", choices=3, **ran):
    ops, hours = {"large": (50, 10.0), "little": (20, 1.0)}[model]
    described = {"job": number, "model": model, "beta": beta, "cause": cause, "time": 1.0, "ops": ops, "deps": ops + 1}
    sizes = {"memory": ops * 1e9, "dep_size": ops * 2e9, "sequential_jct": hours * 3600}
    return dict.fromkeys(JOB_COLUMNS) | described | sizes | {"action": 2 if choices else 0, "choices": choices} | ran


def tables() -> StudyTables:
    jobs = [
        job(0, "large", 0.5, duration=9000.0, communication=4500.0, jct=9000.0, speedup=4.0),
        job(1, "little", 0.25, "op_placement"),
        job(2, "little", 0.25, "rejected_by_agent", choices=0),
        job(3, "large", 0.9, "max_acceptable_jct_exceeded", duration=40000.0, communication=10000.0),
    ]
    details, scores = [], []
    for name in SCENARIOS:
        for policy in POLICIES:
            key = {"scenario": name, "policy": policy, "policy_seed": 0, "split": "test", "unit": "test-000"}
            details.append(pd.DataFrame(jobs).astype(JOB_COLUMNS).assign(**key))
            for unit, rate in (("test-000", 0.6), ("test-001", 0.9)):
                own = rate if name == "often" else rate / 2
                facts = {"recipe": policy, "trained_on": "", **FACTS[name]}
                scores.append({**key, **facts, "unit": unit, "metric": "blocking_rate", "value": own})
                scores.append({**key, **facts, "unit": unit, "metric": "jct", "value": 7200.0})
    none, frame = pd.DataFrame(), pd.DataFrame(scores)
    return StudyTables(frame, none, summary(frame), none, {"jobs": pd.concat(details)}, {}, SCENARIOS, {})


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    by = ["scenario", "policy", "split", "metric", "recipe", "trained_on"]
    found = scores.groupby(by)["value"].agg(value="mean", range_low="min", range_high="max", units="size")
    return found.reset_index().assign(ci_low=np.nan, ci_high=np.nan)


def spec(kind, scenarios=("often", "seldom"), **params):
    return FigureSpec(kind, kind, "Title", "What is shown.", scenarios=scenarios, params=params)


def test_a_scenario_lies_where_its_facts_say():
    found, sweep = tables(), spec("sweep")
    places = [places_of(found, sweep, x) for x in ("interarrival", "arrival_rate", "workers")]
    assert places == [{"often": 100, "seldom": 1000}, {"often": 10, "seldom": 1}, {"often": 8, "seldom": 16}]
    drawn = found.scores.assign(interarrival=np.where(found.scores["scenario"] == "often", np.nan, 1000.0))
    with pytest.raises(UserError) as error:
        places_of(replace(found, scores=drawn), sweep, "interarrival")
    assert error.value.where == "figure sweep: scenarios"


def test_a_sweep_has_a_line_for_each_policy_over_the_places():
    drawing = draw_sweep(tables(), spec("sweep", policies=POLICIES, metrics=["blocking_rate", "jct"]))
    panels = drawing.figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["blocking rate", "completion time (h)"]
    lines = panels[0].get_lines()
    assert [line.get_label() for line in lines if not line.get_label().startswith("_")] == POLICIES
    assert lines[1].get_xdata() == pytest.approx([100, 100]) and lines[1].get_ydata() == pytest.approx([0.6, 0.9])
    assert lines[0].get_linestyle() == "None", "nothing is known between two places"
    assert lines[0].get_xdata() == pytest.approx([100, 1000]) and lines[0].get_ydata() == pytest.approx([0.75, 0.375])
    assert panels[1].get_lines()[0].get_ydata() == pytest.approx([2.0, 2.0])
    ends = drawing.values["blocking"][POLICIES[0]]
    assert (ends["from"], ends["first"], ends["to"], ends["last"]) == pytest.approx((100, 0.75, 1000, 0.375))


def test_a_sweep_tells_of_its_episodes_and_of_what_has_no_value():
    found = tables()
    rows = found.scores
    bare = (rows["scenario"] == "seldom") & (rows["unit"] == "test-001")
    none = (rows["policy"] == "para_min") & (rows["scenario"] == "often") & (rows["metric"] == "jct")
    ends = {
        name: {**values, "episodes": {"end": end}}
        for (name, values), end in zip(SCENARIOS.items(), (7200.0, 36000.0), strict=True)
    }
    left = rows[~bare & ~none]
    drawing = draw_sweep(
        replace(found, scores=left, summary=summary(left), scenarios=ends),
        spec("sweep", policies=POLICIES, metrics=["jct"]),
    )
    plain = draw_sweep(found, spec("sweep", policies=POLICIES, metrics=["jct"]))
    assert [(row["time"].value, row["at"]) for row in drawing.values["ends"]] == [(7200.0, "100"), (36000.0, "1000")]
    assert [(row["policy"], row["at"]) for row in drawing.values["lacking"]] == [("para_min", "100")]
    assert (drawing.values["episodes"], plain.values["episodes"]) == ("1 to 2", "2")
    assert not plain.values["ends"] and not plain.values["lacking"]


def test_no_marker_of_a_sweep_hides_one_below_it():
    axes = draw_sweep(tables(), spec("sweep", policies=POLICIES, metrics=["jct"])).figure.axes[0]
    lines = [line for line in axes.get_lines() if not line.get_label().startswith("_")]
    assert lines[0].get_ydata() == pytest.approx(lines[1].get_ydata())
    assert lines[0].get_markersize() > lines[1].get_markersize()


def test_overheads_are_shares_of_the_time_of_placed_jobs():
    drawing = draw_overheads(tables(), spec("overheads"))
    left, right = drawing.figure.axes[:2]
    assert left.get_lines()[0].get_label() == "large"
    assert left.get_lines()[0].get_xdata() == pytest.approx([8, 16])
    assert left.get_lines()[0].get_ydata() == pytest.approx([37.5, 37.5])  # of 0.5 and 0.25
    assert right.get_lines()[0].get_ydata() == pytest.approx([2.45, 2.45])
    assert [drawing.values[name] for name in ("least", "most")] == [8, 16]
    assert drawing.values["overheads"]["large"] == pytest.approx({"first": 37.5, "last": 37.5})


def test_bars_of_causes_add_up_to_the_blocking_rate():
    drawing = draw_causes(tables(), spec("causes", ("often",), policies=["para_max", "none"], labels={"often": "A"}))
    (axes,) = drawing.figure.axes
    bars = {container.get_label(): container[0].get_width() for container in axes.containers}
    assert list(bars) == [CAUSES[cause] for cause in (FORCED, "op_placement", "max_acceptable_jct_exceeded")]
    assert list(bars.values()) == pytest.approx([0.25] * 3)
    assert [text.get_text() for text in axes.texts] == ["0.750"], "no row for what is not run"
    assert axes.get_lines()[0].get_xdata() == pytest.approx([0.6, 0.9]) and drawing.values["range"]
    assert drawing.values["unplaced"] == [{"policy": "para_max", "scenario": "A", "share": pytest.approx(1 / 3)}]


def test_completed_and_blocked_jobs_have_distributions():
    drawing = draw_characteristics(tables(), spec("characteristics", ("often",), policies=["para_max"]))
    panels = drawing.figure.axes
    assert [line.get_label() for line in panels[0].get_lines()] == ["para_max, completed", "para_max, blocked"]
    assert np.unique(panels[0].get_lines()[1].get_xdata()) == pytest.approx([1 / 0.9, 4])
    assert len(panels[1].get_lines()) == 1, "blocked jobs got no speed-up"
    assert drawing.values["medians"] == pytest.approx({"para_max": 2.0})


def test_blocking_is_told_by_attribute():
    drawing = draw_attributes(tables(), spec("attributes", ("often",), policies=["para_max"]))
    graph, beta = drawing.figure.axes
    assert [tick.get_text() for tick in graph.get_xticklabels()] == ["little", "large"]
    assert graph.get_lines()[0].get_xdata() == pytest.approx([0, 1])
    assert graph.get_lines()[0].get_ydata() == pytest.approx([1.0, 0.5])
    assert graph.get_lines()[0].get_linestyle() == "None", "graphs are no places of a line"
    assert beta.get_lines()[0].get_ydata() == pytest.approx([1, 0, 1])
    assert [tuple(row.values()) for row in drawing.values["graphs"]] == [("little", 1.0, 20), ("large", 10.0, 50)]


def test_values_that_are_many_are_put_into_bins():
    found = tables()
    jobs = pd.DataFrame(
        [job(n, "large", beta, "op_placement" if beta < 0.5 else "") for n, beta in enumerate(np.linspace(0.1, 1, 91))]
    )
    found.details["jobs"] = jobs.astype(JOB_COLUMNS).assign(
        scenario="often", policy="para_max", policy_seed=0, split="test", unit="test-000"
    )
    beta = draw_attributes(found, spec("attributes", ("often",), policies=["para_max"])).figure.axes[-1].get_lines()[0]
    assert len(beta.get_xdata()) == 10
    assert beta.get_ydata()[0] == 1 and beta.get_ydata()[-1] == 0


@pytest.mark.parametrize("draw", [draw_sweep, draw_overheads, draw_causes])
def test_a_scenario_without_these_policies_is_left_out_and_told_of(draw):
    found = replace(tables(), scenarios={**SCENARIOS, "bare": {}})
    params = {} if draw is draw_overheads else {"policies": ["para_max"]}
    assert list(draw(found, spec("any", ("often", "seldom", "bare"), **params)).left_out) == ["bare"]


def test_lines_of_an_attribute_reach_from_the_least_episode_to_the_largest():
    found = tables()
    again = found.details["jobs"].assign(unit="test-001")
    again = again.assign(cause=np.where(again["model"] == "large", "op_placement", again["cause"]))
    found.details["jobs"] = pd.concat([found.details["jobs"], again], ignore_index=True)
    graph = draw_attributes(found, spec("attributes", ("often",), policies=["para_max"])).figure.axes[0]
    assert graph.get_lines()[0].get_ydata() == pytest.approx([1.0, 0.75])
    assert graph.get_lines()[1].get_ydata() == pytest.approx([0.5, 1.0])


@pytest.mark.parametrize("draw", [draw_characteristics, draw_attributes])
def test_a_drawing_of_one_scenario_tells_of_the_others(draw):
    assert list(draw(tables(), spec("any", policies=["para_max"])).left_out) == ["seldom"]


@pytest.mark.parametrize("draw", [draw_sweep, draw_overheads, draw_causes, draw_characteristics, draw_attributes])
def test_a_scale_without_them_says_so(draw):
    params = {} if draw is draw_overheads else {"policies": POLICIES}
    drawing = draw(tables(), spec("any", (), **params))
    assert not drawing.figure.axes[0].has_data() and drawing.figure.axes[0].texts
