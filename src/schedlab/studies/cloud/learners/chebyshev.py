"""What is learned for points of a front that no weighted sum of time and cost reaches: the larger of two weighted
distances.

Distances are those in time from the fastest policy and in cost from the cheapest one, each as a share of what lies
between these two, which are learned first: no model and no front is asked. A small share of both distances' sum is
added, so that of equally far plans the better one is found. Sources: Steuer and Choo 1983 (augmented weighted
Chebyshev); Van Moffaert, Drugan and Nowe 2013 (in reinforcement learning).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.cloud.replay.env import weights_of

AUGMENTATION = 0.01  # weight of the distances' sum


def ends_of(preferences: Sequence[str]) -> tuple[str, str]:
    """Return the preferences of time alone and of cost alone.

    Raises UserError where one of them is missing, and where a preference weighs unused resources.
    """
    weights = {name: weights_of(name) for name in preferences}
    found = [[name for name, of in weights.items() if of[goal] == 1.0] for goal in ("time", "cost")]
    if not all(found) or any(of["resource"] for of in weights.values()):
        expected = "weights of cost and time alone, with the ends 0:1:0 and 1:0:0 among them"
        raise UserError(
            "there is no range of time and cost to learn in",
            where="preferences, scalarisation: chebyshev",
            expected=expected,
        )
    return found[0][0], found[1][0]


@dataclass(frozen=True)
class Distance:
    """Distances from a least time and a least cost, `origin` (s, $), as shares of `span` (s, $)."""

    origin: np.ndarray
    span: np.ndarray

    @staticmethod
    def between(fastest: np.ndarray, cheapest: np.ndarray) -> Distance:
        """Return the distances in the range of two policies, each given by its time and cost, (2,)."""
        points = np.stack([fastest, cheapest])
        span = np.ptp(points, axis=0)
        return Distance(points.min(axis=0), np.where(span > 0, span, 1.0))

    def of(self, preference: str, points: np.ndarray) -> np.ndarray:
        """Return the larger weighted distance of times and costs (N, 2), plus a little of both, (N,)."""
        shares = (points - self.origin) / self.span
        weights = weights_of(preference)
        return (shares * [weights["time"], weights["cost"]]).max(axis=1) + AUGMENTATION * shares.sum(axis=1)
