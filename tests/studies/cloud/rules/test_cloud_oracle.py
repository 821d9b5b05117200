"""Lattice and oracles: reachable allocations, plans no worse than any other, and a known front of the
model.
"""

from __future__ import annotations

import numpy as np
import pytest
from cloud_courses import TINY, all_courses
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.model.allocation import ACTIONS, Allocation, ResourceConfig, action_of, changes, moved
from schedlab.studies.cloud.model.lattice import lattice
from schedlab.studies.cloud.model.step_time import StepParameters, statistical_efficiency, step_time
from schedlab.studies.cloud.replay.env import CloudReplayEnv, weights_of
from schedlab.studies.cloud.replay.replay import towards
from schedlab.studies.cloud.replay.reward import PREFERENCES
from schedlab.studies.cloud.rules.oracle import best_constant, best_plan, objective_of_staying

CIFAR10 = StepParameters(0.0174, 7.01e-4, 0.1221, 0.00264, 0.0329, 8.75e-4, 2.07)


@settings(max_examples=20, deadline=None)
@given(
    start=st.tuples(st.integers(1, 9), st.integers(1, 40), st.integers(4, 60)),
    most=st.tuples(st.integers(0, 4), st.integers(0, 20), st.integers(0, 30)),
    actions=st.lists(st.integers(0, ACTIONS - 1), max_size=30),
)
def test_the_lattice_holds_what_actions_reach_and_moves_as_they_do(start, most, actions):
    top = [have + more for have, more in zip(start, most, strict=True)]
    limits = ResourceConfig(gpu_count_max=top[0], cpu_count_max=top[1], memory_max=top[2])
    grid = lattice(Allocation(*start), limits)
    here, allocation = grid.start, Allocation(*start)
    for action in actions:
        here, allocation = grid.following[here, action], moved(allocation, action, limits)
        assert tuple(grid.allocations[here]) == tuple(allocation)
        assert grid.number(allocation) == here == grid.nearest(allocation)


def test_actions_and_their_steps_are_one_to_one():
    assert [action_of(changes(action)) for action in range(ACTIONS)] == list(range(ACTIONS))


@pytest.mark.parametrize("preference", ["cost", "time"])
def test_the_plan_is_the_best_of_all_courses(preference):
    replay = example_replay(**TINY)
    env = CloudReplayEnv(replay, preference)
    found = [env.objective() for _ in all_courses(env)]
    assert best_plan(replay, env.weights).values[0, replay.lattice.start] == pytest.approx(min(found), abs=1e-12)
    assert len(found) > 5000


@pytest.mark.parametrize("preference", PREFERENCES)
def test_what_plans_promise_is_what_episodes_cost(preference):
    replay = example_replay()
    env, weights = CloudReplayEnv(replay, preference), weights_of(preference)
    plan, staying = best_plan(replay, weights), objective_of_staying(replay, weights)
    env.reset()
    while env.interval < replay.intervals:
        env.step(int(plan.actions[env.interval, env.here]))
    assert env.objective() == pytest.approx(plan.values[0, replay.lattice.start], abs=1e-12)
    assert plan.values[0, replay.lattice.start] <= staying.min() + 1e-12 and np.isfinite(staying[replay.fits]).all()
    for target in (best_constant(replay, weights), replay.lattice.start, int(np.flatnonzero(replay.fits)[-1])):
        env.reset()
        while env.interval < replay.intervals:
            env.step(int(towards(replay, np.int64(env.here), np.int64(target))))
        assert env.here == target and env.failures == 0
        assert env.objective() == pytest.approx(staying[target], abs=1e-12)


@pytest.mark.parametrize("batch", [64, 512])
def test_a_fixed_total_batch_costs_no_progress(batch):
    """Every sample counts as one of the base batch: the training takes its samples over the throughput, whatever the
    noise.
    """
    job = {"batching": "fixed_global", "batch": batch, "base_batch": 128, "gradient_noise": [1.0, 100.0]}
    replay = example_replay(job=job)
    samples = replay.scenario.job.epochs * replay.scenario.job.samples
    assert replay.seconds.shape == (replay.intervals, len(replay.lattice))
    assert replay.constant()[0][replay.fits] == pytest.approx((samples / replay.performance.throughput)[replay.fits])
    growing = example_replay(job={**job, "batching": "per_gpu"})
    assert (growing.constant()[0] > samples / growing.performance.throughput)[
        growing.fits & (growing.lattice.allocations[:, 0] > 2)
    ].all()


def test_no_way_runs_out_of_memory():
    replay = example_replay(start={"gpu_count": 8, "memory_gb": 16}, resource={"cpu_count_max": 12})
    fits = np.flatnonzero(replay.fits)
    here, target = (grid.ravel() for grid in np.meshgrid(fits, fits))
    for _ in range(20):
        here = replay.lattice.following[here, towards(replay, here, target)]
        assert replay.fits[here].all()
    assert (here == target).all()


def test_ways_lead_past_values_that_only_a_limit_opens():
    grid = lattice(
        Allocation(1, 8, 32),
        ResourceConfig(gpu_count_max=1, cpu_count_min=1, cpu_count_max=12, memory_min=32, memory_max=32),
    )
    assert grid.axes[1] == (1, 4, 5, 8, 9, 12)
    here, there = grid.number(Allocation(1, 4, 32)), grid.number(Allocation(1, 5, 32))
    course = [here]
    while course[-1] != there:
        steps = grid.steps_to(np.int64(course[-1]), np.int64(there))
        course.append(int(grid.following[course[-1], action_of(tuple(steps.tolist()))]))
    assert [grid.allocations[number, 1] for number in course] == [4, 1, 5]


def test_the_known_front_of_the_model():
    """1,776 feasible configurations, a front of 28 in time and cost, and four GPUs better than eight on small-batch
    noise.
    """
    gpus, cores, memory = (
        grid.ravel() for grid in np.meshgrid(np.arange(1, 9), np.arange(4, 65, 4), np.arange(8, 129, 8), indexing="ij")
    )
    fits = memory >= 4 + 2 * gpus + 0.25 * cores
    gpus, cores, memory = gpus[fits], cores[fits], memory[fits]
    samples = gpus * 128
    iteration = (step_time(CIFAR10, 1 + (gpus > 4), gpus, 128) ** 4 + (0.0015 * samples / cores**0.9) ** 4) ** 0.25
    price = 2.5 * gpus + 0.1 * cores + 0.02 * memory

    def outcomes(noise: float | None) -> np.ndarray:
        efficiency = 1.0 if noise is None else statistical_efficiency(noise, samples, 128)
        seconds = 20 * 50_000 / (samples / iteration * efficiency)
        return np.stack([seconds, seconds * price / 3600], axis=1)

    raw = outcomes(None)
    front = [one for one in raw if not ((raw <= one).all(axis=1) & (raw < one).any(axis=1)).any()]
    assert fits.sum() == 1776 and len(front) == 28
    assert min(map(tuple, front)) == pytest.approx((168.7, 1.275), rel=2e-3)
    largest = raw[(gpus == 8) & (cores == 64) & (memory == 128)][0]
    assert largest == pytest.approx((168.7, 1.357), rel=2e-3)
    noisy = outcomes(1.0)
    held = ((4, 32), (8, 128))  # GPUs and GB: the least memory that four GPUs and 64 cores need, and all of it
    four, eight = (noisy[(gpus == count) & (cores == 64) & (memory == size)][0] for count, size in held)
    assert four[0] == pytest.approx(546.8, rel=2e-3) and eight[0] == pytest.approx(759.1, rel=2e-3)
    assert four[1] == pytest.approx(2.59, rel=2e-3) and eight[1] == pytest.approx(6.11, rel=2e-3)
    assert (four < eight).all()
    moocore = pytest.importorskip("moocore")
    low, span = raw.min(axis=0), np.ptp(raw, axis=0)  # of all configurations
    volumes = [
        moocore.hypervolume((points - low) / span, ref=(1.1, 1.1)) for points in (largest[None], np.array(front))
    ]
    assert volumes == pytest.approx([0.868, 1.188], abs=5e-4)
