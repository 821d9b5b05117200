"""Distances from the ends of a front instead of weighted sums: by hand, refused where they mean nothing, learned,
resumed.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("moocore")

from cloud_courses import TINY, episodes
from small_problems import learn, problem

from schedlab.config.contract import LearnPaths, Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.studies.cloud.learners import reinforce as learner_reinforce
from schedlab.studies.cloud.learners.exploration import BestEpisodes, Branches
from schedlab.studies.cloud.learners.reinforce import AUGMENTATION, Distance, ReinforceLearner, ends_of
from schedlab.studies.cloud.problem import preference_of
from schedlab.studies.cloud.rules.pareto import front

WEIGHTS = ["0:1:0", "0.3:0.7:0", "0.5:0.5:0", "0.7:0.3:0", "1:0:0"]
CHEBYSHEV = {"scalarisation": "chebyshev", "distilled": 100, "hidden": 32}
SHORT = TINY | {"job": {"epochs": 3.0, "gradient_noise": [0.1, 5.0, 300.0]}, "environment": {"restart": 1.0}}


def test_distances_by_hand():
    """Time from 100 to 300 s, cost from 2 to 4 $."""
    distance = Distance.between(np.array([100.0, 4.0]), np.array([300.0, 2.0]))
    points = np.array([[100.0, 4.0], [150.0, 3.0], [200.0, 2.0]])
    little = AUGMENTATION * np.array([1.0, 0.75, 0.5])
    assert distance.of("0.2:0.8:0", points) == pytest.approx(np.array([0.2, 0.2, 0.4]) + little)
    assert distance.of("0.8:0.2:0", points) == pytest.approx(np.array([0.8, 0.4, 0.1]) + little)
    one = Distance.between(np.array([100.0, 4.0]), np.array([100.0, 4.0]))
    assert one.of("0.5:0.5:0", points[:1]) == pytest.approx([0.0])


@pytest.mark.parametrize("preferences", [["0:1:0", "0.5:0.5:0"], ["0:1:0", "1:0:0", "balanced"], ["cost", "time"]])
def test_weights_without_a_range_of_time_and_cost_are_refused(preferences, tmp_path):
    assert ends_of(WEIGHTS) == ("0:1:0", "1:0:0")
    with pytest.raises(UserError, match="preferences"):
        learn(tmp_path, {"example": problem(preferences=preferences)}, 16, **CHEBYSHEV)


def test_two_phases_are_refused_as_their_distances_have_ends_of_their_own(tmp_path):
    spec = PolicySpec(
        "p", "learned", "reinforce", CHEBYSHEV, train_on=(Phase(("example",), 16), Phase(("example",), 16))
    )
    with pytest.raises(UserError, match=r"p\.yaml: train_on"):
        paths = LearnPaths(None, tmp_path / "policy.zip", tmp_path)
        ReinforceLearner().learn(
            {"example": problem(preferences=WEIGHTS)}, spec, 0, paths, lambda *point, **place: None
        )


def test_branches_follow_a_best_course_until_they_leave_it():
    best = episodes((-1.0, [5, 6]), (-2.0, [7, 8]))
    branches = Branches(best.actions[:, [1, 0]], np.array([1, 2]))
    own = np.array([1, 2, 3])
    assert branches.followed(0, own).tolist() == [1, 7, 5] and branches.followed(1, own).tolist() == [1, 2, 6]
    drawn = Branches.drawn(best, 50, np.random.default_rng(0))
    assert {tuple(course) for course in drawn.actions.T.tolist()} == {(5, 6), (7, 8)} and set(drawn.until.tolist()) == {
        0,
        1,
    }


def test_the_best_of_other_weights_episodes_are_kept_by_what_they_are_worth_here():
    best = BestEpisodes(2)
    best.add_shared(episodes((-9.0, [1, 1]), (-1.0, [2, 2]), (-5.0, [3, 3])), np.array([-0.1, -0.3, -0.2]))
    assert best.kept.actions.T.tolist() == [[1, 1], [3, 3]]
    assert best.kept.returns.tolist() == [[-0.1, -0.2], [-0.1, -0.2]]  # of whole episodes, from every interval on


def test_policies_reach_what_no_plan_of_the_front_comes_nearer_to(tmp_path):
    """On a job whose courses are few, for each of the weights."""
    here = problem(preferences=WEIGHTS, **SHORT)
    policy = ReinforceLearner().load(learn(tmp_path, {"example": here}, 640, **CHEBYSHEV), here)
    found = {preference_of(unit): here.rollout(policy, unit).scores for unit in here.units("test")}
    points = {name: np.array([scores["time"], scores["cost"]]) for name, scores in found.items()}
    distance, plans = Distance.between(points["0:1:0"], points["1:0:0"]), front(here.replay, epsilon=0.0)
    for name in WEIGHTS[1:-1]:
        assert distance.of(name, points[name][None])[0] == pytest.approx(distance.of(name, plans).min(), abs=1e-9), name


def test_a_policy_ends_as_the_best_episode_seen(tmp_path, monkeypatch):
    """Of what was seen, whoever ran it, with few episodes; without the last gradient steps it does not."""
    seen, add = {}, BestEpisodes.add

    def kept(best, *new):
        seen[id(best)] = best
        return add(best, *new)

    monkeypatch.setattr(BestEpisodes, "add", kept)
    here, missed = problem(preferences=WEIGHTS), {}
    for distilled in (0, 300):
        seen.clear()
        policy = ReinforceLearner().load(
            learn(tmp_path / str(distilled), {"example": here}, 64, **CHEBYSHEV | {"distilled": distilled}), here
        )
        reached = {preference_of(unit): here.rollout(policy, unit).scores for unit in here.units("test")}
        ends = [np.array([reached[name]["time"], reached[name]["cost"]]) for name in ("0:1:0", "1:0:0")]
        distance = Distance.between(*ends)
        best = sorted(
            -each.kept.returns[0, 0] for each in seen.values() if each.kept.returns[0, 0] == each.kept.returns[-1, 0]
        )
        own = sorted(
            distance.of(name, np.array([[reached[name]["time"], reached[name]["cost"]]]))[0] for name in WEIGHTS[1:-1]
        )
        assert len(best) == len(own)
        missed[distilled] = max(np.subtract(own, best))
    assert missed[300] == pytest.approx(0.0, abs=1e-9) and missed[0] > 1e-3


def test_an_interrupted_job_ends_in_the_same_bytes_in_either_part(tmp_path, monkeypatch):
    """The ends take 6 updates of 2 networks, then the others 6 of 3."""
    here, sample = problem(preferences=WEIGHTS), learner_reinforce.sample_episodes
    little = CHEBYSHEV | {"distilled": 5}
    whole = learn(tmp_path / "whole", {"example": here}, 96, **little)
    for cut in (7, 23):
        steps = []

        def stop(*arguments, steps=steps, cut=cut):
            steps.append(1)
            if len(steps) > cut:
                raise KeyboardInterrupt
            return sample(*arguments)

        monkeypatch.setattr(learner_reinforce, "sample_episodes", stop)
        with pytest.raises(KeyboardInterrupt):
            learn(tmp_path / str(cut), {"example": here}, 96, **little)
        monkeypatch.setattr(learner_reinforce, "sample_episodes", sample)
        assert learn(tmp_path / str(cut), {"example": here}, 96, **little).read_bytes() == whole.read_bytes()
