"""Functions that policy-gradient learners share (Williams 1992): masks, entropy, returns, baselines and the gradient
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    from schedlab.learning.adam import Adam


def masked(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return logits whose softmax gives a masked action (False) a probability of 0."""
    return torch.where(masks, logits, torch.finfo(logits.dtype).min)


def masked_log_probabilities(logits: torch.Tensor, masks: torch.Tensor) -> torch.Tensor:
    """Return log-probabilities over the last axis; a masked action (False) has a probability of 0."""
    return masked(logits, masks).log_softmax(-1)


def of_actions(log_probabilities: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities (...,) of the actions taken (...,), from those of all actions (..., A)."""
    return log_probabilities.gather(-1, actions[..., None])[..., 0]


def entropy(log_probabilities: torch.Tensor) -> torch.Tensor:
    """Return the entropy (nat) over the last axis."""
    return -(log_probabilities.exp() * log_probabilities).sum(-1)


def descend(optimizer: Adam, loss: torch.Tensor) -> None:
    """Take a gradient step."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def discounted(rewards: np.ndarray | Sequence[float], gamma: float) -> np.ndarray:
    """Return G_t = r_t + gamma G_(t+1) along the first axis, float64."""
    found = np.array(rewards, dtype=float)
    for place in range(len(found) - 2, -1, -1):
        found[place] += gamma * found[place + 1]
    return found


def standardised(values: np.ndarray) -> np.ndarray:
    """Return values (n,) minus their mean, divided by their unbiased standard deviation; a single value is returned
    unchanged.
    """
    if len(values) < 2:
        return values
    found: np.ndarray = (values - values.mean()) / (values.std(ddof=1) + np.finfo(np.float32).eps)
    return found


def normalised(advantages: np.ndarray) -> np.ndarray:
    """Return advantages divided by their root mean square; if all are zero, they stay zero."""
    scale = float(np.sqrt(np.mean(np.square(advantages))))
    return advantages / scale if scale > 0 else advantages


@dataclass
class MovingMean:
    """A baseline: the exponentially weighted mean of the returns so far, unbiased from the first return on.

    keep: factor on the weight of earlier returns. total, weight: the sums of weighted returns and of weights.
    """

    keep: float = 0.95
    total: float = 0.0
    weight: float = 0.0

    @property
    def value(self) -> float:
        """The mean so far; 0 before the first return."""
        return self.total / self.weight if self.weight else 0.0

    def update(self, returns: np.ndarray) -> None:
        """Add returns in order."""
        for value in np.ravel(returns):
            self.total = self.keep * self.total + (1 - self.keep) * float(value)
            self.weight = self.keep * self.weight + (1 - self.keep)


def cooled(start: float, factor: float, every: int, episode: int) -> float:
    """Return the temperature at an episode (counted from 0): multiplied by `factor` after every `every` episodes, never
    below 1.
    """
    return max(1.0, start * factor ** (episode // every))
