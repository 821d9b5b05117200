"""Adam (Kingma and Ba 2015) through torch's fused kernel, for small networks in short jobs.

`torch.optim.Adam` computes the same steps, but creating one imports torch's compiler: 1.2 CPU seconds in every process,
more than many of our jobs take to learn. `TorchAdam` is a version of torch's class for libraries that create their
optimiser themselves.

This is the only module that unwraps methods of torch's optimisers. If a release of torch wraps them differently,
nothing is unwrapped: the numbers stay the same, and the compiler is imported again (`schedlab doctor` and the
benchmarks show the time).
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
):  # each imports the compiler to exclude itself from compilation
    if (_plain := getattr(getattr(torch.optim.Optimizer, _name), "__wrapped__", None)) is not None:
        _plain.__dynamo_disable = _plain


_STEP = inspect.unwrap(torch.optim.Adam.step)  # its wrapper also imports the compiler


class TorchAdam(torch.optim.Adam):
    """torch's Adam, for libraries that create their optimiser themselves. It does not import torch's compiler, which
    takes 1.8 CPU seconds and 76 MB.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Take one step like torch's Adam; a closure raises ValueError."""
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
    """Updates a fixed list of parameters by their `.grad`; all of them must have one."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter], learning_rate: float) -> None:
        self.parameters, self.learning_rate = list(parameters), learning_rate
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.updates = [torch.zeros((), dtype=torch.float32, device=parameter.device) for parameter in self.parameters]

    def zero_grad(self) -> None:
        """Remove all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take one step. Raises ValueError if a parameter has no gradient."""
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
