"""The network of an architecture in torch: named tensors and a flat list of functions over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from schedlab.config.seeds import derive_seed
from schedlab.studies.adaptation.network.architecture import Architecture, Layer, Shape

BATCH_NORM_EPSILON = 1e-5  # torch's default
BATCH_NORM_MOMENTUM = 0.1  # torch's default


class Network(nn.Module):
    """A network of an architecture with the tensors of `state` (named as `Layer.parameters` and `.buffers`).

    `network(images)` takes float32 images (n, channels, height, width) and returns logits (n, classes). The forward
    pass is a loop over plain functions: a tenth faster than the same layers as modules for small networks. Tensors are
    found under `state_dict()` and `named_parameters()` by names that insertions leave alone (`block0.conv.weight`).
    """

    def __init__(self, architecture: Architecture, state: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.architecture = architecture
        expected = {name for layer in architecture.layers for name in (*layer.parameters, *layer.buffers)}
        if expected != set(state):
            raise ValueError(f"tensors that are missing or too many: {sorted(expected ^ set(state))}")
        for layer in architecture.layers:
            for name, shape in layer.parameters.items():
                owner, attribute = self._owner(name)
                owner.register_parameter(attribute, nn.Parameter(_checked(name, state[name], shape)))
            for name, shape in layer.buffers.items():
                owner, attribute = self._owner(name)
                owner.register_buffer(attribute, _checked(name, state[name], shape))
        self._bind()
        self.register_load_state_dict_post_hook(lambda network, _: network._bind())

    def forward(self, images: Tensor, stop: int | None = None) -> Tensor:
        """Return the logits, or with `stop` the output of the first `stop` layers."""
        x, training = images, self.training
        for function, tensors in self._steps[:stop]:
            x = function(x, training, *tensors)
        return x

    def _owner(self, name: str) -> tuple[nn.Module, str]:
        """Return the module that holds a tensor of a dotted name (created if missing), and the name's last part."""
        *path, attribute = name.split(".")
        owner: nn.Module = self
        for part in path:
            if part not in dict(owner.named_children()):
                owner.add_module(part, nn.Module())
            owner = owner.get_submodule(part)
        return owner, attribute

    def _bind(self) -> None:
        """Pair each layer's function with its tensors; called again when a tensor may have become another object."""
        tensors = {**dict(self.named_parameters()), **dict(self.named_buffers())}
        layers, inputs = self.architecture.layers, (self.architecture.input, *self.architecture.shapes[:-1])
        self._steps = [
            (_function(layer, shape), tuple(tensors[name] for name in (*layer.parameters, *layer.buffers)))
            for layer, shape in zip(layers, inputs, strict=True)
        ]

    def to(self, *place: Any, **keywords: Any) -> Network:
        """Move or convert all tensors, like any module; `cuda()`, `double()` and the like are not supported."""
        super().to(*place, **keywords)
        self._bind()
        return self


def build(architecture: Architecture, seed: int) -> Network:
    """Return a new network with torch's default initial values; each tensor is drawn from a stream with its name.

    The values of a tensor depend neither on the global random state nor on other layers.
    """
    state = {name: tensor for layer in architecture.layers for name, tensor in initial_tensors(layer, seed).items()}
    return Network(architecture, state)


def initial_tensors(layer: Layer, seed: int) -> dict[str, Tensor]:
    """Return a layer's tensors: weights and biases uniform in +-1/sqrt(fan-in), a batch norm as the identity."""
    if layer.kind == "batch_norm":
        ones = (f"{layer.name}.weight", f"{layer.name}.running_var")
        shapes = {**layer.parameters, **layer.buffers}
        return {name: torch.full(shape, float(name in ones)) for name, shape in shapes.items()}
    bound, tensors = (layer.inputs * layer.kernel**2) ** -0.5, {}
    for name, shape in layer.parameters.items():
        stream = torch.Generator().manual_seed(derive_seed(seed, name))
        tensors[name] = torch.empty(shape).uniform_(-bound, bound, generator=stream)
    return tensors


def _checked(name: str, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"tensor {name} has shape {tuple(tensor.shape)}, expected {shape}")
    return tensor.detach()


def _function(layer: Layer, shape: Shape) -> Callable[..., Tensor]:
    """Return the function (input, training, *tensors) -> output of a layer; it holds no tensor, so it can be copied."""
    stride, padding, kernel = layer.stride, layer.padding, layer.kernel
    if layer.kind == "conv" and layer.output_shape(shape)[1:] == (1, 1):
        return _conv_at_one_position(layer, shape)
    if layer.kind == "global_average_pool" and shape[1:] == (1, 1):
        return lambda x, _: x.flatten(1)
    functions: dict[str, Callable[..., Any]] = {
        "conv": lambda x, _, weight, bias=None: torch.conv2d(x, weight, bias, stride, padding),
        "linear": lambda x, _, weight, bias=None: F.linear(x, weight, bias),
        "batch_norm": lambda x, training, weight, bias, mean, variance: F.batch_norm(
            x, mean, variance, weight, bias, training, BATCH_NORM_MOMENTUM, BATCH_NORM_EPSILON
        ),
        "avg_pool": lambda x, _: F.avg_pool2d(x, kernel, stride),
        "max_pool": lambda x, _: F.max_pool2d(x, kernel, stride),
        "global_average_pool": lambda x, _: x.mean((2, 3)),
        "flatten": lambda x, _: x.flatten(1),
        "relu": lambda x, _: torch.relu(x),
        "tanh": lambda x, _: torch.tanh(x),
        "sigmoid": lambda x, _: torch.sigmoid(x),
    }
    return functions[layer.kind]


def _conv_at_one_position(layer: Layer, shape: Shape) -> Callable[..., Tensor]:
    """Return a convolution with a single output position as a matrix product, which is several times faster."""
    padding, (height, width) = layer.padding, (min(side, layer.kernel - layer.padding) for side in shape[1:])
    rows, columns = slice(padding, padding + height), slice(padding, padding + width)

    def function(x: Tensor, _: bool, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        whole = F.linear(x[:, :, :height, :width].flatten(1), weight[:, :, rows, columns].flatten(1), bias)
        return whole[:, :, None, None]

    return function
