"""What every REINFORCE learner shares (Williams 1992): baseline, entropy, scale of advantages, exploration that cools
down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


def entropy(log_probabilities: torch.Tensor) -> torch.Tensor:
    """Return the entropy (nat) over the last axis."""
    return -(log_probabilities.exp() * log_probabilities).sum(-1)


def normalised(advantages: np.ndarray) -> np.ndarray:
    """Return advantages divided by their root mean square; all zero stays zero."""
    scale = float(np.sqrt(np.mean(np.square(advantages))))
    return advantages / scale if scale > 0 else advantages


@dataclass
class MovingMean:
    """A baseline: the exponentially weighted mean of the returns seen, without bias at the start (weight counts
    them).
    """

    keep: float = 0.95
    total: float = 0.0
    weight: float = 0.0

    @property
    def value(self) -> float:
        """The mean so far; 0 before the first return."""
        return self.total / self.weight if self.weight else 0.0

    def update(self, returns: np.ndarray) -> None:
        """Take in returns in order."""
        for value in np.ravel(returns):
            self.total = self.keep * self.total + (1 - self.keep) * float(value)
            self.weight = self.keep * self.weight + (1 - self.keep)


def cooled(start: float, factor: float, every: int, episode: int) -> float:
    """Return the temperature at an episode (counted from 0): multiplied by `factor` after every `every` episodes, never
    below 1.
    """
    return max(1.0, start * factor ** (episode // every))
