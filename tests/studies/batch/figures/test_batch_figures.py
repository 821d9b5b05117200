"""Figures of the batch study: what is drawn, and what cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from schedlab.config.contract import FigureSpec
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.studies.batch.figures.speed import draw_decision_latency, draw_device_speed


def speeds(**params) -> FigureSpec:
    return FigureSpec("device_speed", "device_speed", "Speed", "Steps a second.", params=params)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    rows = [
        {"device": "cpu", "threads": n, "batch_size": 64, "steps_per_s": [100.0, 120.0 / n], "median": 110.0 / n}
        for n in (1, 2)
    ]
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"name": "desk", "measured": rows}))
    return path


def test_published_and_recorded_speeds_are_points(record: Path) -> None:
    drawing = draw_device_speed(None, speeds(published={"Cirrus CPU": 34}, records=[str(record)]))
    (axes,) = drawing.figure.axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["Cirrus CPU", "desk, 1 thread, batch 64", "desk, 2 threads, batch 64"]
    assert [list(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == "o"] == [[34], [110], [55]]
    assert [text.get_text() for text in drawing.figure.legends[0].get_texts()] == ["published", "here"]
    assert not drawing.of_scores, "records have to do with no scenario"
    assert drawing.values == {"fastest": "desk, 1 thread, batch 64", "steps": 110}


@pytest.mark.parametrize("text", ["", "[]", '{"name": "x", "measured": [{}]}'])
def test_what_is_no_record_is_told(record: Path, text: str) -> None:
    record.write_text(text)
    with pytest.raises(UserError, match=r"record\.json"):
        draw_device_speed(None, speeds(records=[str(record)]))
    with pytest.raises(UserError, match="figure device_speed: params"):
        draw_device_speed(None, speeds())


def test_what_decisions_cost_is_a_point_a_policy_from_the_fastest_on(tmp_path: Path) -> None:
    rows = [
        {"policy": name, "us_per_decision": [cost, 2 * cost], "median": cost}
        for name, cost in (("net", 1400.0), ("fcfs", 0.5))
    ]
    path = tmp_path / "record.json"
    path.write_text(json.dumps({"name": "desk", "measured": rows}))
    spec = FigureSpec("decision_latency", "decision_latency", "Latency", "A window.", params={"records": [str(path)]})
    drawing = draw_decision_latency(None, spec)
    (axes,) = drawing.figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["fcfs", "net"]
    medians = [list(line.get_xdata()) for line in axes.get_lines() if line.get_marker() == "o"]
    assert medians == [[0.5], [1400.0]] and not axes.patches and axes.get_xscale() == "log"
    policies = [{"policy": "fcfs", "us": 0.5}, {"policy": "net", "us": 1400.0}]
    assert drawing.values["times"] == {"desk": {"policies": policies}}
    easy, rack = tmp_path / "easy.json", tmp_path / "rack.json"
    easy.write_text(json.dumps({"name": "desk", "measured": rows[:1], "backfill": "easy"}))
    rack.write_text(json.dumps({"name": "rack", "measured": rows}))
    drawing = draw_decision_latency(None, replace(spec, params={"records": [str(path), str(easy), str(rack)]}))
    panels = {axes.get_title(): axes for axes in drawing.figure.axes}
    assert set(panels) == {"desk", "rack"}, "times of two machines are not compared in one panel"
    points = [line for line in panels["desk"].get_lines() if line.get_marker() == "o"]
    faces = {(round(float(line.get_ydata()[0])), line.get_markerfacecolor()) for line in points}
    assert len(points) == 3 and {face for row, face in faces if row == 1} == {theme.colour(0), "white"}
    assert len(drawing.figure.legends[0].get_texts()) == 2
    assert {"policy": "net with easy", "us": 1400.0} in drawing.values["times"]["desk"]["policies"]
    path.write_text("{}")
    with pytest.raises(UserError, match=r"record\.json"):
        draw_decision_latency(None, spec)
    with pytest.raises(UserError, match="figure x: params"):
        draw_decision_latency(None, FigureSpec("x", "decision_latency", "", "", params={"records": []}))
