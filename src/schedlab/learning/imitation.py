"""Behaviour cloning: decisions of an expert, and the minibatch fit of a policy to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import torch

from schedlab.learning.adam import TorchAdam


class Decided(NamedTuple):
    """A decision of an expert: the observation, the mask of valid actions (actions,), the chosen action, and the
    reward.
    """

    observation: Any
    mask: np.ndarray
    action: int
    reward: float


def demonstrated(env: gym.Env, observation: Any, choose: Callable[[np.ndarray], int]) -> list[Decided]:
    """Return the decisions from an observation to the end of its episode, each chosen by `choose(mask)`."""
    found, over, masks = [], False, env.get_wrapper_attr("action_masks")
    while not over:
        mask = masks()
        action = choose(mask)
        following, reward, terminated, truncated, _ = env.step(action)
        found.append(Decided(observation, mask, action, float(reward)))
        observation, over = following, terminated or truncated
    return found


def fit(
    parameters: Iterable[torch.nn.Parameter],
    loss_of: Callable[[torch.Tensor, int], torch.Tensor],
    decisions: int,
    passes: int,
    minibatch: int,
    rate: float,
    final_rate: float | None = None,
    max_grad_norm: float | None = None,
) -> None:
    """Fit parameters to decisions with Adam, in passes over shuffled minibatches. The order is drawn from torch's
    global random stream.

    loss_of: (numbers of decisions (n,), number of the pass) -> the loss
    final_rate: fraction of the learning rate at the end of a linear decrease; None: constant
    max_grad_norm: gradients are clipped to this norm
    """
    own = list(parameters)
    optimizer = TorchAdam(own, lr=rate)
    steps = passes * -(-decisions // minibatch)
    falling = 1.0 if final_rate is None else final_rate
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, falling, max(steps, 1))
    for number in range(passes):
        for part in torch.randperm(decisions).split(minibatch):
            optimizer.zero_grad()
            loss_of(part, number).backward()
            if max_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(own, max_grad_norm)
            optimizer.step()
            schedule.step()
