"""The compiled linear priority and its plans give what their plain statement gives; the order of backfilling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, windows

from oracles.batch_plain import Blocking, LinearScore, plain_excess, run_rule, textbook_starts
from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import write_checkpoint
from schedlab.studies.batch.compat.nan_order import Cluster
from schedlab.studies.batch.jobs import Jobs, Machine, Prefill, prefill
from schedlab.studies.batch.learners.policy_files import load_priority, save_priority
from schedlab.studies.batch.rules import (
    NAMES,
    PLAN,
    PLANNER,
    RULES,
    LinearPriority,
    area,
    linear_priority,
    positive_request,
    priority,
)
from schedlab.studies.batch.scenario import BACKFILL_ORDERS, STEPPED
from schedlab.studies.batch.simulator.simulate import simulate

seeds = st.integers(0, 2**32 - 1)


def drawn_policy(seed: int, plans: bool) -> LinearPriority:
    weights = np.random.default_rng(seed).normal(size=len(NAMES))
    if not plans:
        weights[PLAN:] = 0
    return LinearPriority(weights)


def plain_starts(
    jobs: Jobs,
    machine: Machine,
    policy: LinearPriority | str,
    backfill: str,
    order: str = "default",
    before: Prefill | None = None,
) -> list[float]:
    blocking = backfill in ("none", "legacy")
    cluster = (
        Blocking(jobs, machine, backfill=backfill == "legacy", prefill=before)
        if blocking
        else Cluster(jobs, machine, before)
    )
    score = priority(policy, jobs).at if isinstance(policy, str) else LinearScore(policy, jobs, machine, cluster)
    scan = {
        "sjf": lambda job, clock: positive_request(jobs)[job],
        "area": lambda job, clock: area(jobs)[job],
        "fcfs": lambda job, clock: job,
        "rule": score,
        "default": None,
    }[order]
    if blocking:
        cluster.scan = scan
        return run_rule(cluster, score)
    return textbook_starts(jobs, machine, score, backfill, scan=scan, cluster=cluster)


@settings(max_examples=100, deadline=None)
@given(windows(), seeds, st.booleans(), st.sampled_from(STEPPED))
def test_equals_the_plain_statement(drawn: tuple[Jobs, Machine], seed: int, plans: bool, backfill: str) -> None:
    jobs, machine = drawn
    policy = drawn_policy(seed, plans)
    assert simulate(jobs, machine, policy, backfill).start.tolist() == plain_starts(jobs, machine, policy, backfill)


@settings(max_examples=60, deadline=None)
@given(windows(), seeds, st.sampled_from(STEPPED), st.data())
def test_equals_the_plain_statement_when_the_machine_is_warm(drawn, seed, backfill, data) -> None:
    jobs, machine = drawn
    start = data.draw(st.integers(0, len(jobs) - 1))
    chosen, policy = jobs.take(slice(start, None)), drawn_policy(seed, True)
    before = prefill(jobs, machine, start, len(chosen), np.random.default_rng(seed))
    found = simulate(chosen, machine, policy, backfill, prefill=before).start.tolist()
    assert found == plain_starts(chosen, machine, policy, backfill, before=before)


@settings(max_examples=100, deadline=None)
@given(
    windows(),
    seeds,
    st.sampled_from([*sorted(RULES), ""]),
    st.sampled_from(["legacy", "easy"]),
    st.sampled_from(BACKFILL_ORDERS),
)
def test_backfills_in_the_order_asked_for(drawn, seed, rule, backfill, order) -> None:
    jobs, machine = drawn
    policy = rule or drawn_policy(seed, False)
    found = simulate(jobs, machine, policy, backfill, backfill_order=order).start.tolist()
    assert found == plain_starts(jobs, machine, policy, backfill, order)


def test_the_order_of_backfilling_decides_which_job_goes_first() -> None:
    rows = [(0, 50, 50, 6), (0, 10, 10, 2), (1, 100, 100, 8), (2, 30, 30, 2), (2, 9, 9, 2)]
    jobs, machine = jobs_from(rows), Machine(8, 8)
    for backfill in ("legacy", "easy"):
        starts = {
            order: simulate(jobs, machine, "fcfs", backfill, backfill_order=order).start.tolist()
            for order in BACKFILL_ORDERS
        }
        assert starts["default"] == starts["fcfs"] == starts["rule"] == [0, 0, 50, 10, 40]
        assert starts["area"] == [0, 0, 50, 19, 10]
    with pytest.raises(UserError, match="backfill_order"):
        simulate(jobs, machine, "fcfs", "conservative", backfill_order="area")


def test_a_single_weight_is_the_rule_of_that_feature() -> None:
    rng = np.random.default_rng(1)
    rows = [
        (submit, int(rng.integers(1, 90)), int(rng.integers(1, 90)), int(rng.integers(1, 9)))
        for submit in range(0, 400, 4)
    ]
    jobs, machine = jobs_from(rows), Machine(8, 8)
    for backfill in STEPPED:
        for rule, weight in (("sjf", {"log_request": -1}), ("smallest", {"log_procs": -1}), ("fcfs", {"log_wait": 1})):
            expected = simulate(jobs, machine, rule, backfill).start
            assert simulate(jobs, machine, linear_priority(**weight), backfill).start.tolist() == expected.tolist()


def test_the_features_of_a_known_queue() -> None:
    jobs, machine = jobs_from([(0, 50, 100, 3), (10, 20, 25, 2), (10, 7, -1, 1)]), Machine(4, 4)
    simulation = Blocking(jobs, machine, backfill=False)
    simulation.choose(0)
    simulation._event()
    assert (simulation.clock, simulation.queue) == (10, [1, 2])
    score = LinearScore(PLANNER, jobs, machine, simulation)
    wide, unknown = (dict(zip(NAMES, score.features(job, 40), strict=True)) for job in (1, 2))
    assert wide["share"] == 0.5
    assert wide["fits"] == 0 and unknown["fits"] == 1
    assert wide["log_delay"] == pytest.approx(np.log(61) / 10)  # job 0 ends at 100 as requested
    assert unknown["log_delay"] == 0
    assert wide["log_wait_ratio"] == pytest.approx(np.log(1 + 30 / 25) / 5)
    assert unknown["log_request"] == pytest.approx(np.log(0.1) / 10)
    assert wide["wait_days"] == 30 / 86400


def test_the_planner_sees_that_draining_for_a_wide_job_costs_more() -> None:
    jobs, machine = jobs_from([(0, 100, 100, 6), (1, 50, 50, 8), (1, 60, 60, 2)]), Machine(8, 8)
    simulation = Blocking(jobs, machine, backfill=False)
    simulation.choose(0)
    simulation._event()
    wide_first = (100 - 1 + 50) / 50 + (150 - 1 + 60) / 60
    small_first = 1 + (100 - 1 + 50) / 50
    assert plain_excess(LinearScore(PLANNER, jobs, machine, simulation), 1) == {
        1: pytest.approx(wide_first / small_first - 1),
        2: 0,
    }


@pytest.mark.parametrize("weights", [[1.0], [np.nan] * len(NAMES)])
def test_weights_that_are_none(weights: list[float]) -> None:
    with pytest.raises(UserError, match="12"):
        LinearPriority(np.array(weights))


def test_a_policy_comes_back_from_its_file(tmp_path) -> None:
    save_priority(tmp_path / "policy.zip", PLANNER, found="by hand")
    assert load_priority(tmp_path / "policy.zip").weights.tolist() == PLANNER.weights.tolist()
    first = (tmp_path / "policy.zip").read_bytes()
    save_priority(tmp_path / "again.zip", PLANNER, found="by hand")
    assert (tmp_path / "again.zip").read_bytes() == first
    save_priority(tmp_path / "rule.zip", "f2")
    assert load_priority(tmp_path / "rule.zip") == "f2"
    write_checkpoint(tmp_path / "other.zip", {"kind": "batch-priority", "features": ["wait"]}, {"weights": np.ones(1)})
    with pytest.raises(UserError, match=r"other\.zip"):
        load_priority(tmp_path / "other.zip")
