"""Measures of schedules worked out by hand."""

from __future__ import annotations

import pytest
from small_jobs import jobs_from

from schedlab.studies.batch.jobs import Machine
from schedlab.studies.batch.metrics import jain, measures, usage
from schedlab.studies.batch.simulator.simulate import simulate

MACHINE = Machine(8, 8)


def test_measures_of_three_jobs() -> None:
    schedule = simulate(jobs_from([(100, 20, 20, 8), (110, 5, 5, 4), (110, 100, 100, 8)]), MACHINE, "fcfs")
    assert schedule.start.tolist() == [100, 120, 125]
    found = measures(schedule, MACHINE)
    assert found["avg_bsld"] == pytest.approx((1 + 1.5 + 1.15) / 3)
    assert found["avg_slowdown"] == pytest.approx((1 + 3 + 1.15) / 3)
    assert (found["avg_wait"], found["max_wait"]) == (pytest.approx(25 / 3), 15)
    assert found["avg_turnaround"] == pytest.approx((20 + 15 + 115) / 3)
    work = 20 * 8 + 5 * 4 + 100 * 8
    assert found["util_to_last_start"] == pytest.approx(work / (25 * 8))
    assert found["util_makespan"] == pytest.approx(work / (125 * 8))
    assert (found["median_bsld"], found["max_bsld"], found["median_wait"]) == (1.15, 1.5, 10)
    assert found["p90_wait"] == pytest.approx(14)
    assert found["users"] == 3
    assert (found["user_bsld_min"], found["user_bsld_max"]) == (1, 1.5)
    assert found["jain_users"] == pytest.approx(3.65**2 / (3 * (1 + 1.5**2 + 1.15**2)))
    assert found["bsld_by_class"]["run_under_1min"] == {"jobs": 2, "avg_bsld": 1.25}
    assert found["bsld_by_class"]["procs_2_to_8"]["jobs"] == 3
    assert found["bsld_by_class"]["procs_1"] == {"jobs": 0, "avg_bsld": None}


def test_one_job_has_no_utilisation_up_to_its_start() -> None:
    found = measures(simulate(jobs_from([(0, 10, 10, 4)]), MACHINE, "sjf"), MACHINE)
    assert found["util_to_last_start"] is None
    assert found["util_makespan"] == 0.5


def test_usage_over_time() -> None:
    curve = usage(simulate(jobs_from([(0, 10, 10, 4), (0, 5, 5, 4), (5, 10, 10, 2)]), MACHINE, "fcfs"))
    assert curve.to_numpy().tolist() == [[0, 8], [5, 6], [10, 2], [15, 0]]


def test_jain_is_one_for_equals_and_falls_with_the_spread() -> None:
    assert jain([2.0, 2.0, 2.0]) == 1.0
    assert jain([1.0, 3.0]) == pytest.approx(0.8)
