from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_for_stable_baselines

import schedlab.environments
from schedlab.studies.adaptation.env import ENVIRONMENT
from schedlab.studies.adaptation.example import example_problem, make


def test_it_passes_the_checks_of_gymnasium_and_stable_baselines() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(ENVIRONMENT).unwrapped)
        check_for_stable_baselines(make())


def test_it_is_made_by_name() -> None:
    assert schedlab.environments.ENVIRONMENTS[ENVIRONMENT]
    env = gym.make(ENVIRONMENT, problem=example_problem(190.0), seed=3)
    _, info = env.reset()
    assert info["scenario"] == "example-190"


def test_the_reward_is_the_tables_and_comes_at_the_end() -> None:
    problem = example_problem()
    env = problem.env(problem.units("test")[0], seed=0)
    env.reset()
    assert env.action_masks().tolist() == [True] * 4
    steps = [env.step(action) for action in (0, 3, 2)]
    assert [step[1] for step in steps[:2]] == [0, 0] and [step[2] for step in steps] == [False, False, True]
    assert steps[2][1] == problem.view.reward[2, problem.tree.index("032")]
    assert steps[2][4]["regret"] == pytest.approx(problem.view.reward[2].max() - steps[2][1])
    with pytest.raises(RuntimeError, match="reset"):
        env.step(0)
    env.reset()
    with pytest.raises(ValueError, match="not one of 0 to 3"):
        env.step(4)


def test_an_observation_shows_time_and_layers() -> None:
    problem = example_problem()
    env = make(problem)
    first, _ = env.reset(seed=1)
    assert first[8] == pytest.approx(150 / 240)
    grown, *_ = env.step(0)
    assert grown[8] == pytest.approx(135 / 240)
    assert np.count_nonzero(grown[9:]) > np.count_nonzero(first[9:])
    env.reset(seed=1)
    same, *_ = env.step(3)
    np.testing.assert_array_equal(same[9:], first[9:])


def test_units_are_drawn_from_the_seed_and_none_is_left_out() -> None:
    def episodes(seed: int) -> list[tuple[int, float]]:
        env, found = make(example_problem(replicates=5), seed=seed), []
        for _ in range(30):
            _, info = env.reset()
            found.append((info["replicate"], [env.step(a) for a in (1, 1, 3)][-1][1]))
        return found

    assert episodes(1) == episodes(1) != episodes(2)
    assert {replicate for replicate, _ in episodes(1)} == {0, 1, 2, 3}  # the last one is for testing
