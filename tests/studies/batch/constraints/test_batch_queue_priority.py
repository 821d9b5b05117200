"""Queues with priorities: hand-checked orders, every policy against the same order without them, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, stepper_on, windows

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.batch.jobs import Machine, jobs_of, machine_of
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.rules import SlurmSettings
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.fair_share import SlurmPriority
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.study import check
from workloads.small_traces import trace

MACHINE = Machine(8, 8)
# Job 1 takes the machine; jobs 2 to 5 wait, of which 4 and 5 are of the queue that comes first.
ROWS = [(0, 10, 10, 8), (1, 30, 30, 8), (2, 20, 20, 8), (3, 50, 50, 8), (4, 40, 40, 8)]


def preferred(priority=(0, 0, 0, 1, 1), rows=ROWS):
    return replace(jobs_from(rows), priority=np.array(priority, dtype=float))


@pytest.mark.parametrize(
    ("policy", "order"),
    [
        ("fcfs", [1, 4, 5, 2, 3]),
        ("sjf", [1, 5, 4, 3, 2]),
        ("lxf", [1, 5, 4, 3, 2]),  # waits over requests at 10 s: 9/30, 8/20, 7/50, 6/40; at 50 s 7/50 -> 47/50
        ("planner", [1, 5, 4, 3, 2]),
        ("shortest_predicted", [1, 5, 4, 3, 2]),
    ],
)
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
def test_jobs_of_the_queue_come_first_and_then_the_policy_decides(policy, order, backfill):
    if backfill == "none":  # job 2 is chosen while it waits alone, and blocks the others
        order = [1, 2, *(job for job in order[1:] if job != 2)]
    jobs = preferred()
    rule = RULE_MAKERS[policy]({}, _Untrained(jobs), 0).rule
    start = simulate(jobs, MACHINE, rule, backfill).start
    assert (np.argsort(start) + 1).tolist() == order


class _Untrained:
    """The problem from which predictions take their prior: it has no jobs to learn from."""

    def __init__(self, jobs) -> None:
        self.jobs = jobs

    def part(self, split):
        del split
        return 0, 0


def test_the_bound_on_waits_precedes_the_queues():
    start = simulate(preferred(), MACHINE, "fcfs", "easy", most_wait=8.5).start
    assert (np.argsort(start) + 1).tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("weight", "order"),
    [
        (0, [1, 4, 5, 3, 2]),  # the queue first, then the smaller job
        (100, [1, 3, 2, 4, 5]),  # 1000 for the size outweighs the queue
        (2000, [1, 4, 5, 3, 2]),
    ],
)
def test_slurm_weighs_the_queue(weight, order):
    """Sizes count 1000 x (1 - processors / 8), the queue `weight`; nothing else counts."""
    rows = [(0, 10, 10, 8), (1, 30, 30, 6), (2, 30, 30, 5), (3, 30, 30, 7), (4, 30, 30, 8)]
    values = {"age_weight": 0, "share_weight": 0, "size_weight": 1000, "favor_small": True, "queue_weight": weight}
    policy = SlurmPriority(validate(SlurmSettings, values))
    start = simulate(preferred(rows=rows), MACHINE, policy, "easy").start
    assert (np.argsort(start) + 1).tolist() == order


POLICIES = ("fcfs", "f1", "wfp3", "slurm", "planner", "lxf_predicted")


@given(windows(most=12), st.sampled_from(POLICIES), st.sampled_from(["none", "legacy", "easy", "conservative"]))
@settings(max_examples=20, deadline=None)
def test_one_queue_for_all_changes_nothing(drawn, name, backfill):
    jobs, machine = drawn
    policy = RULE_MAKERS[name]({}, None, 0).rule
    alike = replace(jobs, priority=np.ones(len(jobs)))
    for order in ("default", "rule") if backfill in ("legacy", "easy") else ("default",):
        plain, other = (simulate(each, machine, policy, backfill, backfill_order=order) for each in (jobs, alike))
        np.testing.assert_array_equal(plain.start, other.start)


def scenario(**values) -> BatchScenario:
    workload = {"name": "small", "source": "swf", "file": "small.swf"}
    shares = {"length": 3, "train_share": 0, "validation_share": 0}
    return validate(BatchScenario, {"name": "small", "seed": 1, "workload": workload, "windows": shares, **values})


def test_a_scenario_gives_queues_priorities():
    log = trace(*({"queue": queue, "procs_allocated": 8} for queue in (1, 1, 0)))
    assert jobs_of(log, machine_of(log), queue_priority={0: 10, 1: 4}).priority.tolist() == [0.4, 0.4, 1.0]
    for priority, starts in (({}, [1, 11, 21]), ({0: 10}, [1, 21, 11]), ({0: 10, 1: 10}, [1, 11, 21])):
        problem = BatchProblem(scenario(queue_priority=priority, backfill="easy"), log)
        schedule = problem.run(RULE_MAKERS["fcfs"]({}, problem, 0), problem.units("test")[0])
        assert schedule.start.tolist() == starts


@pytest.mark.parametrize(
    ("queues", "told"),
    [((0, 1, 1), r"queue_priority\.3: no job has the queue 3"), ((-1, -1, -1), r"queue_priority: .*column 15")],
)
def test_queues_that_the_trace_does_not_have(queues, told):
    with pytest.raises(UserError, match=told):
        BatchProblem(scenario(queue_priority={3: 1}), trace(*({"queue": queue} for queue in queues)))


def test_what_knows_nothing_of_queues_refuses_them():
    with pytest.raises(UserError, match="queue_priority"):
        stepper_on(preferred(), MACHINE, "easy")
    with pytest.raises(UserError, match="queue_priority"):
        simulate(preferred(), MACHINE, "wfp3", "easy_predicted")
    with pytest.raises(UserError, match="queue_priority"):
        scenario(queue_priority={1: -1})


def test_a_weight_of_queues_without_priorities_is_refused():
    rules = [{"name": "slurm", "params": {"queue_weight": 5}}]
    assert [error.where for error in check(scenario(rules=rules))] == ["rules.0.params.queue_weight"]
    assert not list(check(scenario(rules=rules, queue_priority={0: 1})))
