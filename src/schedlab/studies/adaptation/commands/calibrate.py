"""The command `schedlab adaptation calibrate`, which measures epoch times on this machine and writes a timing."""

from __future__ import annotations

import argparse
import json
import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.settings import NAME
from schedlab.learning.devices import device_name, find_device
from schedlab.studies.adaptation.commands.conf import load_option
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture
from schedlab.studies.adaptation.simulator import calibrate
from schedlab.studies.adaptation.simulator.calibrate import architectures_to_measure

if TYPE_CHECKING:
    from schedlab.studies.adaptation.network.architecture import Architecture
    from schedlab.studies.adaptation.simulator.calibrate import Calibration, Measure

log = logging.getLogger(__name__)


def run(arguments: argparse.Namespace) -> int:
    """Measure the epochs, write the timing, and print the measurements as one JSON document."""
    out = _file_to_write(arguments)
    options = {"epochs": arguments.epochs, "warm_up": arguments.warm_up, "batch_size": arguments.batch_size}
    settings = validate(calibrate.CalibrateSettings, options, lambda path: "--" + str(path[0]).replace("_", "-"))
    changes = {"head_relu": True} if arguments.head_relu else None
    model = load_option(arguments.conf, "model", arguments.model, ModelSettings, changes)
    data = load_option(arguments.conf, "data", arguments.data, datasets.DataSettings)
    device = find_device(arguments.device)
    base, dataset = architecture(model), datasets.load(data)
    measure = calibrate.epoch_measure(dataset, arguments.device, settings)
    measure = _logged(measure, settings.warm_up + settings.epochs, base)
    gpu = device_name(device) + (", one thread" if device.type == "cpu" else "")
    measured = calibrate.calibrate(base, measure, arguments.name, gpu, data.name, settings)
    calibrate.write_timing(out, measured.timing)
    for block, (price, error) in enumerate(zip(_prices(measured), measured.errors[0], strict=True)):
        if price < 2 * error:
            log.warning(
                "behind block %d an insertion costs %.2g s with a standard error of %.2g s: measure more epochs "
                "(--epochs) on an idle machine", block, price, error,
            )  # fmt: skip
    print(json.dumps({"file": str(out), **report(measured)}, indent=2))
    return 0


def _file_to_write(arguments: argparse.Namespace) -> Path:
    """Return the timing's file. Its name and place are checked first, because the measurement takes minutes."""
    if not re.fullmatch(NAME, arguments.name):
        expected = "small letters, digits, '-', '_' and '.', a letter or digit first"
        raise UserError(f"'{arguments.name}' is no name of a timing", where="--name", expected=expected)
    out = arguments.out or Path(arguments.conf) / "gpu" / f"{arguments.name}.yaml"
    if out.exists() and not arguments.force:
        remedy = "choose another --name or --out, or replace it with --force"
        raise UserError("the file is there already", where=str(out), remedy=remedy)
    if out.is_dir() or not next(parent for parent in out.absolute().parents if parent.exists()).is_dir():
        raise UserError("no file can be written here", where=str(out), remedy="name another file with --out")
    return out


def _prices(found: Calibration) -> tuple[float, ...]:
    """Return the training seconds of an insertion behind each block."""
    (model,) = found.timing.models.values()
    return model.train.per_insertion if model.train else ()


def report(found: Calibration) -> dict[str, Any]:
    """Return a measured timing as plain values: the formula with the standard error of each price, and for each
    architecture its seconds with their quartiles and the error of the formula.
    """
    timing = found.timing
    (name, model), *_ = timing.models.items()
    measured = []
    for entry, quartiles in zip(model.exact, found.quartiles.transpose(1, 2, 0), strict=True):
        seconds = {"train_s": entry.train_s, "eval_s": entry.eval_s}
        formula = (model.train.seconds(entry.insertions), model.evaluation.seconds(entry.insertions))
        residual = {key: round(seconds[key] - value, 6) for key, value in zip(seconds, formula, strict=True)}
        spread = {key: values.round(6).tolist() for key, values in zip(seconds, quartiles, strict=True)}
        measured.append({"insertions": list(entry.insertions), **seconds, "quartiles": spread, "residual": residual})
    costs = {"train": model.train, "evaluation": model.evaluation}
    return {
        "name": timing.name,
        "gpu": timing.gpu,
        "source": timing.source,
        "batch_size": timing.batch_size,
        "model": name,
        **{
            part: {**cost.model_dump(mode="json"), "standard_errors": errors.round(6).tolist()}
            for (part, cost), errors in zip(costs.items(), found.errors, strict=True)
        },
        "largest_residual": model.residual.model_dump(mode="json") if model.residual else None,
        "measured": measured,
    }


def _logged(measure: Measure, rounds: int, base: Architecture) -> Measure:
    """Return the same measurement with a line in the log for each epoch."""
    total, done = rounds * len(architectures_to_measure(base)), 0

    def measured(built: Architecture) -> tuple[float, float]:
        nonlocal done
        train_s, eval_s = measure(built)
        done += 1
        times = f"trains in {train_s:.4f} s, evaluates in {eval_s:.4f} s"
        log.info("%d of %d: %s %s %s", done, total, built.model, built.insertions, times)
        return train_s, eval_s

    return measured
