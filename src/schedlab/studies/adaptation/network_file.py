"""A trained network as a file that tells of itself: its weights in torch's or TensorFlow's layouts, its architecture, data. No torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import TypeAdapter, ValidationError

from schedlab.config.errors import UserError, did_you_mean
from schedlab.studies.adaptation import weights
from schedlab.studies.adaptation.architecture import POOLS, WEIGHTED, Architecture, Layer, Shape

Layout = Literal["torch", "tensorflow"]
LAYOUTS: tuple[str, ...] = get_args(Layout)
_KIND, _VERSION = "schedlab network", 1
_KINDS = {*WEIGHTED, *POOLS, "batch_norm", "relu", "tanh", "sigmoid", "global_average_pool", "flatten"}


@dataclass(frozen=True)
class SavedNetwork:
    """A network without torch: `state` holds arrays under torch's names and in its layouts, whatever the layout of the file was.

    about: plain values on where it comes from; `data` among them: the settings of the data set that it was trained on.
    """

    architecture: Architecture
    state: Mapping[str, np.ndarray]
    layout: Layout = "torch"
    about: Mapping[str, Any] = field(default_factory=dict)


def write_network(path: Path | str, network: SavedNetwork) -> None:
    """Write a network as .npz or .h5 in its layout, atomically. Raises UserError for other endings and tensors that do not fit."""
    arrays = weights.to_tensorflow(network.architecture, network.state)
    if network.layout == "torch":
        arrays = {_stored(name): np.ascontiguousarray(network.state[name]) for name in network.state}
    meta = {
        "kind": _KIND,
        "version": _VERSION,
        "layout": network.layout,
        "architecture": json.loads(network.architecture.key),
        "about": dict(network.about),
    }
    weights.save(path, arrays, meta)


def read_network(path: Path | str, architecture: Architecture | None = None) -> SavedNetwork:
    """Read a network. A file that does not tell its architecture (another program's, in TensorFlow's layouts) needs one given.

    Raises UserError where the file is damaged, tells no architecture and none is given, or holds other tensors than the architecture
    or numbers that are not finite.
    """
    arrays, meta = weights.load_with_meta(path)
    if meta is None or meta.get("kind") != _KIND:
        if architecture is None:
            raise UserError(
                "the file does not tell its architecture",
                where=str(path),
                expected="a file written by `schedlab adaptation run --weights` or `weights convert`",
                remedy="name the model (--model, and --deepen for its insertions)",
            )
        meta = {"layout": "tensorflow" if any(name.endswith("/kernel") for name in arrays) else "torch", "about": {}}
    else:
        if meta.get("version") != _VERSION or meta.get("layout") not in LAYOUTS:
            raise UserError("the file's description is of another version", where=str(path), expected=f"version {_VERSION}")
        told = architecture_of(meta.get("architecture"), str(path))
        if architecture not in (None, told):
            raise UserError(f"the file holds another network: {told.model} {told.insertions}", where=str(path), remedy="name no model")
        architecture = told
    layout: Layout = meta["layout"]
    if layout == "torch":  # checked by the way there and back, which alters no bit
        arrays = weights.to_tensorflow(architecture, {name.replace("/", "."): array for name, array in arrays.items()})
    about = meta.get("about")
    state = weights.from_tensorflow(architecture, arrays, str(path))
    for name, tensor in state.items():
        if not np.isfinite(tensor).all():
            remedy = "train it again, with a lower learning rate; its training has diverged, or the file is damaged"
            raise UserError(f"{name} holds values that are no finite numbers", where=str(path), remedy=remedy)
    return SavedNetwork(architecture, state, layout, about if isinstance(about, dict) else {})


def architecture_of(values: object, where: str) -> Architecture:
    """Return the architecture that plain values (`Architecture.key`) describe; UserError where they describe none."""
    try:
        found = TypeAdapter(Architecture).validate_json(json.dumps(values), strict=True)
        _check(found)
    except (ValidationError, ValueError, TypeError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise UserError(f"the description of the architecture is damaged: {reason}", where=where, remedy="write the file again") from None
    return found


def deepened(start: Architecture, blocks: Sequence[int], bn: bool | None = None) -> Architecture:
    """Return an architecture after insertions behind blocks, in order. Raises UserError for a block that is not there."""
    for block in blocks:
        start = start.deepened(block, bn)
    return start


def layout_of(name: str) -> Layout:
    """Return a layout by its name. Raises UserError."""
    if name not in LAYOUTS:
        raise UserError(f"unknown layout '{name}'", where="--layout", remedy=did_you_mean(name, LAYOUTS))
    return name  # type: ignore[return-value]


def _stored(name: str) -> str:
    """The name in the file: `<layer>/weight`, which an .h5 needs to put the tensors of a layer into one group."""
    layer, _, tensor = name.rpartition(".")
    return f"{layer}/{tensor}"


def _check(found: Architecture) -> None:
    """Raise ValueError where a layer does not take what the one before gives."""
    if len(found.input) != 3 or min(found.input) < 1 or not found.layers:
        raise ValueError(f"images of shape {found.input}, {len(found.layers)} layers")
    shape: Shape = found.input
    for layer in found.layers:
        if layer.kind not in _KINDS or min(layer.inputs, layer.outputs, layer.kernel, layer.stride) < 1 or layer.padding < 0:
            raise ValueError(f"layer {layer.name} is no layer")
        if _taken(layer, shape) != layer.inputs:
            raise ValueError(f"layer {layer.name} takes {layer.inputs}, the one before gives {shape}")
        shape = layer.output_shape(shape)
        if min(shape) < 1:
            raise ValueError(f"layer {layer.name} leaves nothing of its images")
    if len({layer.name for layer in found.layers}) < len(found.layers):
        raise ValueError("two layers have one name")


def _taken(layer: Layer, shape: Shape) -> int | None:
    """What a layer's `inputs` must be for an input shape; None: it cannot stand there."""
    image = layer.kind in ("conv", "global_average_pool", "flatten", *POOLS)
    if (image and len(shape) != 3) or (layer.kind == "linear" and len(shape) != 1):
        return None
    return shape[0]
