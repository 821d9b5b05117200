"""Rollout buffers of Stable-Baselines3 and sb3-contrib that store each observation once, without its
padding.

Theirs are written step by step and read environment by environment, and copy all of a rollout between the two. These
are not copied, hold of an observation only what is no padding, and of a mask a bit for each action; the numbers that
they give are the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer


class Bits:
    """Truth values of a rollout, packed eight to a byte.

    Written a step at a time: `[step] = (environments, size)`; read by places that count environment by environment:
      `[places]` (B, size).
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

    Written and read as Bits are, but in the shape of the padding.
    """

    def __init__(self, steps: int, environments: int, padding: np.ndarray) -> None:
        self.steps, self.padding = steps, padding
        self._differs = Bits(steps, environments, padding.size)
        self._told: list[np.ndarray] = [padding.ravel()[:0]] * steps  # of a step, one environment after the other
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

    padding  value of an observation's padding; None: zeros
    """

    observations: Any
    mask_dims: int

    def __init__(self, *arguments: Any, padding: np.ndarray | None = None, **keywords: Any) -> None:
        self._padding = padding
        super().__init__(*arguments, **keywords)

    def reset(self) -> None:
        """Begin a rollout."""
        for name in ("observations", "action_masks"):
            self.__dict__.pop(name, None)  # the last rollout's, before there is room for the next
        super().reset()  # type: ignore[misc]  # of the buffer that this class is mixed into
        steps, environments, *shape = self.observations.shape  # theirs is never touched, so it takes no memory
        padding = np.zeros(shape) if self._padding is None else self._padding
        self.observations = Observations(steps, environments, padding.astype(self.observations.dtype))
        if "action_masks" in self.__dict__:
            self.action_masks = Bits(steps, environments, self.mask_dims)

    def to_torch(self, array: np.ndarray, copy: bool = True) -> Any:
        """Return an array as a tensor. Arrays read from a rollout are new, so they are not copied again."""
        del copy
        return super().to_torch(array, copy=False)  # type: ignore[misc]

    @staticmethod
    def swap_and_flatten(array: Any) -> Any:
        """Return an array (steps, environments, ...) environment by environment; Observations and Bits do this when
        they are read.
        """
        return array if isinstance(array, Observations | Bits) else RolloutBuffer.swap_and_flatten(array)


class ReadOrderBuffer(ReadOrder, RolloutBuffer):
    """For PPO and A2C."""


class ReadOrderMaskableBuffer(ReadOrder, MaskableRolloutBuffer):
    """For PPO with masks."""


BUFFERS: dict[str, type[RolloutBuffer]] = {
    "ppo": ReadOrderBuffer,
    "a2c": ReadOrderBuffer,
    "maskable_ppo": ReadOrderMaskableBuffer,
}
