"""REINFORCE on replayed jobs: its weights change, it beats fixed ways to allocate, resumes bit for bit, and gives the
same bytes.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from small_problems import BERT, LITTLE, learn, problem

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.learning.checkpoints import read_checkpoint
from schedlab.learning.policy_gradient import discounted
from schedlab.stages.policies import make_rule
from schedlab.studies.cloud.learners import reinforce as learner_reinforce
from schedlab.studies.cloud.learners.reinforce import ReinforceLearner, build_network
from schedlab.studies.cloud.problem import preference_of
from schedlab.studies.cloud.replay.env import weights_of
from schedlab.studies.cloud.study import STUDY


def test_weights_change_after_one_update(tmp_path):
    checkpoint = read_checkpoint(learn(tmp_path, {"example": problem()}, 16))
    for name in ("balanced", "cost", "time", "resource"):
        before = build_network(26, 27, 16, 0, name).state_dict()
        assert all(np.abs(checkpoint.group(name)[key] - before[key].numpy()).max() > 1e-4 for key in before)


def test_any_weights_are_a_preference(tmp_path):
    here = problem(preferences=["0.1:0.1:0.8", "1:0:0", "balanced", "5e-1:0.25:0.25"])
    policy = ReinforceLearner().load(learn(tmp_path, {"example": here}, 16), here)
    units = here.units("test")
    assert [preference_of(unit) for unit in units] == ["0.1:0.1:0.8", "1:0:0", "balanced", "5e-1:0.25:0.25"]
    assert here.env(units[1], 0).weights == {"cost": 1.0, "time": 0.0, "resource": 0.0}
    for unit in units:
        for tried in (policy, make_rule(STUDY, PolicySpec("options", "rule", "options"), here, 0)):
            scores = here.rollout(tried, unit).scores
            of = {
                "time": scores["time"] / here.replay.time_ref,
                "cost": scores["cost"] / here.replay.cost_ref,
                "resource": scores["waste"],
            }
            assert scores["regret"] >= -1e-9
            assert scores["objective"] == pytest.approx(
                sum(weights_of(preference_of(unit))[name] * value for name, value in of.items())
            )


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path):
    first, again, other = (
        learn(tmp_path / str(number), {"example": problem()}, 48, seed) for number, seed in enumerate((1, 1, 2))
    )
    assert first.read_bytes() == again.read_bytes() != other.read_bytes()


def test_an_interrupted_job_ends_in_the_same_bytes(tmp_path, monkeypatch):
    whole = learn(tmp_path / "whole", {"example": problem()}, 96)
    steps, sample = [], learner_reinforce.sample_episodes

    def stop(*arguments):
        steps.append(1)
        if len(steps) > 15:
            raise KeyboardInterrupt
        return sample(*arguments)

    monkeypatch.setattr(learner_reinforce, "sample_episodes", stop)
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "cut", {"example": problem()}, 96)
    monkeypatch.setattr(learner_reinforce, "sample_episodes", sample)
    assert learn(tmp_path / "cut", {"example": problem()}, 96).read_bytes() == whole.read_bytes()


def test_it_learns_to_be_better_than_fixed_ways(tmp_path):
    here = problem(preferences=["balanced"])
    policy = ReinforceLearner().load(
        learn(tmp_path, {"example": here}, 3200, hidden=64, episodes_per_update=64, save_every=1000), here
    )
    unit = here.units("test")[0]
    learned = here.rollout(policy, unit).scores
    assert learned["out_of_memory"] == 0 and learned["regret"] >= -1e-9
    for name in ("static_start", "static_max", "static_min", "random", "threshold", "horizontal"):
        rule = make_rule(STUDY, PolicySpec(name, "rule", name), here, 0)
        assert learned["objective"] < here.rollout(rule, unit).scores["objective"], name


def test_committed_episodes_and_their_imitation_lead_past_a_restart(tmp_path):
    restart = problem(preferences=["time"], job=BERT, environment={"interval": 0.1})
    unit = restart.units("test")[0]
    found = {}
    for imitated, committed in ((0, 0.0), (4, 0.25)):
        folder, how = tmp_path / str(imitated), {"imitated": imitated, "committed": committed}
        checkpoint = learn(
            folder, {"example": restart}, 3200, hidden=64, episodes_per_update=64, save_every=1000, **how
        )
        found[imitated] = restart.rollout(ReinforceLearner().load(checkpoint, restart), unit).scores["regret"]
    assert found[4] < 0.1 * found[0]


def test_without_imitation_a_job_of_two_phases_is_saved_and_ends(tmp_path):
    spec = PolicySpec(
        "p",
        "learned",
        "reinforce",
        LITTLE | {"imitated": 0},
        train_on=(Phase(("example",), 64), Phase(("example",), 64)),
    )
    paths = LearnPaths(None, tmp_path / "policy.zip", tmp_path)
    ReinforceLearner().learn({"example": problem(preferences=["time"])}, spec, 0, paths, lambda *point, **place: None)
    assert paths.checkpoint.exists()


def test_returns_by_hand():
    rewards = np.array([[1.0, 0.0], [2.0, 4.0]])
    assert discounted(rewards, 0.5).tolist() == [[2.0, 2.0], [2.0, 4.0]]


def test_mistakes_are_told(tmp_path):
    paper = problem(environment={"space": "paper9"})
    with pytest.raises(UserError, match="paper"):
        learn(tmp_path / "unlike", {"example": problem(), "paper": paper}, 16)
    with pytest.raises(UserError):
        learn(tmp_path / "none", {"example": problem(replicates={"train": 0})}, 16)
    checkpoint = learn(tmp_path / "one", {"example": problem(preferences=["cost"])}, 16)
    with pytest.raises(UserError, match="26 components and 27 actions"):
        ReinforceLearner().load(checkpoint, paper)
    other = problem()
    policy = ReinforceLearner().load(checkpoint, other)
    with pytest.raises(UserError, match="balanced"):
        policy.reset(next(unit for unit in other.units("test") if preference_of(unit) == "balanced"))


def test_the_budget_is_that_of_all_preferences(tmp_path):
    here, points = problem(preferences=["cost", "time"]), []
    spec = PolicySpec("learned", "learned", "reinforce", LITTLE, train_on=(Phase(("example",), 32),))
    paths = LearnPaths(None, tmp_path / "policy.zip", tmp_path)
    budget = ReinforceLearner().learn(
        {"example": here}, spec, 0, paths, lambda metric, value, **place: points.append(place)
    )
    assert (budget.episodes, budget.decisions) == (2 * 32, 2 * 32 * here.replay.intervals)
    assert [place["episodes"] for place in points[::2]] == [16, 32, 48, 64]
