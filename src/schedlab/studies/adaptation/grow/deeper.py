"""Deepening (Net2DeeperNet): one more layer that computes the identity."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, fx, nn

from schedlab.studies.adaptation.grow.graphs import (
    CHANNEL_NORMS,
    JOINS,
    NORMS,
    POOLS,
    REDUCTIONS,
    RESHAPES,
    SUMS,
    arguments,
    checked,
    find_layer,
    kind,
    module_of,
    names,
    operands,
    refusal,
    shape,
    trace,
    values_at,
)

CALIBRATION_INPUTS = 512
IDEMPOTENT = frozenset(["relu", "relu6", "hardtanh"])
NOT_NEGATIVE = frozenset(["relu", "relu6", "sigmoid", "hardsigmoid", "softplus", "abs", "square", "exp"])
ACTIVATIONS = IDEMPOTENT | names(
    "leakyrelu prelu rrelu elu selu celu gelu silu mish tanh sigmoid logsigmoid hardswish hardsigmoid softplus "
    "softsign softshrink hardshrink tanhshrink threshold softmax logsoftmax"
)
_DROPOUTS = frozenset(["dropout", "dropout1d", "dropout2d", "dropout3d", "identity", "contiguous"])
_NORM_OF = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


def deepen(model: nn.Module, block: str, inputs: Tensor, *, batch_norm: bool | None = None) -> fx.GraphModule:
    """Return a network with one more layer behind a block, which computes the same as `model`.

    model       any network that torch.fx traces, with one tensor in and one out; it is not changed
    block       name of a convolution or linear layer as in `model.named_modules()`. The new layer is inserted behind
                the next activation, in front of earlier insertions there. It is followed by the same activation (ReLU,
                ReLU6, Hardtanh), or by a ReLU if the next activation is a sigmoid or softplus. If no activation follows
                the block, as for a head, the new layer and a ReLU are inserted in front of the block, provided that
                the block's input cannot be negative.
    inputs      a batch (n, ...); the first 512 calibrate an inserted batch norm, so pass training data
    batch_norm  put a batch norm between layer and activation; None: if the block has one

    The new layer is a convolution with the block's kernel size, dilation and groups, or a linear layer, over all C
    channels at that place: weight (C, C / groups, *kernel) or (C, C); its name is BLOCK_insertN. In evaluation mode,
    the outputs are equal up to rounding. In training mode, they are equal bit for bit without an inserted batch norm;
    with one, they are equal as far as the statistics of the batch are those of `inputs`. Raises UserError, which names
    the module, if such a network is not possible.
    """
    grown = trace(model, inputs)
    layer = find_layer(grown, block)
    place, activation, normed = _behind(layer)
    if activation is None:
        place = _in_front(layer)
    prefix = next(name for n in range(1, 1 << 20) if (name := f"{block}_insert{n}") not in dict(grown.named_modules()))
    new = _identity(layer, place)
    parts: dict[str, nn.Module] = {"linear" if isinstance(new, nn.Linear) else "conv": new}
    if normed if batch_norm is None else batch_norm:
        parts["batch_norm"] = _calibrated(layer, values_at(grown, place, inputs[:CALIBRATION_INPUTS]))
    parts["activation"] = _again(activation)
    _insert(grown, layer, place, {f"{prefix}.{name}": part for name, part in parts.items()}, activation is None)
    return checked(model, grown, inputs)


def _behind(layer: fx.Node) -> tuple[fx.Node, fx.Node | None, bool]:
    """Return the place behind a layer's next activation, this activation, and whether a batch norm lies between.

    The place is the activation itself; without an activation, it is the layer, and the activation is None.
    """
    node, normed = layer, False
    while True:
        users = [user for user in node.users if user.op == "output" or shape(user)]
        if len(users) != 1:
            return layer, None, normed
        node = users[0]
        what = kind(node)
        if what in ACTIVATIONS:
            if what not in IDEMPOTENT | NOT_NEGATIVE:
                raise refusal(
                    layer, f"the activation behind it, {what}, is not idempotent: a second one would change the outputs"
                )
            return node, node, normed
        if what not in NORMS | POOLS | SUMS | JOINS | _DROPOUTS or len(shape(node)) != len(shape(layer)):
            return layer, None, normed
        normed |= what in CHANNEL_NORMS


def _in_front(layer: fx.Node) -> fx.Node:
    source = operands(layer)[0]
    if not _not_negative(source):
        why = "no activation follows it, and what it takes can be negative: the ReLU of an inserted layer would cut it"
        raise refusal(layer, why, "choose a layer that a ReLU follows")
    return source


def _not_negative(node: fx.Node) -> bool:
    what = kind(node)
    if what in NOT_NEGATIVE:
        return True
    passes = what in POOLS | RESHAPES | REDUCTIONS | _DROPOUTS | JOINS or what in ("add", "mul", "permute", "transpose")
    every = operands(node) if passes else []
    numbers = what in ("add", "mul") and len(every) < 2
    return bool(every) and not numbers and all(_not_negative(source) for source in every)


def _identity(layer: fx.Node, place: fx.Node) -> nn.Module:
    like = module_of(layer)
    new: nn.Module
    if isinstance(like, nn.Linear):
        channels = shape(place)[-1]
        new = nn.Linear(channels, channels, bias=like.bias is not None)
        nn.init.eye_(new.weight)
    elif isinstance(like, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        channels = shape(place)[1]
        if any(side % 2 == 0 for side in like.kernel_size):
            raise refusal(layer, f"its kernel {like.kernel_size} has an even side, and so no centre for an identity")
        groups = like.groups if channels % like.groups == 0 else 1
        padding = tuple(step * (side // 2) for side, step in zip(like.kernel_size, like.dilation, strict=True))
        options = {"padding": padding, "dilation": like.dilation, "groups": groups, "bias": like.bias is not None}
        new = type(like)(channels, channels, like.kernel_size, **options)  # type: ignore[arg-type]
        nn.init.dirac_(new.weight, groups)
    if new.bias is not None:
        nn.init.zeros_(new.bias)
    return new.to(like.weight).train(like.training)


def _calibrated(layer: fx.Node, values: Tensor) -> nn.Module:
    """Return a batch norm that is the identity for inputs with the mean and variance of some values."""
    like = module_of(layer)
    if isinstance(like, nn.Linear) and values.ndim != 2:
        raise refusal(layer, f"a batch norm has no place behind a linear layer with outputs of {values.ndim} axes")
    norm = _NORM_OF[values.ndim](values.shape[1])
    axes = [axis for axis in range(values.ndim) if axis != 1]
    variance, mean = torch.var_mean(values.double(), dim=axes, correction=0)
    with torch.no_grad():
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        norm.weight.copy_((norm.running_var.double() + norm.eps).sqrt())
        norm.bias.copy_(norm.running_mean)
    return norm.to(like.weight).train(like.training)


def _again(activation: fx.Node | None) -> nn.Module:
    """Return the activation that follows the inserted layer."""
    what = kind(activation) if activation is not None else "relu"
    if what == "hardtanh" and activation is not None:
        if activation.op == "call_module":
            return copy.deepcopy(module_of(activation))
        given = arguments(activation)
        return nn.Hardtanh(given["min_val"], given["max_val"])
    return nn.ReLU6() if what == "relu6" else nn.ReLU()


def _insert(grown: fx.GraphModule, layer: fx.Node, place: fx.Node, parts: dict[str, nn.Module], front: bool) -> None:
    """Apply the modules in order to the tensor of `place`; its users, or the layer if `front`, take the result."""
    users = [layer] if front else list(place.users)
    node = place
    for name, part in parts.items():
        grown.add_submodule(name, part)
        with grown.graph.inserting_after(node):
            node = grown.graph.call_module(name, (node,))
    for user in users:
        user.replace_input_with(place, node)
