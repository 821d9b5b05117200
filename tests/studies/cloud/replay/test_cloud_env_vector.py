"""The vectorised environment does what single ones do, bit for bit."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.replay.env import ENVIRONMENT, CloudReplayEnv
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv, make

CASES = {
    "plain": {},
    "paper": {"environment": {"space": "paper9"}},
    "noise": {"environment": {"time_noise": 0.05, "price_walk": 0.1}},
    "adapted weights": {
        "environment": {"adaptive": 2.0},
        "sla_from": "configuration",
        "sla": {"time_max": 100.0, "cost_max": 0.3},
    },
    "slots": {"environment": {"slots": [8, 1, 3]}},
    "little memory": {"start": {"gpu_count": 8, "memory_gb": 16}},
    "limits of 0": {"sla_from": "configuration", "sla": {"time_max": 0.0, "cost_max": 0.0, "throughput_min": 0.0}},
}


@pytest.mark.parametrize("case", CASES)
def test_each_place_does_what_a_single_environment_does(case):
    replay, places = example_replay(**CASES[case]), 3
    many = CloudReplayVectorEnv(replay, places, "time")
    single = [CloudReplayEnv(replay, "time") for _ in range(places)]
    observations, _ = many.reset(seed=7)
    alone = [env.reset(seed=7 + place)[0] for place, env in enumerate(single)]
    assert np.array_equal(observations, np.stack(alone))
    rng = np.random.default_rng(0)
    for _ in range(50):
        actions = rng.integers(many.single_action_space.n, size=places)
        assert np.array_equal(many.action_masks(), np.stack([env.action_masks() for env in single]))
        observations, rewards, ended, cut, infos = many.step(actions)
        for place, env in enumerate(single):
            observation, reward, over, truncated, info = env.step(int(actions[place]))
            assert (rewards[place], ended[place], cut[place]) == (pytest.approx(reward, abs=1e-15), over, truncated)
            if over or truncated:
                assert np.array_equal(infos["final_obs"][place], observation)
                told = infos["final_info"]["scores"]
                assert {name: values[place] for name, values in told.items() if not name.startswith("_")} == info[
                    "scores"
                ]
                observation, _ = env.reset()
            assert np.array_equal(observations[place], observation)


LITTLE = {
    "full27": {"job": {"pipeline": {"sample_bytes": 3e6, "prefetch": 64}}, "start": {"gpu_count": 1, "memory_gb": 64}},
    "paper9": {"start": {"gpu_count": 1, "memory_gb": 8}},
}


@pytest.mark.parametrize("space", LITTLE)
def test_where_no_action_leaves_enough_memory_the_one_that_keeps_is_valid(space):
    replay = example_replay(**LITTLE[space], environment={"space": space})
    lost = np.flatnonzero(~replay.allowed.any(axis=1))
    assert len(lost), "the case has such allocations"
    many, one = CloudReplayVectorEnv(replay, len(lost)), CloudReplayEnv(replay)
    many.here = lost
    masks = many.action_masks()
    for place, here in enumerate(lost):
        one.here = int(here)
        assert np.array_equal(masks[place], one.action_masks()) and masks[place].sum() == 1
    assert np.array_equal(many._following[lost, masks.argmax(axis=1)], lost)


@pytest.mark.parametrize("case", ["plain", "adapted weights"])
def test_a_reset_changes_the_preference(case):
    replay = example_replay(**CASES[case])
    many, single = CloudReplayVectorEnv(replay, 2, "time"), [CloudReplayEnv(replay, "time") for _ in range(2)]
    told = set()
    for options in ({"preference": "cost"}, None, {}, {"preference": "0.1:0.1:0.8"}):
        many.reset(seed=3, options=options)
        for place, env in enumerate(single):
            env.reset(seed=3 + place, options=options)
        _, rewards, *_ = many.step(np.array([0, 26]))
        assert rewards == pytest.approx(
            [env.step(action)[1] for env, action in zip(single, (0, 26), strict=True)], abs=1e-15
        )
        assert [many.scores(place)["objective"] for place in (0, 1)] == [env.objective() for env in single]
        assert many.preference == single[0].preference
        told.add(tuple(rewards))
    assert len(told) == 2, "that of a reset stays until another one"
    with pytest.raises(UserError, match="did you mean 'cost'"):
        many.reset(options={"preference": "csot"})
    assert many.preference == "0.1:0.1:0.8"


def test_gymnasium_makes_it():
    env = gymnasium.make_vec(
        f"schedlab.environments:{ENVIRONMENT}", num_envs=4, vectorization_mode="vector_entry_point"
    )
    observations, _ = env.reset(seed=0)
    assert observations.shape == (4, 26) and env.observation_space.contains(observations)


def test_adapted_weights_change_rewards_and_not_scores():
    found = {}
    for strength in (0.0, 2.0):
        env = make(
            example_replay(environment={"adaptive": strength}, sla_from="configuration", sla={"time_max": 1.0}), 1
        )
        env.reset(seed=0)
        rewards = [env.step(np.array([13]))[1][0] for _ in range(3)]
        found[strength] = rewards, env.scores(0)["objective"]
    assert found[0.0][1] == found[2.0][1] == pytest.approx(-sum(found[0.0][0]))
    assert all(adapted != fixed for adapted, fixed in zip(found[2.0][0], found[0.0][0], strict=True))


WRONG_ACTIONS = {
    "too few": [13],
    "too many": [13, 13, 13, 13],
    "one for all": 13,
    "a column": [[13], [13], [13]],
    "fractions": [13.0, 13.0, 13.0],
    "truth values": [True, False, True],
    "beyond the space": [13, 27, 13],
    "below it": [13, -1, 13],
}


@pytest.mark.parametrize("name", WRONG_ACTIONS)
def test_actions_that_are_none_are_refused_and_nothing_is_done(name):
    env = make(example_replay(), 3)
    observed, _ = env.reset(seed=0)
    with pytest.raises(UserError, match="0 to 26"):
        env.step(np.array(WRONG_ACTIONS[name]))
    assert env.interval.tolist() == [0, 0, 0] and np.array_equal(env._observation(), observed)
    assert env.step([13, 26, 0])[1].shape == (3,)


def test_what_it_does_not_do_is_told():
    with pytest.raises(UserError, match="num_envs"):
        make(num_envs=0)
    with pytest.raises(UserError):
        make(example_replay(legacy={"reward": True}))
    with pytest.raises(ValueError):
        make(num_envs=3).reset(seed=[1, 2])
