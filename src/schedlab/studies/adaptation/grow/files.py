"""Files of weights: state dicts read with `weights_only`, and grown networks with the steps that grew them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import atomic_path
from schedlab.studies.adaptation.grow.deeper import deepen
from schedlab.studies.adaptation.grow.graphs import layer_names
from schedlab.studies.adaptation.grow.wider import widen

FORMAT = "schedlab grown network 1"
SUFFIXES = (".pt", ".pth")


class Step(NamedTuple):
    """One step of growth: the block behind which a layer is inserted (`factor` None), or which gets `factor` times the
    channels.

    batch_norm as in `deepen`; noise and seed as in `widen`.
    """

    block: str
    factor: float | None = None
    batch_norm: bool | None = None
    noise: float = 0.0
    seed: int = 0


def grow(model: nn.Module, steps: Sequence[Step], inputs: Tensor) -> nn.Module:
    """Return a network after some steps, in order; inputs as in `deepen` and `widen`, whose UserErrors it raises."""
    for step in steps:
        if step.factor is None:
            model = deepen(model, step.block, inputs, batch_norm=step.batch_norm)
        else:
            model = widen(model, step.block, step.factor, inputs, noise=step.noise, seed=step.seed)
    return model


def save_grown(path: Path | str, model: nn.Module, steps: Sequence[Step], shape: Sequence[int]) -> None:
    """Write a grown network as `.pt` for `load_grown`; equal networks give equal bytes.

    steps: all steps from the original on; shape: of one input, without the batch axis.
    """
    document = {
        "format": FORMAT,
        "input": list(shape),
        "steps": [step._asdict() for step in steps],
        "state_dict": {name: tensor.detach().cpu().clone() for name, tensor in model.state_dict().items()},
    }
    buffer = io.BytesIO()  # written to a path, the bytes would contain the file's name
    torch.save(document, buffer)
    with atomic_path(path) as temporary:
        temporary.write_bytes(buffer.getvalue())


def load_grown(path: Path | str, model: nn.Module) -> nn.Module:
    """Return the network of a file that `schedlab adaptation grow` wrote.

    model: the original network, with any weights. It is grown by the steps in the file, and gets the weights in it. A
    plain state dict of `model`, without steps, is also read. The file is read with `weights_only=True`: no code in it
    runs. Raises UserError if the file is damaged or belongs to another network.
    """
    return restore(path, model)[0]


def restore(path: Path | str, model: nn.Module) -> tuple[nn.Module, list[Step], tuple[int, ...] | None]:
    """Return the network of a file, the steps that grew it, and the shape of one input (None for a plain state
    dict).
    """
    document = _read(path)
    if document.get("format") != FORMAT:
        _load_state(model, document.get("state_dict", document), path)
        return model, [], None
    try:
        steps = [Step(**entry) for entry in document["steps"]]
        shape = tuple(int(side) for side in document["input"])
        state = document["state_dict"]
    except (KeyError, TypeError, ValueError):
        raise UserError("the file is damaged", where=str(path), remedy="write it again") from None
    grown = grow(model, steps, torch.zeros(2, *shape))
    _load_state(grown, state, path)
    return grown, steps, shape


def _read(path: Path | str) -> Mapping[str, Any]:
    if not Path(path).is_file():
        raise UserError("no such file", where=str(path), remedy="give the path of a .pt file")
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        what = f"the file is not a plain state dict, and nothing else is read ({type(error).__name__})"
        remedy = "write `torch.save(model.state_dict(), FILE)` and name the network with --model"
        raise UserError(what, where=str(path), expected="tensors by name, without code", remedy=remedy) from error
    if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
        what = f"the file holds a {type(found).__name__}"
        raise UserError(what, where=str(path), expected="a state dict: tensors by name")
    return found


def _load_state(model: nn.Module, state: object, path: Path | str) -> None:
    expected = model.state_dict()
    if not isinstance(state, Mapping) or not all(isinstance(entry, Tensor) for entry in state.values()):
        raise UserError("the file holds other things than tensors", where=str(path), expected="a state dict")
    remedy = "name the network whose weights these are"
    for name in (*expected, *state):
        if name not in state:
            what = f"the tensor {name} is missing"
            raise UserError(what, where=str(path), expected=f"the tensors of {type(model).__name__}", remedy=remedy)
        if name not in expected:
            raise UserError(f"the tensor {name} is unknown", where=str(path), remedy=did_you_mean(name, expected))
        if state[name].shape != expected[name].shape:
            what = f"the tensor {name} has shape {tuple(state[name].shape)}"
            raise UserError(what, where=str(path), expected=f"shape {tuple(expected[name].shape)}", remedy=remedy)
    model.load_state_dict(state)


def block_of(model: nn.Module, word: str, inputs: Tensor) -> str:
    """Return a layer's name, given its name or number; numbers count the layers that can grow, in the order of
    execution, from 0.
    """
    if not word.isdecimal() or word in dict(model.named_modules()):
        return word
    names = layer_names(model, inputs)
    if int(word) >= len(names):
        numbers = ", ".join(f"{number} ({name})" for number, name in enumerate(names[:12]))
        what = f"there is no layer {word}"
        raise UserError(what, where="the network", expected=f"one of {numbers}" if names else "a layer that grows")
    return names[int(word)]
