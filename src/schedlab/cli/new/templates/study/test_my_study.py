"""Tests of the study; run `pytest` in this folder."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from my_study.problem import draw_jobs, load_problem
from my_study.rules import bound, oracle, smith


@pytest.fixture
def problem(tmp_path):
    """Five units of six jobs in each split."""
    draw_jobs({"seed": 1, "units": 5, "jobs": 6, "error": 0.5}, tmp_path / "jobs.json")
    return load_problem({"machines": 2}, {"jobs": tmp_path / "jobs.json"})


def mean_score(problem, make):
    """Return the mean score of a rule on the test units."""
    policy = make({}, problem, 0)
    return np.mean([problem.rollout(policy, unit).scores["weighted_completion"] for unit in problem.units("test")])


def test_the_environment_keeps_to_the_interface_of_gymnasium(problem):
    """Check spaces, resets and seeds with Gymnasium's own checker."""
    check_env(problem.env(problem.units("train")[0], 0), skip_render_check=True)


def test_the_oracle_lies_between_the_bound_and_the_rule(problem):
    """Compare mean scores; lower is better."""
    assert mean_score(problem, bound) <= mean_score(problem, oracle) <= mean_score(problem, smith)


def test_a_job_runs_on_one_machine_once(problem):
    """Check that each job runs once on one machine, and that no machine idles while jobs wait."""
    starts = problem.rollout(smith({}, problem, 0), problem.units("test")[0]).details["starts"]
    assert sorted(starts["job"]) == list(range(6))
    for _, jobs in starts.groupby("machine"):
        assert (jobs["start"].iloc[1:].to_numpy() == jobs["end"].iloc[:-1].to_numpy()).all()
