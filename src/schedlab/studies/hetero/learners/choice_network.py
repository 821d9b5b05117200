"""The network that scores each option of a decision, and its fit to the values of options that were tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from schedlab.learning.adam import Adam
from schedlab.learning.policy_gradient import descend, masked_log_probabilities
from schedlab.studies.hetero.kernels.choice_kernel import OWN, SHARED, SLOPE, KernelScorer
from schedlab.studies.hetero.kernels.cluster_kernel import CORE_CODES

ALIKE = 1e-9  # smaller differences of the mean bounded slowdown are rounding


class ChoiceNetwork(nn.Module):
    """A network from the numbers of options (..., SHARED + OWN) to their scores (...), with two hidden layers and leaky
    rectifiers.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.first, self.inner = nn.Linear(SHARED + OWN, hidden), nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1, bias=False)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return the scores (...) of options with the numbers (..., SHARED + OWN)."""
        values = nn.functional.leaky_relu(self.first(numbers), SLOPE)
        return self.last(nn.functional.leaky_relu(self.inner(values), SLOPE))[..., 0]


def kernel_scorer(network: ChoiceNetwork, window: int, cores: Sequence[str]) -> KernelScorer:
    """Return the network in the kernel's form, with the window and the core policies that define the options."""
    first, first_bias, inner, inner_bias, last = (
        parameter.detach().double().numpy() for parameter in network.parameters()
    )
    shared, own = (np.ascontiguousarray(part.T) for part in (first[:, :SHARED], first[:, SHARED:]))
    weights = shared, own, first_bias, np.ascontiguousarray(inner.T), inner_bias, last[0]
    return KernelScorer(*weights, window, np.array([CORE_CODES[name] for name in cores]), np.random.default_rng(0))


@dataclass
class TriedOptions:
    """The options of decisions at which some options were tried.

    numbers     (options, SHARED + OWN): the options of all decisions in a row
    counts      (decisions,): number of options of each decision
    advantages  (options,): how much better an option is than the mean of the options tried at its decision
    """

    numbers: np.ndarray
    counts: np.ndarray
    advantages: np.ndarray

    @classmethod
    def of_episode(cls, numbers: np.ndarray, counts: np.ndarray, values: np.ndarray, scale: float) -> TriedOptions:
        """Return the options that `play_with_trials` returned, without decisions whose options all have the same value.
        Advantages are divided by `scale`. An option that was not tried gets the value of the worst one that was.
        """
        offered = np.arange(values.shape[1]) < counts[:, None]
        tried = offered & np.isfinite(values)
        low, high = np.where(tried, values, np.inf).min(1), np.where(tried, values, -np.inf).max(1)
        offered[high - low <= ALIKE] = False
        known = np.where(tried, values, high[:, None])
        means = np.where(tried, values, 0.0).sum(1) / np.maximum(tried.sum(1), 1)
        count = offered.sum(1)
        return cls(numbers[offered], count[count > 0], ((means[:, None] - known) / scale)[offered])

    @classmethod
    def joined(cls, parts: Sequence[TriedOptions]) -> TriedOptions:
        """Return the options of several episodes or updates as one object."""
        names = ("numbers", "counts", "advantages")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def fit(network: ChoiceNetwork, optimizer: Adam, tried: TriedOptions, passes: int, minibatch: int) -> float:
    """Raise the probability of options by their advantages, and return the mean advantage expected in the last pass.

    The loss of a decision is minus the sum over its options of probability x advantage, where the probabilities are the
    softmax of the scores. Its gradient is the policy gradient with the sum over actions instead of a drawn action.
    Advantages are divided by their mean absolute value. torch's global random stream shuffles the decisions.
    """
    if not len(tried.counts):
        return 0.0
    starts = np.concatenate([[0], np.cumsum(tried.counts)[:-1]])
    places = np.arange(tried.counts.max())
    masks = torch.from_numpy(places < tried.counts[:, None])
    index = torch.from_numpy(np.minimum(starts[:, None] + places, len(tried.numbers) - 1))
    numbers = torch.from_numpy(tried.numbers)
    advantages = torch.from_numpy((tried.advantages / np.abs(tried.advantages).mean()).astype(np.float32))
    reached = 0.0
    for _ in range(passes):
        reached = 0.0
        for part in torch.randperm(len(index)).split(minibatch):
            mask, place = masks[part], index[part]
            chances = masked_log_probabilities(network(numbers[place]), mask).exp()
            gain = (chances * torch.where(mask, advantages[place], 0.0)).sum(-1)
            descend(optimizer, -gain.mean())
            reached += float(gain.detach().sum())
    return reached / len(index)
