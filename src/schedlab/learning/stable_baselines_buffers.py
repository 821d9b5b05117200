"""Rollout buffers of Stable-Baselines3 and sb3-contrib that hold each observation once.

Theirs are written step by step and read environment by environment, and copy all of a rollout between the two. These lie in memory as they
are read; what they hold and give is the same.
"""

from __future__ import annotations

import numpy as np
from sb3_contrib.common.maskable.buffers import MaskableRolloutBuffer
from stable_baselines3.common.buffers import RolloutBuffer


class ReadOrder:
    """Puts the large arrays of a rollout into the order in which they are read."""

    LARGE = ("observations", "action_masks")

    def reset(self) -> None:
        """Begin a rollout."""
        for name in self.LARGE:
            self.__dict__.pop(name, None)  # the last rollout's, before there is room for the next
        super().reset()
        for name in self.LARGE:
            if name in self.__dict__:
                steps, environments, *shape = self.__dict__[name].shape
                self.__dict__[name] = np.zeros((environments, steps, *shape), self.__dict__[name].dtype).swapaxes(0, 1)
        if "action_masks" in self.__dict__:
            self.action_masks[:] = 1


class ReadOrderBuffer(ReadOrder, RolloutBuffer):
    """For PPO and A2C."""


class ReadOrderMaskableBuffer(ReadOrder, MaskableRolloutBuffer):
    """For PPO with masks."""


BUFFERS: dict[str, type[RolloutBuffer]] = {"ppo": ReadOrderBuffer, "a2c": ReadOrderBuffer, "maskable_ppo": ReadOrderMaskableBuffer}
