"""The command `schedlab adaptation calibrate`: measure the present machine and write its epoch seconds as a timing."""

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
from schedlab.studies.adaptation.commands.conf import add_conf, load_option
from schedlab.studies.adaptation.data import datasets
from schedlab.studies.adaptation.network.architecture import ModelSettings, architecture
from schedlab.studies.adaptation.simulator import calibrate
from schedlab.studies.adaptation.simulator.calibrate import architectures_to_measure

if TYPE_CHECKING:
    from schedlab.studies.adaptation.network.architecture import Architecture
    from schedlab.studies.adaptation.simulator.calibrate import Measure
    from schedlab.studies.adaptation.simulator.timing import TimingSettings

log = logging.getLogger(__name__)
_DESCRIPTION = """Measure the seconds of an epoch of a model, of each single insertion and of two, fit a price for each insertion, and write
the result as a timing. What was measured and how far the formula is from it are printed as one JSON document."""


def add_calibrate_command(commands: argparse._SubParsersAction) -> None:
    """Add `calibrate --model M --data D --name NAME --out FILE` to a parser's sub-commands."""
    parser = commands.add_parser(
        "calibrate", help="measure this machine's epoch seconds as a timing", description=_DESCRIPTION
    )
    parser.add_argument("--model", required=True, metavar="M", help="a file of conf/model/")
    parser.add_argument("--data", required=True, metavar="D", help="a file of conf/data/")
    parser.add_argument(
        "--device", default="cpu", help="cpu (default; one thread), cuda, or auto: cuda where this machine has it"
    )
    parser.add_argument("--name", required=True, help="name of the timing")
    parser.add_argument("--out", type=Path, metavar="FILE", help="file to write (default: <conf>/gpu/<name>.yaml)")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--epochs", type=int, default=5, metavar="K", help="measured epochs of each architecture (default: 5)"
    )
    parser.add_argument("--warm-up", type=int, default=1, metavar="K", help="epochs before, not counted (default: 1)")
    parser.add_argument(
        "--batch-size", type=int, default=64, metavar="N", help="images of a training step (default: 64)"
    )
    parser.add_argument(
        "--head-relu", action="store_true", help="the model with the ReLU behind its logits, as published"
    )
    add_conf(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, write the timing, print what was measured."""
    out = _file_to_write(arguments)
    options = {"epochs": arguments.epochs, "warm_up": arguments.warm_up, "batch_size": arguments.batch_size}
    settings = validate(calibrate.CalibrateSettings, options, lambda path: "--" + str(path[0]).replace("_", "-"))
    model = load_option(
        arguments.conf, "model", arguments.model, ModelSettings, {"head_relu": True} if arguments.head_relu else None
    )
    data = load_option(arguments.conf, "data", arguments.data, datasets.DataSettings)
    device = find_device(arguments.device)
    base, dataset = architecture(model), datasets.load(data)
    measure = _told(
        calibrate.epoch_measure(dataset, arguments.device, settings), settings.warm_up + settings.epochs, base
    )
    gpu = device_name(device) + (", one thread" if device.type == "cpu" else "")
    timing = calibrate.calibrate(base, measure, arguments.name, gpu, data.name, settings)
    calibrate.write_timing(out, timing)
    print(json.dumps({"file": str(out), **report(timing)}, indent=2))
    return 0


def _file_to_write(arguments: argparse.Namespace) -> Path:
    """The timing's file, checked before minutes of measuring: a valid name, not taken, in a folder that is or can be
    there.
    """
    if not re.fullmatch(NAME, arguments.name):
        expected = "small letters, digits, '-', '_' and '.', a letter or digit first"
        raise UserError(f"'{arguments.name}' is no name of a timing", where="--name", expected=expected)
    out = arguments.out or Path(arguments.conf) / "gpu" / f"{arguments.name}.yaml"
    if out.exists() and not arguments.force:
        raise UserError(
            "the file is there already",
            where=str(out),
            remedy="choose another --name or --out, or replace it with --force",
        )
    if out.is_dir() or not next(parent for parent in out.absolute().parents if parent.exists()).is_dir():
        raise UserError("no file can be written here", where=str(out), remedy="name another file with --out")
    return out


def report(timing: TimingSettings) -> dict[str, Any]:
    """Return a measured timing as plain values: each architecture's seconds beside the formula's, the formula, the
    largest distances.
    """
    (name, model), *_ = timing.models.items()
    measured = []
    for entry in model.exact:
        by_formula = {
            "train_s": model.train.seconds(entry.insertions),
            "eval_s": model.evaluation.seconds(entry.insertions),
        }
        seconds = {"train_s": entry.train_s, "eval_s": entry.eval_s}
        residual = {key: round(seconds[key] - value, 6) for key, value in by_formula.items()}
        measured.append({"insertions": list(entry.insertions), **seconds, "residual": residual})
    return {
        "name": timing.name,
        "gpu": timing.gpu,
        "source": timing.source,
        "batch_size": timing.batch_size,
        "model": name,
        "train": model.train.model_dump(mode="json"),
        "evaluation": model.evaluation.model_dump(mode="json"),
        "largest_residual": model.residual.model_dump(mode="json") if model.residual else None,
        "measured": measured,
    }


def _told(measure: Measure, rounds: int, base: Architecture) -> Measure:
    """The same measurement, told of on standard error."""
    total, done = rounds * len(architectures_to_measure(base)), 0

    def told(built: Architecture) -> tuple[float, float]:
        nonlocal done
        train_s, eval_s = measure(built)
        done += 1
        log.info(
            "%d of %d: %s %s trains in %.4f s, evaluates in %.4f s",
            done,
            total,
            built.model,
            built.insertions,
            train_s,
            eval_s,
        )
        return train_s, eval_s

    return told
