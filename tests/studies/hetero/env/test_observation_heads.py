"""The observation `heads` by hand, and at all times within its bounds."""

from __future__ import annotations

from math import log1p

import numpy as np
import pytest
from small_clusters import cluster, workload

from schedlab.studies.hetero.env.observation import ONCE, PER_HEAD, HeadsObserver
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.episode import Episode, make_jobs
from schedlab.studies.hetero.simulator.resources import ORDERS

LIMITS = {"max_time": 20.0, "max_core": 4.0, "max_mem": 8000.0, "max_mem_bw": 24.0}
QUIET = {"bw": 6, "mem": 100}


def observed(jobs: list[dict], decisions: int) -> np.ndarray:
    """What is seen at the n-th decision of first-high_gflops on four cores of 4.0 and 4.4 Gflop/s."""
    settings = DecisionSettings(selection=("first-high_gflops",), void=False, observation="heads")
    run = Episode(cluster(), make_jobs(workload(jobs), LIMITS), settings, 0)
    for _ in range(decisions - 1):
        assert run.advance()
        run.observe()
        run.decide(0)
    assert run.advance()
    return run.observe()


def by_policy(vector: np.ndarray) -> dict[str, np.ndarray]:
    """The numbers of each job policy's first job."""
    return dict(zip(ORDERS, vector[:-ONCE].reshape(len(ORDERS), PER_HEAD), strict=True))


def test_first_jobs_of_a_free_cluster_by_hand():
    vector = observed([QUIET | {"res": 4, "time": 10}, QUIET | {"res": 2, "time": 20, "bw": 3}], 1)
    heads = by_policy(vector)
    assert heads["first"] == pytest.approx([1, log1p(10) / log1p(20), 1, 0.25, 0, 0])
    assert heads["shortest"].tolist() == heads["first"].tolist()
    assert heads["smallest"] == pytest.approx([1, 1, 0.5, 0.125, 0, 0])
    assert heads["low_mem_bw"].tolist() == heads["smallest"].tolist()
    assert vector[-ONCE:] == pytest.approx([1, 1, 2 / (2 + 2), 0])


def test_a_blocked_shortest_job_waits_for_the_cores_of_running_ones():
    # at 0 three cores get a job of 10 s at 4.2 Gflop/s, as slow as its 4.0;
    # at 2 come a job of 2 cores (5 s) and one that fits (20 s)
    running = QUIET | {"res": 3, "time": 10}
    vector = observed(
        [running, QUIET | {"res": 2, "time": 5, "subtime": 2}, QUIET | {"res": 1, "time": 20, "subtime": 2}], 2
    )
    heads, wait = by_policy(vector), 10 * 4.2 / 4.0 - 2
    assert heads["shortest"][[0, 4, 5]].tolist() == [0, 0, 0]
    assert heads["smallest"][0] == 1 and heads["smallest"][5] == pytest.approx(20 / (20 + wait))
    free = (32 - 2 * 6) / 32, (32 - 6) / 32
    assert vector[-ONCE:] == pytest.approx([0.25, sum(free) / 2, 2 / (2 + 2), wait / (wait + 5)])


def test_time_waited_counts_against_the_requested_time():
    vector = observed(
        [QUIET | {"res": 4, "time": 10}, QUIET | {"res": 4, "time": 5, "subtime": 2}, QUIET | {"subtime": 7}], 3
    )
    assert by_policy(vector)["first"][4] == pytest.approx(5 / (5 + 5))


def test_the_vector_stays_within_its_bounds():
    rng = np.random.default_rng(0)
    jobs = [
        {"res": 1 + number % 4, "subtime": number // 3, "bw": 4 * (number % 6), "time": 1 + number % 40}
        for number in range(40)
    ]
    run = Episode(cluster(), make_jobs(workload(jobs), LIMITS), DecisionSettings(observation="heads", void=False), 0)
    blocked = 0
    while run.advance():
        vector = run.observe()
        assert vector.shape == (HeadsObserver.size,) and ((vector >= 0) & (vector <= 1)).all()
        blocked += vector[-1] > 0
        run.decide(int(rng.integers(36)))
    assert blocked > 5
