"""Widening (Net2WiderNet): copies of a layer's channels, and shares of weights for the layers that take them as
inputs.

A widening is an ascending index of old channels, with one entry for each new channel. It is passed through the graph:
forward to every layer that takes the channels and, if two tensors are added, back to the layers that make the other
tensor, which then copy the same channels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, fx, nn

from schedlab.config.errors import UserError
from schedlab.config.seeds import derive_seed
from schedlab.studies.adaptation.grow.graphs import (
    JOINS,
    SUMS,
    checked,
    find_layer,
    kind,
    module_of,
    operands,
    passage,
    refusal,
    shape,
    trace,
)
from schedlab.studies.adaptation.grow.resizing import Copies, balanced, depthwise, features, resize

LARGEST_FACTOR = 100
_TWO_WAYS = "it would have to be widened in two different ways"
_SIZES = frozenset(["size", "dim", "ndimension", "numel"])


def widen(
    model: nn.Module, block: str, factor: float, inputs: Tensor, *, noise: float = 0.0, seed: int = 0
) -> fx.GraphModule:
    """Return a network in which a block has `factor` times the channels, and which computes the same as `model`.

    model   any network that torch.fx traces, with one tensor in and one out; it is not changed
    block   name of a convolution or linear layer as in `model.named_modules()`
    factor  above 1, at most 100; the channels C become round(factor C), in whole groups where the layer has groups
    inputs  a batch (n, ...), from which the shapes are taken
    noise   at least 0, below 1. Each weight behind a channel is divided into shares, one for each copy of the channel.
            Before they are scaled to sum to one, the shares differ from equal ones by up to this fraction: the outputs
            do not change, but the gradients of the copies differ. With 0 the shares are equal, and the copies stay
            equal in all further training
    seed    determines the channels that are copied once more than others, and the noise

    A whole factor copies each channel equally often, as layer and group norms and grouped convolutions require. Layers
    whose outputs are added to the block's are widened alike. In evaluation mode, the outputs are equal up to rounding;
    in training mode too, batch norms included, except that dropout draws other masks. Raises UserError, which names the
    module, if such a network is not possible.
    """
    if not 0 <= noise < 1:
        raise UserError(f"the noise is {noise}", where="noise", expected="at least 0 and below 1")
    grown = trace(model, inputs)
    layer = find_layer(grown, block)
    channels, groups = _channels(layer), getattr(module_of(layer), "groups", 1)
    made = {layer: _draw(channels, groups, factor, derive_seed(seed, "widen", block))}
    copies = _spread(grown, made)
    for node in grown.graph.nodes:
        taken = next((copies[source] for source in operands(node) if source in copies), None)
        if node.op == "call_module" and (taken or node in made):
            resize(node, taken, made.get(node), noise, seed)
        elif taken and kind(node) in ("view", "reshape"):
            _with_new_size(node, copies[node])
    return checked(model, grown, inputs)


def _draw(channels: int, groups: int, factor: float, seed: int) -> Tensor:
    if not 1 < factor <= LARGEST_FACTOR:
        expected = f"a factor above 1 and at most {LARGEST_FACTOR}"
        raise UserError(f"the factor is {factor:g}", where="widening", expected=expected)
    new = round(channels * factor / groups)  # of each group
    if new <= channels // groups:
        what = f"factor {factor:g} leaves {channels} channels as they are"
        least = (channels + groups) / channels
        raise UserError(what, where="widening", expected=f"a factor of at least {math.ceil(least * 1000) / 1000:g}")
    stream = torch.Generator().manual_seed(seed)
    repeats = torch.full((channels,), new // (channels // groups))
    for group in repeats.view(groups, -1):
        group[torch.randperm(len(group), generator=stream)[: new % len(group)]] += 1
    return torch.arange(channels).repeat_interleave(repeats)


def _spread(grown: fx.GraphModule, made: dict[fx.Node, Tensor]) -> dict[fx.Node, Copies]:
    """Follow the copies through the graph until nothing changes; layers that must copy too are added to `made`."""
    while True:
        copies: dict[fx.Node, Copies] = {}
        known = len(made)
        for node in grown.graph.nodes:
            given = {source: copies[source] for source in operands(node) if source in copies}
            if node.op == "output" and given:
                source = next(iter(given))
                raise refusal(source, "its channels are outputs of the network, whose number would change")
            if not shape(node):
                if given and node.target is not getattr and kind(node) not in _SIZES:
                    raise refusal(node, "channels cannot be followed through it")
                continue
            found = _forward(node, given, made)
            if len(made) > known:
                break  # an earlier layer must copy its channels too: start again with it
            if found is not None:
                copies[node] = found
        else:
            return copies


def _forward(node: fx.Node, given: dict[fx.Node, Copies], made: dict[fx.Node, Tensor]) -> Copies | None:
    """Return the copies in a node's tensor, given those in its operands; None: there are none."""
    what = kind(node)
    if node in made:
        if given and depthwise(node):
            raise refusal(node, _TWO_WAYS)
        return Copies(_channel_axis(node), made[node])
    if not given:
        return None
    first = next(iter(given.values()))
    if what in ("conv", "linear"):
        if not depthwise(node):
            return None
        each = _channels(node) // shape(operands(node)[0])[1]
        return Copies(1, features(first.index, each))
    if what in SUMS:
        return _tied(node, first, _full(node, first.axis), given, made)
    if what in JOINS:
        axis = _joined_axis(node)
        if axis != first.axis:
            return _tied(node, first, operands(node), given, made)
        return Copies(axis, _joined(node, axis, {source: entry.index for source, entry in given.items()}))
    passed = passage(node, first.axis) if len(operands(node)) == 1 else None
    if passed is None:
        raise refusal(node, "it stands behind the widened layer, and channels cannot be followed through it")
    return Copies(passed[0], features(first.index, passed[1]))


def _tied(
    node: fx.Node, copies: Copies, sources: list[fx.Node], given: dict[fx.Node, Copies], made: dict[fx.Node, Tensor]
) -> Copies:
    """Return the copies after giving them to all operands of a node, if needed by the layers that make an operand."""
    for source in sources:
        if source not in given:
            _backward(source, copies, made)
        elif given[source].axis != copies.axis or not torch.equal(given[source].index, copies.index):
            raise refusal(node, "it would have to combine two different widenings")
    return copies


def _backward(node: fx.Node, wanted: Copies, made: dict[fx.Node, Tensor]) -> None:
    """Add to `made` the layers that make the channels of a node's tensor, with the wanted copies."""
    what = kind(node)
    if what in ("conv", "linear") and wanted.axis == _channel_axis(node):
        same = _channels(node) == shape(operands(node)[0])[wanted.axis]
        if same and depthwise(node) and not balanced(node, wanted.index, _channels(node)):
            return _backward(operands(node)[0], wanted, made)
        if not torch.equal(made.setdefault(node, wanted.index), wanted.index):
            raise refusal(node, _TWO_WAYS)
        return None
    if what in SUMS:
        for source in _full(node, wanted.axis):
            _backward(source, wanted, made)
        return None
    if what in JOINS:
        begin = 0
        for source in _joined_parts(node):
            index = wanted.index
            if _joined_axis(node) == wanted.axis:
                end = begin + shape(source)[wanted.axis]
                index, begin = index[(index >= begin) & (index < end)] - begin, end
            if len(index) > shape(source)[wanted.axis]:
                _backward(source, Copies(wanted.axis, index), made)
        return None
    if node.op.startswith("call") and len(operands(node)) == 1:
        source = operands(node)[0]
        for axis in range(len(shape(source))):
            passed = passage(node, axis)
            if passed and passed[0] == wanted.axis and shape(source)[axis] * passed[1] == shape(node)[wanted.axis]:
                index = wanted.index[:: passed[1]] // passed[1]
                if torch.equal(features(index, passed[1]), wanted.index):
                    return _backward(source, Copies(axis, index), made)
    raise refusal(node, "it is combined with the widened layer's channels, and its own cannot be widened alike")


def _full(node: fx.Node, axis: int) -> list[fx.Node]:
    """Return the operands of a sum or product that have the channels of the result; others apply to all channels."""
    found = []
    for source in operands(node):
        place = axis - len(shape(node)) + len(shape(source))
        if place >= 0 and shape(source)[place] == shape(node)[axis] and shape(node)[axis] > 1:
            if place != axis:
                raise refusal(node, "it combines channels along different axes")
            found.append(source)
    return found


def _joined(node: fx.Node, axis: int, given: dict[fx.Node, Tensor]) -> Tensor:
    parts, begin = [], 0
    for source in _joined_parts(node):
        count = shape(source)[axis]
        parts.append(given.get(source, torch.arange(count)) + begin)
        begin += count
    return torch.cat(parts)


def _joined_parts(node: fx.Node) -> list[fx.Node]:
    return list(node.args[0] if node.args else node.kwargs["tensors"])  # type: ignore[arg-type]


def _joined_axis(node: fx.Node) -> int:
    given = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", node.kwargs.get("axis", 0))
    return int(given) % len(shape(node))  # type: ignore[arg-type]


def _channel_axis(node: fx.Node) -> int:
    return 1 if kind(node) == "conv" else len(shape(node)) - 1


def _channels(node: fx.Node) -> int:
    return shape(node)[_channel_axis(node)]


def _with_new_size(node: fx.Node, copies: Copies) -> None:
    """Replace the number of features that a `view` or `reshape` was given as a literal."""
    sizes = node.args[1] if isinstance(node.args[1], tuple | list) else node.args[1:]
    new = [
        len(copies.index) if place == copies.axis and entry not in (-1,) else entry for place, entry in enumerate(sizes)
    ]
    node.args = (node.args[0], tuple(new))
