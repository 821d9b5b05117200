"""EASY++ against a plain statement of it, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, windows

from schedlab.config.errors import UserError
from schedlab.studies.batch.jobs import Jobs, LastRuns, Machine, Prefill
from schedlab.studies.batch.rules import priority
from schedlab.studies.batch.simulator.predictions import Past
from schedlab.studies.batch.simulator.simulate import simulate

INCREMENTS = [60.0 * minutes for minutes in (1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000)]


def plain_starts(jobs: Jobs, machine: Machine, rule: str) -> list[float]:
    """The start times of EASY++, by lists and sorting."""
    order = priority(rule, jobs)
    limit = [float(value) if value > 0 else np.inf for value in jobs.requested]
    start: dict[int, float] = {}
    expected: dict[int, float] = {}
    raised = dict.fromkeys(range(len(jobs)), 0)
    last: dict[int, list[float]] = {}
    predicted: dict[int, float] = {}
    running: list[int] = []
    waiting: list[int] = []
    coming = list(range(len(jobs)))
    while waiting or coming:
        ends = [start[job] + jobs.run[job] for job in running]
        now = min([*ends, *(jobs.submit[job] for job in coming[:1])])
        for job in sorted(running, key=lambda job: (start[job] + jobs.run[job], running.index(job))):
            if start[job] + jobs.run[job] <= now:
                running.remove(job)
                if jobs.user[job] >= 0:
                    last[jobs.user[job]] = [jobs.run[job], *last.get(jobs.user[job], [])][:2]
        while coming and jobs.submit[coming[0]] <= now:
            job = coming.pop(0)
            known = last.get(jobs.user[job])
            predicted[job] = max(1.0, min(np.mean(known), limit[job])) if known else limit[job]
            if predicted[job] == np.inf:
                predicted[job] = 1.0
            waiting.append(job)
        for job in running:
            while expected[job] <= now < start[job] + limit[job]:
                expected[job] = min(start[job] + limit[job], expected[job] + INCREMENTS[min(raised[job], 10)])
                raised[job] += 1

        def begin(job: int, now: float = now) -> None:
            waiting.remove(job)
            running.append(job)
            start[job], expected[job] = now, now + predicted[job]

        free = machine.nodes - sum(jobs.nodes[job] for job in running)
        ranked = sorted(waiting, key=lambda job: (order.at(job, now), jobs.submit[job], job))
        while ranked and jobs.nodes[ranked[0]] <= free:
            free -= jobs.nodes[ranked[0]]
            begin(ranked.pop(0))
        if not ranked:
            continue
        head, room, shadow = ranked[0], free, now
        for job in sorted(running, key=lambda job: (max(expected[job], now + 1.0), expected[job])):
            if room >= jobs.nodes[head] and max(expected[job], now + 1.0) > shadow:
                break
            shadow = max(expected[job], now + 1.0)
            room += jobs.nodes[job]
        extra = room - jobs.nodes[head]
        for job in sorted(ranked[1:], key=lambda job: (predicted[job], job)):
            short = now + predicted[job] <= shadow
            if jobs.nodes[job] <= free and (short or jobs.nodes[job] <= extra):
                free -= jobs.nodes[job]
                extra -= 0 if short else jobs.nodes[job]
                begin(job)
    return [start[job] for job in range(len(jobs))]


@settings(deadline=None)
@given(windows(), st.sampled_from(["fcfs", "sjf", "smallest", "f1", "wfp3"]), st.sampled_from([1.0, 37.0, 400.0]))
def test_it_starts_jobs_when_the_plain_statement_does(window, rule, scale):
    jobs, machine = window
    jobs = replace(jobs, submit=jobs.submit * scale, run=jobs.run * scale, requested=jobs.requested * scale)
    found = simulate(jobs, machine, rule, "easy_predicted").start.tolist()
    assert found == plain_starts(jobs, machine, rule)


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
