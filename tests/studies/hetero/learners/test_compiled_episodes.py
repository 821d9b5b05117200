"""The compiled kernel takes the episodes that the environment takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_clusters import cluster, workload
from small_hetero import managed_scenario, prepared

from schedlab.config.errors import UserError
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.env.observation import HeadsObserver
from schedlab.studies.hetero.env.settings import ALL_PAIRS, DecisionSettings
from schedlab.studies.hetero.learners.compiled_episodes import CompiledEpisodes
from schedlab.studies.hetero.learners.networks import Episodes, build_network
from schedlab.studies.hetero.simulator.episode import make_jobs

HEADS = {"observation": "heads", "objective": "avg_job_slowdown", "time_weighted": True, "void": False}
DRAWN_NOWHERE = tuple(pair for pair in ALL_PAIRS if "random" not in pair)
SMALLEST_AREA = ("saf-low_power", "saf-high_mem_bw")
WITH_EASY = tuple(
    f"easy_{pair}" for pair in (*SMALLEST_AREA, "first-lowest", "shortest-high_mem", "low_mem-high_gflops")
)
JOBS = [
    {"res": 1 + number % 4, "subtime": number // 3, "bw": 4 * (number % 6), "mem": 1000 * (number % 4)}
    for number in range(30)
]


def small(**settings) -> HeteroEnv:
    return HeteroEnv(cluster(), (make_jobs(workload(JOBS)),), DecisionSettings(**HEADS | settings))


def network(names, head="parts", critic=False, seed=0):
    """A network whose probabilities differ clearly from state to state."""
    made = build_network(HeadsObserver.size, names, 8, critic, seed, head)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2.0)
    return made


def check_alike(env: HeteroEnv, net, episodes: int) -> None:
    """Hold episodes of the kernel against those of the environment."""
    compiled = CompiledEpisodes(env)
    for number in range(episodes):
        plain, fast = Episodes(env).sample(net, 3, number), compiled.sample(net, 3, number)
        assert fast.actions == plain.actions
        np.testing.assert_allclose(fast.times, plain.times, atol=1e-6)  # the protocol tells dates to the microsecond
        np.testing.assert_allclose(fast.rewards, plain.rewards, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(np.stack(fast.observations), np.stack(plain.observations), atol=1e-5)
        assert np.stack(fast.masks).all() and fast.observations[0].dtype == np.float32


@pytest.mark.parametrize("head", ["parts", "actions"])
def test_the_same_episodes_on_a_small_platform(head):
    env = small(selection=(*DRAWN_NOWHERE, "shortest-lowest", *SMALLEST_AREA, *WITH_EASY))
    check_alike(env, network(env.action_names, head, critic=True), 4)


def test_the_same_episodes_on_the_contended_platform(tmp_path):
    pairs = (*SMALLEST_AREA, *WITH_EASY, *DRAWN_NOWHERE)
    settings = managed_scenario(40, replicates={"train": 2, "test": 1}, decisions={**HEADS, "selection": pairs})
    problem = prepared(settings, tmp_path)
    for number, unit in enumerate(problem.units("train")):
        check_alike(problem.env(unit, 0), network(pairs, seed=number), 2)


def test_random_policies_draw_as_in_the_environment():
    env = small(selection=("random-random", "random-high_cores", "first-random", "easy_random-random"))
    check_alike(env, network(env.action_names), 4)


@pytest.mark.parametrize(
    "changed",
    [
        {"observation": "small"},
        {"objective": "makespan"},
        {"time_weighted": False},
        {"void": True},
        {"legacy": {"late_reward": True}},
        {"selection": ("first-pack_cores",)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_other_decisions_are_refused(changed):
    with pytest.raises(UserError, match=rf"decisions\.{next(iter(changed))}"):
        CompiledEpisodes(small(**changed))


def test_jobs_that_do_more_than_compute_are_refused():
    talking = workload(JOBS)
    next(iter(talking.profiles.values()))["com"] = 1e6
    env = HeteroEnv(cluster(), (make_jobs(talking),), DecisionSettings(**HEADS))
    with pytest.raises(UserError, match=r"environment.*job "):
        CompiledEpisodes(env)


def test_jobs_that_never_fit_are_left_out():
    jobs = make_jobs(workload([*JOBS, {"res": 5, "subtime": 1}]))
    env = HeteroEnv(cluster(), (jobs,), DecisionSettings(**HEADS | {"selection": DRAWN_NOWHERE}))
    check_alike(env, network(DRAWN_NOWHERE), 2)
