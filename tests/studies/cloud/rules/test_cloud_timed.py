"""Decisions at equal distances of time: how far training gets, what a restart takes from it, and plans held to every
course.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import pytest

from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.stages.policies import make_rule
from schedlab.studies.cloud.example import example_replay, example_scenario
from schedlab.studies.cloud.model.allocation import KEEP
from schedlab.studies.cloud.prepare import objectives_of
from schedlab.studies.cloud.problem import CloudProblem
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.reward import PREFERENCES
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv
from schedlab.studies.cloud.rules.oracle import best_plan, objective_of_staying
from schedlab.studies.cloud.rules.rules import RULES, go_to
from schedlab.studies.cloud.scenario import check
from schedlab.studies.cloud.study import STUDY

MINUTE = {"environment": {"interval_seconds": 60.0}}
NOISY = {
    "job": {"gradient_noise": [10.0, 300.0, 2000.0]}
}  # large batches pay later, so that intervals differ in their time
TINY = {
    "resource": {"gpu_count_max": 2, "cpu_count_min": 4, "cpu_count_max": 8, "memory_min": 16, "memory_max": 16},
    "start": {"gpu_count": 1, "cpu_count": 8, "memory_gb": 16},
    "job": {"epochs": 3.0, "gradient_noise": [10.0, 300.0, 2000.0]},
}


def kept(env: CloudReplayEnv) -> int:
    """Keep the allocation until the training is done; returns how many decisions that were."""
    over = False
    while not over:
        over = any(env.step(KEEP)[2:4])
    return env.decisions


def courses(env: CloudReplayEnv) -> Iterator[float]:
    """Yield the objective of every course that never runs out of memory, from where an environment is; of like actions,
    the first.
    """
    allowed = np.flatnonzero(env.action_masks())
    for action in allowed[np.unique(env.replay.lattice.following[env.here, allowed], return_index=True)[1]].tolist():
        after = copy.copy(env)
        if after.step(action)[2]:
            yield after.objective()
        else:
            yield from courses(after)


@pytest.mark.parametrize("span", [7.0, 60.0, 1e6])
def test_a_kept_allocation_comes_to_the_same_however_long_a_decision_holds(span):
    by_share = CloudReplayEnv(example_replay(**NOISY), "cost")
    by_time = CloudReplayEnv(example_replay(**NOISY, environment={"interval_seconds": span, "restart": 5.0}), "cost")
    for env in (by_share, by_time):
        env.reset()
        kept(env)
    assert by_time.decisions == -(-by_share.time // span)
    assert by_time.scores() == pytest.approx(by_share.scores() | {"severity": by_time.scores()["severity"]})


def test_a_restart_takes_its_time_from_the_training_that_follows():
    replay = example_replay(**MINUTE)
    env = CloudReplayEnv(replay)
    env.reset()
    _, _, _, _, info = env.step(22)  # a GPU more
    clock = replay.clock[:, env.here]
    trained = [float(np.interp(seconds, clock, np.arange(len(clock)))) for seconds in (30.0, 90.0)]
    assert info["changed"] and env.time == 60.0 and env.progress == pytest.approx(trained[0])
    assert info["record"]["epoch"] == pytest.approx(trained[0])
    env.step(KEEP)
    assert env.time == 120.0 and env.progress == pytest.approx(trained[1])


def test_rewards_add_up_to_the_objective():
    env = CloudReplayEnv(example_replay(**MINUTE), "time", seed=3)
    env.reset(seed=3)
    rng, total, over = np.random.default_rng(0), 0.0, False
    while not over:
        _, reward, done, cut, _ = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        total, over = total + reward, done or cut
    assert total == pytest.approx(-env.objective()) and env.progress == env.replay.intervals


@pytest.mark.parametrize("preference", PREFERENCES)
def test_the_plan_lies_between_its_bound_and_every_course(preference):
    replay = example_replay(**TINY, environment={"interval_seconds": 50.0})
    env = CloudReplayEnv(replay, preference)
    env.reset()
    found = list(courses(env))
    plan = best_plan(replay, env.weights)
    over = False
    while not over:
        over = env.step(plan.action(env.here, env.progress))[2]
    best, bound = min(found), plan.values[0, replay.lattice.start]
    assert len(found) > 100 and bound <= best + 1e-12 <= env.objective() + 2e-12
    assert env.objective() - bound <= 0.01 * (np.mean(found) - best) + 1e-12


def test_staying_is_valued_as_episodes_cost():
    replay, weights = example_replay(**NOISY, **MINUTE), weights_of("cost")
    staying = objective_of_staying(replay, weights)
    for target in (int(staying.argmin()), replay.lattice.start, int(np.flatnonzero(replay.fits)[-1])):
        env = CloudReplayEnv(replay, "cost")
        env.reset()
        over = False
        while not over:
            over = env.step(go_to(env, target))[2]
        assert (env.here == target) == np.isfinite(staying[target])
        assert env.here != target or env.objective() == pytest.approx(staying[target], abs=1e-12)


def test_no_rule_is_better_than_the_best_plan():
    scenario = example_scenario(random_episodes=5, preferences=["time"], environment={"interval_seconds": 120.0})
    problem = CloudProblem(scenario, scenario.job.step.parameters(), {})
    problem.oracle = {name: objectives_of(problem, name) for name in scenario.preferences}
    for unit in problem.units("test"):
        regrets = {}
        for name in sorted(set(RULES) - {"fixed"}):
            policy = make_rule(STUDY, PolicySpec(name, "rule", name), problem, 0)
            regrets[name] = problem.rollout(policy, unit).scores["regret"]
        assert min(regrets.values()) >= -1e-9 and regrets["oracle_dynamic"] < 0.01, regrets
        assert regrets["static_max"] > regrets["oracle_static"] >= regrets["oracle_dynamic"] - 0.01


def test_bayesian_measures_what_an_interval_of_training_adds():
    """The same in the time of a decision is cheap on a slow allocation, and brings it nowhere."""
    pytest.importorskip("sklearn")
    scenario = example_scenario(preferences=["time"], job={"gradient_noise": [300.0]}, **MINUTE)
    problem = CloudProblem(scenario, scenario.job.step.parameters(), {})
    policy, unit, found = (
        make_rule(STUDY, PolicySpec("bayesian", "rule", "bayesian"), problem, 0),
        problem.units("test")[0],
        {},
    )
    costs = problem.step_costs("time")[0][0]
    for name, action in (("fast", 22), ("slow", 4)):  # a GPU more, one fewer
        env = problem.env(unit, 0)
        env.reset()
        env.step(action)
        policy.reset(unit)
        env.step(policy.choose(env))
        policy._measure(env)
        found[name] = policy.measured[env.here]
        assert found[name] == pytest.approx(costs[env.here])
    assert found["fast"] < found["slow"]


def test_noise_changes_how_far_a_decision_gets():
    env = CloudReplayEnv(example_replay(environment={"interval_seconds": 60.0, "time_noise": 0.2}))
    reached = []
    for seed in (1, 1, 2):
        env.reset(seed=seed)
        env.step(KEEP)
        reached.append(env.progress)
        assert env.time == pytest.approx(60.0)
    assert reached[0] == reached[1] != reached[2]


def test_what_cannot_be_is_told():
    scenario = example_scenario(environment={"interval_seconds": 30.0, "restart": 30.0})
    assert [error.where for error in check(scenario)] == ["environment.interval_seconds"]
    scenario = example_scenario(environment={"interval_seconds": 60.0, "slots": [8, 2]})
    assert [error.where for error in check(scenario)] == ["environment.slots"]
    with pytest.raises(UserError, match="interval_seconds"):
        best_plan(example_replay(environment={"interval_seconds": 2.0, "restart": 1.0}), weights_of("cost"))
    with pytest.raises(UserError):
        CloudReplayVectorEnv(example_replay(**MINUTE), 2)
