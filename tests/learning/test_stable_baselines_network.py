"""A study brings its own network and its values to a stock learner."""

from __future__ import annotations

import pytest
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from toy_problems import MaskedBandit, Several, learn, mean_return

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import setting
from schedlab.learning.stock.learner import StableBaselinesLearner
from schedlab.learning.stock.settings import MaskablePPOSettings

KERNEL = {"n_steps": 128, "learning_rate": 3e-3, "n_epochs": 10}


class KernelSettings(MaskablePPOSettings):
    """A study's own values of its network."""

    kernel: int = setting(8, doc="units of the layer that reads one row", ge=1)


class KernelPolicy(MaskableActorCriticPolicy):
    """Scores each of the four numbers that are seen by one and the same small network."""

    def __init__(self, *spaces_and_schedule, kernel: int, **keywords) -> None:
        self.kernel = kernel
        super().__init__(*spaces_and_schedule, net_arch=[], **keywords)

    def _build(self, lr_schedule) -> None:
        super()._build(lr_schedule)
        self.action_net = torch.nn.Sequential(
            torch.nn.Unflatten(1, (4, 1)),
            torch.nn.Linear(1, self.kernel),
            torch.nn.Tanh(),
            torch.nn.Linear(self.kernel, 1),
            torch.nn.Flatten(),
        )
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)


def kernel_policy(settings: KernelSettings, observation_space, action_space):
    assert observation_space.shape == (4,) and action_space.n == 4
    return KernelPolicy, {"kernel": settings.kernel}


def test_a_study_brings_its_own_network_and_values(tmp_path):
    learner, problem = StableBaselinesLearner("maskable_ppo", KernelSettings, kernel_policy), Several(MaskedBandit)
    checkpoint, _ = learn(learner, problem, tmp_path, 2048, **KERNEL, kernel=5)
    policy = learner.load(checkpoint, problem)
    assert mean_return(policy, problem) > 4.9
    assert policy.policy.action_net[1].weight.shape == (5, 1)
    phases = Phase(("one",), 64), Phase(("one",), 64, {"kernel": 6})
    with pytest.raises(UserError, match=r"toy.yaml: train_on.1.params.kernel: 'kernel' cannot change between phases"):
        learn(learner, problem, tmp_path / "changed", *phases, **KERNEL)
