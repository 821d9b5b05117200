"""The compiled simulator gives what its plain statement gives, and what holds for every schedule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, windows

from oracles.batch_plain import run_rule, textbook_starts
from schedlab.studies.batch.compat.nan_order import BlockingSimulation, f2_scores, run_scores
from schedlab.studies.batch.jobs import Jobs, Machine, Prefill, Schedule, prefill
from schedlab.studies.batch.metrics import usage
from schedlab.studies.batch.rules import RULES, priority
from schedlab.studies.batch.scenario import STEPPED
from schedlab.studies.batch.simulator.simulate import simulate

rules = st.sampled_from(sorted(RULES))


def plain_starts(jobs: Jobs, machine: Machine, rule: str, backfill: str, before: Prefill | None = None) -> list[float]:
    if backfill in ("none", "legacy"):
        return run_plainly(BlockingSimulation(jobs, machine, backfill=backfill == "legacy", prefill=before), rule, jobs)
    return textbook_starts(jobs, machine, priority(rule, jobs).at, backfill, before)


def run_plainly(simulation: BlockingSimulation, rule: str, jobs: Jobs) -> list[float]:
    if rule == "f2" and (jobs.requested < 0).any():
        return run_scores(simulation, f2_scores(jobs))
    return run_rule(simulation, priority(rule, jobs).at)


@settings(max_examples=150, deadline=None)
@given(windows(), rules, st.sampled_from(STEPPED))
def test_equals_the_plain_statement(drawn: tuple[Jobs, Machine], rule: str, backfill: str) -> None:
    jobs, machine = drawn
    assert simulate(jobs, machine, rule, backfill).start.tolist() == plain_starts(jobs, machine, rule, backfill)


@settings(max_examples=100, deadline=None)
@given(windows(in_order=False), rules, st.sampled_from(["none", "legacy"]))
def test_equals_the_plain_statement_for_jobs_in_any_order(
    drawn: tuple[Jobs, Machine], rule: str, backfill: str
) -> None:
    jobs, machine = drawn
    found = simulate(jobs, machine, rule, backfill).start
    assert found.tolist() == plain_starts(jobs, machine, rule, backfill)
    assert (found >= np.maximum.accumulate(jobs.submit)).all()  # none arrives before the one above it


@settings(max_examples=100, deadline=None)
@given(windows(), rules, st.sampled_from(STEPPED), st.integers(0, 2**32 - 1), st.data())
def test_equals_the_plain_statement_when_the_machine_is_warm(drawn, rule, backfill, seed, data) -> None:
    jobs, machine = drawn
    start = data.draw(st.integers(0, len(jobs) - 1))
    chosen = jobs.take(slice(start, None))
    before = prefill(jobs, machine, start, len(chosen), np.random.default_rng(seed))
    assert before.jobs.nodes.sum() <= machine.nodes
    assert (before.start <= chosen.submit[0]).all()
    assert (before.start + before.jobs.run >= chosen.submit[0]).all()
    found = simulate(chosen, machine, rule, backfill, prefill=before).start.tolist()
    assert found == plain_starts(chosen, machine, rule, backfill, before)


@settings(max_examples=100, deadline=None)
@given(windows(), rules, st.booleans())
def test_nodes_are_the_first_free_ones(drawn, rule, backfill) -> None:
    jobs, machine = drawn
    simulation = BlockingSimulation(jobs, machine, backfill=backfill)
    run_plainly(simulation, rule, jobs)
    schedule = simulate(jobs, machine, rule, "legacy" if backfill else "none", track_nodes=True)
    assert [held.tolist() for held in schedule.held] == simulation.held[: len(jobs)]


@settings(max_examples=100, deadline=None)
@given(windows(), rules, st.sampled_from(STEPPED))
def test_nodes_are_held_by_one_job_at_a_time(drawn, rule, backfill) -> None:
    jobs, machine = drawn
    schedule = simulate(jobs, machine, rule, backfill, track_nodes=True)
    assert schedule.start.tolist() == simulate(jobs, machine, rule, backfill).start.tolist()
    assert (schedule.start >= jobs.submit).all()
    assert [len(held) for held in schedule.held] == jobs.nodes.tolist()
    for node in range(machine.nodes):
        users = sorted(
            (schedule.start[job], schedule.start[job] + jobs.run[job])
            for job, held in enumerate(schedule.held)
            if node in held
        )
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(users))


@settings(max_examples=100, deadline=None)
@given(windows(), st.sampled_from(STEPPED))
def test_never_uses_more_than_there_is(drawn, backfill) -> None:
    jobs, machine = drawn
    curve = usage(simulate(jobs, machine, "fcfs", backfill))
    assert curve["procs"].max() <= machine.processors
    assert curve["procs"].iloc[-1] == 0


def test_choosing_blocks_until_the_job_fits() -> None:
    jobs = jobs_from([(0, 10, 10, 6), (1, 100, 100, 8), (2, 5, 5, 2)])
    simulation = BlockingSimulation(jobs, Machine(8, 8), backfill=False)
    assert simulation.choose(0) == [0]
    assert (simulation.clock, simulation.queue) == (1, [1])
    assert simulation.choose(1) == [1]
    assert simulation.queue == [2]  # arrived while job 1 waited
    with pytest.raises(ValueError, match="job 1 does not wait"):
        simulation.choose(1)
    assert simulation.choose(2) == [2]
    assert simulation.done
    assert simulation.start == [0, 10, 110]


def test_backfills_only_what_ends_before_the_shadow_time() -> None:
    rows = [(0, 10, 10, 6), (1, 100, 100, 8), (2, 5, 5, 2), (2, 5, 8, 2)]
    jobs, machine = jobs_from(rows), Machine(8, 8)
    assert simulate(jobs, machine, "fcfs", "legacy").start.tolist() == [0, 10, 2, 110]  # 2 + 8 is not before 10
    assert simulate(jobs_from([*rows[:2], rows[3]]), machine, "fcfs", "easy").start.tolist() == [
        0,
        10,
        2,
    ]  # but not after it


def test_a_job_of_unknown_request_may_start_at_the_shadow_time() -> None:
    jobs, machine = jobs_from([(0, 4, 3, 3), (0, 1, 1, 6), (3, 1, -1, 1)]), Machine(8, 8)
    found = simulate(jobs, machine, "f1", "legacy").start.tolist()
    assert found == plain_starts(jobs, machine, "f1", "legacy") == [0, 4, 3]  # 3 - 1 is before 3


def test_kills_at_the_requested_time_where_asked() -> None:
    jobs, machine = jobs_from([(0, 10, 4, 8), (0, 3, -1, 8)]), Machine(8, 8)
    kept = simulate(jobs, machine, "fcfs")
    killed = simulate(jobs, machine, "fcfs", kill=True)
    assert (kept.start.tolist(), killed.start.tolist()) == ([0, 10], [0, 4])
    assert killed.jobs.run.tolist() == [4, 3]
    assert isinstance(killed, Schedule)
