"""Rollout buffers that hold observations once give what those of Stable-Baselines3 give."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer

from schedlab.learning.stable_baselines_buffers import ReadOrderBuffer, ReadOrderMaskableBuffer

STEPS, ENVIRONMENTS = 5, 3
SPACES = gym.spaces.Box(-1.0, 1.0, (4,), np.float32), gym.spaces.Discrete(6)


def filled(kind: type[RolloutBuffer], rollouts: int, masked: bool) -> RolloutBuffer:
    buffer, rng = kind(STEPS, *SPACES, device="cpu", n_envs=ENVIRONMENTS), np.random.default_rng(3)
    for rollout in range(rollouts):
        if rollout:
            list(buffer.get(4))
            buffer.reset()
        for _ in range(STEPS):
            row = rng.normal(size=(ENVIRONMENTS, 4)).astype(np.float32), rng.integers(6, size=ENVIRONMENTS), rng.normal(size=ENVIRONMENTS)
            more = {"action_masks": rng.integers(2, size=(ENVIRONMENTS, 6))} if masked and rollout else {}
            buffer.add(*row, np.zeros(ENVIRONMENTS), *torch.from_numpy(rng.normal(size=(2, ENVIRONMENTS))), **more)
        buffer.compute_returns_and_advantage(torch.zeros(ENVIRONMENTS), np.ones(ENVIRONMENTS))
    return buffer


@pytest.mark.parametrize(
    ("ours", "theirs", "masked"), [(ReadOrderBuffer, RolloutBuffer, False), (ReadOrderMaskableBuffer, MaskableRolloutBuffer, True)]
)
@pytest.mark.parametrize("rollouts", [1, 3])
def test_the_same_numbers_in_the_same_order(ours, theirs, masked, rollouts) -> None:
    samples = []
    for kind in (ours, theirs):
        buffer = filled(kind, rollouts, masked)
        np.random.seed(5)  # noqa: NPY002  (the buffers draw from it)
        samples.append(list(buffer.get(4)))
    for one, other in zip(*samples, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_reading_copies_no_observation() -> None:
    buffer = filled(ReadOrderMaskableBuffer, 1, masked=True)
    written = buffer.observations, buffer.action_masks
    next(buffer.get(4))
    assert np.shares_memory(written[0], buffer.observations) and np.shares_memory(written[1], buffer.action_masks)
