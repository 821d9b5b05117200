"""Metrics of a schedule against numbers worked out by hand, and against the summaries of recorded Batsim runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from schedlab.evaluation.job_metrics import JOB_METRICS, job_metrics, load_over_time

NEVER = float("nan")


def schedule(*rows: tuple[float, float, float, int, int, bool]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["submit", "start", "finish", "hosts_requested", "hosts", "success"])


@pytest.fixture
def three_jobs() -> pd.DataFrame:
    """On four hosts from 10 s on: two hosts for 100 s, then all four for 2 s, and one job that is rejected."""
    return schedule((10, 10, 110, 2, 2, True), (20, 110, 112, 4, 4, False), (30, NEVER, NEVER, 9, 0, False))


def test_each_metric_by_hand(three_jobs):
    metrics = job_metrics(three_jobs, hosts=4, threshold=10.0)
    assert metrics == pytest.approx(
        {
            "mean_bounded_slowdown": (1.0 + 92 / 10) / 2,
            "mean_wait": 45.0,
            "mean_turnaround": 96.0,
            "makespan": 102.0,
            "utilisation": (200 + 8) / (4 * 102),
            "unsuccessful": 2 / 3,
        }
    )
    assert metrics.keys() == {metric.name for metric in JOB_METRICS}


def test_the_threshold_bounds_the_slowdown_of_short_jobs_only(three_jobs):
    slowdowns = [
        job_metrics(three_jobs, 4, threshold)["mean_bounded_slowdown"] for threshold in (1.0, 2.0, 50.0, 1000.0)
    ]
    assert slowdowns == pytest.approx([(1 + 46) / 2, (1 + 46) / 2, (1 + 92 / 50) / 2, 1.0])


def test_where_no_job_ran_only_that_is_told():
    assert job_metrics(schedule((0, NEVER, NEVER, 9, 0, False)), 4, 10.0) == {"unsuccessful": 1.0}


def test_queue_and_busy_hosts_over_time(three_jobs):
    load = load_over_time(three_jobs)
    assert load.to_dict("list") == {
        "time": [10.0, 20.0, 110.0, 112.0],
        "waiting": [0, 1, 0, 0],
        "waiting_hosts": [0, 4, 0, 0],
        "busy_hosts": [2, 2, 4, 0],
    }


def test_the_load_integrates_to_what_the_metrics_say():
    stream = np.random.default_rng(5)
    submit = np.sort(stream.uniform(0, 100, 50))
    start = submit + stream.exponential(20, 50)
    hosts = stream.integers(1, 9, 50)
    jobs = schedule(*zip(submit, start, start + stream.exponential(30, 50), hosts, hosts, [True] * 50, strict=True))
    metrics, load = job_metrics(jobs, 8, 10.0), load_over_time(jobs)
    lengths = np.diff(load["time"])
    assert load.iloc[-1][["waiting", "busy_hosts"]].tolist() == [0, 0]
    assert lengths @ load["waiting"][:-1] == pytest.approx(50 * metrics["mean_wait"])
    assert lengths @ load["busy_hosts"][:-1] == pytest.approx(metrics["utilisation"] * 8 * metrics["makespan"])
