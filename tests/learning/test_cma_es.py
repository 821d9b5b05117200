"""The evolution strategy finds known minima, adapts its distribution, and goes on from a saved state with equal
numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from schedlab.learning.cma_es import CmaEs


def search(function, start: np.ndarray, generations: int, seed: int = 0, population: int = 12) -> CmaEs:
    strategy, rng = CmaEs(start, 0.5, population), np.random.default_rng(seed)
    for _ in range(generations):
        points = strategy.ask(rng)
        strategy.tell(points, np.array([function(point) for point in points]))
    return strategy


def ellipsoid(point: np.ndarray) -> float:
    return float((10.0 ** (4 * np.arange(point.size) / (point.size - 1)) * (point - 1) ** 2).sum())


def rosenbrock(point: np.ndarray) -> float:
    return float((100 * (point[1:] - point[:-1] ** 2) ** 2 + (1 - point[:-1]) ** 2).sum())


@pytest.mark.parametrize(("function", "generations"), [(ellipsoid, 300), (rosenbrock, 500)])
def test_finds_the_minimum(function, generations: int) -> None:
    found = search(function, np.zeros(6), generations)
    assert np.abs(found.mean - 1).max() < 1e-4
    assert found.step < 0.1


def test_the_distribution_takes_the_shape_of_the_function() -> None:
    found = search(ellipsoid, np.zeros(5), 150)
    ratio = found.covariance[0, 0] / found.covariance[4, 4]
    assert 1e3 < ratio < 1e5  # the inverse of the curvatures, 1e4


def test_the_step_grows_on_a_slope() -> None:
    assert search(lambda point: float(point[0]), np.zeros(5), 30).step > 2


def test_goes_on_from_its_state_with_equal_numbers() -> None:
    strategy = search(rosenbrock, np.zeros(4), 20)
    again = CmaEs(np.zeros(4), 0.5, 12)
    again.restore(strategy.state())
    for each in (strategy, again):
        points = each.ask(np.random.default_rng(5))
        each.tell(points, np.array([rosenbrock(point) for point in points]))
    assert {name: value.tolist() for name, value in strategy.state().items()} == {
        n: v.tolist() for n, v in again.state().items()
    }


def test_a_population_too_small() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        CmaEs(np.zeros(3), 1.0, 3)
