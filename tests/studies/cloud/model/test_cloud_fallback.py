"""Fallback models of the step time: throughputs by hand, interpolation of what was measured, and what lies
beyond it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from prepared_jobs import model_of

from schedlab.config.errors import UserError
from schedlab.studies.cloud import prepare
from schedlab.studies.cloud.example import EXAMPLE, example_scenario
from schedlab.studies.cloud.model.fallback import MeasuredSteps, Scaling
from schedlab.studies.cloud.model.step_time import PipelineSettings, Placement, performance
from schedlab.studies.cloud.replay.replay import make_replay

QUICK = PipelineSettings(
    core_seconds=1e-9, sample_bytes=1e-3, dataset_gb=1e-3, workers=0, prefetch=0
)  # the pipeline takes no time


def at(nodes, gpus, batch) -> Placement:
    values = (
        np.array(each, float) for each in (nodes, gpus, [8] * len(gpus), [64] * len(gpus), batch, [1] * len(gpus))
    )
    return Placement(*values)


def test_amdahl_by_hand():
    found = performance(Scaling("amdahl", 100.0, 0.25), QUICK, at([1, 1, 1], [1, 2, 4], [10, 10, 10]))
    assert found.throughput == pytest.approx([100.0, 160.0, 400.0 / 1.75], rel=1e-4)
    assert found.gpu_util == pytest.approx([1.0, 0.8, 1.0 / 1.75], rel=1e-4)


def test_power_by_hand():
    found = performance(Scaling("power", 100.0, 0.7), QUICK, at([1, 2], [1, 8], [10, 10]))
    assert found.throughput == pytest.approx([100.0, 100.0 * 8.0**0.7], rel=1e-4)


def measured(*rows: tuple[float, ...]) -> MeasuredSteps:
    return MeasuredSteps.of(pd.DataFrame(rows, columns=["nodes", "gpus", "batch", "step_time", "sync_time"]))


PLANE = [
    (1, k, b, 0.1 + 0.02 * k + 0.001 * b, 0.02) for k in (1, 2, 4) for b in (10, 30)
]  # linear in both, so that linear hits it


def test_a_table_gives_back_its_rows_and_lines_between_batches():
    model = measured(
        (1, 1, 10, 0.1, 0.0), (1, 1, 10, 0.2, 0.0), (1, 1, 30, 0.35, 0.0), (1, 2, 10, 0.4, 0.1), (1, 2, 20, 0.6, 0.1)
    )
    gradient, whole = model.times(at([1, 1, 1, 1], [1, 1, 2, 2], [10, 20, 10, 15]))
    assert whole == pytest.approx([0.15, 0.25, 0.4, 0.5])  # twice measured: the mean
    assert gradient == pytest.approx([0.15, 0.25, 0.3, 0.4])


def test_a_table_interpolates_placements_that_were_not_measured():
    _, whole = measured(*PLANE).times(at([1, 1], [3, 3], [10, 20]))
    assert whole == pytest.approx([0.17, 0.18])


@pytest.mark.parametrize(
    ("nodes", "gpus", "batch", "told"), [(1, 5, 20, "5"), (1, 2, 40, "40"), (2, 4, 20, "2 nodes"), (1, 1, 9, "9")]
)
def test_what_lies_beyond_the_table_is_refused(nodes, gpus, batch, told):
    with pytest.raises(UserError, match=told):
        measured(*PLANE).times(at([nodes], [gpus], [batch]))


def test_a_job_is_replayed_by_each_model(tmp_path, repository, monkeypatch):
    monkeypatch.chdir(repository)
    resource = {"gpu_count_max": 4}
    jobs = {
        "amdahl": {"model": "amdahl", "scaling": {"throughput_one": 500.0, "serial_share": 0.1}},
        "power": {"model": "power", "scaling": {"throughput_one": 500.0}},
        "table": {"model": "table", "logs": ["resources/step_times/synthetic.csv"]},
    }
    for name, job in jobs.items():
        values = {**EXAMPLE, "resource": {**EXAMPLE["resource"], **resource}, "job": {"name": name, **job}}
        scenario = prepare.scenario_of(values)
        model = prepare.read_model(model_of(scenario, tmp_path))
        replay = make_replay(scenario, model)
        assert np.isfinite(replay.seconds).all() and json.loads((tmp_path / "model.json").read_text())["form"] == name
        if name == "power":
            one = replay.lattice.allocations[:, 0] == 1
            assert replay.performance.throughput[one].max() == pytest.approx(500.0, rel=0.01)


def test_a_table_too_small_for_the_limits_is_refused(tmp_path, repository, monkeypatch):
    monkeypatch.chdir(repository)
    scenario = prepare.scenario_of(
        {
            **EXAMPLE,
            "job": {"name": "table", "model": "table", "logs": ["resources/step_times/synthetic.csv"], "batch": 512},
        }
    )
    model = prepare.read_model(model_of(scenario, tmp_path))
    with pytest.raises(UserError, match="512"):
        make_replay(scenario, model)


@pytest.mark.parametrize(
    ("job", "told"),
    [
        ({"model": "amdahl"}, "'scaling'"),
        ({"model": "power", "step": None, "logs": ["a.csv"]}, "'scaling'"),
        ({"model": "table"}, "'logs'"),
        ({"scaling": {"throughput_one": 1.0}}, "'scaling'"),
    ],
)
def test_a_model_without_its_source_is_told(job, told):
    with pytest.raises(UserError, match=told):
        example_scenario(job=job)
