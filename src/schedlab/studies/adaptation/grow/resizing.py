"""The tensors of a module under widening: copied channels as its outputs, and shares of its weights for copied
inputs.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, fx, nn

from schedlab.config.seeds import derive_seed
from schedlab.studies.adaptation.grow.graphs import (
    CHANNEL_NORMS,
    CONVOLUTIONS,
    LAYERS,
    kind,
    module_of,
    operands,
    refusal,
    require_own_weights,
    shape,
)

_OTHER = "widen another layer, or this one by a whole factor (2, 3, ...)"


class Copies(NamedTuple):
    """The copies of channels along an axis of a tensor. index: the old channel of each new one, int64, ascending by
    groups.
    """

    axis: int
    index: Tensor


def features(index: Tensor, each: int) -> Tensor:
    """Return the index of the features, given an index of channels with `each` features per channel."""
    return (index[:, None] * each + torch.arange(each)).flatten()


def depthwise(node: fx.Node) -> bool:
    """Return whether a layer is a convolution with one group for each input channel."""
    module = module_of(node)
    return isinstance(module, CONVOLUTIONS) and module.groups == module.in_channels > 1


def balanced(node: fx.Node, index: Tensor, channels: int) -> bool:
    """Return whether each group of a layer gets the same number of channels, all copied from the same group."""
    groups = getattr(module_of(node), "groups", 1)
    chunk = index // (channels // groups)
    return len(index) % groups == 0 and bool((chunk.view(groups, -1) == torch.arange(groups)[:, None]).all())


def resize(node: fx.Node, taken: Copies | None, made: Tensor | None, noise: float, seed: int) -> None:
    """Change the module that a node calls to its new input and output channels.

    taken: copies in its input; made: index of its output channels; None: unchanged. noise, seed: as in `widen`. Raises
    UserError, which names the module, if it cannot have these channels.
    """
    module, what = module_of(node), kind(node)
    if any(True for _ in module.parameters()) or what in CHANNEL_NORMS:
        require_own_weights(node)
    if type(module) in LAYERS:
        _resize_layer(node, module, taken, made, noise, seed)
    elif taken is None:
        return
    elif what in CHANNEL_NORMS:
        _require(node, taken.axis == 1, "its channels are along another axis than the widened ones")
        _select(module, ("weight", "bias", "running_mean", "running_var"), taken.index)
        module.num_features = len(taken.index)  # type: ignore[assignment]
    elif isinstance(module, nn.GroupNorm):
        _require_equal_copies(node, taken)
        _select(module, ("weight", "bias"), taken.index)
        module.num_channels = len(taken.index)
    elif isinstance(module, nn.LayerNorm):
        axis = taken.axis - len(shape(node)) + len(module.normalized_shape)
        if axis >= 0:
            _require_equal_copies(node, taken)
            _select(module, ("weight", "bias"), taken.index, axis)
            sides = list(module.normalized_shape)
            sides[axis] = len(taken.index)
            module.normalized_shape = tuple(sides)
    elif isinstance(module, nn.PReLU) and module.num_parameters > 1:
        _require(node, taken.axis == 1, "its channels are along another axis than the widened ones")
        _select(module, ("weight",), taken.index)
        module.num_parameters = len(taken.index)


def _resize_layer(
    node: fx.Node, module: nn.Module, taken: Copies | None, made: Tensor | None, noise: float, seed: int
) -> None:
    sizes = ("in_features", "out_features") if isinstance(module, nn.Linear) else ("in_channels", "out_channels")
    if taken is not None:
        axis = 1 if kind(node) == "conv" else len(shape(operands(node)[0])) - 1
        _require(node, taken.axis == axis, "it takes channels along another axis than the widened ones")
        if depthwise(node):  # one group for each input channel, so its outputs are copied too
            made = features(taken.index, module.out_channels // module.in_channels)  # type: ignore[operator]
            module.groups = len(taken.index)  # type: ignore[assignment]
        else:
            local = _by_group(node, taken.index, getattr(module, sizes[0]))
            stream = torch.Generator().manual_seed(derive_seed(seed, "shares", str(node.target)))
            _replace(module, "weight", _shared(module.weight.detach(), local, noise, stream))  # type: ignore[operator]
        setattr(module, sizes[0], len(taken.index))
    if made is not None:
        if taken is None or not depthwise(node):
            _by_group(node, made, getattr(module, sizes[1]))
        _select(module, ("weight", "bias"), made)
        setattr(module, sizes[1], len(made))


def _by_group(node: fx.Node, index: Tensor, channels: int) -> Tensor:
    """Return the index within each group of a layer: (groups, copies). Raises UserError if it is not balanced."""
    groups = getattr(module_of(node), "groups", 1)
    _require(node, balanced(node, index, channels), f"its {groups} groups would get different channels", _OTHER)
    return index.view(groups, -1) - torch.arange(groups)[:, None] * (channels // groups)


def _shared(weight: Tensor, index: Tensor, noise: float, stream: torch.Generator) -> Tensor:
    """Return a weight with copied input channels; the copies of a channel share its old weight.

    weight (outputs, inputs of a group, *kernel), index (groups, copies) -> (outputs, copies, *kernel)
    """
    parts = []
    for old, copied in zip(weight.cpu().double().chunk(len(index)), index, strict=True):
        wide = old.index_select(1, copied)
        shares = 1 + noise * (2 * torch.rand(wide.shape, generator=stream, dtype=torch.float64) - 1)
        sums = torch.zeros_like(old).index_add_(1, copied, shares)
        parts.append(wide * shares / sums.index_select(1, copied))
    return torch.cat(parts).to(weight)


def _require(node: fx.Node, holds: bool, why: str, remedy: str = "") -> None:
    if not holds:
        raise refusal(node, why, remedy)


def _require_equal_copies(node: fx.Node, taken: Copies) -> None:
    counts = torch.bincount(taken.index)
    why = "it averages over channels, which therefore must be copied equally often"
    _require(node, bool((counts == counts[0]).all()), why, _OTHER)


def _select(module: nn.Module, names: tuple[str, ...], index: Tensor, axis: int = 0) -> None:
    for name in names:
        old = getattr(module, name, None)
        if old is not None:
            _replace(module, name, old.detach().index_select(axis, index.to(old.device)))


def _replace(module: nn.Module, name: str, new: Tensor) -> None:
    old = getattr(module, name)
    keep = isinstance(old, nn.Parameter)
    setattr(module, name, nn.Parameter(new.contiguous(), requires_grad=old.requires_grad) if keep else new)
