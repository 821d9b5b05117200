"""The front against all plans there are, and measures by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("moocore")

from cloud_courses import TINY, all_courses

from schedlab.config.readers import read_yaml
from schedlab.studies.cloud.example import example_replay
from schedlab.studies.cloud.replay.env import CloudReplayEnv
from schedlab.studies.cloud.rules.oracle import objective_of_staying
from schedlab.studies.cloud.rules.pareto import (
    attainment_surface,
    best_course,
    front,
    measures,
    non_dominated,
    staying_points,
)

REPOSITORY = Path(__file__).parents[4]


@pytest.mark.parametrize(("restart", "slots"), [(30.0, []), (1.0, [3, 2])])
def test_the_front_is_that_of_all_plans(restart, slots):
    replay = example_replay(
        **TINY
        | {
            "environment": {"restart": restart, "slots": slots},
            "job": {"epochs": 3.0, "gradient_noise": [0.1, 5.0, 300.0]},
        }
    )
    env = CloudReplayEnv(replay)
    found = [(env.time, env.cost) for _ in all_courses(env)]
    exact = non_dominated(np.round(found, 9))  # sums in another order differ in their last digits
    assert np.allclose(non_dominated(np.round(front(replay, epsilon=0.0), 9)), exact)
    rough = front(replay, epsilon=0.05)
    slack = 0.05 * np.ptp(exact, axis=0) + 1e-9
    assert all((rough <= point + slack).all(axis=1).any() for point in exact)
    assert all(np.isclose(found, point).all(axis=1).any() for point in rough)


def test_staying_adds_up_to_its_objective():
    replay = example_replay()
    points = staying_points(replay)
    whole = points @ np.array([0.5 / replay.time_ref, 0.5 / replay.cost_ref])
    assert np.allclose(whole, objective_of_staying(replay, {"time": 0.5, "cost": 0.5, "resource": 0.0}))


def test_no_constant_beats_the_front():
    replay = example_replay()
    best, constants = front(replay), staying_points(replay)
    for point in constants[np.isfinite(constants).all(axis=1)]:
        assert (best <= point + 1e-9).all(axis=1).any()
    assert measures(non_dominated(constants), best)["hypervolume"] <= 1.0


def test_best_plans_for_other_weights_have_no_larger_hypervolume_than_the_front():
    """The cheap plans of this job are long: 2 % of an absolute cost are 7 % of the front's range, which left out what
    weights find.
    """
    values = read_yaml(REPOSITORY / "conf/training_job/imagenet.yaml")
    limits = {"gpu_count_max": 8, "cpu_count_min": 4, "cpu_count_max": 64, "memory_max": 32}
    replay = example_replay(job=values, resource=limits, environment={"interval": 2.0})
    best, start = front(replay), replay.lattice.start
    of_time, of_cost = np.ptp(best, axis=0)[::-1] * (replay.time_ref, replay.cost_ref)
    weights = np.linspace(0.0, 1.0, 101)
    plans = [
        best_course(replay, weight * of_time / (weight * of_time + (1.0 - weight) * of_cost)) for weight in weights
    ]
    points = np.array([plan.points[0, start] for plan in plans])
    assert 0.95 < measures(points, best)["hypervolume"] <= 1.0
    finer = measures(front(replay, epsilon=0.001), best)["hypervolume"]
    assert finer == pytest.approx(1.0, abs=0.005)


def test_a_course_costs_what_its_plan_says():
    replay = example_replay()
    for share in (0.0, 0.3, 1.0):
        course = best_course(replay, share)
        assert np.allclose(course.points @ course.weights, course.values)


def test_measures_by_hand():
    line = np.array([[0.0, 10.0], [1.0, 0.0]])
    assert measures(line, line) == pytest.approx(
        {"hypervolume": 1.0, "igd_plus": 0.0, "additive_epsilon": 0.0, "utility": 0.0}
    )
    one = measures(np.array([[0.0, 10.0]]), line)
    assert one["hypervolume"] == pytest.approx(1.1 * 0.1 / (2 * 1.1 * 0.1 - 0.01))
    assert one["additive_epsilon"] == pytest.approx(1.0) and one["igd_plus"] == pytest.approx(0.5)
    assert one["utility"] == pytest.approx(np.mean([1 - w - min(w, 1 - w) for w in np.linspace(0, 1, 101)]))
    assert measures(np.array([[5.0, 50.0]]), line)["hypervolume"] == 0.0


def test_attainment_by_hand():
    """Of two seeds, one or both attain what lies beyond a surface; a single set's surface is its own non-dominated
    points.
    """
    seeds = [np.array([[1.0, 5.0], [3.0, 3.0], [4.0, 4.0]]), np.array([[2.0, 6.0], [4.0, 2.0]])]
    assert attainment_surface(seeds, 0.5).tolist() == [[1.0, 5.0], [3.0, 3.0], [4.0, 2.0]]
    assert attainment_surface(seeds, 1.0).tolist() == [[2.0, 6.0], [4.0, 3.0]]
    assert (
        attainment_surface(seeds[:1], 0.5).tolist()
        == [[1.0, 5.0], [3.0, 3.0]]
        == attainment_surface(seeds[:1], 1.0).tolist()
    )
    odd = [*seeds, np.array([[9.0, 9.0]])]
    assert attainment_surface(odd, 0.5).tolist() == [[2.0, 6.0], [4.0, 3.0]] and attainment_surface(
        odd, 1.0
    ).tolist() == [[9.0, 9.0]]
