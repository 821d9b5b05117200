"""The replay environment keeps Gymnasium's contract, gives the same bytes for the same seed, and accounts as its plain
statements do.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from schedlab.config.errors import UserError
from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.model.allocation import KEEP, PAPER_ACTIONS, Allocation, moved
from schedlab.studies.cloud.replay.env import (
    ENVIRONMENT,
    OBJECTIVES,
    CloudReplayEnv,
    MoCloudReplayEnv,
    make,
    make_vector_reward,
    weights_of,
)
from schedlab.studies.cloud.replay.observe import component_numbers, first_state
from schedlab.studies.cloud.replay.reward import PREFERENCES
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv
from schedlab.studies.cloud.rules.oracle import best_constant

NOISY = {"environment": {"time_noise": 0.05, "price_walk": 0.1}}


@pytest.fixture(scope="module")
def replay():
    return example_replay()


def course(env: CloudReplayEnv, seed: int) -> list:
    """Observations, rewards and records of an episode of random valid actions."""
    observation, _ = env.reset(seed=seed)
    rng, seen, over = np.random.default_rng(seed), [observation.tobytes()], False
    while not over:
        observation, reward, over, truncated, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        assert env.observation_space.contains(observation) and not truncated
        seen.append((observation.tobytes(), reward, tuple(info["record"].values())))
    return [*seen, info["scores"]]


@pytest.mark.parametrize("space", ["full27", "paper9"])
def test_gymnasium_accepts_it(space):
    check_env(CloudReplayEnv(example_replay(environment={"space": space}), render_mode="ansi"), skip_render_check=False)
    check_env(gymnasium.make(f"schedlab.environments:{ENVIRONMENT}").unwrapped)


@pytest.mark.parametrize("space", ["full27", "paper9"])
def test_stable_baselines_accepts_it(space):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(CloudReplayEnv(example_replay(environment={"space": space})))


def test_same_seed_same_bytes():
    env = CloudReplayEnv(example_replay(**NOISY))
    runs = [course(env, seed) for seed in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]
    assert course(CloudReplayEnv(example_replay(**NOISY)), 5) == runs[0]


def test_spaces(replay):
    full, paper = make(replay), CloudReplayEnv(example_replay(environment={"space": "paper9"}))
    assert (full.action_space.n, full.observation_space.shape) == (27, (26,))
    assert (paper.action_space.n, paper.observation_space.shape) == (9, (21,))
    assert {allocation[2] for allocation in paper.replay.lattice.allocations.tolist()} == {32.0}
    assert component_numbers("full27") is None and paper.actions == PAPER_ACTIONS


DEFECTS = {
    "legacy": {"keep_severities": True, "memory_used_only": True, "whole_epochs": True, "empty_components": True}
}


@pytest.mark.parametrize("noise", [{}, NOISY, DEFECTS | {"environment": {"interval": 0.5}}])
def test_observations_and_rewards_equal_their_plain_statement(noise):
    replay = example_replay(**noise)
    env = CloudReplayEnv(replay, "cost")
    observation, _ = env.reset(seed=3)
    state, rng, over = first_state(replay), np.random.default_rng(1), False
    assert np.array_equal(observation, state.vector())
    total = 0.0
    while not over:
        action = int(rng.choice(np.flatnonzero(env.action_masks())))
        before = env.allocation
        observation, reward, over, _, info = env.step(action)
        assert env.allocation == moved(before, action, replay.scenario.resource)
        state.update(info["record"])
        np.testing.assert_allclose(observation, state.vector(), rtol=0, atol=1e-6)
        assert sum(verdict.met for verdict in state.status.values()) == env.met
        total += reward
    assert total == pytest.approx(-env.objective(), abs=1e-12)
    assert info["scores"]["objective"] == env.objective()


def test_an_interval_by_hand(replay):
    env = make(replay)
    env.reset(seed=0)
    *_, info = env.step(26)  # one step more of everything, from (2, 8, 32)
    here = replay.lattice.number(Allocation(3, 12, 40))
    seconds = 30.0 + replay.seconds[0, here]
    price = 3 * 2.5 + 12 * 0.1 + 40 * 0.02
    assert (env.time, env.cost) == pytest.approx((seconds, seconds * price / 3600), abs=1e-12)
    assert env.restarts == 1 and info["record"]["time_so_far"] == env.time
    *_, info = env.step(KEEP)
    assert env.time == pytest.approx(seconds + replay.seconds[1, here]) and env.restarts == 1


def test_training_in_larger_batches_is_not_free(replay):
    alone, eight = (replay.lattice.number(Allocation(gpus, 8, 32)) for gpus in (1, 8))
    faster = replay.performance.throughput[eight] / replay.performance.throughput[alone]
    assert replay.seconds[0, alone] / replay.seconds[0, eight] == pytest.approx(
        faster * 2 / 9
    )  # (1 + 1) / (1 + 8) at noise 1
    assert replay.seconds[-1, alone] / replay.seconds[-1, eight] > 0.9 * faster


def test_out_of_memory_loses_time_and_no_progress():
    replay = example_replay(start={"gpu_count": 8, "memory_gb": 16})
    env = make(replay)
    env.reset(seed=0)
    less = 12  # 8 GB less
    assert not env.action_masks()[less]
    observation, _, over, truncated, info = env.step(less)
    assert env.time == 60.0 + 30.0 and env.interval == 0 and not over and not truncated
    assert info["record"]["throughput"] == 0.0 and observation[6] == 0.0 and observation[18] == 1.0
    for _ in range(99):
        *_, over, truncated, info = env.step(KEEP)
    assert truncated and not over and env.failures == 100


def test_a_start_without_enough_memory_is_refused():
    with pytest.raises(UserError, match="memory"):
        example_replay(start={"gpu_count": 8, "memory_gb": 8})


def test_vector_reward_adds_up_to_the_scalar_one(replay):
    env, vector = CloudReplayEnv(replay, "time"), MoCloudReplayEnv(replay, "time")
    env.reset(seed=0)
    vector.reset(seed=0)
    for action in (26, KEEP, 4, 22):
        _, scalar, *_ = env.step(action)
        _, parts, _, _, info = vector.step(action)
        assert parts.shape == (len(OBJECTIVES),) and vector.reward_space.contains(parts)
        assert info["objectives"] == dict(zip(OBJECTIVES, info["objectives"].values(), strict=True))
        cost, when, resource = PREFERENCES["time"]
        assert scalar == pytest.approx(when * parts[0] + cost * parts[1] + resource * parts[2], rel=1e-6)
    assert make_vector_reward(replay).reward_dim == 4


def test_mo_gymnasium_makes_weighs_and_adds_up_the_vector_reward():
    mo_gymnasium = pytest.importorskip("mo_gymnasium")
    name, (cost, when, resource) = "schedlab.environments:schedlab/MoCloudReplay-v0", PREFERENCES["balanced"]
    weighed = mo_gymnasium.wrappers.LinearReward(mo_gymnasium.make(name), weight=np.array([when, cost, resource, 0.0]))
    added = mo_gymnasium.wrappers.MORecordEpisodeStatistics(mo_gymnasium.make(name), gamma=1.0)
    weighed.reset(seed=0)
    added.reset(seed=0)
    total, over = 0.0, False
    while not over:
        total += weighed.step(KEEP)[1]
        *_, over, _, info = added.step(KEEP)
    scores, reference = info["scores"], added.unwrapped.replay
    assert total == pytest.approx(-scores["objective"], rel=1e-5)
    of = [-scores["time"] / reference.time_ref, -scores["cost"] / reference.cost_ref, -scores["waste"]]
    assert info["episode"]["r"][:3] == pytest.approx(of, rel=1e-5)


def test_rewards_as_published_and_with_adapted_weights():
    published = CloudReplayEnv(example_replay(legacy={"reward": True}), "cost")
    published.reset(seed=0)
    *_, reward = published.step(26)[:2]
    of_price = -0.6 * 20 * 3.06 - 2  # the price rises by $3.06 an hour, and a change costs 2
    assert of_price < reward < of_price + 0.1 * 10 + 0.2 * 22.5
    rewards = []
    for strength in (0.0, 2.0):
        env = CloudReplayEnv(example_replay(environment={"adaptive": strength}, sla_from="configuration"))
        env.reset(seed=0)
        rewards.append(env.step(KEEP)[1])
    assert rewards[0] != rewards[1]


def test_limits_are_forecast_from_the_start_allocation(replay):
    seconds = replay.seconds[:, replay.lattice.start].sum()
    assert replay.sla.time_max == pytest.approx(1.1 * seconds)
    assert replay.sla.cost_max == pytest.approx(1.1 * seconds * replay.price[replay.lattice.start] / 3600)
    fixed = example_replay(sla_from="configuration", sla={"time_max": 7.0, "cost_max": 0.0})
    assert (fixed.sla.time_max, fixed.sla.cost_max) == (7.0, 0.0)
    env = make(fixed)
    env.reset(seed=0)
    observation = env.step(KEEP)[0]
    assert observation[16] == observation[17] == 1.0  # limits that nothing can meet


def test_free_resources_are_no_mistake():
    free = example_replay(resource={"cost_per_gpu_hour": 0.0, "cost_per_cpu_hour": 0.0, "cost_per_gb_hour": 0.0})
    env = make(free)
    env.reset(seed=0)
    assert np.isfinite(env.step(KEEP)[1]) and env.cost == 0.0


def test_unknown_preferences_are_told(replay):
    with pytest.raises(UserError, match="did you mean 'cost'"):
        CloudReplayEnv(replay, "costs")
    with pytest.raises(UserError):
        make(replay).reset(options={"preference": 3})
    for weights in ("0.5:0.5", "0.5:0.5:0.5", "-0.5:1:0.5", "nan:0.5:0.5"):
        with pytest.raises(UserError):
            CloudReplayEnv(replay, weights)
    with pytest.raises(UserError):
        CloudReplayEnv(example_replay(legacy={"reward": True}), "0.1:0.1:0.8")


def cpu_seconds(work: Callable[[], object], times: int) -> float:
    """The least CPU time of one call, of five rounds of so many calls."""
    rounds = []
    for _ in range(5):
        begin = time.process_time()
        for _ in range(times):
            work()
        rounds.append((time.process_time() - begin) / times)
    return min(rounds)


def test_steps_and_search_cost_no_more_than_plain_loops(replay):
    """Rates are told in the documentation; here in sums of 1,000 numbers, some five to fifteen times as many as were
    measured.
    """
    one, many, plain = make(replay), CloudReplayVectorEnv(replay, 1024, "cost"), range(1000)
    one.reset(seed=0)
    many.reset(seed=0)
    keep = np.full(1024, KEEP)

    def step() -> None:
        if one.step(KEEP)[2]:
            one.reset()

    unit = cpu_seconds(lambda: sum(plain), 1000)
    assert cpu_seconds(step, 200) < 10 * unit
    assert cpu_seconds(lambda: many.step(keep), 20) < 320 * unit
    assert cpu_seconds(lambda: best_constant(replay, weights_of("cost")), 5) < 700 * unit


@pytest.mark.parametrize("wrong", [-1, 27, 3.7, True, "3"])
def test_what_is_no_action_is_told(wrong):
    env = gymnasium.make(f"schedlab.environments:{ENVIRONMENT}").unwrapped
    env.reset(seed=0)
    with pytest.raises(UserError, match="0 to 26"):
        env.step(wrong)
    here = env.step(np.int64(22))[0]  # one of each, as NumPy has it and as policies of Stable-Baselines3 give it
    env.reset(seed=0)
    assert np.array_equal(here, env.step(np.array(22))[0])
