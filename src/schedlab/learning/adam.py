"""Adam (Kingma and Ba 2015) through torch's fused kernel, for small networks in short jobs.

`torch.optim.Adam` computes the same, but making one imports torch's compiler: 1.2 CPU seconds in every process, more
than many of our jobs learn. `TorchAdam` is torch's for libraries that make their own.

The one module that unwraps methods of torch's optimisers. Where a release of torch wraps them otherwise, nothing is
unwrapped: the numbers stay, and the compiler is imported again (`schedlab doctor` and the benchmarks show the time).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch.optim.adam import adam

for _name in (
    "add_param_group",
    "zero_grad",
    "state_dict",
    "load_state_dict",
):  # each imports the compiler to tell it to look away
    if (_plain := getattr(getattr(torch.optim.Optimizer, _name), "__wrapped__", None)) is not None:
        _plain.__dynamo_disable = _plain


_STEP = inspect.unwrap(torch.optim.Adam.step)  # what is wrapped around it imports the compiler, too


class TorchAdam(torch.optim.Adam):
    """torch's Adam, for libraries that make their optimiser themselves. It avoids importing torch's compiler, which
    takes 1.8 CPU seconds and 76 MB.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Take one step, as torch's does; no closure."""
        if closure is not None:
            raise ValueError("a closure is not evaluated")
        _STEP(self)


CONSTANTS = {
    "beta1": 0.9,
    "beta2": 0.999,
    "eps": 1e-8,
    "weight_decay": 0.0,
    "amsgrad": False,
    "maximize": False,
    "foreach": False,
}


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
        adam(
            self.parameters,
            gradients,
            self.means,
            self.squares,
            [],
            self.updates,
            fused=True,
            lr=self.learning_rate,
            **CONSTANTS,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the optimiser's state as arrays by name, to be stored."""
        memory = {"mean": self.means, "square": self.squares, "updates": self.updates}
        return {
            f"{name}/{index}": tensor.cpu().numpy().copy()
            for name, kept in memory.items()
            for index, tensor in enumerate(kept)
        }

    def load(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Restore a stored state. Raises KeyError or RuntimeError if it belongs to other parameters."""
        for name, kept in (("mean", self.means), ("square", self.squares), ("updates", self.updates)):
            for index, tensor in enumerate(kept):
                tensor.copy_(torch.from_numpy(np.asarray(arrays[f"{name}/{index}"])))
