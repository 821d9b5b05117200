"""Many jobs with limits: how they are drawn, what searches use, and what they find."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from schedlab.config.contract import Budget, Curve, LearnPaths, Phase, PolicySpec
from schedlab.config.plugins import load_object
from schedlab.studies.cloud.example import STEP, example_scenario
from schedlab.studies.cloud.jobs.problem import MOST_ABOVE, JobsProblem
from schedlab.studies.cloud.jobs.settings import SEARCHES
from schedlab.studies.cloud.jobs.trials import WITHIN, Trials, course_of
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.rules.oracle import kept_objectives, totals_of_staying
from schedlab.studies.cloud.scenario import check

BASE = {"constraints": {"keep": ["time", "cost"], "masked": False}, "preferences": ["balanced"]}
SLOW = {"name": "slow", "step": STEP | {"b_c": 5e-3}}


@cache
def jobs(drawn: int = 0, group: str = "drawn") -> JobsProblem:
    """The example and a slower job, or jobs drawn around them."""
    return JobsProblem(example_scenario(**BASE, family={"others": {"slow": SLOW}, "drawn": drawn, "group": group}))


def searched(name: str, trainings: int = 40, unit: int = 0, seed: int = 3):
    """The ledger of a search on one of the two jobs."""
    here = jobs()
    unit = here.units("test")[unit]
    search = load_object(SEARCHES[name])({"trainings": trainings}, here, seed)
    search.reset(unit)
    return search.search(here.jobs[unit.block], "balanced")


def test_recorded_jobs_are_units_and_drawn_ones_differ_by_group_and_number_alone():
    assert [unit.block for unit in jobs().units("test")] == ["example", "slow"]
    first, again, other = jobs(2).jobs, JobsProblem(jobs(2).scenario).jobs, jobs(2, "left-out").jobs
    step = lambda made, name: made[name].scenario.job.step  # noqa: E731
    assert step(first, "drawn-00") == step(again, "drawn-00") != step(first, "drawn-01")
    assert step(other, "left-out-00") != step(first, "drawn-00")


def test_both_limits_of_a_job_bind_and_can_be_kept():
    for problem in jobs().jobs.values():
        replay = problem.replay
        time, cost = totals_of_staying(replay)
        kept = kept_objectives(replay, weights_of("balanced"))
        assert np.isfinite(kept).any()
        assert (time > replay.sla.time_max).any() and (cost > replay.sla.cost_max).any()
        assert np.isfinite(kept).sum() < 0.5 * np.isfinite(time).sum()


def test_courses_end_with_the_totals_of_staying():
    replay = jobs().jobs["slow"].replay
    course, (time, cost) = course_of(replay), totals_of_staying(replay)
    fits = np.isfinite(time)
    assert course.time[-1][fits] == pytest.approx(time[fits]) and course.cost[-1][fits] == pytest.approx(cost[fits])
    assert not np.isfinite(course.time[-1][~fits]).any()


@pytest.mark.parametrize("name", ["search_random", "search_gaussian_process", "search_parzen"])
def test_a_search_counts_each_training_once_and_keeps_the_budget(name):
    trials = searched(name, 9)
    assert trials.used == 9 == len(set(trials.numbers))
    assert trials.recommended == trials.numbers[int(np.argmin(trials.values))]


def test_random_search_over_all_allocations_finds_the_best():
    trials = searched("search_random", 10_000)
    assert trials.used == len(trials.fits)
    assert trials.points[-1][1] == pytest.approx(0.0, abs=1e-9)
    needed, found = trials.needed()
    assert found and 1 <= needed <= trials.used


def test_halving_counts_parts_of_trainings_as_their_share():
    trials = searched("search_halving", 8)
    # 27 allocations for 2 of 20 intervals, 9 of them to 6, 3 to the end: 2.7 + 1.8 + 2.1 trainings
    assert trials.used == pytest.approx(6.6)
    assert len(trials.numbers) == 3
    assert searched("search_halving", 2).used == 0.0, "a bracket that does not fit the budget does not begin"


def test_the_expected_objective_of_a_part_is_that_of_the_whole_at_its_end():
    trials = searched("search_known_model")
    number, whole = int(trials.fits[5]), trials.replay.intervals
    assert trials.part(number, 0, whole) == pytest.approx(trials.penalised[number])
    assert trials.used == pytest.approx(1.0)


def test_the_model_itself_needs_no_training_and_a_fitted_one_few():
    known, fitted = searched("search_known_model"), searched("search_fitted", unit=1)
    assert known.needed() == (0.0, True) and known.points[-1][1] == pytest.approx(0.0, abs=1e-12)
    needed, found = fitted.needed()
    assert found and 0 < needed < 4 and fitted.used == pytest.approx(len(fitted.numbers) + 0.25, abs=0.1)


def test_what_breaks_a_limit_is_not_found_however_low_its_objective():
    trials = Trials(jobs().jobs["example"], "balanced", 10.0)
    breaks = np.flatnonzero(np.isfinite(trials.objective) & ~trials.kept)
    trials.train(int(breaks[trials.objective[breaks].argmin()]))
    assert trials.needed() == (1.0, False)


def test_scores_of_a_search_and_of_a_rule_on_a_job():
    here = jobs()
    unit = here.units("test")[1]
    scores = here.rollout(load_object(SEARCHES["search_known_model"])({}, here, 0), unit).scores
    assert scores["found"] == scores["limits_kept"] == 1.0 and scores["trainings_needed"] == 0.0
    search = load_object(SEARCHES["search_random"])({"trainings": 1}, here, 0)
    poor = here.rollout(search, unit).scores
    assert search.budget == Budget(trainings=1)
    assert poor["trainings_used"] == 1.0 and poor["above_best"] <= MOST_ABOVE
    assert poor["found"] == float(poor["above_best"] <= WITHIN)


def test_reinforce_counts_its_episodes_as_trainings():
    trials = searched("search_reinforce", 128)
    assert trials.used == 128.0 and trials.points


def test_one_network_learns_on_all_jobs_of_a_scenario_and_acts_on_others(tmp_path):
    here, others, points = jobs(2), jobs(2, "left-out"), []
    spec = PolicySpec("all", "learned", "reinforce", {"record_every": 1}, train_on=(Phase(("jobs",), 128),))
    note: Curve = lambda metric, value, **place: points.append(place["scenario"])  # noqa: E731
    budget = ReinforceLearner().learn({"jobs": here}, spec, 0, LearnPaths(None, tmp_path / "p.zip", tmp_path), note)
    assert budget.trainings == 128 and set(points) == {"jobs"}
    policy = ReinforceLearner().load(tmp_path / "p.zip", others)
    scores = others.rollout(policy, others.units("test")[0]).scores
    assert scores["trainings_used"] == 0.0 and 0.0 <= scores["above_best"] + 1e-9 <= MOST_ABOVE + 1e-9


def test_a_family_needs_limits_and_pinned_steps():
    free = example_scenario(family={})
    assert any("constraints.keep" in str(error) for error in check(free))
    logs = example_scenario(**BASE, family={"others": {"logged": {"name": "logged", "logs": ["resources/x.csv"]}}})
    assert any("family.others.logged" in str(error) for error in check(logs))
