"""Fully connected networks, and activations by their names in settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from torch import nn

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
}
_RELU = partial(nn.ReLU, inplace=True)


def layers(
    inputs: int, hidden: Sequence[int], outputs: int | None, activation: Callable[[], nn.Module] = _RELU
) -> nn.Sequential:
    """Return fully connected layers with an activation after each hidden one; outputs None: only hidden layers."""
    modules: list[nn.Module] = []
    for size in hidden:
        modules, inputs = [*modules, nn.Linear(inputs, size), activation()], size
    return nn.Sequential(*modules, *([] if outputs is None else [nn.Linear(inputs, outputs)]))
