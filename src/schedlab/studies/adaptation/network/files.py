"""Files of trained networks: weights in torch's or TensorFlow's layouts, architecture, data set. Imports no torch."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from errno import EISDIR
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from pydantic import TypeAdapter, ValidationError

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import atomic_path, canonical_json
from schedlab.studies.adaptation.network.architecture import POOLS, WEIGHTED, Architecture, Layer, Shape

_USER_BLOCK, _MARK = 512, b"schedlab weights sha256 "
_META = "schedlab"  # name of a file's description: member schedlab.json (.npz) or data set (.h5); no layer has it
_NORM_NAMES = {"weight": "gamma", "bias": "beta", "running_mean": "moving_mean", "running_var": "moving_variance"}
_NAMES = {"weight": "kernel", "bias": "bias"}


def to_hwio(kernel: np.ndarray) -> np.ndarray:
    """Return a convolution's kernel (outputs, inputs, height, width) as (height, width, inputs, outputs)."""
    return np.ascontiguousarray(kernel.transpose(2, 3, 1, 0))


def to_oihw(kernel: np.ndarray) -> np.ndarray:
    """Return a convolution's kernel (height, width, inputs, outputs) as (outputs, inputs, height, width)."""
    return np.ascontiguousarray(kernel.transpose(3, 2, 0, 1))


def to_dense(weight: np.ndarray, image: Shape | None = None) -> np.ndarray:
    """Return a linear layer's weight (outputs, inputs) as a dense kernel (inputs, outputs).

    image: the (channels, height, width) that a flatten in front of it flattened; TensorFlow flattens channels last, so
    the inputs are put into that order.
    """
    if image is None:
        return np.ascontiguousarray(weight.T)
    return np.ascontiguousarray(weight.reshape(-1, *image).transpose(2, 3, 1, 0)).reshape(weight.shape[1], -1)


def from_dense(kernel: np.ndarray, image: Shape | None = None) -> np.ndarray:
    """Return a dense kernel (inputs, outputs) as a linear layer's weight (outputs, inputs); inverse of `to_dense`."""
    if image is None:
        return np.ascontiguousarray(kernel.T)
    channels, height, width = image
    ordered = kernel.reshape(height, width, channels, -1).transpose(3, 2, 0, 1)
    return np.ascontiguousarray(ordered).reshape(kernel.shape[1], -1)


def to_tensorflow(architecture: Architecture, state: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return a network's tensors (arrays, or torch tensors on the CPU) in TensorFlow's names and layouts.

    Raises UserError if a tensor is missing or unknown, or has another shape than in the architecture.
    """
    names = _table(architecture)
    where = f"weights of {architecture.model}"
    shapes = {own: shape for own, (_, shape, _, _) in names.items()}
    _check(shapes, {name: tuple(state[name].shape) for name in state}, where)
    return {
        name: _turn(np.asarray(state[own]), kind, image, back=False) for own, (name, _, kind, image) in names.items()
    }


def from_tensorflow(
    architecture: Architecture, arrays: Mapping[str, np.ndarray], where: str = ""
) -> dict[str, np.ndarray]:
    """Return arrays in TensorFlow's names and layouts as the tensors of a network (inverse of `to_tensorflow`).

    where: the file, for messages. Raises UserError if an array is missing or unknown, has another shape than in the
    architecture, or does not contain floats.
    """
    names = _table(architecture)
    where = where or f"weights of {architecture.model}"
    shapes = {name: _tensorflow_shape(shape, kind) for name, shape, kind, _ in names.values()}
    _check(shapes, {name: array.shape for name, array in arrays.items()}, where)
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            raise UserError(f"{name} holds {array.dtype}", where=where, expected="floating-point numbers")
    return {own: _turn(arrays[name], kind, image, back=True) for own, (name, _, kind, image) in names.items()}


def save(path: Path | str, arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any] | None = None) -> None:
    """Write named arrays atomically, as .npz or .h5 by the path's suffix; equal values give equal bytes.

    meta: JSON values that are stored with the arrays; other readers of these formats ignore them.
    """
    write = _format(path)[0]
    text = None if meta is None else canonical_json(dict(meta))
    with atomic_path(path) as temporary:
        write(temporary, arrays, text)


def load(path: Path | str) -> dict[str, np.ndarray]:
    """Read named arrays from .npz or .h5. Raises UserError if the file is missing, truncated or damaged, or contains
    objects.
    """
    return load_with_meta(path)[0]


def load_with_meta(path: Path | str) -> tuple[dict[str, np.ndarray], dict[str, Any] | None]:
    """Read named arrays and the file's `meta` (None: it has none). Raises UserError as `load` does."""
    read = _format(path)[1]
    if not Path(path).is_file():
        raise UserError("no such file", where=str(path), remedy="give the path of a weights file")
    try:
        arrays, text = read(Path(path))
        return arrays, None if text is None else dict(json.loads(text))
    except Exception as error:  # whatever a damaged file makes zipfile, numpy or HDF5 raise
        expected = f"a whole {Path(path).suffix} file of arrays"
        what = f"the file cannot be read ({error})"
        raise UserError(what, where=str(path), expected=expected, remedy="write it again") from error


def check_path(path: Path | str) -> None:
    """Raise UserError, before anything is computed, for a path with another ending or one that cannot be written."""
    _format(path)
    try:
        if Path(path).is_dir():
            raise IsADirectoryError(EISDIR, "it is a folder")
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=Path(path).parent):
            pass
    except OSError as error:
        what = f"the weights cannot be written there: {error.strerror}"
        raise UserError(what, where=str(path), remedy="name another file") from None


def _table(architecture: Architecture) -> dict[str, tuple[str, Shape, str, Shape | None]]:
    """Return name in torch -> (name in TensorFlow, shape in torch, kind, shape of the image flattened before it)."""
    table, flattened, shape = {}, None, architecture.input
    for layer, output in zip(architecture.layers, architecture.shapes, strict=True):
        if layer.kind == "flatten":
            flattened = shape
        for own, size in {**layer.parameters, **layer.buffers}.items():
            suffix = own.removeprefix(layer.name + ".")
            matrix = suffix == "weight" and layer.kind != "batch_norm"
            name = (_NORM_NAMES if layer.kind == "batch_norm" else _NAMES)[suffix]
            kind, image = (layer.kind, flattened) if matrix else ("vector", None)
            table[own] = (f"{layer.name}/{name}", size, kind, image)
        if layer.kind == "linear":
            flattened = None
        shape = output
    return table


def _turn(array: np.ndarray, kind: str, image: Shape | None, back: bool) -> np.ndarray:
    if kind == "conv":
        return to_oihw(array) if back else to_hwio(array)
    if kind == "linear":
        return from_dense(array, image) if back else to_dense(array, image)
    return array.copy()


def _tensorflow_shape(shape: Shape, kind: str) -> Shape:
    return (*shape[2:], shape[1], shape[0]) if kind != "vector" else shape


def _check(expected: Mapping[str, Shape], given: Mapping[str, Shape], where: str) -> None:
    for problem, names in (("missing", expected.keys() - given.keys()), ("unknown", given.keys() - expected.keys())):
        if names:
            what = f"{problem}: {', '.join(sorted(names))}"
            raise UserError(what, where=where, expected="the tensors of the model and its insertions")
    for name, shape in expected.items():
        if tuple(given[name]) != tuple(shape):
            raise UserError(f"{name} has shape {tuple(given[name])}", where=where, expected=f"shape {tuple(shape)}")


def _format(path: Path | str) -> tuple[Any, Any]:
    formats = {".npz": (_write_npz, _read_npz), ".h5": (_write_h5, _read_h5), ".hdf5": (_write_h5, _read_h5)}
    if Path(path).suffix not in formats:
        raise UserError(f"unknown kind of file '{Path(path).suffix}'", where=str(path), expected=" or ".join(formats))
    return formats[Path(path).suffix]


def _write_npz(path: Path, arrays: Mapping[str, np.ndarray], meta: str | None) -> None:
    named: dict[str, Any] = dict(arrays)
    np.savez(path, **named)
    if meta is not None:
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(zipfile.ZipInfo(f"{_META}.json"), meta)  # a new ZipInfo has a fixed date


def _read_npz(path: Path) -> tuple[dict[str, np.ndarray], str | None]:
    with np.load(path, allow_pickle=False) as file:
        meta = file.zip.read(f"{_META}.json").decode() if f"{_META}.json" in file.files else None
        return {name: file[name] for name in file.files if name != f"{_META}.json"}, meta


def _write_h5(path: Path, arrays: Mapping[str, np.ndarray], meta: str | None) -> None:
    """Write groups as in a weights file of Keras: /<layer>/<layer>/<weight>:0, with `layer_names` and `weight_names`.

    HDF5's user block, which other readers skip, holds the SHA-256 of the rest.
    """
    import h5py

    layers: dict[str, list[str]] = {}
    for name in arrays:
        layers.setdefault(name.rpartition("/")[0], []).append(name)
    with h5py.File(path, "w", userblock_size=_USER_BLOCK, locking=False) as file:  # atomic_path holds its lock already
        file.attrs["layer_names"] = [layer.encode() for layer in layers]
        if meta is not None:
            file.create_dataset(_META, data=np.frombuffer(meta.encode(), np.uint8))
        for layer, names in layers.items():
            group = file.create_group(layer)
            group.attrs["weight_names"] = [f"{name}:0".encode() for name in names]
            for name in names:
                group.create_dataset(f"{name}:0", data=arrays[name])
    with path.open("r+b") as file:
        file.write(_MARK + _digest(path))


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()[_USER_BLOCK:]).hexdigest().encode()


def _read_h5(path: Path) -> tuple[dict[str, np.ndarray], str | None]:
    import h5py

    start = path.read_bytes()[:_USER_BLOCK]
    if start.startswith(_MARK) and start[len(_MARK) :].rstrip(b"\0") != _digest(path):
        raise ValueError("its checksum does not fit")  # checked first: HDF5 can run for ever on a damaged file
    arrays = {}
    with h5py.File(path, "r") as file:
        root = file.get("model_weights", file)  # a whole saved model keeps its weights there
        for layer in _texts(root.attrs["layer_names"]):
            for name in _texts(root[layer].attrs["weight_names"]):
                arrays[f"{layer}/{name.rpartition('/')[2].removesuffix(':0')}"] = _dataset(root[layer], name)
        return arrays, _dataset(file, _META).tobytes().decode() if _META in file else None


def _dataset(group: Any, name: str) -> np.ndarray:
    data = group[name]
    if data.external or data.is_virtual or data.file != group.file:
        raise ValueError(f"{name} stands in another file")
    return data[()]


def _texts(values: np.ndarray) -> list[str]:
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


Layout = Literal["torch", "tensorflow"]
LAYOUTS: tuple[str, ...] = get_args(Layout)
_KIND, _VERSION = "schedlab network", 1
_KINDS = {*WEIGHTED, *POOLS, "batch_norm", "relu", "tanh", "sigmoid", "global_average_pool", "flatten"}


@dataclass(frozen=True)
class SavedNetwork:
    """A network without torch.

    state   arrays in torch's names and layouts, whatever the layout of the file
    layout  layout of the file
    about   JSON values about its origin; `data` among them contains the settings of its training data set
    """

    architecture: Architecture
    state: Mapping[str, np.ndarray]
    layout: Layout = "torch"
    about: Mapping[str, Any] = field(default_factory=dict)


def write_network(path: Path | str, network: SavedNetwork) -> None:
    """Write a network as .npz or .h5 in the given layout, atomically. Raises UserError if something does not fit."""
    arrays = to_tensorflow(network.architecture, network.state)
    if network.layout == "torch":
        arrays = {_stored(name): np.ascontiguousarray(network.state[name]) for name in network.state}
    meta = {
        "kind": _KIND,
        "version": _VERSION,
        "layout": network.layout,
        "architecture": json.loads(network.architecture.key),
        "about": dict(network.about),
    }
    save(path, arrays, meta)


def read_network(path: Path | str, architecture: Architecture | None = None) -> SavedNetwork:
    """Read a network. For another program's file (TensorFlow's layouts) the architecture must be given.

    Raises UserError if the file is damaged, if it has no architecture and none is given, and if it holds other tensors
    than the architecture or numbers that are not finite.
    """
    arrays, meta = load_with_meta(path)
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
            what = "the file's description is of another version"
            raise UserError(what, where=str(path), expected=f"version {_VERSION}")
        told = architecture_of(meta.get("architecture"), str(path))
        if architecture not in (None, told):
            raise UserError(
                f"the file holds another network: {told.model} {told.insertions}",
                where=str(path),
                remedy="name no model",
            )
        architecture = told
    layout: Layout = meta["layout"]
    if layout == "torch":  # checked by converting there and back, which changes no bit
        arrays = to_tensorflow(architecture, {name.replace("/", "."): array for name, array in arrays.items()})
    about = meta.get("about")
    state = from_tensorflow(architecture, arrays, str(path))
    for name, tensor in state.items():
        if not np.isfinite(tensor).all():
            remedy = "train it again, with a lower learning rate; its training has diverged, or the file is damaged"
            raise UserError(f"{name} holds values that are no finite numbers", where=str(path), remedy=remedy)
    return SavedNetwork(architecture, state, layout, about if isinstance(about, dict) else {})


def architecture_of(values: object, where: str) -> Architecture:
    """Return the architecture in JSON values (`Architecture.key`). Raises UserError if they describe none."""
    try:
        found = TypeAdapter(Architecture).validate_json(json.dumps(values), strict=True)
        _network_file_check(found)
    except (ValidationError, ValueError, TypeError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        what = f"the description of the architecture is damaged: {reason}"
        raise UserError(what, where=where, remedy="write the file again") from None
    return found


def deepened(start: Architecture, blocks: Sequence[int], bn: bool | None = None) -> Architecture:
    """Return an architecture after insertions behind blocks, in order. Raises UserError for an unknown block."""
    for block in blocks:
        start = start.deepened(block, bn)
    return start


def layout_of(name: str) -> Layout:
    """Return a layout by its name. Raises UserError for an unknown name."""
    if name not in LAYOUTS:
        raise UserError(f"unknown layout '{name}'", where="--layout", remedy=did_you_mean(name, LAYOUTS))
    return name  # type: ignore[return-value]


def _stored(name: str) -> str:
    """Return the name in the file: `<layer>/weight`, so that an .h5 puts the tensors of a layer into one group."""
    layer, _, tensor = name.rpartition(".")
    return f"{layer}/{tensor}"


def _network_file_check(found: Architecture) -> None:
    """Raise ValueError if a layer is invalid or does not take the output of the layer before it."""
    if len(found.input) != 3 or min(found.input) < 1 or not found.layers:
        raise ValueError(f"images of shape {found.input}, {len(found.layers)} layers")
    shape: Shape = found.input
    for layer in found.layers:
        if (
            layer.kind not in _KINDS
            or min(layer.inputs, layer.outputs, layer.kernel, layer.stride) < 1
            or layer.padding < 0
        ):
            raise ValueError(f"layer {layer.name} is no layer")
        if _taken(layer, shape) != layer.inputs:
            raise ValueError(f"layer {layer.name} takes {layer.inputs}, the one before gives {shape}")
        shape = layer.output_shape(shape)
        if min(shape) < 1:
            raise ValueError(f"layer {layer.name} leaves nothing of its images")
    if len({layer.name for layer in found.layers}) < len(found.layers):
        raise ValueError("two layers have one name")


def _taken(layer: Layer, shape: Shape) -> int | None:
    """Return the `inputs` that a layer must have for an input shape; None: the layer does not take such a shape."""
    image = layer.kind in ("conv", "global_average_pool", "flatten", *POOLS)
    if (image and len(shape) != 3) or (layer.kind == "linear" and len(shape) != 1):
        return None
    return shape[0]
