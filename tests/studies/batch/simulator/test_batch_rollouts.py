"""Rollouts: predictions come from ended jobs, a rollout costs what the simulation does, the cheapest try is taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from, windows

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.learning.checkpoints import write_checkpoint
from schedlab.studies.batch.commands.policies import named_policy
from schedlab.studies.batch.jobs import SHORT, Jobs, Machine
from schedlab.studies.batch.learners.policy_files import KIND, load_priority, save_priority
from schedlab.studies.batch.problem import RULE_MAKERS, BatchProblem
from schedlab.studies.batch.rules import PREDICTED, positive_request
from schedlab.studies.batch.scenario import BatchScenario
from schedlab.studies.batch.simulator.predictions import CLASSES, KEEP, History, Past, Prior, predict, predictor_of
from schedlab.studies.batch.simulator.rollout_kernel import NOBODY, Future, RunningEnds, blocking_cost, easy_cost
from schedlab.studies.batch.simulator.rollouts import BASE_FEATURES, BASES, Arrivals, RolloutPolicy, base_coefficients
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.studies.batch.windows import first_job
from schedlab.workloads.prepare import make_trace

EXACT = Prior(np.zeros(CLASSES), np.ones(CLASSES))  # jobs run as long as they request


def exact(jobs: Jobs) -> Jobs:
    """The jobs of users that nobody knows, as long as they request."""
    request = np.maximum(jobs.run, 1.0)
    return replace(jobs, run=request, requested=request, user=np.full(len(jobs), -1))


def no_arrivals() -> Arrivals:
    return Arrivals(*(np.empty((1, 0)) for _ in range(6)))


def policy(*names: str, samples: int = 1, prior: Prior = EXACT, arrivals: Arrivals | None = None) -> RolloutPolicy:
    return RolloutPolicy(
        np.array([base_coefficients(name) for name in names]), prior, arrivals or no_arrivals(), samples
    )


def drawn_past(seed: int, count: int = 60) -> Past:
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.integers(0, 30, count))
    rows = zip(
        submit.tolist(),
        rng.integers(1, 90, count).tolist(),
        rng.integers(1, 200, count).tolist(),
        [1] * count,
        strict=True,
    )
    jobs = jobs_from(list(rows))
    return Past(jobs, np.where(rng.random(count) < 0.8, jobs.submit + rng.integers(0, 60, count) + jobs.run, np.nan))


def plain_sums(past: Past, user: int, time: float) -> list[float]:
    """Ended jobs of a user, the last one counting most."""
    jobs, total = past.jobs, [0.0, 0.0, 0.0]
    ended = [job for job in range(len(jobs)) if jobs.user[job] == user and past.ended[job] <= time]
    for job in sorted(ended, key=lambda job: past.ended[job]):
        numbers = (1.0, np.log(jobs.run[job] / jobs.requested[job]), 1.0 / max(jobs.run[job], SHORT))
        total = [KEEP * old + new for old, new in zip(total, numbers, strict=True)]
    return total


@pytest.mark.parametrize("seed", range(5))
def test_only_ended_jobs_of_the_user_are_known(seed) -> None:
    past = drawn_past(seed)
    history = past.history(30, 20)
    for job in range(20):
        user = past.jobs.user[30 + job]
        found = [float(column[history.user[job]]) for column in history.sums]
        assert found == pytest.approx(plain_sums(past, user, past.jobs.submit[30]))


def test_a_prediction_is_the_average_of_prior_and_history() -> None:
    past = drawn_past(1)
    prior = Prior.of(past.jobs)
    predictor = predictor_of(prior, past.jobs.take(slice(30, 50)), past.history(30, 20))
    for job in range(20):
        predict(predictor, job)
        place = 30 + job
        count, log_ratio, weight = plain_sums(past, past.jobs.user[place], past.jobs.submit[30])
        request = past.jobs.requested[place : place + 1]
        expected = request[0] * np.exp((prior.log_ratios(request)[0] + log_ratio) / (1 + count))
        assert predictor.run[job] == pytest.approx(expected)
        assert predictor.weight[job] == pytest.approx((prior.weights(request)[0] + weight) / (1 + count))


def test_jobs_without_a_user_or_an_end_teach_nothing() -> None:
    jobs = jobs_from([(0, 5, 50, 1), (10, 5, 50, 1), (20, 5, 50, 1)])
    unknown = Past(Jobs(*{**vars(jobs), "user": np.full(3, -1)}.values()), np.array([5.0, 15.0, 25.0]))
    assert unknown.history(2, 1).user.tolist() == [-1]
    assert Past(jobs, np.full(3, np.nan)).history(2, 1).sums.number.tolist() == [0.0]


def test_the_prior_of_known_run_times_is_the_request() -> None:
    rng = np.random.default_rng(0)
    run = rng.integers(1, 100_000, 300).astype(float)
    jobs = jobs_from([(i, value, value, 1) for i, value in enumerate(run)])
    prior = Prior.of(jobs)
    assert prior.log_ratios(run) == pytest.approx(np.zeros(300))
    assert prior.weights(run) == pytest.approx(1 / np.maximum(run, SHORT))


def played(jobs: Jobs, machine: Machine, cost, waiting: int) -> float:
    """What a rollout of the shortest job first costs from the begin of a window on."""
    count = len(jobs)
    weight = 1 / np.arange(2.0, count + 2)
    future = Future(jobs.submit, jobs.nodes, jobs.run, jobs.requested, jobs.run, weight, positive_request(jobs))
    order = np.argsort(future.key[:waiting], kind="stable")
    room = RunningEnds(np.empty(count), np.empty(count), np.empty(count, dtype=np.int64))
    head = order[0] if cost is blocking_cost else NOBODY
    return cost(future, order, head, jobs.submit[0], machine.nodes, 0, room, np.empty(count, dtype=np.int64))


@settings(max_examples=60, deadline=None)
@given(windows())
def test_a_rollout_costs_what_the_simulation_costs(window) -> None:
    jobs, machine = window
    weight = 1 / np.arange(2.0, len(jobs) + 2)
    for cost, mode, waiting in (
        (blocking_cost, "none", 1),
        (easy_cost, "easy", int((jobs.submit == jobs.submit[0]).sum())),
    ):
        wait = simulate(jobs, machine, "sjf", mode).start - jobs.submit
        assert played(jobs, machine, cost, waiting) == pytest.approx(float((weight * wait).sum()))


@settings(max_examples=30, deadline=None)
@given(windows(), st.sampled_from(["none", "easy", "conservative", "legacy"]))
def test_a_base_that_decides_alone_is_its_rule(window, mode) -> None:
    jobs, machine = exact(window[0]), window[1]
    for name, rule in (("shortest", "sjf"), ("smallest", "smallest")):
        if name == "smallest" and machine.nodes != machine.processors:
            continue
        ours, theirs = simulate(jobs, machine, policy(name, samples=0), mode), simulate(jobs, machine, rule, mode)
        assert ours.start.tolist() == theirs.start.tolist()


def plan_cost(jobs: Jobs, machine: Machine, order: list[int], begin: float, ends: list[tuple[float, int]]) -> float:
    """Weighted waits of jobs that start in an order, each blocking."""
    free, time, cost, ends = machine.nodes - sum(nodes for _, nodes in ends), begin, 0.0, list(ends)
    for job in order:
        while free < jobs.nodes[job]:
            ends.sort()
            time, nodes = ends.pop(0)
            free += nodes
        free -= jobs.nodes[job]
        ends.append((time + jobs.run[job], jobs.nodes[job]))
        cost += (time - jobs.submit[job]) / max(jobs.run[job], SHORT)
    return cost


@pytest.mark.parametrize("seed", range(20))
def test_without_arrivals_the_cheapest_plan_begins(seed) -> None:
    rng = np.random.default_rng(seed)
    machine = Machine(8, 8)
    rows = [(0, 50, 8), *((when, int(rng.integers(5, 60)), int(rng.integers(1, 9))) for when in range(1, 9))]
    jobs = exact(jobs_from([(when, run, run, procs) for when, run, procs in rows], machine))
    names = ("shortest", "smallest")
    start = simulate(jobs, machine, policy(*names)).start
    # The first job takes the machine and the second is chosen; the rest arrives while both wait for time 50.
    plans = []
    for name in names:
        key = jobs.run if name == "shortest" else jobs.nodes
        order = sorted(range(2, 9), key=lambda job, key=key: (key[job], job))
        for head in order[:8]:
            rest = [job for job in order if job != head]
            plans.append((plan_cost(jobs, machine, [head, *rest], 50.0, [(50.0 + jobs.run[1], jobs.nodes[1])]), head))
    least = min(cost for cost, _ in plans)
    assert start[1] == 50.0
    assert {head for cost, head in plans if cost <= least * (1 + 1e-9)} & set(
        (2 + np.flatnonzero(start[2:] == start[2:].min())).tolist()
    )


def test_arrivals_change_what_is_done() -> None:
    """Three narrow jobs precede a wide one, unless short jobs are expected that would wait while the machine drains."""
    machine = Machine(4, 4)
    jobs = exact(
        jobs_from([(0, 10, 10, 4), (1, 10, 10, 4), (2, 90, 90, 4), *((3, 100, 100, 1) for _ in range(3))], machine)
    )
    short = Arrivals(*(np.full((1, 4), value) for value in (20.0, 0.25, 10.0, 10.0, 10.0, 0.1)))
    names = ("shortest", "smallest")
    assert simulate(jobs, machine, policy(*names)).start[2:].tolist() == [120.0, 20.0, 20.0, 20.0]
    assert simulate(jobs, machine, policy(*names, samples=2, arrivals=short)).start[2:].tolist() == [
        20.0,
        110.0,
        110.0,
        110.0,
    ]


def test_stretches_are_those_of_the_training_part() -> None:
    past = drawn_past(3)
    prior = Prior.of(past.jobs.take(slice(0, 40)))
    found = Arrivals.drawn(past, Machine(8, 8), prior, 40, (50, 6), np.random.default_rng(0))
    runs = [tuple(past.jobs.run[begin : begin + 6]) for begin in range(40 - 6)]
    assert {tuple(row) for row in found.run} <= set(runs)
    run, weight = past.predictions(prior, 40)
    for row, predicted, cost in zip(found.run, found.predicted, found.weight, strict=True):
        begin = runs.index(tuple(row))
        assert (
            predicted.tolist() == run[begin : begin + 6].tolist()
            and cost.tolist() == weight[begin : begin + 6].tolist()
        )


def test_a_file_holds_the_whole_policy(tmp_path) -> None:
    past = drawn_past(4)
    prior = Prior.of(past.jobs)
    arrivals = Arrivals.drawn(past, Machine(8, 8), prior, 60, (9, 3), np.random.default_rng(1))
    saved = policy("f1", "costly", samples=4, prior=prior, arrivals=arrivals)
    save_priority(tmp_path / "policy.zip", saved)
    loaded = load_priority(tmp_path / "policy.zip")
    assert loaded.samples == 4 and loaded.history is None
    for name, array in saved.arrays().items():
        assert loaded.arrays()[name].tolist() == array.tolist()
    jobs, machine = past.jobs.take(slice(20, 60)), Machine(8, 8)
    assert simulate(jobs, machine, loaded).start.tolist() == simulate(jobs, machine, saved).start.tolist()
    write_checkpoint(tmp_path / "other.zip", {"kind": KIND, "samples": 4}, {"bases": np.zeros((1, 2))})
    with pytest.raises(UserError, match=r"other\.zip"):
        load_priority(tmp_path / "other.zip")


def test_bases_name_features() -> None:
    for name, coefficients in BASES.items():
        assert set(coefficients) <= set(BASE_FEATURES)
        assert np.count_nonzero(base_coefficients(name)) == len(coefficients)


def test_history_counts_users_of_the_window_alone() -> None:
    jobs = jobs_from([(0, 1, 1, 1), (1, 1, 1, 1), (2, 1, 1, 1), (3, 1, 1, 1)])
    history = History.empty(jobs)
    assert len(set(history.user.tolist())) == len(set(jobs.user.tolist()))
    assert history.sums.number.tolist() == [0.0] * len(history.sums.number)


@pytest.mark.parametrize("name", PREDICTED)
def test_an_untrained_base_over_predictions_is_a_rule_of_a_scenario(name) -> None:
    """It decides by a prior of the training part and by users' ended jobs; nothing is searched for or rolled out."""
    workload = {"name": "drawn", "source": "lublin", "lublin": {"jobs": 600, "processors": 32, "load": 1.5, "users": 6}}
    workload["lublin"]["estimates"] = {"model": "menu"}
    made = validate(BatchScenario, {"name": "drawn", "seed": 1, "workload": workload, "windows": {"length": 60}})
    problem = BatchProblem(made, make_trace(made.workload)[0])
    rule, unit = RULE_MAKERS[f"{name}_predicted"]({}, problem, 0), problem.units("test")[1]
    assert not rule.rule.samples and rule.rule.bases.tolist() == [base_coefficients(name).tolist()]
    assert rule.rule.prior.log_ratio.tolist() == Prior.of(problem.jobs.take(slice(0, 300))).log_ratio.tolist()
    schedule, start = problem.run(rule, unit), first_job(unit)
    jobs, past = problem.jobs.take(slice(start, start + 60)), problem.past
    assert schedule.start.tolist() == simulate(jobs, problem.machine, rule.rule.at(past, start, 60)).start.tolist()
    nobodys = replace(jobs, user=np.full(60, -1))
    assert (
        schedule.start.tolist() != simulate(nobodys, problem.machine, rule.rule).start.tolist()
    )  # users' ended jobs count
    by_name = named_policy(f"{name}_predicted", problem)
    assert problem.run(by_name, unit).start.tolist() == schedule.start.tolist()
