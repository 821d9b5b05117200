"""Jobs that follow others: hand-checked schedules, every policy against its own fixed point, and what is refused."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, stepper_on, windows

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.batch.jobs import LastRuns, Machine, Prefill, jobs_of, machine_of
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.predictions import Past
from schedlab.studies.batch.simulator.run_time_regression import regression_of
from schedlab.studies.batch.simulator.simulate import KnowsJobs, simulate
from schedlab.workloads.trace import Trace
from workloads.small_traces import trace

MACHINE = Machine(8, 8)


def chained(rows, *links: tuple[int, int, float], machine: Machine = MACHINE):
    """Jobs of rows; links: (job, its preceding job, think time)."""
    jobs = jobs_from(rows, machine)
    preceding, think = np.zeros(len(jobs), dtype=np.int64), np.full(len(jobs), -1.0)
    for job, before, seconds in links:
        preceding[job - 1], think[job - 1] = before, seconds
    return replace(jobs, preceding=preceding, think=think)


@pytest.mark.parametrize(
    ("think", "arrival", "start"),
    [
        (5, 105, 105),  # after the end of job 1, at 100, and the think time; job 3 has ended
        (-1, 100, 100),  # no think time is known
        (0, 100, 100),
        (400, 500, 500),
    ],
)
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_a_job_arrives_when_its_preceding_job_has_ended_and_the_think_time_has_passed(backfill, think, arrival, start):
    jobs = chained([(0, 100, 100, 4), (10, 50, 50, 4), (20, 30, 30, 4)], (2, 1, think))
    schedule = simulate(jobs, MACHINE, "fcfs", backfill)
    assert schedule.jobs.submit.tolist() == [0, arrival, 20]
    assert schedule.start.tolist() == [0, start, 20]


def test_a_job_submitted_after_all_that_arrives_when_it_was_submitted():
    jobs = chained([(0, 10, 10, 8), (500, 5, 5, 8)], (2, 1, 30))
    schedule = simulate(jobs, MACHINE, "fcfs", "easy")
    assert schedule.jobs.submit.tolist() == schedule.start.tolist() == [0, 500]


def test_a_delay_passes_down_a_chain_and_lets_others_pass():
    """Jobs 1, 3, 4 follow each other; job 5 takes what job 4 would have had in the order of the log."""
    rows = [(0, 100, 100, 8), (1, 20, 20, 8), (2, 10, 10, 4), (3, 10, 10, 8), (4, 50, 50, 8)]
    schedule = simulate(chained(rows, (3, 1, 10), (4, 3, 0)), MACHINE, "fcfs", "easy")
    # Job 2 starts at 100, then job 5 at 120: job 3 arrives at 110, runs from 170 to 180, and job 4 follows at once.
    assert schedule.jobs.submit.tolist() == [0, 1, 110, 180, 4]
    assert schedule.start.tolist() == [0, 100, 170, 180, 120]


def test_a_preceding_job_ends_when_it_is_killed():
    jobs = chained([(0, 100, 40, 8), (1, 10, 10, 8)], (2, 1, 5))
    assert simulate(jobs, MACHINE, "sjf", "easy", kill=True).start.tolist() == [0, 45]


POLICIES = ("fcfs", "f1", "wfp3", "planner", "slurm", "shortest_predicted", "lxf_predicted")
PREDICTING = ("easy_plus_plus", "easy_learned")


@given(windows(most=12), st.data())
@settings(max_examples=20, deadline=None)
def test_the_schedule_is_that_of_jobs_submitted_at_their_arrivals(drawn, data):
    """Every policy: a plain simulation of the arrivals gives the same starts, and the starts give the arrivals. What a
    policy knows of the jobs in the order of the log follows them into the order of arrival.
    """
    alone, machine = drawn
    preceding = [data.draw(st.integers(0, number)) for number in range(len(alone))]
    jobs = replace(alone, preceding=np.array(preceding), think=np.full(len(alone), 2.0))
    policy = RULE_MAKERS[data.draw(st.sampled_from(POLICIES + PREDICTING))]({}, _Training(alone), 0)
    backfill = policy.own.backfill if policy.own else data.draw(st.sampled_from(["none", "legacy", "easy"]))
    past, nothing = Past(alone, np.full(len(alone), np.nan)), alone.take(slice(0, 0))
    rule = policy.rule.at(past, 0, len(alone)) if isinstance(policy.rule, KnowsJobs) else policy.rule
    before = Prefill(nothing, np.empty(0), LastRuns.unknown(alone), regression_of(alone))
    schedule = simulate(jobs, machine, rule, backfill, prefill=before)
    arrival, end = schedule.jobs.submit, schedule.start + jobs.run
    expected = [end[before - 1] + 2.0 if before > 0 else -np.inf for before in preceding]
    np.testing.assert_array_equal(arrival, np.maximum(alone.submit, expected))
    order = np.argsort(arrival, kind="stable")
    plain = simulate(replace(alone, submit=arrival).take(order), machine, policy.rule, backfill)
    np.testing.assert_array_equal(schedule.start[order], plain.start)


class _Training:
    """The problem from which predictions take their prior."""

    def __init__(self, jobs) -> None:
        self.jobs = jobs

    def part(self, split):
        del split
        return 0, 2


def test_the_nodes_of_jobs_stay_theirs():
    jobs = chained([(0, 100, 100, 4), (10, 50, 50, 2), (20, 30, 30, 3)], (2, 1, 0))
    assert [len(held) for held in simulate(jobs, MACHINE, "fcfs", track_nodes=True).held] == [4, 2, 3]


def log_of(*jobs: dict, source: str = "small") -> Trace:
    return replace(trace(*jobs), source=source)


FOLLOWING = {"preceding_job": 1, "think_time": 7}


def scenario(**values) -> BatchScenario:
    workload = {"name": "small", "source": "swf", "file": "small.swf"}
    shares = {"length": 3, "train_share": 0, "validation_share": 0}
    made = {"name": "small", "seed": 1, "workload": workload, "windows": shares, "dependencies": True, **values}
    return validate(BatchScenario, made)


def test_a_trace_is_followed_on_request_alone():
    log = log_of({"run": 50, "procs_allocated": 8}, {"user": 3, **FOLLOWING}, {})
    for asked, arrivals in ((True, [1, 58, 3]), (False, [1, 2, 3])):
        problem = BatchProblem(scenario(dependencies=asked), log)
        schedule = problem.run(RULE_MAKERS["fcfs"]({}, problem, 0), problem.units("test")[0])
        assert schedule.jobs.submit.tolist() == arrivals
    assert not jobs_of(log, machine_of(log)).preceding.any()


def test_a_preceding_job_outside_of_the_window_counts_as_ended():
    jobs = [{"run": 50, "procs_allocated": 8}, {}, {}, FOLLOWING, {"preceding_job": 4, "think_time": 2}, {}]
    problem = BatchProblem(scenario(), log_of(*jobs))
    second = problem.run(RULE_MAKERS["fcfs"]({}, problem, 0), problem.units("test")[1])
    assert second.jobs.submit.tolist() == [4, 16, 6]  # job 4 follows job 1 of the first window, job 5 follows job 4


def test_a_whole_run_with_delays_is_followed():
    made = scenario(windows={"length": 1, "continuous": True, "jitters": 2, "jitter": 3.0, "train_share": 0})
    problem = BatchProblem(made, log_of({"run": 50, "procs_allocated": 8}, FOLLOWING, {}))
    runs = problem.whole_runs(RULE_MAKERS["fcfs"]({}, problem, 0))
    assert [run.jobs.submit[1] for run in runs] == [run.start[0] + 57 for run in runs]
    assert runs[0].start[0] != runs[1].start[0]


@pytest.mark.parametrize(
    ("jobs", "told"),
    [
        ([{}, {}, {}], "no job has a preceding job"),
        ([{}, {"preceding_job": 3}, {}], "job 2 follows job 3"),
        ([{}, {"preceding_job": 2}, {}], "job 2 follows job 2"),
        ([{"preceding_job": 3}, {"preceding_job": 1}, {"preceding_job": 2}], "job 1 follows job 3"),  # a cycle
    ],
)
def test_dependencies_that_cannot_be(jobs, told):
    with pytest.raises(UserError, match=rf"ours: dependencies: {told}"):
        BatchProblem(scenario(), log_of(*jobs, source="ours"))


def test_preceding_jobs_that_the_trace_has_not_are_counted(caplog):
    with caplog.at_level(logging.WARNING, logger="schedlab.batch"):
        BatchProblem(scenario(), log_of({}, {"preceding_job": 77}, FOLLOWING))
    assert "1 of 2 jobs" in caplog.text


def test_a_policy_that_decides_job_by_job_refuses_them():
    with pytest.raises(UserError, match=r"dependencies: .*job by job"):
        stepper_on(chained([(0, 10, 10, 8), (1, 10, 10, 8)], (2, 1, 0)), MACHINE, "easy")
