"""The covariance matrix adaptation evolution strategy (CMA-ES), for minimisation. Its whole state is arrays, so a
search can be saved and resumed.

Source: N. Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772, with the default parameters of its table
1 and positive recombination weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log, sqrt

import numpy as np

STATE = ("mean", "covariance", "step_path", "path", "step", "generation")


class CmaEs:
    """A search for the minimum of a function of `mean.size` numbers.

    mean (n,), covariance (n, n) and step: the distribution from which points are drawn, N(mean, step^2 covariance)
    """

    def __init__(self, mean: np.ndarray, step: float, population: int) -> None:
        """Begin at `mean` with the step size `step`. Raises ValueError for fewer than four points per generation."""
        if population < 4:
            raise ValueError(f"a population of {population} is too small; at least 4")
        n = np.size(mean)
        self.mean, self.step, self.covariance = np.array(mean, dtype=float), float(step), np.eye(n)
        self.step_path, self.path, self.generation, self.population = np.zeros(n), np.zeros(n), 0, population
        raw = log((population + 1) / 2) - np.log(np.arange(1, population // 2 + 1))
        self._weights = raw / raw.sum()
        effective = 1 / (self._weights**2).sum()
        self._effective = effective
        self._step_rate = (effective + 2) / (n + effective + 5)
        self._damping = 1 + 2 * max(0.0, sqrt((effective - 1) / (n + 1)) - 1) + self._step_rate
        self._path_rate = (4 + effective / n) / (n + 4 + 2 * effective / n)
        self._rank_one = 2 / ((n + 1.3) ** 2 + effective)
        self._rank_many = min(1 - self._rank_one, 2 * (effective - 2 + 1 / effective) / ((n + 2) ** 2 + effective))
        self._length = sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n))  # expected length of a standard normal vector

    def ask(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the points of a generation, (population, n)."""
        scales, axes = self._decompose()
        drawn = rng.standard_normal((self.population, self.mean.size)) * scales
        points: np.ndarray = self.mean + self.step * drawn @ axes.T
        return points

    def tell(self, points: np.ndarray, values: np.ndarray) -> None:
        """Move the distribution towards the points with the lowest values; `points` are those of the last `ask`."""
        scales, axes = self._decompose()
        best = np.argsort(values, kind="stable")[: self._weights.size]
        moves = (points[best] - self.mean) / self.step
        move = self._weights @ moves
        self.generation += 1
        self.mean = self.mean + self.step * move
        rate = self._step_rate
        white = axes @ ((axes.T @ move) / scales)
        self.step_path = (1 - rate) * self.step_path + sqrt(rate * (2 - rate) * self._effective) * white
        length = float(np.linalg.norm(self.step_path))
        short = length / sqrt(1 - (1 - rate) ** (2 * self.generation)) < (1.4 + 2 / (self.mean.size + 1)) * self._length
        rate = self._path_rate
        self.path = (1 - rate) * self.path + short * sqrt(rate * (2 - rate) * self._effective) * move
        lost = 0.0 if short else self._rank_one * rate * (2 - rate)
        self.covariance = (
            (1 + lost - self._rank_one - self._rank_many) * self.covariance
            + self._rank_one * np.outer(self.path, self.path)
            + self._rank_many * (moves.T * self._weights) @ moves
        )
        self.step *= float(np.exp(min(1.0, self._step_rate / self._damping * (length / self._length - 1))))

    def state(self) -> dict[str, np.ndarray]:
        """Return all values that change, as arrays by name."""
        return {name: np.array(getattr(self, name)) for name in STATE}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Continue from a state that `state` returned."""
        for name in STATE:
            setattr(self, name, np.array(state[name]))
        self.step, self.generation = float(self.step), int(self.generation)

    def _decompose(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (square roots of the eigenvalues, eigenvectors) of the covariance."""
        values, axes = np.linalg.eigh((self.covariance + self.covariance.T) / 2)
        return np.sqrt(np.maximum(values, 1e-20)), axes
