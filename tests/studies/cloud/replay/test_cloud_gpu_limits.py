"""Limits on GPUs over time: what a job holds beyond them is taken, which is a restart, and the best plan knows it."""

from __future__ import annotations

import numpy as np
import pytest
from cloud_courses import all_courses

from schedlab.studies.cloud.example import example_replay, example_scenario
from schedlab.studies.cloud.model.allocation import KEEP
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.replay.replay import towards
from schedlab.studies.cloud.rules.oracle import best_constant, best_plan, objective_of_staying
from schedlab.studies.cloud.scenario import check

TINY = {  # test_cloud_oracle.py
    "resource": {"gpu_count_max": 3, "cpu_count_min": 4, "cpu_count_max": 8, "memory_min": 8, "memory_max": 16},
    "job": {"epochs": 3.0},
    "start": {"gpu_count": 2, "cpu_count": 8, "memory_gb": 16},
}


def gpus_over(slots: list[int], actions: list[int], **changed) -> tuple[list[int], int]:
    env = CloudReplayEnv(example_replay(**{"job": {"epochs": 4.0}, "environment": {"slots": slots}} | changed))
    env.reset()
    held = []
    for action in actions:
        env.step(action)
        held.append(int(env.allocation.gpu_count))
    return held, env.restarts


def test_gpus_are_taken_and_come_back_by_actions():
    more = 22  # a GPU more, the rest as it is
    assert gpus_over([2, 1], [KEEP] * 4) == ([2, 2, 1, 1], 1)
    assert gpus_over([2, 2], [more, KEEP, KEEP, KEEP]) == ([2, 2, 2, 2], 0)  # not to be had: nothing changes
    assert gpus_over([1, 8], [KEEP, KEEP, more, more]) == ([1, 1, 2, 3], 3)
    assert gpus_over([], [more, more, KEEP, KEEP]) == ([3, 4, 4, 4], 2)


def test_a_loss_costs_a_restart():
    calm, cut = (example_replay(job={"epochs": 4.0}, environment={"slots": slots}) for slots in ([], [1]))
    env = CloudReplayEnv(cut)
    env.reset()
    env.step(KEEP)
    one = cut.lattice.number(env.allocation)
    assert env.time == pytest.approx(calm.seconds[0, one] + 30.0)


@pytest.mark.parametrize("slots", [[3, 1, 2], [1, 3]])
def test_the_plan_is_the_best_of_all_courses(slots):
    replay = example_replay(**TINY, environment={"slots": slots})
    env = CloudReplayEnv(replay, "time")
    found = [env.objective() for _ in all_courses(env)]
    plan = best_plan(replay, env.weights)
    assert plan.values[0, replay.lattice.start] == pytest.approx(min(found), abs=1e-12)
    env.reset()
    while env.interval < replay.intervals:
        env.step(int(plan.actions[env.interval, env.here]))
    assert env.objective() == pytest.approx(min(found), abs=1e-12)


def test_staying_is_what_an_episode_costs():
    replay = example_replay(environment={"slots": [8, 2, 8]})
    env = CloudReplayEnv(replay, "time")
    staying = objective_of_staying(replay, env.weights)
    target = best_constant(replay, env.weights)
    env.reset()
    while env.interval < replay.intervals:
        env.step(int(towards(replay, np.int64(env.here), np.int64(target))))
    assert env.here == target and env.objective() == pytest.approx(staying[target], abs=1e-12)


def test_slots_below_the_fewest_gpus_are_refused():
    told = [
        str(error) for error in check(example_scenario(resource={"gpu_count_min": 2}, environment={"slots": [4, 1]}))
    ]
    assert any("environment.slots" in each for each in told)
