"""Deciding job by job gives what whole windows do under the same rule, and what the plain statement does for any."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, stepper_on, windows

from oracles.batch_plain import Blocking
from schedlab.studies.batch.jobs import Jobs, Machine, prefill
from schedlab.studies.batch.rules import RULES, priority
from schedlab.studies.batch.scenario import STEPPED
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.simulator.stepper import Stepper, most_nodes

rules = st.sampled_from(sorted(RULES))


def is_repeated(rule: str, jobs: Jobs, backfill: str) -> bool:
    """Whether a whole window repeats the published order of scores that are no numbers, which no score of a job has."""
    return rule == "f2" and bool((jobs.requested < 0).any()) and backfill in ("none", "legacy")


def follow(stepper: Stepper, score) -> list[float]:
    """Always choose the job of the lowest score; return the start times."""
    while not stepper.ended[0]:
        clock = stepper.windows.clock[0, 0]
        rows = [row for row in np.flatnonzero(stepper.masks[0]) if stepper.episodes.rows[0, row] >= 0]
        best = min(rows, key=lambda row: (score(stepper.episodes.rows[0, row], clock), stepper.episodes.rows[0, row]))
        stepper.step(np.array([best]))
    return stepper.schedule(0).start.tolist()


@settings(max_examples=100, deadline=None)
@given(windows(), rules, st.sampled_from(STEPPED), st.booleans())
def test_the_lowest_score_each_time_gives_the_starts_of_the_whole_window(drawn, rule, backfill, kill) -> None:
    jobs, machine = drawn
    found = priority(rule, jobs.killed_at_request() if kill else jobs)
    stepper = stepper_on(jobs, machine, backfill, kill=kill)
    if found.power == 0:
        stepper.windows.rank[0, : len(jobs)] = (
            found.ranks()
        )  # the published backfilling takes jobs of one submit time in this order
    elif backfill == "legacy":
        return
    assume(not is_repeated(rule, jobs, backfill))
    expected = simulate(jobs, machine, rule, backfill, kill=kill)
    assert follow(stepper, found.at) == expected.start.tolist()
    assert stepper.schedule(0).jobs.run.tolist() == expected.jobs.run.tolist()


@settings(max_examples=60, deadline=None)
@given(windows(), rules, st.sampled_from(["none", "easy", "conservative"]), st.data())
def test_on_a_warm_machine_too(drawn, rule, backfill, data) -> None:
    jobs, machine = drawn
    start = data.draw(st.integers(0, len(jobs) - 1))
    chosen = jobs.take(slice(start, None))
    before = prefill(jobs, machine, start, len(chosen), np.random.default_rng(7))
    scores = priority(rule, chosen)
    assume(not is_repeated(rule, chosen, backfill))
    found = follow(stepper_on(jobs, machine, backfill, start, warm_start=True), scores.at)
    assert found == simulate(chosen, machine, rule, backfill, prefill=before).start.tolist()


@settings(max_examples=100, deadline=None)
@given(windows(), rules, st.sampled_from([("easy", "fcfs"), ("easy", "area"), ("legacy", "area"), ("legacy", "fcfs")]))
def test_jobs_are_backfilled_in_the_order_that_is_asked_for(drawn, rule, mode) -> None:
    jobs, machine = drawn
    backfill, order = mode
    found = priority(rule, jobs)
    if mode == ("legacy", "fcfs"):
        assume(not found.power and not is_repeated(rule, jobs, backfill))
    stepper = stepper_on(jobs, machine, backfill, backfill_order=order)
    if found.power == 0:
        stepper.windows.rank[0, : len(jobs)] = found.ranks()
    assert follow(stepper, found.at) == simulate(jobs, machine, rule, backfill, backfill_order=order).start.tolist()


@settings(max_examples=60, deadline=None)
@given(windows(), rules, st.booleans())
def test_nodes_are_those_of_the_whole_window(drawn, rule, backfill) -> None:
    jobs, machine = drawn
    found, mode = priority(rule, jobs), "legacy" if backfill else "none"
    assume(not (found.power and backfill) and not is_repeated(rule, jobs, mode))
    stepper = stepper_on(jobs, machine, mode, track_nodes=True)
    stepper.windows.rank[0, : len(jobs)] = found.ranks() if found.power == 0 else 0
    follow(stepper, found.at)
    expected = simulate(jobs, machine, rule, mode, track_nodes=True)
    assert [held.tolist() for held in stepper.schedule(0).held] == [held.tolist() for held in expected.held]


@settings(max_examples=100, deadline=None)
@given(windows(), st.booleans(), st.lists(st.integers(-2, 30), min_size=1, max_size=60))
def test_any_choices_and_waits_give_what_the_plain_statement_gives(drawn, backfill, choices) -> None:
    jobs, machine = drawn
    plain = Blocking(jobs, machine, backfill=backfill)
    stepper = stepper_on(jobs, machine, "legacy" if backfill else "none", noop=True, noop_seconds=2.0)
    for choice in itertools.cycle([*choices, 0]):
        if plain.done:
            break
        waiting = sorted(plain.queue)
        rows = stepper.episodes.rows[0]
        assert rows[: len(waiting)].tolist() == waiting
        if choice < 0 and plain.may_wait:
            plain.wait(2.0)
            stepper.step(np.array([len(waiting)]))
        else:
            plain.choose(waiting[choice % len(waiting)])
            stepper.step(np.array([choice % len(waiting)]))
        assert stepper.windows.clock[0, 0] == plain.clock or plain.done
    assert stepper.ended[0]
    assert stepper.schedule(0).start.tolist() == plain.start


@settings(max_examples=100, deadline=None)
@given(windows(), st.sampled_from(["easy", "conservative"]), st.lists(st.integers(-2, 30), min_size=1, max_size=60))
def test_any_choices_of_a_textbook_mode_end_the_window(drawn, backfill, choices) -> None:
    jobs, machine = drawn
    stepper = stepper_on(jobs, machine, backfill, noop=True, noop_seconds=2.0, track_nodes=True)
    for choice in itertools.cycle([*choices, 0]):
        if stepper.ended[0]:
            break
        rows = np.flatnonzero(stepper.masks[0])
        assert stepper.masks[0, 0]  # some job may be chosen
        stepper.step(rows[[choice % len(rows) if choice < 0 else choice % int(stepper.episodes.found[0])]])
    schedule = stepper.schedule(0)
    assert (schedule.start >= jobs.submit).all()
    for node in range(machine.nodes):
        users = sorted(
            (schedule.start[job], schedule.start[job] + jobs.run[job])
            for job, held in enumerate(schedule.held)
            if node in held
        )
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(users))


def test_easy_offers_what_may_start_beside_the_head() -> None:
    jobs, machine = jobs_from([(0, 10, 10, 6), (0, 5, 5, 8), (0, 5, 5, 2), (0, 20, 20, 2)]), Machine(8, 8)
    stepper = stepper_on(jobs, machine, "easy")
    assert stepper.episodes.rows[0, :4].tolist() == [0, 1, 2, 3]
    stepper.step(np.array([0]))
    stepper.step(np.array([0]))  # job 1 does not fit: the head
    assert stepper.episodes.rows[0, :2].tolist() == [2, -1]  # job 3 would keep it from starting at 10
    stepper.step(np.array([0]))
    assert (
        stepper.windows.clock[0, 0] == 5
    )  # time went on: job 2 has ended, and job 3 may be chosen again, as a new head is
    assert stepper.episodes.rows[0, :3].tolist() == [1, 3, -1]


def test_the_published_noop_may_end_a_window_with_jobs_waiting() -> None:
    jobs, machine = jobs_from([(0, 10, 10, 8), (0, 5, 5, 8)]), Machine(8, 8)
    stepper = stepper_on(jobs, machine, "none", layout="dissertation", noop_ends=True)
    stepper.step(np.array([0]))
    for _ in range(2):
        assert not stepper.ended[0]
        stepper.step(np.array([127]))  # any row without a job: job 0 ends, then nothing is left to happen
    assert stepper.ended[0]
    assert math.isnan(stepper.schedule(0).start[1])
    mended = stepper_on(jobs, machine, "none", layout="dissertation")
    mended.step(np.array([0]))
    mended.step(np.array([127]))
    assert (
        mended.masks[0].sum() == 1
    )  # nothing runs or is to come: the row for waiting is masked, and choosing one is replaced
    mended.step(np.array([127]))
    assert (mended.ended[0], mended.info(0)["replaced"]) == (True, 1)


def test_most_nodes() -> None:
    jobs = jobs_from([(0, 1, 1, nodes) for nodes in (1, 5, 2, 7, 1)])
    assert [most_nodes(jobs, length) for length in (1, 2, 4, 5, 9)] == [7, 9, 15, 16, 16]
