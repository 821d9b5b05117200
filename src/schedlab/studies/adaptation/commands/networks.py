"""The commands `predict` and `weights convert`, which use the file of a trained network."""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.config.schema import validate
from schedlab.learning.devices import find_device
from schedlab.studies.adaptation.commands.conf import load_option
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.data.datasets import DataSettings
from schedlab.studies.adaptation.network.architecture import Architecture, ModelSettings, architecture, require_fit
from schedlab.studies.adaptation.network.files import SavedNetwork, deepened, layout_of, read_network, write_network
from schedlab.studies.adaptation.network.models import Network
from schedlab.studies.adaptation.network.training import EVALUATION_BATCH, prepare_torch


def predict(arguments: argparse.Namespace) -> int:
    """Classify images, print the JSON document, and write the table of images if it is requested."""
    network = read_network(arguments.weights)
    settings = _data(arguments, network)
    dataset = datasets.load(settings)
    images, labels = dataset.split(arguments.split)
    if not len(labels):
        what = f"data set {settings.name} has no {arguments.split} images"
        raise UserError(what, where="--split", remedy="choose another split")
    built = network.architecture
    require_fit(built, settings.name, dataset.input_shape, dataset.classes, str(arguments.weights))
    probabilities, log_loss = classify(network, images, labels, arguments.device)
    predicted = probabilities.argmax(1)
    correct = int((predicted == labels).sum())
    counts = {"images": len(labels), "correct": correct}
    by_label = {"labels": labels, "predictions": predicted, "correct_by_label": labels[predicted == labels]}
    document = {
        "weights": str(arguments.weights),
        **_about(built),
        "data": settings.name,
        "split": arguments.split,
        "accuracy": correct / len(labels),
        "log_loss": log_loss,
        "counts": counts | {name: _counts(values, built.classes) for name, values in by_label.items()},
    }
    if arguments.output:
        write_predictions(arguments.output, labels, probabilities)
        document["output"] = str(arguments.output)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def _about(built: Architecture) -> dict[str, Any]:
    return {"model": built.model, "insertions": list(built.insertions), "parameters": built.parameters}


def classify(
    network: SavedNetwork, images: np.ndarray, labels: np.ndarray, device: str = "cpu"
) -> tuple[np.ndarray, float]:
    """Return each image's class probabilities (n, classes) and the mean log loss (nats), computed as in a simulation.

    images (n, channels, height, width) float32; labels (n,) int64. Raises UserError if the device does not exist.
    """
    place = find_device(device)
    prepare_torch(place.type)
    state = {name: torch.from_numpy(array.copy()) for name, array in network.state.items()}
    module = Network(network.architecture, state).to(place).train(False)
    with torch.no_grad():
        parts = torch.from_numpy(images).to(place).split(EVALUATION_BATCH)
        logits = torch.cat([module(part) for part in parts]).double().cpu()
        loss = F.cross_entropy(logits, torch.from_numpy(labels)).item()
    return logits.softmax(-1).numpy(), loss


def write_predictions(path: Path, labels: np.ndarray, probabilities: np.ndarray) -> None:
    """Write a CSV, atomically: image, label, prediction, probability_0 ...; numbers as their shortest exact text."""
    header = ["image", "label", "prediction", *(f"probability_{number}" for number in range(probabilities.shape[1]))]
    with atomic_path(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for number, (label, row) in enumerate(zip(labels.tolist(), probabilities, strict=True)):
            writer.writerow([number, label, int(row.argmax()), *map(repr, row.tolist())])


def _data(arguments: argparse.Namespace, network: SavedNetwork) -> DataSettings:
    if arguments.data:
        return load_option(arguments.conf, "data", arguments.data, DataSettings)
    told: Any = network.about.get("data")
    if not isinstance(told, dict):
        what = "the file does not name its training data"
        raise UserError(what, where=str(arguments.weights), remedy="name the data set (--data)")
    return validate(DataSettings, told, lambda path: f"{arguments.weights}: data.{'.'.join(map(str, path))}")


def _counts(values: np.ndarray, classes: int) -> list[int]:
    return np.bincount(values, minlength=classes).tolist()


def convert(arguments: argparse.Namespace) -> int:
    """Convert a file and print a description of it as one JSON document."""
    wanted = layout_of(arguments.layout) if arguments.layout else None
    network = read_network(arguments.source, _architecture(arguments))
    layout = wanted or ("tensorflow" if network.layout == "torch" else "torch")
    write_network(arguments.target, replace(network, layout=layout))
    built = network.architecture
    document = {
        "source": str(arguments.source),
        "target": str(arguments.target),
        "from": network.layout,
        "to": layout,
        **_about(built),
        "tensors": len(network.state),
    }
    print(json.dumps(document, indent=2))
    return 0


def _architecture(arguments: argparse.Namespace) -> Architecture | None:
    if not arguments.model:
        if arguments.deepen:
            raise UserError("--deepen without --model", where="--deepen", expected="the model that was deepened")
        return None
    try:
        blocks = [int(text) for text in arguments.deepen.split(",") if text]
    except ValueError:
        raise UserError(f"'{arguments.deepen}'", where="--deepen", expected="block numbers, as in 0,0,2") from None
    model = load_option(
        arguments.conf, "model", arguments.model, ModelSettings, {"head_relu": True} if arguments.head_relu else None
    )
    return deepened(architecture(model), blocks, False if arguments.no_batch_norm else None)
