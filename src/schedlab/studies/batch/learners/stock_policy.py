"""The networks of the batch study as policies of Stable-Baselines3 and sb3-contrib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium as gym
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import nn
from torch.nn import functional

from schedlab.learning.adam import TorchAdam
from schedlab.learning.stock.policy import PolicyParts, layered_policy
from schedlab.studies.batch.env.layouts import Layout, layout_seen
from schedlab.studies.batch.learners.networks import (
    EXCLUDED,
    Queue,
    begin_orthogonal,
    policy_network,
    read,
    value_network,
)
from schedlab.studies.batch.learners.stock_settings import BatchMaskablePPOSettings

SMALLEST = -80.0  # exp of little less is no normal number in single precision
POLICY_GAIN, VALUE_GAIN = 0.01, 1.0  # of the last layers, as in the dissertation (and by default in Stable-Baselines3)


class Reader(nn.Module):
    """Replaces the layers that policy and value share: splits observations into their parts, once for both."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout

    def forward(self, flat: torch.Tensor) -> tuple[Queue, Queue]:
        """Return what the policy and what the value network reads."""
        queue = read(self.layout, flat)
        return queue, queue

    def forward_actor(self, flat: torch.Tensor) -> Queue:
        """Return what the policy reads."""
        return read(self.layout, flat)

    forward_critic = forward_actor


if TYPE_CHECKING:
    from stable_baselines3.common.policies import ActorCriticPolicy as NetworksBase
else:
    NetworksBase = object


class QueueNetworks(NetworksBase):
    """Replaces Stable-Baselines3's networks; reads observations of `layout`.

    value_rate  learning rate of the value network over the policy's
    """

    def __init__(
        self,
        observation_space: gym.Space,
        action_space: gym.Space,
        lr_schedule: Any,
        *,
        layout: Layout,
        network: str,
        value: str,
        value_rate: float,
        **keywords: Any,
    ) -> None:
        with torch.random.fork_rng(devices=[]):  # theirs draw parameters that are not used
            super().__init__(observation_space, action_space, lr_schedule, net_arch=[], **keywords)
        self.mlp_extractor = Reader(layout)
        self.action_net, self.value_net = policy_network(network, layout), value_network(value, layout)
        if self.ortho_init:
            begin_orthogonal(self.action_net, POLICY_GAIN)
            begin_orthogonal(self.value_net, VALUE_GAIN)
        groups = [
            {"params": list(self.action_net.parameters())},
            {"params": list(self.value_net.parameters()), "factor": value_rate},
        ]
        self.optimizer = self.optimizer_class(groups, lr=lr_schedule(1), **self.optimizer_kwargs)

    def evaluate_actions(
        self, obs: torch.Tensor, actions: torch.Tensor, action_masks: Any = None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return values (B, 1), logarithms of probabilities (B,) and entropies (B,), as the policy's distribution does,
        which is slow: its exponentials of excluded rows underflow.
        """
        queue, _ = self.mlp_extractor(self.extract_features(obs))
        scores = self.action_net(queue)
        if action_masks is not None:
            scores = scores.masked_fill(~torch.as_tensor(action_masks, dtype=torch.bool).view_as(scores), EXCLUDED)
        scores = torch.maximum(scores, scores.detach().amax(dim=1, keepdim=True) + SMALLEST)
        logarithms = functional.log_softmax(scores, dim=1)
        entropy = -(logarithms.exp() * logarithms).sum(dim=1)
        return self.value_net(queue), logarithms.gather(1, actions.long().view(-1, 1)).squeeze(1), entropy


class QueuePolicy(QueueNetworks, ActorCriticPolicy):
    """For PPO and A2C, which have no masks. Rows without a job are never chosen all the same."""


class MaskableQueuePolicy(QueueNetworks, MaskableActorCriticPolicy):
    """For PPO with masks."""


class TwoRates(TorchAdam):
    """Adam in which groups may have a `factor` on the learning rate, since Stable-Baselines3 sets one rate for all
    groups.
    """

    def step(self, closure: None = None) -> None:
        """Take a step at the rate of each group."""
        rates = [group["lr"] for group in self.param_groups]
        for group in self.param_groups:
            group["lr"] *= group.get("factor", 1.0)
        try:
            super().step(closure)
        finally:
            for group, rate in zip(self.param_groups, rates, strict=True):
                group["lr"] = rate


def queue_policy(settings: Any, observation_space: Any, action_space: gym.Space) -> PolicyParts:
    """Return the policy class of the settings' networks and its keywords: the hook of StableBaselinesLearner."""
    if settings.network == "layers":
        return layered_policy(settings, observation_space, action_space)
    keywords: dict[str, Any] = {
        "layout": layout_seen(settings.environment, observation_space.shape[0]),
        "network": settings.network,
        "value": settings.value,
        "value_rate": 1.0,
        "ortho_init": settings.ortho_init,
    }
    if not isinstance(settings, BatchMaskablePPOSettings):
        return QueuePolicy, keywords
    if settings.value_learning_rate is not None:
        keywords |= {"value_rate": settings.value_learning_rate / settings.learning_rate, "optimizer_class": TwoRates}
    return MaskableQueuePolicy, keywords
