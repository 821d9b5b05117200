"""The environment keeps Gymnasium's contract and gives the same bytes for the same seed."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_clusters import cluster, workload
from small_hetero import SELECTION

from schedlab.config.errors import UserError
from schedlab.studies.hetero.env.env import ENVIRONMENT, HeteroEnv, make
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.episode import make_jobs

JOBS = [
    {"res": 1 + number % 4, "subtime": number // 3, "bw": 4 * (number % 6), "mem": 1000 * (number % 4)}
    for number in range(30)
]


def environment(**settings) -> HeteroEnv:
    """Two workloads on the learning platform."""
    workloads = (make_jobs(workload(JOBS)), make_jobs(workload(JOBS[:12])))
    return HeteroEnv(cluster(), workloads, DecisionSettings(**settings))


def course(env: HeteroEnv, seed: int) -> list:
    """Observations, rewards and dates of an episode of random valid actions."""
    observation, info = env.reset(seed=seed)
    rng, seen, over = np.random.default_rng(seed), [(observation.tobytes(), info["workload"])], False
    while not over:
        observation, reward, over, truncated, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        assert env.observation_space.contains(observation) and not truncated
        seen.append((observation.tobytes(), reward, info["time"]))
    return [*seen, info["scores"]]


@pytest.mark.parametrize("observation", ["normal", "small", "minimal", "heads"])
def test_gymnasium_accepts_it(observation):
    check_env(environment(observation=observation, time_weighted=True), skip_render_check=False)
    check_env(gymnasium.make(f"schedlab.environments:{ENVIRONMENT}", render_mode="ansi").unwrapped)


@pytest.mark.parametrize("observation", ["normal", "minimal"])
def test_stable_baselines_accepts_it(observation):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(environment(observation=observation))
    checker.check_env(make())


def test_same_seed_same_bytes():
    runs = [course(environment(), seed) for seed in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]
    env = environment()
    course(env, 9)
    assert course(env, 5) == runs[0]


def test_seed_of_the_construction_counts_for_the_first_reset_only():
    env = HeteroEnv(cluster(), (make_jobs(workload(JOBS)),), DecisionSettings(), seed=4)
    drawn = [env.reset()[1] and int(env.np_random.integers(1000)) for _ in range(2)]
    again = HeteroEnv(cluster(), (make_jobs(workload(JOBS)),), DecisionSettings(), seed=4)
    assert [again.reset()[1] and int(again.np_random.integers(1000)) for _ in range(2)] == drawn
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("action", "makespan", "reward"), [(0, 6.363636, 6.6), (1, 5.25, 8.4), (2, 7.0, 6.0), (4, 5.25, 8.4)]
)
def test_learning_case(action, makespan, reward):
    env = make(settings=DecisionSettings(selection=SELECTION, void=False, objective="makespan", observation="minimal"))
    env.reset(seed=0)
    _, got, over, _, info = env.step(action)
    assert over and got == pytest.approx(reward)
    assert info["scores"]["makespan"] == pytest.approx(makespan, abs=1e-6)


def test_workload_is_named_or_drawn():
    env = environment()
    assert env.reset(options={"workload": 1})[1]["workload"] == 1
    assert {env.reset(seed=seed)[1]["workload"] for seed in range(12)} == {0, 1}
    with pytest.raises(UserError, match="options of reset"):
        env.reset(options={"workload": 2})


def test_render_shows_the_state():
    env = environment(selection=("first-high_gflops",))
    env.reset(seed=0, options={"workload": 0})
    assert env.render() == "0 s: 3 jobs wait, 0 run, 0 of 4 cores busy, 9 W"


def test_a_workload_without_decisions_is_refused():
    env = HeteroEnv(cluster(), (make_jobs(workload([{"res": 9}])),))
    with pytest.raises(UserError, match="workload 0"):
        env.reset()


def test_steps_after_the_end_are_refused():
    env = environment()
    course(env, 0)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)
