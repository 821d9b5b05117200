"""Observations are what the layouts say, restated here number by number, and the rows are chosen as published."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log, log10, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, stepper_on, windows

from schedlab.config.errors import UserError
from schedlab.studies.batch.env.layouts import Layout, Scales, fixed_columns, layout_of
from schedlab.studies.batch.env.observe import EMPTY
from schedlab.studies.batch.env.settings import EnvironmentSettings
from schedlab.studies.batch.jobs import Machine
from schedlab.studies.batch.metrics import job_table
from schedlab.studies.batch.rules import priority
from schedlab.studies.batch.scenario import STEPPED
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.simulator.stepper import Stepper


def rlscheduler_row(stepper: Stepper, job: int) -> list[float]:
    jobs, top, clock = stepper.task.jobs, 1 - 1e-5, stepper.windows.clock[0, 0]
    names = {"memory": jobs.memory, "user": jobs.user, "group": jobs.group, "executable": jobs.executable}
    return [
        min((clock - jobs.submit[job]) / 43200, top),
        min(jobs.requested[job] / jobs.run.max(), top),
        min(jobs.procs[job] / jobs.procs.max(), top),
        *(1.0 if values[job] == -1 else min(values[job] / max(values.max(), 1e-300), top) for values in names.values()),
        top if jobs.nodes[job] <= stepper.windows.size[0, 1] else 1e-5,
    ]


def dissertation_row(stepper: Stepper, job: int, oracle: bool) -> list[float]:
    jobs, top, clock = stepper.task.jobs, 1 - 1e-6, stepper.windows.clock[0, 0]
    names = (jobs.memory, jobs.user, jobs.group)
    return [
        min(jobs.submit[job] / max(jobs.submit.max(), 1e-300), top),
        min((clock - jobs.submit[job]) / 43200, top),
        min(jobs.requested[job] / jobs.run.max(), top),
        min((jobs.run if oracle else jobs.requested)[job] / jobs.run.max(), top),
        min(jobs.procs[job] / jobs.procs.max(), top),
        *(1.0 if values[job] == -1 else min(values[job] / max(values.max(), 1e-300), top) for values in names),
        top if jobs.nodes[job] <= stepper.windows.size[0, 1] else 1e-6,
        1.0,
    ]


def running(stepper: Stepper) -> list[tuple[float, int]]:
    """(seconds until the end as requested, nodes) of running jobs, earliest first."""
    windows, jobs = stepper.windows, stepper.task.jobs
    places = windows.by_request[0, : windows.size[0, 0]]
    return [(max(windows.expected[0, job] - windows.clock[0, 0], 1.0), jobs.nodes[job]) for job in places]


def features_row(stepper: Stepper, job: int) -> list[float]:
    jobs, clock = stepper.task.jobs, stepper.windows.clock[0, 0]
    request = jobs.requested[job] if jobs.requested[job] > 0 else 0.1
    share, wait, free, delay = (
        jobs.procs[job] / stepper.task.machine.processors,
        clock - jobs.submit[job],
        stepper.windows.size[0, 1],
        0.0,
    )
    fits = jobs.nodes[job] <= free
    for left, nodes in running(stepper):
        if free < jobs.nodes[job]:
            free, delay = free + nodes, left
    return [
        log(request) / 10,
        log(jobs.procs[job]) / 5,
        share,
        share * log(request) / 10,
        share * sqrt(request) / 100,
        log(1 + wait) / 10,
        log(1 + wait / request) / 5,
        min(wait / 86400, 3),
        float(fits),
        log(1 + delay) / 10,
        1.0,
    ]


def shortlist_row(stepper: Stepper, job: int) -> list[float]:
    jobs, machine, request = stepper.task.jobs, stepper.task.machine, stepper.task.jobs.requested[job]
    request, wait = (request if request > 0 else 0.1), stepper.windows.clock[0, 0] - jobs.submit[job]
    procs, fits, log_delay = jobs.procs[job], *features_row(stepper, job)[8:10]
    found = [log(1 + request) / 14, log(1 + procs) / log(1 + machine.processors), procs / machine.processors]
    return [*found, log(1 + wait) / 14, min(log(1 + wait / request) / 10, 1), fits, log_delay * 10 / 14, 1.0]


def features_cluster(stepper: Stepper, quantiles: int) -> list[float]:
    nodes, free, ends = stepper.task.machine.nodes, int(stepper.windows.size[0, 1]), running(stepper)
    found = [free / nodes]
    for step in range(1, quantiles + 1):
        place = ceil(step * len(ends) / quantiles)
        found += (
            [log(1 + ends[place - 1][0]) / 10, (free + sum(taken for _, taken in ends[:place])) / nodes]
            if ends
            else [0.0, 1.0]
        )
    return found


def walk(stepper: Stepper, choices: list[int]):
    """Yield at each decision, and then choose."""
    for choice in choices:
        if stepper.ended[0]:
            return
        yield (
            stepper.layout.split(stepper.observations[0]),
            stepper.episodes.rows[0, : stepper.episodes.found[0]].tolist(),
        )
        stepper.step(np.array([choice % int(stepper.episodes.found[0])]))


steps = st.lists(st.integers(0, 30), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(windows(), st.sampled_from(STEPPED), steps)
def test_features(drawn, backfill, choices) -> None:
    stepper = stepper_on(*drawn, backfill, quantiles=3)
    for (rows, cluster), jobs in walk(stepper, choices):
        np.testing.assert_allclose(
            rows[: len(jobs)], [features_row(stepper, job) for job in jobs], rtol=1e-6, atol=1e-7
        )
        assert not rows[len(jobs) :].any()
        np.testing.assert_allclose(cluster, features_cluster(stepper, 3), rtol=1e-6, atol=1e-7)
        assert stepper.masks[0].tolist() == [True] * len(jobs) + [False] * (128 - len(jobs))


@settings(max_examples=60, deadline=None)
@given(windows(), st.sampled_from(STEPPED), st.sampled_from(["smallest_area", "fcfs", "f1"]), st.integers(1, 5), steps)
def test_shortlist(drawn, backfill, order, shown, choices) -> None:
    stepper = stepper_on(*drawn, backfill, layout="shortlist", rows=shown, order=order, quantiles=3)
    whole = stepper_on(*drawn, backfill, quantiles=3)
    rank = priority(order, drawn[0]).ranks()
    for choice in choices:
        if stepper.ended[0]:
            return
        offered = sorted(whole.episodes.rows[0, : whole.episodes.found[0]].tolist(), key=rank.__getitem__)
        jobs, (rows, cluster) = offered[:shown], stepper.layout.split(stepper.observations[0])
        assert stepper.episodes.rows[0].tolist() == jobs + [EMPTY] * (shown - len(jobs))
        assert stepper.masks[0].tolist() == [True] * len(jobs) + [False] * (shown - len(jobs))
        np.testing.assert_allclose(
            rows[: len(jobs)], [shortlist_row(stepper, job) for job in jobs], rtol=1e-6, atol=1e-7
        )
        assert not rows[len(jobs) :].any()
        machine = features_cluster(stepper, 3)
        machine[1::2] = [value * 10 / 14 for value in machine[1::2]]
        expected = [*machine, log(1 + stepper.infos()["waiting"][0]) / 10]
        np.testing.assert_allclose(cluster, expected, rtol=1e-6, atol=1e-7)
        row = choice % len(jobs)
        stepper.step(np.array([row]))
        whole.step(np.array([whole.episodes.rows[0].tolist().index(jobs[row])]))


@settings(max_examples=60, deadline=None)
@given(windows(), st.booleans())
def test_choosing_what_the_plan_says_is_the_planner(drawn, oracle) -> None:
    jobs, machine = drawn
    stepper = stepper_on(jobs, machine, "none", plan=True, oracle_runtime=oracle, quantiles=2)
    while not stepper.ended[0]:
        rows, waiting = (
            stepper.layout.split(stepper.observations[0])[0],
            stepper.episodes.rows[0, : stepper.episodes.found[0]],
        )
        score = [log10(0.001 + stepper.episodes.excess[0, job]) / 3 + 1 for job in waiting]
        expected = np.stack([score, stepper.episodes.excess[0, waiting]], axis=1)
        np.testing.assert_allclose(rows[: len(waiting), -2:], expected, rtol=1e-6, atol=1e-6)
        assert min(score) == pytest.approx(0.0)
        np.testing.assert_allclose(
            rows[: len(waiting), :11], [features_row(stepper, job) for job in waiting], rtol=1e-6, atol=1e-7
        )
        assert not rows[len(waiting) :].any()
        stepper.step(np.array([int(np.argmin(score))]))
    assert stepper.schedule(0).start.tolist() == simulate(jobs, machine, "planner").start.tolist()


def test_plans_have_columns_in_the_layout_features_alone() -> None:
    assert layout_of(EnvironmentSettings(plan=True), Machine(9, 9)).columns[-3:] == ("job", "plan_log", "plan")
    with pytest.raises(UserError, match=r"environment\.plan"):
        layout_of(EnvironmentSettings(plan=True, layout="rlscheduler"), Machine(9, 9))


@settings(max_examples=60, deadline=None)
@given(windows(), st.booleans(), st.booleans(), steps)
def test_rlscheduler(drawn, backfill, noop, choices) -> None:
    stepper = stepper_on(*drawn, "legacy" if backfill else "none", layout="rlscheduler", noop=noop)
    assert stepper.layout.size == 1024
    for (rows, cluster), jobs in walk(stepper, choices):
        assert cluster.size == 0
        np.testing.assert_allclose(
            rows[: len(jobs)], [rlscheduler_row(stepper, job) for job in jobs], rtol=1e-6, atol=1e-9
        )
        arrivals = stepper.windows.counts[0, 0] < len(drawn[0])
        skip = [[1.0] * 7 + [0.0 if arrivals else 1.0]] if noop else []
        np.testing.assert_array_equal(
            rows[len(jobs) :], [*skip, *([[0.0, *[1.0] * 6, 0.0]] * (128 - len(jobs) - len(skip)))]
        )
        assert stepper.masks[0].sum() == len(jobs) + (noop and arrivals)


@settings(max_examples=60, deadline=None)
@given(windows(), st.sampled_from(STEPPED), st.booleans(), steps)
def test_fairness_of_rlscheduler(drawn, backfill, noop, choices) -> None:
    jobs, machine = drawn
    users = np.where(jobs.user == 0, -1, jobs.user)
    jobs, values = replace(jobs, user=users), {"layout": "rlscheduler", "noop": noop}
    stepper, plain = (
        stepper_on(jobs, machine, backfill, fairness=True, **values),
        stepper_on(jobs, machine, backfill, **values),
    )
    assert stepper.layout.columns == (*plain.layout.columns[:-1], "fairness", "fits")
    for ((rows, _), jobs), ((others, _), _) in zip(walk(stepper, choices), walk(plain, choices), strict=True):
        known = stepper.layout.columns.index("fairness")
        np.testing.assert_array_equal(np.delete(rows, known, axis=1), others)
        table = job_table(stepper.schedule(0).of_started())
        means = table.groupby("user")["bsld"].mean()
        fair = [1 - means[one] / means.max() if one in means.index and one >= 0 else 1.0 for one in users[jobs]]
        np.testing.assert_allclose(rows[: len(jobs), known], fair, rtol=1e-6, atol=1e-6)
        assert (rows[len(jobs) :, known] == 1).all()


@settings(max_examples=60, deadline=None)
@given(windows(), st.booleans(), st.booleans(), steps)
def test_dissertation(drawn, backfill, oracle, choices) -> None:
    jobs, machine = drawn
    stepper = stepper_on(jobs, machine, "legacy" if backfill else "none", layout="dissertation", oracle_runtime=oracle)
    assert stepper.layout.size == 1280 + machine.nodes
    for (rows, cluster), waiting in walk(stepper, choices):
        expected = [dissertation_row(stepper, job, oracle) for job in waiting]
        np.testing.assert_allclose(rows[: len(waiting)], expected, rtol=1e-6, atol=1e-9)
        assert rows[len(waiting)].tolist() == [-1.0] * 8 + [1.0, 1.0]
        assert (rows[len(waiting) + 1 :] == [-1.0] * 8 + [0.0, 0.0]).all()
        now, started = stepper.windows.clock[0, 0], stepper.schedule(0)
        for node in range(machine.nodes):
            on = [job for job, held in enumerate(started.held) if started.start[job] <= now and node in held]
            busy = [job for job in on if stepper.windows.owner[0, node] == job]
            number = jobs.job_id[busy[0]] if busy else -1
            assert cluster[node] == pytest.approx(max(number / jobs.job_id.max(), -1.0))


def test_ids_of_the_jobs_on_the_nodes() -> None:
    stepper = stepper_on(
        jobs_from([(0, 9, 9, 3), (1, 9, 9, 2), (2, 9, 9, 1)]), Machine(8, 8), "none", layout="dissertation"
    )
    stepper.step(np.array([0]))
    stepper.step(np.array([0]))
    np.testing.assert_allclose(
        stepper.layout.split(stepper.observations[0])[1], [1 / 3] * 3 + [2 / 3] * 2 + [-1 / 3] * 3, rtol=1e-6
    )


def long_queue() -> Stepper:
    draws = np.random.default_rng(3)
    rows = [(1, 5, int(draws.integers(1, 50)), int(draws.integers(1, 9))) for _ in range(200)]
    return jobs_from([(0, 5, 5, 8), *rows])


def in_turn(orders: list[list[int]]) -> list[int]:
    """The jobs of several orders in turn, each once, the first 128."""
    found: list[int] = []
    for jobs in zip(*orders, strict=True):
        found += [job for number, job in enumerate(jobs) if job not in found and job not in jobs[:number]]
    return found[:128]


def all_arrived(stepper: Stepper) -> Stepper:
    """Start the job that fills the machine and have one job wait for it, so that all arrive."""
    stepper.step(np.array([0]))
    stepper.step(np.array([0]))
    return stepper


@pytest.mark.parametrize(
    "visible", [("mixed", ("fcfs", "sjf", "smallest", "f1")), ("rlscheduler", ("sjf", "smallest"))]
)
def test_a_longer_queue_is_cut_by_rules_in_turn(visible) -> None:
    name, rules = visible
    jobs = long_queue()
    stepper = all_arrived(stepper_on(jobs, Machine(8, 8), "none", visible=name))
    waits = np.flatnonzero(stepper.windows.waits[0]).tolist()
    assert len(waits) == 199
    orders = [sorted(waits, key=priority(rule, jobs).ranks().tolist().__getitem__) for rule in rules]
    assert stepper.episodes.rows[0].tolist() == in_turn(orders)
    assert stepper.masks[0].all()


def test_the_dissertation_adds_a_random_order() -> None:
    jobs = long_queue()
    settings = {"layout": "dissertation"}
    stepper, same = (all_arrived(stepper_on(jobs, Machine(8, 8), "none", **settings)) for _ in range(2))
    rows = stepper.episodes.rows[0].tolist()
    assert rows == same.episodes.rows[0].tolist()
    assert len(set(rows)) == 128
    waits = np.flatnonzero(stepper.windows.waits[0]).tolist()
    orders = [
        sorted(waits, key=priority(rule, jobs).ranks().tolist().__getitem__) for rule in ("f1", "f2", "sjf", "smallest")
    ]
    shuffled = stepper.episodes.orders[0, 4, : len(waits)].tolist()
    assert sorted(shuffled) == waits != shuffled
    assert rows == in_turn([*orders, shuffled])


def test_oracle_run_times_are_off_by_default_and_have_their_place() -> None:
    machine = Machine(8, 8)
    assert layout_of(EnvironmentSettings(oracle_runtime=True), machine).columns[-1] == "log_run"
    stepper = stepper_on(jobs_from([(0, 100, 7, 1)]), machine, "none", oracle_runtime=True)
    rows, _ = stepper.layout.split(stepper.observations[0])
    assert rows[0, [0, -1]] == pytest.approx([log(7) / 10, log(100) / 10])
    with pytest.raises(UserError, match=r"environment\.oracle_runtime"):
        layout_of(EnvironmentSettings(layout="rlscheduler", oracle_runtime=True), machine)


def test_what_the_published_layouts_divide_by() -> None:
    maxima = {
        "run": 9,
        "last_submit": 8,
        "procs": 7,
        "memory_requested": 6,
        "user": 5,
        "group": 4,
        "executable": 3,
        "job_id": 2,
    }
    assert Scales.published(maxima) == Scales(9, 8, 7, 6, 5, 4, 3, 2)
    jobs = jobs_from([(0, 3, 5, 2), (4, 9, 5, 1)])
    assert Scales.of(jobs) == Scales(9, 4, 2, 100, 2, 1, 1, 2)
    assert Scales.of(jobs.take(slice(0, 1))).run == 3


@pytest.mark.parametrize("name", ["rlscheduler", "dissertation"])
def test_a_missing_column_is_no_division_by_0(name: str) -> None:
    machine, jobs = Machine(4, 4), jobs_from([(0, 3, 5, 2), (0, 9, -1, 1)], Machine(4, 4))
    layout = layout_of(EnvironmentSettings(layout=name), machine)
    with np.errstate(all="raise"):
        rows = fixed_columns(layout, jobs, machine, Scales(), oracle=False)
    assert np.isfinite(rows).all() and (np.abs(rows) <= 1).all()
    assert (rows[:, 0] == 0).all()  # request, submit


def test_layouts_split_many_observations_at_once() -> None:
    layout = Layout("features", ("a", "b"), 3)
    rows, cluster = layout.split(np.arange(2 * layout.size).reshape(2, -1))
    assert (rows.shape, cluster.shape, rows[1, 0, 0], cluster[0].tolist()) == (
        (2, 128, 2),
        (2, 3),
        259,
        [256, 257, 258],
    )
    assert layout.column(np.arange(layout.size), "b")[:3].tolist() == [1, 3, 5]
    with pytest.raises(UserError, match="layout features"):
        layout.column(np.zeros(layout.size), "c")
