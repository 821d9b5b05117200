"""Drawn users who repeat their jobs: what repeats, what does not change, and scenarios without such users."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.config.schema import validate
from schedlab.studies.batch.repeats import RepeatSettings, repeated_trace
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.study import check, parts
from schedlab.workloads.prepare import make_trace
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.trace import offered_load

LUBLIN = {"jobs": 4000, "users": 8, "estimates": {"model": "menu", "factor": 10}}
WORKLOAD = WorkloadSettings(seed=4, lublin=LUBLIN)


def test_users_repeat_their_jobs_and_some_fail_at_once():
    plain, often = make_trace(WORKLOAD)[0].jobs, repeated_trace(WORKLOAD, RepeatSettings(share=0.9))[0].jobs
    same = []
    for jobs in (plain, often):
        last = jobs.groupby("user")[["procs_allocated", "time_requested"]].shift()
        same.append((last == jobs[["procs_allocated", "time_requested"]]).all(axis=1).mean())
    assert same[0] < 0.2 and 0.85 < same[1] < 0.95
    assert (often["run"] <= often["time_requested"]).all() and (often["run"] >= 1).all()
    for name in ("submit", "user"):
        assert often[name].equals(plain[name])
    failing = repeated_trace(WORKLOAD, RepeatSettings(share=0.9, failures=0.3))[0].jobs
    changed = failing["run"] != often["run"]
    assert (failing["run"][changed] <= 60).all() and 0.15 < changed.mean() <= 0.32
    assert failing["time_requested"].equals(often["time_requested"])


def test_the_load_is_reached_after_the_jobs_are_repeated():
    trace, report = repeated_trace(WORKLOAD.model_copy(update={"load": 0.7}), RepeatSettings())
    assert np.isclose(offered_load(trace), 0.7, rtol=1e-3)
    assert report["repeats"] == {"share": 0.8, "failures": 0.0}


@pytest.mark.parametrize(("workload", "refused"), [({"lublin": LUBLIN}, False), ({}, True)])
def test_repeats_need_drawn_users_and_change_only_parts_that_have_them(workload, refused):
    values = {"name": "drawn", "seed": 1, "workload": {"seed": 4, **workload}}
    made = validate(BatchScenario, {**values, "repeats": {"share": 0.5}})
    assert ("repeats" in {error.where for error in check(made)}) == refused
    assert parts(made)["make_trace"].values["repeats"] == {"share": 0.5, "failures": 0.0}
    assert "repeats" not in parts(validate(BatchScenario, values))["make_trace"].values
