"""Learners of Stable-Baselines3 and sb3-contrib on a training job: each one learns, is loaded, and keeps to the
mask."""

from __future__ import annotations

import pytest

pytest.importorskip("stable_baselines3")

from small_problems import problem

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.plugins import load_object
from schedlab.studies.cloud.learners.settings import STOCK
from schedlab.studies.cloud.study import STUDY

FEW = {"net_arch": [8], "environments": 2}
OF = {"dqn": {"learning_starts": 8, "train_freq": 4}, "a2c": {"n_steps": 8}}


@pytest.mark.parametrize("name", STOCK)
def test_a_stock_learner_learns_and_its_policy_keeps_to_the_mask(name, tmp_path):
    here = problem(preferences=["cost"])
    params = FEW | OF.get(name, {"n_steps": 8, "batch_size": 8})
    spec = PolicySpec("learned", "learned", name, params, train_on=(Phase(("example",), 64),))
    paths, points = LearnPaths(None, tmp_path / "policy.zip", tmp_path), []
    learner = load_object(STUDY.learners[name])()
    learner.learn({"example": here}, spec, 0, paths, lambda *point, **place: points.append(point))
    scores = here.rollout(learner.load(paths.checkpoint, here), here.units("test")[0]).scores
    assert scores["out_of_memory"] == 0 and scores["regret"] >= -1e-9 and points
