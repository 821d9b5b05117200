"""The replay environment with instance types as allocations: moves, prices, and interruptions of spot instances."""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.studies.cloud.example import example_replay, example_scenario
from schedlab.studies.cloud.model.instances import read_instances
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.replay import Replay
from schedlab.studies.cloud.replay.vector import CloudReplayVectorEnv
from schedlab.studies.cloud.rules.oracle import best_plan, objective_of_staying
from schedlab.studies.cloud.scenario import check

TYPES = [
    {"type": "one", "gpus": 1, "gpu_kind": "T4", "cores": 8, "memory_gb": 32, "price": 1.0},
    {"type": "four", "gpus": 4, "gpu_kind": "T4", "cores": 32, "memory_gb": 64, "price": 4.0, "spot_price": 1.0}
    | {"interruption_rate": 0.9},
    {"type": "swift", "gpus": 1, "gpu_kind": "A100", "cores": 32, "memory_gb": 64, "price": 5.0, "speed": 4.0},
    {"type": "bare", "gpus": 0, "cores": 8, "memory_gb": 32, "price": 0.1},
]
TYPES[0]["speed"] = 1.0
SPOT = 2  # number of the offer `four (spot)`
INSTANCES = {"types": TYPES, "gpu_kind": "T4"}


@pytest.fixture(scope="module")
def replay() -> Replay:
    return example_replay(instances=INSTANCES, job={"samples": 500_000})  # intervals long enough for interruptions


def test_offers_are_the_allocations_and_an_action_reaches_any(replay):
    assert [offer.name for offer in replay.lattice.offers] == [
        "one",
        "four",
        "four (spot)",
        "swift",
    ]  # none without GPU
    assert replay.price.tolist() == [1.0, 4.0, 1.0, 5.0]
    env = CloudReplayEnv(replay)
    env.reset(seed=0)
    assert env.action_space.n == 5 and env.allocation == (1, 8, 32)
    observation, _, _, _, info = env.step(4)
    assert env.allocation == (1, 32, 64) and info["changed"] and env.observation_space.contains(observation)
    assert not env.step(0)[4]["changed"]
    with pytest.raises(UserError):
        env.step(5)


def test_a_start_with_too_little_memory_is_named():
    with pytest.raises(UserError) as error:
        example_replay(instances={"types": [{**TYPES[0], "memory_gb": 1}]})
    assert error.value.where == "instances.start"


def test_the_limits_of_resources_are_those_of_the_offers(replay):
    assert example_replay(instances={"types": TYPES[:1]}).scenario.resource.most == (1, 8, 32)
    assert replay.scenario.resource.least == (1, 8, 32) and replay.scenario.resource.most == (4, 32, 64)


def test_a_quicker_kind_of_gpu_shortens_the_computing(replay):
    ratio = replay.performance.throughput[3] / replay.performance.throughput[0]
    assert 3.0 < ratio <= 4.5  # the speed is 4, and the pipeline overlaps; there are more cores, too


def test_an_interruption_ends_the_interval_without_progress_and_costs_a_restart(replay):
    env, seen = CloudReplayEnv(replay), []
    env.reset(seed=1)
    over, again = False, True
    while not over:
        before, progress = env.time, env.progress
        *_, over, _, info = env.step(SPOT + 1)
        took, whole = env.time - before, replay.undisturbed[int(progress), SPOT] + replay.restart * again
        again = info["interrupted"]
        seen.append(again)
        assert (took < whole and env.progress == progress) if again else took == pytest.approx(whole)
    assert any(seen) and info["scores"]["interruptions"] == sum(seen)
    assert info["scores"]["restarts"] == 1 + sum(seen)
    assert info["scores"]["cost"] == pytest.approx(env.time / 3600 * 1.0)


def test_interruptions_follow_the_seed(replay):
    def course(seed: int) -> list[float]:
        env = CloudReplayEnv(replay)
        env.reset(seed=seed)
        return [env.step(SPOT + 1)[4]["record"]["time_so_far"] for _ in range(10)]

    assert course(5) == course(5) != course(6)


def test_jobs_side_by_side_are_not_interrupted(replay):
    with pytest.raises(UserError):
        CloudReplayVectorEnv(replay, 2)
    many = CloudReplayVectorEnv(example_replay(instances={**INSTANCES, "types": [TYPES[0], TYPES[2]]}), 2)
    many.reset()
    assert many.action_masks().tolist() == 2 * [[True] * 3]
    many.step(np.array([0, 2]))
    assert many.here.tolist() == [0, 1]


def test_planners_expect_the_mean_of_what_happens(replay):
    weights = weights_of("time")
    expected = objective_of_staying(replay, weights)[SPOT]
    found = []
    for seed in range(200):
        env, over = CloudReplayEnv(replay, "time"), False
        env.reset(seed=seed)
        while not over:
            over = env.step(SPOT + 1)[2]
        found.append(env.objective())
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / len(found) ** 0.5)
    plan = best_plan(replay, weights)
    assert plan.values[0, replay.lattice.start] <= objective_of_staying(replay, weights).min() + 1e-9


def test_a_spot_instance_that_never_lasts_is_masked():
    hopeless = [TYPES[0], {**TYPES[1], "interruption_rate": 1.0}]
    replay = example_replay(instances={"types": hopeless})
    assert CloudReplayEnv(replay).action_masks().tolist() == [True, True, True, False]
    assert np.isfinite(best_plan(replay, weights_of("cost")).values).all()


def test_a_rate_of_the_scenario_holds_where_a_type_has_none():
    types = [TYPES[0], {**TYPES[1], "interruption_rate": None}]
    offers = {
        rate: len(example_replay(instances={"types": types, "interruption_rate": rate}).lattice) for rate in (None, 0.1)
    }
    assert offers == {None: 2, 0.1: 3}


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"environment": {"space": "paper9"}}, "environment.space"),
        ({"environment": {"slots": [1, 2]}}, "environment.slots"),
        ({"environment": {"interval_seconds": 60.0}}, "environment.interval_seconds"),
        ({"legacy": {"reward": True}}, "legacy"),
        ({"job": {"model": "table", "step": None, "logs": ["log.csv"]}}, "job.model"),
        ({"rules": ["threshold"]}, "rules"),
    ],
)
def test_settings_of_single_resources_are_refused(changed, where):
    found = list(check(example_scenario(instances=INSTANCES, **changed)))
    assert where in [error.where for error in found]


@pytest.mark.parametrize(
    "instances",
    [
        {"types": TYPES, "start": "fore"},
        {"types": TYPES, "start": "four (spot)"},
        {"types": TYPES},
        {"types": TYPES[3:]},
        {"types": TYPES, "gpu_kind": "P100"},
    ],
)
def test_instances_without_a_start_or_a_known_speed_are_refused(instances):
    with pytest.raises(UserError) as error:
        example_replay(instances=instances)
    assert "instances" in error.value.where


def test_a_file_or_types(tmp_path):
    with pytest.raises(UserError):
        example_scenario(instances={"types": TYPES, "file": "x.csv"})
    (tmp_path / "x.csv").write_text(
        "type,gpus,gpu_kind,cores,memory_gb,price,spot_price,interruption_rate\na,1,T4,8,32,1,,\n"
    )
    scenario = example_scenario(instances={"file": str(tmp_path / "x.csv")})
    assert scenario.instances.resolved().types == read_instances(tmp_path / "x.csv")
