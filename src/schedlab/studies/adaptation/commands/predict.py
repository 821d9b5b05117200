"""The command `schedlab adaptation predict`: a trained network on the images of a data set."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path
from schedlab.config.schema import validate
from schedlab.learning.devices import find_device
from schedlab.studies.adaptation.commands.conf import add_conf, load_option
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.data.datasets import DataSettings
from schedlab.studies.adaptation.network.architecture import require_fit
from schedlab.studies.adaptation.network.files import read_network
from schedlab.studies.adaptation.network.models import Network
from schedlab.studies.adaptation.network.training import EVALUATION_BATCH, prepare_torch

if TYPE_CHECKING:
    import numpy as np

    from schedlab.studies.adaptation.data.datasets import DataSettings
    from schedlab.studies.adaptation.network.files import SavedNetwork

SPLITS = ("train", "validation", "test")
_DESCRIPTION = """Classify the images of a data set with a trained network and print accuracy, log loss and counts as one JSON document.
The file tells its architecture and the data set that it was trained on, which is the one used unless --data names another."""


def add_predict_command(commands: argparse._SubParsersAction) -> None:
    """Add `predict WEIGHTS [--data D] [--split test] [--output CSV]` to a parser's sub-commands."""
    parser = commands.add_parser("predict", help="a trained network on data", description=_DESCRIPTION)
    parser.add_argument("weights", type=Path, metavar="WEIGHTS", help=".npz or .h5, as written by `run --weights`")
    parser.add_argument("--data", metavar="D", help="a file of conf/data/ (default: what the network was trained on)")
    parser.add_argument("--split", choices=SPLITS, default="test", help="default: test")
    parser.add_argument(
        "--output", type=Path, metavar="CSV", help="write label, prediction and probabilities of each image"
    )
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda, or auto: cuda where this machine has it")
    add_conf(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Classify, print the JSON document, and write the table of images where that is asked for."""
    network = read_network(arguments.weights)
    settings = _data(arguments, network)
    dataset = datasets.load(settings)
    images, labels = dataset.split(arguments.split)
    if not len(labels):
        raise UserError(
            f"data set {settings.name} has no {arguments.split} images", where="--split", remedy="choose another split"
        )
    built = network.architecture
    require_fit(built, settings.name, dataset.input_shape, dataset.classes, str(arguments.weights))
    probabilities, log_loss = classify(network, images, labels, arguments.device)
    predicted = probabilities.argmax(1)
    correct = int((predicted == labels).sum())
    document = {
        "weights": str(arguments.weights),
        "model": built.model,
        "insertions": list(built.insertions),
        "parameters": built.parameters,
        "data": settings.name,
        "split": arguments.split,
        "accuracy": correct / len(labels),
        "log_loss": log_loss,
        "counts": {"images": len(labels), "correct": correct, "labels": _counts(labels, built.classes)}
        | {
            "predictions": _counts(predicted, built.classes),
            "correct_by_label": _counts(labels[predicted == labels], built.classes),
        },
    }
    if arguments.output:
        write_predictions(arguments.output, labels, probabilities)
        document["output"] = str(arguments.output)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def classify(
    network: SavedNetwork, images: np.ndarray, labels: np.ndarray, device: str = "cpu"
) -> tuple[np.ndarray, float]:
    """Return each image's class probabilities (n, classes) float64 and the mean log loss (nats), computed as a
    simulation does.

    images (n, channels, height, width) float32; labels (n,) int64. Raises UserError where the device is not there.
    """
    import torch
    import torch.nn.functional as F

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
    """Write a row an image (image, label, prediction, probability_0 ...) as CSV, atomically; numbers as their shortest
    exact text.
    """
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
        raise UserError(
            "the file does not tell what it was trained on",
            where=str(arguments.weights),
            remedy="name the data set (--data)",
        )
    return validate(DataSettings, told, lambda path: f"{arguments.weights}: data.{'.'.join(map(str, path))}")


def _counts(values: np.ndarray, classes: int) -> list[int]:
    import numpy as np

    return np.bincount(values, minlength=classes).tolist()
