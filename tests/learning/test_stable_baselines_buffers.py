"""Rollout buffers that hold observations once, and without their padding, give what those of Stable-Baselines3 give."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer

from schedlab.learning.stock.buffers import ReadOrderBuffer, ReadOrderMaskableBuffer

STEPS, ENVIRONMENTS = 5, 3
ACTIONS = gym.spaces.Discrete(6)


def filled(
    kind: type[RolloutBuffer], rollouts: int, masked: bool, shape: tuple[int, ...] = (4,), **keywords: np.ndarray
) -> RolloutBuffer:
    """A buffer whose observations are ones but for some numbers, and nothing else in the last environment."""
    space = gym.spaces.Box(-1.0, 1.0, shape, np.float32)
    buffer, rng = kind(STEPS, space, ACTIONS, device="cpu", n_envs=ENVIRONMENTS, **keywords), np.random.default_rng(3)
    for rollout in range(rollouts):
        if rollout:
            list(buffer.get(4))
            buffer.reset()
        for _ in range(STEPS):
            told = rng.integers(2, size=(ENVIRONMENTS, *shape))
            told[-1] = 0
            shown = np.where(told, rng.normal(size=told.shape), 1.0).astype(np.float32)
            row = shown, rng.integers(6, size=ENVIRONMENTS), rng.normal(size=ENVIRONMENTS)
            more = (
                {"action_masks": rng.integers(2, size=(ENVIRONMENTS, 6)).astype(np.float32)}
                if masked and rollout
                else {}
            )
            buffer.add(*row, np.zeros(ENVIRONMENTS), *torch.from_numpy(rng.normal(size=(2, ENVIRONMENTS))), **more)
        buffer.compute_returns_and_advantage(torch.zeros(ENVIRONMENTS), np.ones(ENVIRONMENTS))
    return buffer


def samples(buffer: RolloutBuffer) -> list:
    np.random.seed(5)  # noqa: NPY002  (the buffers draw from it)
    return list(buffer.get(4))


@pytest.mark.parametrize(
    ("ours", "theirs", "masked"),
    [(ReadOrderBuffer, RolloutBuffer, False), (ReadOrderMaskableBuffer, MaskableRolloutBuffer, True)],
)
@pytest.mark.parametrize("rollouts", [1, 3])
@pytest.mark.parametrize("shape", [(4,), (3, 7)])
@pytest.mark.parametrize("padding", [None, 1.0, 0.5], ids=["zeros", "theirs", "never seen"])
def test_the_same_numbers_in_the_same_order(ours, theirs, masked, rollouts, shape, padding) -> None:
    told = {} if padding is None else {"padding": np.full(shape, padding)}
    pairs = zip(
        samples(filled(ours, rollouts, masked, shape, **told)),
        samples(filled(theirs, rollouts, masked, shape)),
        strict=True,
    )
    for one, other in pairs:
        for a, b in zip(one, other, strict=True):
            assert torch.equal(a.to(b.dtype), b) and (a.dtype == b.dtype or a.dtype == torch.bool)


def test_no_more_is_held_than_differs_from_the_padding() -> None:
    padding = np.ones(4)
    plain, ours = filled(MaskableRolloutBuffer, 1, True), filled(ReadOrderMaskableBuffer, 1, True, padding=padding)
    told = np.count_nonzero(plain.observations != 1)
    assert 0 < told < plain.observations.size * 2 / 3
    assert sum(part.size for part in ours.observations._told) == told
    held = ours.observations, ours.action_masks
    next(ours.get(4))
    assert (ours.observations, ours.action_masks) == held  # nor is it copied to be read


def test_what_was_read_is_the_readers_own() -> None:
    buffer = filled(ReadOrderBuffer, 1, False, padding=np.ones(4))
    first = samples(buffer)
    kept = [part.observations.clone() for part in first]
    for part in first:
        part.observations.zero_()
    assert all(torch.equal(again.observations, was) for again, was in zip(samples(buffer), kept, strict=True))
