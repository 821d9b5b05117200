"""The command `schedlab adaptation grow`, which deepens and widens a torch network without changing its outputs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.plugins import load_module, place_in
from schedlab.config.readers import option_names
from schedlab.studies.adaptation.commands.conf import load_option
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.data.datasets import DataSettings
from schedlab.studies.adaptation.grow.files import SUFFIXES, Step, block_of, grow, restore, save_grown
from schedlab.studies.adaptation.grow.graphs import CONVOLUTIONS, LAYERS, evaluating, relative_difference
from schedlab.studies.adaptation.grow.shipped import PICTURE, SHIPPED, module_of_study
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture

INPUTS = 64  # random inputs on which the outputs are compared
_SIDES = (32, 28, 64, 96, 128, 224, 256, 299, 16, 8)  # of images, tried in this order


class Given(NamedTuple):
    """The network to grow, the steps that have grown it so far, and the shape of one input."""

    model: nn.Module
    steps: list[Step]
    shape: tuple[int, ...]


def run(arguments: argparse.Namespace) -> int:
    """Grow the network, compare the outputs, write the file, and print the steps as one JSON document."""
    _check_out(arguments.out)
    if not arguments.steps:
        raise UserError("there is nothing to do", where="grow", remedy="give --deepen BLOCK or --widen BLOCK:FACTOR")
    words = [_words(option, word) for option, word in arguments.steps]
    given = _given(arguments)
    stream = torch.Generator().manual_seed(arguments.seed)
    inputs = torch.randn(INPUTS, *given.shape, generator=stream).to(_number_format(given.model))
    examples = _pictures(arguments, given.shape) if arguments.data else inputs
    extra = {"noise": arguments.noise, "seed": arguments.seed}
    batch_norm = False if arguments.no_batch_norm else None
    steps = [
        Step(
            block_of(given.model, block, inputs[:2]),
            factor,
            **({"batch_norm": batch_norm} if factor is None else extra),
        )
        for block, factor in words
    ]
    grown = grow(given.model, steps, examples)
    save_grown(arguments.out, grown, [*given.steps, *steps], given.shape)
    document = {
        "model": arguments.network,
        "input": list(given.shape),
        "steps": [{"deepen": step.block} if step.factor is None else _widened(step) for step in steps],
        "parameters": {"before": _parameters(given.model), "after": _parameters(grown)},
        "random_inputs": INPUTS,
        "largest_relative_difference": relative_difference(given.model, grown, inputs),
        "out": str(arguments.out),
    }
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def _words(option: str, word: str) -> tuple[str, float | None]:
    if option == "--deepen":
        return word, None
    block, _, text = word.rpartition(":")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not block or not factor > 1:
        raise UserError(f"'{word}'", where="--widen", expected="BLOCK:FACTOR with a factor above 1, as in 1:1.5")
    return block, factor


def _given(arguments: argparse.Namespace) -> Given:
    word, named = arguments.network, arguments.model
    weights = Path(word).suffix in SUFFIXES
    if weights and not named:
        what = "the file holds weights and does not hold the network"
        raise UserError(what, where=word, remedy="name the network with --model: FILE.py:factory or a shipped name")
    if named and not weights:
        raise UserError("--model without a .pt file", where="--model", expected="MODEL is then the file of weights")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(arguments.seed)
        model, shape = _network(named or word, arguments)
    if not weights:
        return Given(model, [], shape or _fitting_shape(model))
    model, steps, known = restore(word, model)
    return Given(model, steps, known or shape or _fitting_shape(model))


def _network(word: str, arguments: argparse.Namespace) -> tuple[nn.Module, tuple[int, ...] | None]:
    """Return the network that a word names, and the shape of one input if it is known."""
    asked = _shape(arguments.input)
    if ".py" in Path(word.partition(":")[0]).suffix:
        return _from_factory(word), asked
    if word in SHIPPED:
        return SHIPPED[word](word), asked or PICTURE
    names = option_names(Path(arguments.conf).resolve() / "model")
    if word not in names:
        remedy = did_you_mean(word, [*SHIPPED, *names])
        raise UserError(f"there is no model '{word}'", where="MODEL", expected="FILE.py:factory", remedy=remedy)
    built = architecture(load_option(arguments.conf, "model", word, ModelSettings))
    return module_of_study(built, arguments.seed), asked or built.input


def _from_factory(word: str) -> nn.Module:
    """Return the network of `FILE.py:NAME`: the result of a function or class without arguments, or a module."""
    file, _, name = word.rpartition(":") if ":" in word else (word, "", "")
    if not name:
        raise UserError("no factory is named", where=word, expected="FILE.py:factory")
    module = load_module(Path(file))
    found = getattr(module, name, None)
    if found is None:
        names = [key for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        raise UserError(f"there is no '{name}'", where=file, remedy=did_you_mean(name, names))
    if not isinstance(found, nn.Module):
        try:
            found = found()
        except Exception as error:
            what = f"'{name}' failed: {type(error).__name__}: {error}"
            raise UserError(what, where=place_in(Path(file), error), remedy="mend the file") from error
    if not isinstance(found, nn.Module):
        what = f"'{name}' gives a {type(found).__name__}"
        raise UserError(
            what, where=file, expected="a torch.nn.Module, or a function without arguments that returns one"
        )
    return found


def _fitting_shape(model: nn.Module) -> tuple[int, ...]:
    """Return a shape of inputs with which the network runs, derived from its first layer and usual image sizes."""
    for shape in _candidates(model):
        try:
            with evaluating(model):
                model(torch.zeros(2, *shape).to(_number_format(model)))
        except Exception:
            continue
        return shape
    what = "no shape of its inputs was found for which the network runs"
    raise UserError(what, where=type(model).__name__, remedy="give the shape of one input, as in --input 3x32x32")


def _candidates(model: nn.Module) -> Iterator[tuple[int, ...]]:
    for first in (module for module in model.modules() if isinstance(module, LAYERS)):
        if isinstance(first, CONVOLUTIONS):
            sides = (*_SIDES, *(side for side in range(1, 129) if side not in _SIDES))
            yield from ((first.in_channels, *[side] * len(first.kernel_size)) for side in sides)
        elif isinstance(first, nn.Linear):
            yield (first.in_features,)
            channels = [(count, first.in_features / count) for count in (1, 3)]
            yield from ((count, round(area**0.5), round(area**0.5)) for count, area in channels)
        return


def _shape(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    sides = text.replace(",", "x").split("x")
    if not all(side.isdecimal() and int(side) for side in sides):
        raise UserError(f"'{text}'", where="--input", expected="the shape of one input, as in 3x32x32")
    return tuple(map(int, sides))


def _pictures(arguments: argparse.Namespace, shape: tuple[int, ...]) -> Tensor:
    settings = load_option(arguments.conf, "data", arguments.data, DataSettings)
    pictures = torch.from_numpy(datasets.load(settings).split("train")[0])
    if tuple(pictures.shape[1:]) != shape:
        what = f"the images of {arguments.data} have the shape {tuple(pictures.shape[1:])}"
        raise UserError(what, where="--data", expected=f"the shape of the network's inputs, {shape}")
    return pictures


def _check_out(path: Path) -> None:
    if path.suffix not in SUFFIXES:
        raise UserError(f"'{path}'", where="--out", expected=f"a file that ends in {' or '.join(SUFFIXES)}")
    if path.is_dir() or not next(parent for parent in path.absolute().parents if parent.exists()).is_dir():
        raise UserError("no file can be written there", where=str(path), remedy="name another file with --out")


def _widened(step: Step) -> dict[str, Any]:
    return {"widen": step.block, "factor": step.factor}


def _parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def _number_format(model: nn.Module) -> torch.dtype:
    return next((parameter.dtype for parameter in model.parameters()), torch.float32)
