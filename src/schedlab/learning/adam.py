"""Adam (Kingma and Ba 2015) through torch's fused kernel, for small networks in short jobs.

`torch.optim.Adam` computes the same, but making one imports torch's compiler: 1.2 CPU seconds in every process, more than many of our
jobs learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch.optim.adam import adam

CONSTANTS = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False, "foreach": False}


class Adam:
    """Steps a fixed list of parameters along their `.grad`; all of them must have one."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float) -> None:
        self.parameters, self.learning_rate = list(parameters), learning_rate
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.updates = [torch.zeros((), dtype=torch.float32, device=parameter.device) for parameter in self.parameters]

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take one step. Raises ValueError where a parameter has no gradient."""
        gradients = [parameter.grad for parameter in self.parameters]
        if any(gradient is None for gradient in gradients):
            raise ValueError("a parameter has no gradient: the loss does not depend on it")
        memory = self.means, self.squares, [], self.updates
        adam(self.parameters, gradients, *memory, fused=True, lr=self.learning_rate, **CONSTANTS)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return its memory as arrays by name, to be stored."""
        memory = {"mean": self.means, "square": self.squares, "updates": self.updates}
        return {f"{name}/{index}": tensor.cpu().numpy().copy() for name, kept in memory.items() for index, tensor in enumerate(kept)}

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Put stored arrays back. Raises KeyError or RuntimeError where they are of other parameters."""
        for name, kept in (("mean", self.means), ("square", self.squares), ("updates", self.updates)):
            for index, tensor in enumerate(kept):
                tensor.copy_(torch.from_numpy(np.asarray(arrays[f"{name}/{index}"])))
