"""The rule `bayesian`: its expected improvement by hand, what it probes and pays, and when it stops."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("sklearn")

from small_problems import problem

from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.stages.policies import make_rule
from schedlab.studies.cloud.rules.bayesian import expected_improvement, predict
from schedlab.studies.cloud.study import STUDY


@pytest.fixture(scope="module")
def here():
    return problem(job={"epochs": 40.0})


def rule(here, seed: int = 0, **params):
    return make_rule(STUDY, PolicySpec("bayesian", "rule", "bayesian", params), here, seed)


def history(here, seed: int = 0, **params):
    return here.rollout(rule(here, seed, **params), here.units("test")[0]).details["allocation_history"]


def test_expected_improvement_by_hand():
    found = expected_improvement(np.array([1.0, 0.5, 2.0]), np.array([1.0, 0.0, 0.0]), 1.0)
    assert found == pytest.approx([1.0 / math.sqrt(2.0 * math.pi), 0.5, 0.0])


def test_the_process_goes_through_its_points_and_is_unsure_elsewhere():
    points, values = np.array([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [1.0, 1.0, 1.0]]), np.array([3.0, 1.0, 2.0])
    mean, spread = predict(points, values, np.array([[0.5, 0.5, 0.5], [0.0, 1.0, 0.0]]), 0)
    assert mean[0] == pytest.approx(1.0, abs=0.3) and spread[0] < spread[1]


def test_one_probe_is_the_start_and_the_job_stays(here):
    found = history(here, first=1, probes=1)
    assert set(found["action"]) == {13}


def test_it_stays_on_the_best_that_it_measured(here):
    found = history(here, first=3, probes=3, share=0.6)
    ended = tuple(found[["gpu_count", "cpu_count", "memory_gb"]].iloc[-1])
    seen = {tuple(row) for row in found[["gpu_count", "cpu_count", "memory_gb"]].to_numpy()[:-1].tolist()}
    assert ended in seen and list(found["action"])[-3:] == [13, 13, 13]
    policy = rule(here, first=3, probes=3, share=0.6)
    here.rollout(policy, here.units("test")[0])
    assert policy.settled and policy.tried == 3
    assert (
        policy.measured[policy.target] <= min(policy.measured.values()) * 1.1
    )  # the job's noise changes what is measured later


def test_it_probes_more_where_less_improvement_suffices(here):
    eager, content = rule(here, improvement=0.0, probes=8, share=0.9), rule(here, improvement=1.0, probes=8, share=0.9)
    for policy in (eager, content):
        here.rollout(policy, here.units("test")[0])
    assert content.tried == 3 < eager.tried


def test_it_differs_by_seed_and_not_by_run(here):
    first, again, other = (list(history(here, seed)["action"]) for seed in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_probes_end_with_their_share_of_the_job(here, share):
    policy = rule(here, share=share, improvement=0.0, probes=100)
    actions = list(here.rollout(policy, here.units("test")[0]).details["allocation_history"]["action"])
    budget = int(40 * share)
    assert policy.probing == budget and len(policy.measured) > 1
    assert actions[2 * budget :] == [13] * (40 - 2 * budget)  # the way back is no longer than that there


def test_what_it_measures_is_the_interval_without_the_restart(here):
    policy, unit = rule(here, first=2, probes=2), here.units("test")[0]
    env = here.env(unit, unit.seed)
    policy.reset(unit)
    env.reset(seed=unit.seed)
    costs, _ = here.step_costs(env.preference)
    while env.interval < 5:
        interval = env.interval
        env.step(env.actions.index(policy.choose(env)))
        policy._measure(env)
        assert policy.measured[env.here] == pytest.approx(costs[interval, env.here])


def test_more_first_probes_than_probes_are_refused(here):
    with pytest.raises(UserError, match="probes"):
        rule(here, first=5, probes=4)
