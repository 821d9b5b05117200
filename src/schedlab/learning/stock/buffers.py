"""Rollout buffers for Stable-Baselines3 and sb3-contrib that store each observation once, without its padding.

The libraries' own buffers are written step by step and read environment by environment, and copy the whole rollout in
between. These buffers need no copy. They store only the numbers of an observation that differ from the padding, and one
bit of a mask for each action. The numbers read from them are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer


class Bits:
    """Truth values of a rollout, packed eight to a byte.

    They are written one step at a time, `[step] = (environments, size)`, and read by places that count environment by
      environment, `[places]` (B, size).
    """

    def __init__(self, steps: int, environments: int, size: int) -> None:
        self.steps, self.size = steps, size
        self._bytes = np.full((environments * steps, -(-size // 8)), 255, dtype=np.uint8)

    def __setitem__(self, step: int, true: np.ndarray) -> None:
        self._bytes[step :: self.steps] = np.packbits(true.astype(bool, copy=False), axis=1)

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        return np.unpackbits(self._bytes[places], axis=1, count=self.size).view(bool)


class Observations:
    """The observations of a rollout. Of each, only the numbers that differ from the padding are stored, with their
    places.

    They are written and read like Bits, but in the shape of the padding.
    """

    def __init__(self, steps: int, environments: int, padding: np.ndarray) -> None:
        self.steps, self.padding = steps, padding
        self._differs = Bits(steps, environments, padding.size)
        self._told: list[np.ndarray] = [padding.ravel()[:0]] * steps  # of each step, environment by environment
        self._ends = np.zeros((steps, environments + 1), dtype=np.int64)  # environment e has [ends[e] : ends[e + 1]]

    def __setitem__(self, step: int, shown: np.ndarray) -> None:
        flat = shown.reshape(len(shown), -1)
        self._differs[step] = differs = flat != self.padding.ravel()
        self._told[step], self._ends[step, 1:] = flat[differs], np.cumsum(differs.sum(axis=1))

    def __getitem__(self, places: np.ndarray) -> np.ndarray:
        found = np.tile(self.padding.ravel(), (len(places), 1))
        environments, steps = np.divmod(places, self.steps)
        borders = (
            numbers.tolist()
            for numbers in (steps, self._ends[steps, environments], self._ends[steps, environments + 1])
        )
        told = [self._told[step][first:end] for step, first, end in zip(*borders, strict=True)]
        np.place(found, self._differs[places], np.concatenate(told))
        return found.reshape(len(places), *self.padding.shape)


class ReadOrder:
    """Stores the large arrays of a rollout in the order in which they are read.

    padding  padding of an observation; None: zeros
    """

    observations: Any
    mask_dims: int

    def __init__(self, *arguments: Any, padding: np.ndarray | None = None, **keywords: Any) -> None:
        self._padding = padding
        super().__init__(*arguments, **keywords)

    def reset(self) -> None:
        """Begin a rollout."""
        for name in ("observations", "action_masks"):
            self.__dict__.pop(name, None)  # frees the last rollout before memory for the next one is allocated
        super().reset()  # type: ignore[misc]  # of the buffer class that is combined with this one
        steps, environments, *shape = self.observations.shape  # this array is never written, so uses no memory
        padding = np.zeros(shape) if self._padding is None else self._padding
        self.observations = Observations(steps, environments, padding.astype(self.observations.dtype))
        if "action_masks" in self.__dict__:
            self.action_masks = Bits(steps, environments, self.mask_dims)

    def to_torch(self, array: np.ndarray, copy: bool = True) -> Any:
        """Return an array as a tensor. It is not copied again, because arrays read from a rollout are new."""
        del copy
        return super().to_torch(array, copy=False)  # type: ignore[misc]

    @staticmethod
    def swap_and_flatten(array: Any) -> Any:
        """Return an array (steps, environments, ...) in the order of environments; Observations and Bits have this
        order when they are read.
        """
        return array if isinstance(array, Observations | Bits) else RolloutBuffer.swap_and_flatten(array)


class ReadOrderBuffer(ReadOrder, RolloutBuffer):
    """Rollout buffer for PPO and A2C."""


class ReadOrderMaskableBuffer(ReadOrder, MaskableRolloutBuffer):
    """Rollout buffer for PPO with masks."""


BUFFERS: dict[str, type[RolloutBuffer]] = {
    "ppo": ReadOrderBuffer,
    "a2c": ReadOrderBuffer,
    "maskable_ppo": ReadOrderMaskableBuffer,
}
