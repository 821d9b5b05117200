"""The linear priority: the waiting job of the highest weighted sum of features comes first, ties by submit time, then job number.

The features read a job, its wait, the free nodes and, for the last two, what planning the present queue says (plan_features.py). Each is
scaled to be of order one, so that one step of a search means about the same for all weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from schedlab.config.errors import UserError

FEATURES = {
    "log_request": "ln(r) / 10",
    "log_procs": "ln(n) / 5",
    "share": "n / P",
    "share_log_request": "n / P ln(r) / 10",
    "share_root_request": "n / P sqrt(r) / 100",
    "log_wait": "ln(1 + w) / 10",
    "log_wait_ratio": "ln(1 + w / r) / 5",
    "wait_days": "w in days, at most 3",
    "fits": "1 where the job could start now, else 0",
    "log_delay": "ln(1 + d) / 10, d: estimated s until it could start if nothing else started",
    "plan_log": "log10(0.001 + x) / 3 + 1, x: excess of the best plan that begins with the job over the best plan of all",
    "plan": "x, at most 1",
}  # r requested time in s, n processors of P, w wait in s
NAMES = tuple(FEATURES)
FIXED = 5  # the first ones do not change while the job waits
PLAN = 10  # the last ones need a plan
DAY = 86400.0  # s
MOST_DAYS = 3.0  # of the feature wait_days


@dataclass(frozen=True)
class LinearPriority:
    """A policy: one weight for each of FEATURES, (12,) float64."""

    weights: np.ndarray

    def __post_init__(self) -> None:
        if np.shape(self.weights) != (len(NAMES),) or not np.isfinite(self.weights).all():
            expected = f"{len(NAMES)} finite numbers: {', '.join(NAMES)}"
            raise UserError(f"a linear priority cannot have the weights {self.weights}", where="weights", expected=expected)

    @property
    def plans(self) -> bool:
        """Tell whether the policy reads a plan of the queue."""
        return bool(np.any(self.weights[PLAN:] != 0))


def linear_priority(**weights: float) -> LinearPriority:
    """Return the policy of weights by name, 0 for the others."""
    return LinearPriority(np.array([float(weights.get(name, 0.0)) for name in NAMES]))


PLANNER = linear_priority(plan_log=-1.0)  # simulates the queue with each candidate first and takes the best: nothing is learned
