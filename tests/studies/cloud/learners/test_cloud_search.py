"""The search for a constant allocation: what it finds, what it counts, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_problems import problem

from schedlab.config.contract import Budget, LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.studies.cloud.learners.search import ConstantPolicy, ConstantSearch
from schedlab.studies.cloud.problem import preference_of
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.rules.oracle import objective_of_staying


def searched(folder: Path, here, trainings: int, seed: int = 0, **params) -> tuple[ConstantPolicy, Budget, list]:
    """Search on a problem; returns the policy, the budget used and the points of the curve."""
    folder.mkdir(exist_ok=True)
    spec = PolicySpec("s", "search", "constant_search", params, train_on=(Phase(("example",), trainings),))
    points: list = []
    learner, paths = ConstantSearch(), LearnPaths(None, folder / "policy.zip", folder)
    budget = learner.learn({"example": here}, spec, seed, paths, lambda *point, **place: points.append((point, place)))
    return learner.load(paths.checkpoint, here), budget, points


def regrets(here, policy) -> list[float]:
    return [here.rollout(policy, unit).scores["regret"] for unit in here.units("test")]


def test_trying_every_allocation_finds_the_best_constant(tmp_path):
    here = problem()
    policy, budget, _ = searched(tmp_path, here, int(here.replay.fits.sum()), side_by_side=16)
    for preference, target in policy.targets.items():
        staying = objective_of_staying(here.replay, weights_of(preference))
        assert staying[target] == pytest.approx(staying.min(), abs=1e-9)
    trainings = 4 * int(here.replay.fits.sum())
    assert budget == Budget(decisions=trainings * here.replay.intervals, episodes=trainings, trainings=trainings)


def test_the_curve_holds_the_best_so_far_and_the_policy_reaches_it(tmp_path):
    here = problem()
    policy, _, points = searched(tmp_path, here, 24, side_by_side=8)
    for unit in here.units("test"):
        of = {"preference": preference_of(unit), "acting": "greedy"}
        values = [value for (metric, value), place in points if metric == "objective" and place["of"] == of]
        assert len(values) == 3 and values == sorted(values, reverse=True)
        assert here.rollout(policy, unit).scores["objective"] == pytest.approx(values[-1], abs=1e-9)


def test_a_gaussian_process_needs_fewer_trainings_than_drawing(tmp_path):
    pytest.importorskip("sklearn")
    here = problem()
    drawn = [np.mean(regrets(here, searched(tmp_path / f"d{seed}", here, 16, seed)[0])) for seed in range(3)]
    guided = [
        np.mean(regrets(here, searched(tmp_path / f"g{seed}", here, 16, seed, method="bayesian")[0]))
        for seed in range(3)
    ]
    assert np.mean(guided) < np.mean(drawn)


def test_the_same_seed_finds_the_same(tmp_path):
    here = problem()
    first, second, other = (searched(tmp_path / str(n), here, 12, seed)[0] for n, seed in enumerate((0, 0, 1)))
    assert first.targets == second.targets and first.targets != other.targets


def test_two_scenarios_are_refused(tmp_path):
    spec = PolicySpec("s", "search", "constant_search", {}, train_on=(Phase(("a", "b"), 8),))
    with pytest.raises(UserError, match=r"s\.yaml: train_on"):
        paths = LearnPaths(None, tmp_path / "policy.zip", tmp_path)
        ConstantSearch().learn({"a": problem(), "b": problem()}, spec, 0, paths, lambda *point, **place: None)
