"""EASY++ against a plain statement of it, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, windows

from oracles.batch_easy_predicted import PlainRegression, plain_starts
from schedlab.config.errors import UserError
from schedlab.studies.batch.jobs import Jobs, LastRuns, Machine, Prefill
from schedlab.studies.batch.simulator.predictions import Past
from schedlab.studies.batch.simulator.run_time_regression import LogRegression
from schedlab.studies.batch.simulator.simulate import simulate


@settings(deadline=None)
@given(windows(), st.sampled_from(["fcfs", "sjf", "smallest", "f1", "wfp3"]), st.sampled_from([1.0, 37.0, 400.0]))
def test_it_starts_jobs_when_the_plain_statement_does(window, rule, scale):
    jobs, machine = window
    jobs = replace(jobs, submit=jobs.submit * scale, run=jobs.run * scale, requested=jobs.requested * scale)
    found = simulate(jobs, machine, rule, "easy_predicted").start.tolist()
    assert found == plain_starts(jobs, machine, rule)


def drawn(seed: int, count: int = 80) -> Jobs:
    """Jobs of three users, whose run times are of the order of minutes to hours."""
    rng = np.random.default_rng(seed)
    user = rng.integers(-1, 3, count)
    run = np.round(rng.exponential(600.0 * (2.0 + user))) + 1.0
    rows = zip(
        np.cumsum(rng.integers(0, 900, count)), run, run * rng.integers(1, 9, count), rng.integers(1, 9, count),
        strict=True,
    )  # fmt: skip
    return replace(jobs_from(list(rows), Machine(8, 8)), user=user)


@pytest.mark.parametrize("seed", range(6))
def test_learned_predictions_start_jobs_when_the_plain_statement_does(seed):
    jobs, machine = drawn(seed), Machine(8, 8)
    found = simulate(jobs, machine, "fcfs", "easy_learned").start.tolist()
    assert found == plain_starts(jobs, machine, "fcfs", PlainRegression(jobs))
    assert found != simulate(jobs, machine, "fcfs", "easy_predicted").start.tolist()


def test_the_log_before_the_window_is_learned_as_it_ran():
    """Jobs that run at once, and end in the log when they do in a simulation, teach the same either way."""
    jobs, machine = drawn(1), Machine(1000, 1000)
    start = jobs.submit.copy()
    plain = PlainRegression(jobs)
    assert plain_starts(jobs, machine, "fcfs", plain) == start.tolist()
    model = LogRegression(Past(jobs, start + jobs.run), 0).before(60, 20)
    half = PlainRegression(jobs)
    early = jobs.take(slice(0, 60))
    ended = [job for job in range(60) if start[job] + early.run[job] <= start[60]]
    events = sorted(
        [(start[job] + early.run[job], 0, job) for job in ended] + [(start[job], 1, job) for job in range(60)]
    )
    for when, kind, job in events:
        running = [other for other in range(job) if start[other] + jobs.run[other] > when]
        if kind:
            half.predicted(job, float(when), running, dict(enumerate(start.tolist())))
        else:
            half.ended(job, float(when))
    np.testing.assert_allclose(model.weights, half.weights, rtol=1e-9)
    assert len(ended) > 30 and model.counts[0] == len(ended) + 1
    alone = LogRegression(Past(jobs, np.full(len(jobs), np.nan)), 60).before(60, 20)
    np.testing.assert_allclose(alone.weights, model.weights, rtol=1e-9)


def test_one_pass_gives_each_window_the_model_of_a_pass_of_its_own():
    jobs = drawn(3)
    past = Past(jobs, jobs.submit + 700.0 + jobs.run)
    together = LogRegression(past, 0)
    for start in (10, 11, 40, 60, 20):  # the last one lies before the one asked for last
        found, alone = together.before(start, 20), LogRegression(past, 0).before(start, 20)
        for name in ("weights", "largest", "squares", "counts", "users"):
            np.testing.assert_array_equal(getattr(found, name), getattr(alone, name))
    assert found.counts[0] > 1


def of_one_user(rows) -> Jobs:
    jobs = jobs_from(rows, Machine(4, 4))
    return replace(jobs, user=np.zeros(len(jobs), dtype=np.int64))


ROWS = [
    (0, 10, 1000, 4),  # ends at 10: the user's jobs are short
    (20, 100, 1000, 3),  # predicted: 10 s
    (21, 50, 1000, 4),  # the head: its reservation is at 30 by the prediction, at 1020 by the request
    (22, 10, 900, 1),  # predicted 10 s: ends by 32, after 30; by its request it ends by 922, before 1020
]


def test_reservations_go_by_predictions():
    """By hand: at 22 job 4 does not fit before the shadow time 30; under EASY it does before 1020."""
    jobs, machine = of_one_user(ROWS), Machine(4, 4)
    assert simulate(jobs, machine, "fcfs", "easy").start.tolist() == [0, 20, 120, 22]
    assert simulate(jobs, machine, "fcfs", "easy_predicted").start.tolist() == [0, 20, 120, 170]


def test_what_users_ran_before_the_window_is_known():
    machine = Machine(4, 4)
    jobs = of_one_user(ROWS[1:])
    known = LastRuns(np.zeros(3, dtype=np.int64), np.array([[10.0, np.nan]]))
    before = Prefill(jobs.take(slice(0, 0)), np.empty(0), known)
    alone = simulate(jobs, machine, "fcfs", "easy_predicted").start.tolist()
    assert alone == [20, 120, 22]  # requests stand in where nothing is known
    assert simulate(jobs, machine, "fcfs", "easy_predicted", prefill=before).start.tolist() == [20, 120, 170]
    past = Past(of_one_user(ROWS), np.array([10.0, np.nan, np.nan, np.nan]))
    np.testing.assert_array_equal(past.last_runs(1, 3).runs, [[10.0, np.nan]])
    assert known.runs[0, 0] == 10.0  # a simulation does not write into what is known


def test_a_policy_that_plans_with_requests_is_refused():
    with pytest.raises(UserError) as error:
        simulate(of_one_user(ROWS), Machine(4, 4), "planner", "easy_predicted")
    assert error.value.where == "backfill"


def test_backfilling_in_order_of_requested_times():
    """At 1 two nodes are free beside job 1: under `sjf` the shorter job 4 takes them, by submission job 3."""
    jobs, machine = jobs_from([(0, 60, 60, 6), (1, 10, 10, 8), (1, 30, 30, 2), (1, 20, 20, 2)]), Machine(8, 8)
    for order, starts in (("fcfs", [1, 31]), ("sjf", [21, 1])):
        assert simulate(jobs, machine, "fcfs", "easy", backfill_order=order).start.tolist()[2:] == starts
