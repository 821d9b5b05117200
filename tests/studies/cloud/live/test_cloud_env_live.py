"""CloudLive-v0: the interface of the replay, on subprocesses that obey limits."""

from __future__ import annotations

import json

import gymnasium
import numpy as np
import pytest
from live_scripts import plain_script, script

import schedlab.environments  # noqa: F401
from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.env import CloudLiveEnv, LiveJob
from schedlab.studies.cloud.live.machine import machine_limits, machine_resources
from schedlab.studies.cloud.live.process import ScriptFailed, available_cpus
from schedlab.studies.cloud.model.allocation import KEEP, Allocation, ResourceConfig, action_of
from schedlab.studies.cloud.replay.env import make as make_replay_env
from schedlab.studies.cloud.replay.sla import SLAConfig
from schedlab.studies.cloud.replay.state import COMPONENTS

LIMITS = ResourceConfig(
    gpu_count_max=0, gpu_count_min=0, cpu_count_max=len(available_cpus()), memory_min=1, memory_max=9,
    cost_per_gpu_hour=2.5, cost_per_cpu_hour=0.1, cost_per_gb_hour=0.02,
)  # fmt: skip
SLA = SLAConfig(time_max=100.0, cost_max=0.01, throughput_min=1.0)
FEWER = action_of((0, -1, -1))


def job(path, **changed) -> LiveJob:
    return LiveJob(
        path, **{"epochs": 4, "interval": 2, "batch": 16, "resource": LIMITS, "sla": SLA, "seconds": 60.0, **changed}
    )


def test_an_episode_trains_the_job_once_and_pays_for_every_interval(tmp_path):
    env = CloudLiveEnv(job(plain_script(tmp_path)), "cost", seed=3, folder=tmp_path / "runs")
    observation, info = env.reset()
    assert info["allocation"] == {"gpu_count": 0, "cpu_count": len(available_cpus()), "memory_gb": 9}
    assert env.observation_space.contains(observation) and observation[COMPONENTS.index("progress")] == 0
    total, seconds = 0.0, 0.0
    for number, action in enumerate((FEWER, KEEP)):
        observation, reward, done, cut, info = env.step(action)
        total += reward
        run = info["run"]
        assert env.observation_space.contains(observation) and run.request.first_epoch == 2 * number
        assert run.request.allocation == Allocation(0, 1, 1) and info["changed"] == (number == 0) and info["resumes"]
        seconds += run.table["epoch_time"].sum() + (run.overhead if number == 0 else 0.0)
    assert done and not cut and info["record"]["epoch"] == 4
    scores = info["scores"]
    assert scores["time"] == pytest.approx(seconds) and scores["cost"] == pytest.approx(seconds * 0.12 / 3600)
    assert total == pytest.approx(-scores["objective"]) and scores["restarts"] == 1
    assert set(scores) == set(make_replay_env().scores())
    assert info["record"]["train_loss"] == pytest.approx(1 / 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plain.py", "runs"]
    with pytest.raises(RuntimeError):
        env.step(KEEP)


def test_without_a_gpu_its_item_is_neither_met_nor_violated(tmp_path):
    missed = SLAConfig(time_max=0.0, cost_max=0.0, throughput_min=1e15, memory_max=0.0)
    env = CloudLiveEnv(job(plain_script(tmp_path), sla=missed), folder=tmp_path / "runs")
    env.reset(seed=0)
    observation, _, _, _, info = env.step(KEEP)
    cores = env.state.status["cpu_util"].met
    assert env.scores()["sla_met"] == cores and info["objectives"]["sla"] == pytest.approx(cores / 5 / 2)
    assert (
        observation[COMPONENTS.index("gpu_util_met")] == 1 and observation[COMPONENTS.index("gpu_util_severity")] == 0
    )
    assert observation[COMPONENTS.index("gpu_count")] == 0


def test_an_interval_without_memory_is_paid_for_and_repeated(tmp_path):
    hungry = script(tmp_path, "kept = bytearray(3 << 30)")
    env = CloudLiveEnv(job(hungry, resource=LIMITS.model_copy(update={"memory_max": 2})), folder=tmp_path / "runs")
    env.reset(seed=0)
    for number in range(3):
        _, reward, done, cut, info = env.step(KEEP)
        assert reward < 0 and not done and cut == (number == 2) and info["run"].how == "memory"
    assert info["scores"]["out_of_memory"] == 3 and info["record"]["epoch"] == 0 and env.time > 0


def test_actions_that_leave_too_little_memory_are_masked(tmp_path):
    env = CloudLiveEnv(job(plain_script(tmp_path), memory_needed=5.0), folder=tmp_path / "runs")
    env.reset(seed=0)
    mask = env.action_masks()
    assert not mask[FEWER] and mask[KEEP] and mask.sum() == 18
    none = CloudLiveEnv(job(plain_script(tmp_path), memory_needed=50.0), folder=tmp_path / "runs")
    assert none.action_masks().nonzero()[0].tolist() == [KEEP]


def test_the_seed_of_the_script_follows_from_ours(tmp_path):
    env = CloudLiveEnv(job(plain_script(tmp_path), epochs=1), folder=tmp_path / "runs")
    seeds = []
    for seed in (1, 1, 2):
        env.reset(seed=seed)
        env._episode = 0
        seeds.append(env._run().request.seed)
        env.folder = tmp_path / f"again-{len(seeds)}"
    assert seeds[0] == seeds[1] != seeds[2]


def test_a_script_that_fails_ends_the_episode_with_a_sentence(tmp_path):
    env = CloudLiveEnv(job(script(tmp_path, "raise ValueError('no data')")), folder=tmp_path / "runs")
    env.reset(seed=0)
    for _ in range(2):  # a second try is another run
        with pytest.raises(ScriptFailed, match="no data"):
            env.step(KEEP)


@pytest.mark.parametrize(
    "changed", [{"epochs": 0}, {"interval": 0}, {"start": Allocation(1, 1, 4)}, {"start": Allocation(0, 1, 64)}]
)
def test_a_job_that_cannot_be_is_refused(tmp_path, changed):
    with pytest.raises(UserError):
        CloudLiveEnv(job(plain_script(tmp_path), **changed), folder=tmp_path / "runs")


def test_prices_and_limits_of_nothing_divide_nothing(tmp_path):
    free = LIMITS.model_copy(update={"cost_per_gpu_hour": 0.0, "cost_per_cpu_hour": 0.0, "cost_per_gb_hour": 0.0})
    nothing = SLAConfig(time_max=0.0, cost_max=0.0, throughput_min=1e12, memory_max=0.0, cpu_util_min=100.0)
    env = CloudLiveEnv(job(plain_script(tmp_path), resource=free, sla=nothing), folder=tmp_path / "runs")
    env.reset(seed=0)
    observation, reward, *_ = env.step(KEEP)
    assert np.isfinite(observation).all() and np.isfinite(reward) and env.observation_space.contains(observation)
    assert env.cost == 0 and env.state.status["time"].severity == 1.0 and env.state.status["cost"].met


def test_the_machine_is_what_can_be_allocated():
    resource, limits = machine_resources(), machine_limits()
    assert resource.cpu_count_max == len(available_cpus()) and resource.memory_min <= resource.memory_max
    assert limits.memory_max <= resource.memory_max


@pytest.mark.slow
def test_the_bundled_example_runs_in_two_points_and_obeys_its_limits():
    """The live smoke test: two allocations of the example, with its checkpoint between them."""
    env = gymnasium.make("schedlab/CloudLive-v0", epochs=2, interval=1, batch=128, sla=SLA, resource=LIMITS, seed=0)
    env.reset()
    losses, most = [], len(available_cpus())
    for action, cores in ((KEEP, most), (action_of((0, -1, 0)), max(1, most - 4))):
        _, reward, done, _, info = env.step(action)
        run = info["run"]
        assert run.how == "done" and reward < 0 and info["resumes"]
        assert run.table["memory_used_gb"].max() < info["record"]["memory_gb"]
        assert info["record"]["cpu_count"] == cores
        bounds = json.loads((run.folder / "run.json").read_text())
        assert (
            bounds["cpus"] == list(available_cpus()[:cores])
            and bounds["memory_bytes"] == info["record"]["memory_gb"] * 2**30
        )
        losses.append(float(run.table["train_loss"].iloc[-1]))
    assert done and losses[1] < losses[0]
    assert info["record"]["model_params"] == 669_706
    env.close()
    assert not env.unwrapped.folder.exists()
