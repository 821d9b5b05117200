"""The published system's folder `results/`: its text files read as the tables of its simulations.

A run of 64 trainings (`simulation_<when><model>`) holds `config.toml`, and for each training `training<NN>.log` and
`training<NN>.epoch.<value>` with a line `epoch,seconds,value` for each epoch. An initial training (`small_<when>`)
holds `training0.*` and the seconds of its epochs in `runtimes`. Seconds count from the training's first log line. Files
of Python objects (`data.pkl`, `weights.pth`) could run code and are never opened.

Source: github.com/ChamiLamelas/RL-Based-DNN-Scheduling-Adaptation, src/ (logging of trainings) and results/.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.data_paths import LOCAL_DATA, find_data
from schedlab.config.errors import UserError
from schedlab.config.files import write_text
from schedlab.config.readers import read_text

if TYPE_CHECKING:
    import pandas as pd

WHEN = re.compile(r"(?:simulation|small)_(early_middle|middle_late|early|middle|late)\d")
PARAMETERS = re.compile(r"Model size was changed to (\d+) parameters")
LOADED, DECIDES = "Initialized model with weights", "Current training mode: increased"
SERIES = ("action", "last_runtime", "train_acc", "test_acc")
_DOWNLOAD = "download the folder again: schedlab data get adaptation_published"


def read_simulations(folder: Path) -> pd.DataFrame:
    """Return a row for each training of the folder's simulations: the columns of the published record.

    The seconds left at a decision come from the log, which counts milliseconds; they are within 0.01 s of the published
    table. The budget does not include the loading of the weights. Raises UserError for a folder without simulations,
    and for missing, damaged or contradictory files.
    """
    import pandas as pd

    return pd.DataFrame([_simulation(run, training) for run, training in _trainings(folder)])


def read_epochs(folder: Path) -> pd.DataFrame:
    """Return a row for each finished epoch of the folder's simulations: decision, parameters, seconds and accuracies.

    Raises UserError as `read_simulations` does.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for run, training in _trainings(folder):
        seen = _Training(run, training)
        for epoch in range(seen.epochs):
            started, action = seen.values["action"][epoch]
            made = {"action": int(action), "params": seen.parameters[epoch], "t_action_s": round(started, 3)}
            rows.append({"experiment": run.name, "seq": seen.sequence, "epoch": epoch, **made, **seen.epoch(epoch)})
    return pd.DataFrame(rows)


def read_initial_trainings(folder: Path) -> pd.DataFrame:
    """Return a row for each epoch of the folder's initial trainings (`small_*`). Raises UserError for damaged files."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for run in _runs(folder, "small_"):
        names = {"last_runtime": "runtimes", **{name: f"training0.epoch.{name}" for name in SERIES[2:]}}
        values = {name: _series(run / file) for name, file in names.items()}
        epochs = _equal_lengths(run, values)
        facts = {"experiment": run.name, "scenario": _when(run), "model": _config(run)["job"]["model"]}
        rows += [{**facts, "epoch": epoch, **_epoch(values, epoch)} for epoch in range(epochs)]
    return pd.DataFrame(rows)


def run(arguments: argparse.Namespace) -> int:
    """Run `schedlab adaptation import-results`: write the three tables and print how many rows each has."""
    folder = arguments.folder or find_data("adaptation/published_results")
    out = arguments.out or LOCAL_DATA / "cases/adaptation"
    readers = {
        "simulations": read_simulations,
        "simulation_epochs": read_epochs,
        "initial_training": read_initial_trainings,
    }
    files = {name: out / f"{name}.csv" for name in readers}
    if (there := [str(file) for file in files.values() if file.exists()]) and not arguments.force:
        remedy = "name another folder with --out, or replace them with --force"
        raise UserError("these files are there already", where=" ".join(there), remedy=remedy)
    tables = {name: read(folder) for name, read in readers.items()}
    for name, table in tables.items():
        write_text(files[name], table.to_csv(index=False, lineterminator="\n"))
        print(f"{files[name]}: {len(table):,} rows")
    return 0


class _Training:
    """One training of a simulation, read from its files.

    values      each series, as (seconds, text) of each epoch
    epochs      number of finished epochs
    sequence    the decisions, one digit for each
    parameters  number of parameters of the network in each epoch
    decided     seconds from the loading of the weights to each decision of the sequence
    """

    def __init__(self, run: Path, training: str) -> None:
        self.values = {name: _series(run / f"{training}.epoch.{name}") for name in SERIES}
        finished = {name: series for name, series in self.values.items() if name != "action"}
        self.epochs = _equal_lengths(run, finished, training)
        decisions = int(_config(run)["agent"]["num_actions"])
        log = run / f"{training}.log"
        lines = read_text(log, "the log of a training").splitlines()
        self.parameters = [int(found[1]) for line in lines if (found := PARAMETERS.search(line))]
        if min(len(self.values["action"]), len(self.parameters)) < max(self.epochs, decisions) or not self.epochs:
            what = f"{len(self.values['action'])} decisions and {len(self.parameters)} sizes of the network"
            expected = f"at least one finished epoch, and a decision and a size in each of {self.epochs}"
            raise UserError(what, where=str(log), expected=expected, remedy=_DOWNLOAD)
        self.sequence = "".join(text for _, text in self.values["action"][:decisions])
        loaded = [_stamp(line, log) for line in lines if LOADED in line]
        deciding = [_stamp(line, log) for line in lines if DECIDES in line][:decisions]
        if not loaded or len(deciding) < decisions:
            what = f"no line with '{LOADED}', or fewer than {decisions} with '{DECIDES}'"
            raise UserError(what, where=str(log), expected="the log of a whole training", remedy=_DOWNLOAD)
        self.decided = [(at - loaded[0]).total_seconds() for at in deciding]

    def epoch(self, number: int) -> dict[str, float]:
        """Return the seconds and accuracies of a finished epoch."""
        return _epoch(self.values, number)


def _simulation(run: Path, training: str) -> dict[str, Any]:
    seen, config = _Training(run, training), _config(run)
    start, budget = float(config["scheduler"]["gpu_changes"][0]["time"]), float(config["scheduler"]["running_time"])
    left = {f"timeleft{number}_s": round(budget - start - at, 2) for number, at in enumerate(seen.decided, 1)}
    epochs = [seen.epoch(number) for number in range(seen.epochs)]
    tests = [epoch["test_acc"] for epoch in epochs]
    return {
        "experiment": run.name,
        "scenario": _when(run),
        "model": config["job"]["model"],
        "dataset": config["job"]["dataset"],
        "adapt_start_s": start,
        "budget_s": budget,
        "seq": seen.sequence,
        **left,
        "epochs": seen.epochs,
        "params_final": seen.parameters[seen.epochs - 1],
        "train_epoch_s_mean": round(_mean([epoch["train_epoch_s"] for epoch in epochs]), 3),
        "eval_s_mean": round(_mean([epoch["eval_s"] for epoch in epochs]), 3),
        "train_acc_final": epochs[-1]["train_acc"],
        "test_acc_final": tests[-1],
        "test_acc_best": max(tests),
        "test_acc_mean_last3": round(_mean(tests[-3:]), 5),
    }


def _epoch(values: dict[str, list[tuple[float, str]]], number: int) -> dict[str, float]:
    trained, train_accuracy = values["train_acc"][number]
    tested, test_accuracy = values["test_acc"][number]
    return {
        "train_epoch_s": round(float(values["last_runtime"][number][1]), 3),
        "eval_s": round(tested - trained, 3),
        "t_epoch_end_s": round(tested, 3),
        "train_acc": float(train_accuracy),
        "test_acc": float(test_accuracy),
    }


def _trainings(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folder and the name of each training of each simulation, in order."""
    for run in _runs(folder, "simulation_"):
        names = sorted(path.name.split(".")[0] for path in run.glob("training*.epoch.action"))
        if names:  # a learning run holds episodes instead of trainings
            yield from ((run, name) for name in names)


def _runs(folder: Path, prefix: str) -> list[Path]:
    found = sorted(path for path in folder.glob(f"{prefix}*") if path.is_dir())
    if not found:
        expected = f"folders {prefix}*, as in the published folder results/"
        raise UserError("no published run is here", where=str(folder), expected=expected, remedy=_DOWNLOAD)
    return found


def _when(run: Path) -> str:
    found = WHEN.match(run.name)
    if not found:
        expected = "simulation_ or small_, a time such as early_middle, and the model's number"
        raise UserError(f"the name '{run.name}' contains no time of growth", where=str(run), expected=expected)
    return found[1]


def _config(run: Path) -> dict[str, Any]:
    path = run / "config.toml"
    try:
        return tomllib.loads(read_text(path, "the settings of a published run"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"no TOML file ({error})", where=str(path), remedy=_DOWNLOAD) from None


def _series(path: Path) -> list[tuple[float, str]]:
    """Return (seconds, value) of each epoch; the first column counts the lines."""
    found: list[tuple[float, str]] = []
    for number, line in enumerate(read_text(path, "epoch,seconds,value").splitlines()):
        fields = line.split(",", 2)
        try:
            epoch, seconds, value = int(fields[0]), float(fields[1]), fields[2]
            float(value)
        except (ValueError, IndexError):
            expected = "epoch,seconds,value"
            raise UserError(f"'{line}'", where=f"{path}: line {number + 1}", expected=expected) from None
        if epoch != number:
            raise UserError(f"epoch {epoch}", where=f"{path}: line {number + 1}", expected=f"epoch {number}")
        found.append((seconds, value))
    return found


def _equal_lengths(run: Path, values: dict[str, list[tuple[float, str]]], training: str = "training0") -> int:
    lengths = {name: len(series) for name, series in values.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{count} of {name}" for name, count in lengths.items())
        raise UserError(f"{training} has {counts}", where=str(run), expected="a line for each epoch", remedy=_DOWNLOAD)
    return next(iter(lengths.values()))


def _stamp(line: str, path: Path) -> datetime:
    try:
        return datetime.strptime(line.split(" | ")[0], "%Y-%m-%d %H:%M:%S,%f")
    except ValueError:
        raise UserError(f"'{line}'", where=str(path), expected="a line that begins with date and time") from None


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
