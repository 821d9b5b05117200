"""Limits of queues, partitions and memory: hand-checked schedules, random ones against each other, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, stepper_on, windows

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.batch.constraints.settings import LimitSettings
from schedlab.studies.batch.jobs import Jobs, Machine, Prefill
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.study import check
from workloads.small_traces import trace

MACHINE = Machine(8, 8)


def limited(machine: Machine = MACHINE, **limits) -> Machine:
    return replace(machine, limits=validate(LimitSettings, limits))


def jobs_in(column: str, rows, machine: Machine = MACHINE) -> Jobs:
    """Jobs of (queue or partition, submit, run = requested, processors)."""
    jobs = jobs_from([(submit, run, run, procs) for _, submit, run, procs in rows], machine)
    return replace(jobs, **{column: np.array([number for number, *_ in rows])})


# Job 3 would fit beside job 1, but its queue or partition is at the limit; job 4 of the other passes it.
ROWS = [(1, 0, 100, 4), (2, 1, 50, 1), (1, 2, 50, 2), (2, 3, 10, 1)]


@pytest.mark.parametrize(
    ("limits", "starts"),
    [
        ({}, [0, 1, 2, 3]),
        ({"queue": {1: 5}}, [0, 1, 100, 3]),
        ({"queue": {1: 6}}, [0, 1, 2, 3]),
        ({"queue_jobs": {1: 1}}, [0, 1, 100, 3]),
        ({"queue": {2: 1}}, [0, 1, 2, 51]),
        ({"queue_jobs": {1: 1, 2: 1}}, [0, 1, 100, 51]),
    ],
)
@pytest.mark.parametrize("backfill", ["none", "easy"])
@pytest.mark.parametrize("column", ["queue", "partition"])
def test_a_job_over_the_limit_is_held_and_others_pass_it(column, backfill, limits, starts):
    named = {key.replace("queue", column): most for key, most in limits.items()}
    machine = limited(**named) if limits else MACHINE
    assert simulate(jobs_in(column, ROWS), machine, "fcfs", backfill).start.tolist() == starts


@pytest.mark.parametrize(("backfill", "fourth"), [("none", 100), ("easy", 3)])
def test_processors_that_only_one_partition_may_use(backfill, fourth):
    """3 of 8 processors are kept for partition 2: job 2 of partition 1 waits, and job 3 of partition 2 takes them only
    where backfilling lets it pass.
    """
    jobs = jobs_in("partition", [(1, 0, 100, 4), (1, 1, 50, 2), (2, 3, 50, 4)])
    start = simulate(jobs, limited(reserved={2: 3}), "fcfs", backfill).start.tolist()
    assert start == [0, 100, fourth]
    assert simulate(jobs, MACHINE, "fcfs", backfill).start.tolist() == [0, 1, 51]


def test_several_partitions_keep_their_own():
    """Of 8 processors, 2 are partition 1's and 3 partition 2's: each takes its own and the 3 open ones, the rest 3."""
    jobs = jobs_in("partition", [(0, 0, 9, 3), (0, 0, 9, 1), (1, 0, 9, 2), (1, 0, 9, 1), (2, 0, 9, 3), (2, 0, 9, 1)])
    assert simulate(jobs, limited(reserved={1: 2, 2: 3}), "fcfs", "easy").start.tolist() == [0, 9, 0, 9, 0, 9]


@pytest.mark.parametrize(
    ("requested", "start"),
    [(90, 2), (110, 150)],  # ends before job 1 and leaves its memory to job 2, or would not
)
def test_a_job_waits_for_memory_and_has_a_reservation(requested, start):
    jobs = replace(
        jobs_from([(0, 100, 100, 2), (1, 50, 50, 2), (2, 40, requested, 1)]), memory=np.array([3e6, 4e6, 3e6])
    )
    assert simulate(jobs, limited(memory=10), "fcfs", "easy").start.tolist() == [0, 100, start]
    assert simulate(jobs, limited(memory=10), "fcfs", "none").start.tolist() == [0, 100, 150]


def test_a_backfilled_job_leaves_its_queue_what_the_head_needs():
    """Job 2 of queue 1 waits for nodes until 100. Job 3 of its queue would be running then and leave it too little of
    the limit; job 4 of no limited queue may start.
    """
    rows = [(2, 0, 100, 6), (1, 1, 50, 3), (1, 2, 150, 1), (3, 3, 150, 1)]
    assert simulate(jobs_in("queue", rows), limited(queue={1: 3}), "fcfs", "easy").start.tolist() == [0, 100, 150, 3]
    assert simulate(jobs_in("queue", rows), limited(queue={1: 4}), "fcfs", "easy").start.tolist() == [0, 100, 2, 3]


def test_jobs_that_already_run_count():
    jobs = jobs_in("queue", [(1, 0, 100, 4), (1, 10, 5, 2), (2, 11, 5, 2)])
    before = Prefill(jobs.take(slice(0, 1)), np.array([5.0]))
    started = simulate(jobs.take(slice(1, 3)), limited(queue={1: 4}), "fcfs", "easy", prefill=before)
    assert started.start.tolist() == [105, 11]


POLICIES = ("fcfs", "sjf", "wfp3", "slurm", "planner", "fcfs_backfill_sjf")


@given(windows(most=16), st.sampled_from(POLICIES), st.sampled_from(["none", "easy"]), st.sampled_from([np.inf, 5.0]))
@settings(max_examples=20, deadline=None)
def test_limits_that_do_not_bind_change_nothing(drawn, name, backfill, most_wait):
    jobs, machine = drawn
    policy = RULE_MAKERS[name]({}, None, 0)
    how = {"backfill_order": policy.own.order if policy.own and backfill == "easy" else "default"}
    how |= {"most_wait": most_wait if backfill == "easy" else np.inf}
    loose = limited(machine, queue_jobs={1: 99}, reserved={7: 1}, memory=1e9)
    jobs = replace(jobs, queue=np.ones(len(jobs), dtype=np.int64), partition=np.full(len(jobs), 7))
    plain, other = (simulate(jobs, each, policy.rule, backfill, **how) for each in (machine, loose))
    np.testing.assert_array_equal(plain.start, other.start)


@given(windows(most=20), st.data())
@settings(max_examples=20, deadline=None)
def test_no_limit_is_ever_exceeded(drawn, data):
    jobs, machine = drawn
    number = st.lists(st.integers(0, 1), min_size=len(jobs), max_size=len(jobs))
    jobs = replace(jobs, queue=np.array(data.draw(number)), partition=np.array(data.draw(number)))
    per_node = machine.processors // machine.nodes
    own = machine.nodes - int(jobs.nodes[jobs.partition == 0].max(initial=1))
    most = int(jobs.nodes[jobs.queue == 1].max(initial=1))
    limits = {"queue": {1: most * per_node}, "queue_jobs": {0: 2}} | ({"reserved": {1: own * per_node}} if own else {})
    backfill = data.draw(st.sampled_from(["none", "easy"]))
    start = simulate(jobs, limited(machine, **limits), "sjf", backfill).start
    for time in start:
        runs = (start <= time) & (time < start + jobs.run)
        assert jobs.nodes[runs].sum() <= machine.nodes
        assert jobs.nodes[runs & (jobs.queue == 1)].sum() <= most
        assert (runs & (jobs.queue == 0)).sum() <= 2
        assert jobs.nodes[runs & (jobs.partition == 0)].sum() <= machine.nodes - own


def scenario(**values) -> BatchScenario:
    workload = {"name": "small", "source": "swf", "file": "small.swf"}
    shares = {"length": 3, "train_share": 0, "validation_share": 0}
    return validate(BatchScenario, {"name": "small", "seed": 1, "workload": workload, "windows": shares, **values})


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"queue": {3: 4}}, r"limits\.queue\.3: no job has the queue 3; expected one of 0, 1"),
        ({"queue_jobs": {3: 4}}, r"limits\.queue_jobs\.3"),
        ({"partition": {1: 4}}, r"limits\.partition: no job of the trace has a partition \(column 16\)"),
        ({"reserved": {1: 4}}, r"limits\.reserved: no job of the trace has a partition"),
        ({"memory": 4}, r"limits\.memory: .*column 10"),
    ],
)
def test_limits_of_what_the_trace_does_not_have(limits, told):
    log = trace({"queue": 0}, {"queue": 1}, {"queue": 0})
    with pytest.raises(UserError, match=told):
        BatchProblem(scenario(limits=limits), log)


@pytest.mark.parametrize("limits", [{"queue": {1: 0}}, {"queue": {-1: 4}}, {"queue": {1: "4"}}, {"memory": 0}])
def test_limits_that_are_none(limits):
    with pytest.raises(UserError, match=r"limits\."):
        scenario(limits=limits)


def test_a_job_that_could_never_start():
    log = trace({"queue": 1, "procs_allocated": 5}, {"queue": 1}, {"queue": 0})
    problem = BatchProblem(scenario(limits={"queue": {1: 4}}), log)
    with pytest.raises(UserError, match=r"limits\.queue\.1: job 1 \(5 processors\)"):
        problem.run(RULE_MAKERS["fcfs"]({}, problem, 0), problem.units("test")[0])
    with pytest.raises(UserError, match=r"limits\.reserved: 9 reserved"):
        BatchProblem(scenario(limits={"reserved": {1: 9}}), trace({"partition": 1}, {}, {}))


def test_a_scenario_is_limited():
    log = trace({"queue": 1, "run": 50}, {"queue": 1}, {"queue": 0})
    problem = BatchProblem(scenario(limits={"queue_jobs": {1: 1}}), log)
    schedule = problem.run(RULE_MAKERS["fcfs"]({}, problem, 0), problem.units("test")[0])
    assert schedule.start.tolist() == [1, 51, 3]


def test_what_knows_nothing_of_limits_refuses_them():
    jobs = jobs_in("queue", ROWS)
    for backfill in ("legacy", "conservative", "easy_predicted", "easy_learned"):
        with pytest.raises(UserError, match="limits"):
            simulate(jobs, limited(queue={1: 5}), "fcfs", backfill)
    with pytest.raises(UserError, match="limits"):
        stepper_on(jobs, limited(queue={1: 5}), "easy")
    made = scenario(limits={"queue": {1: 5}}, backfill="easy", rules=["fcfs", "easy_plus_plus"])
    assert [error.where for error in check(made)] == ["rules.1"]
    made = scenario(limits={"queue": {1: 5}}, backfill="legacy")
    assert [error.where for error in check(made)] == ["limits"]
