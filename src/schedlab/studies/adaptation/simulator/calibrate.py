"""Measurement of a model's epoch times on this machine, written as a timing.

Only the measurement reads a clock. It is passed as a function, so that all other code can be tested without a clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.files import write_text
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.seeds import generator
from schedlab.learning.devices import find_device, wait_for
from schedlab.studies.adaptation.network import models, training
from schedlab.studies.adaptation.network.architecture import require_fit
from schedlab.studies.adaptation.scenario import TrainingSettings
from schedlab.studies.adaptation.simulator.timing import EpochSeconds, TimingSettings, own_macs

if TYPE_CHECKING:
    import torch

    from schedlab.studies.adaptation.data.datasets import DataSet
    from schedlab.studies.adaptation.network.architecture import Architecture

Measure = Callable[["Architecture"], tuple[float, float]]  # seconds of one epoch: training, evaluation


class CalibrateSettings(Settings):
    """Settings of a measurement."""

    epochs: int = setting(
        5, doc="measured epochs of each architecture; the median is used, and the epochs differ by the spread",
        unit="epochs", ge=3,
    )  # fmt: skip
    warm_up: int = setting(1, doc="epochs of each architecture before the measurement", unit="epochs", ge=0)
    batch_size: int = setting(64, doc="batch size", unit="images", ge=1)


@dataclass(frozen=True)
class Calibration:
    """A measured timing, and the spread of the measured epochs.

    errors     standard error of the price behind each block, shape (2, blocks): training, evaluation; s
    quartiles  first and third quartile of the epochs of each architecture, shape (2, architectures, 2): lower and
               upper, then training and evaluation; s
    """

    timing: TimingSettings
    errors: np.ndarray
    quartiles: np.ndarray


def calibrate(
    base: Architecture, measure: Measure, name: str, gpu: str, data: str = "", settings: CalibrateSettings | None = None
) -> Calibration:
    """Return the linear timing of a model under deepening, fitted by least squares to medians of measured epochs.

    base     the unchanged model; it is measured as it is, and with one and with two insertions behind each block
    measure  returns the seconds of one epoch of an architecture, training and evaluation
    name     name of the timing; gpu: the device in words; data: the data set's name
    The architectures are measured in turn, so that a slow phase of the machine affects all of them. No insertion gets a
    negative price. The medians are kept as exact entries, the largest residuals of the formula as `residual`. Raises
    UserError if the measured seconds do not give a valid timing.
    """
    settings = settings or CalibrateSettings()
    architectures = architectures_to_measure(base)
    rounds = _rounds(architectures, measure, settings)
    medians = [EpochSeconds(*(round(float(value), 6) for value in pair)) for pair in np.median(rounds, axis=0)]
    insertions = [architecture.insertions for architecture in architectures]
    counts = np.array(insertions, dtype=float).reshape(len(architectures), -1)
    train, train_residual = fit(counts, np.array([seconds.train for seconds in medians]))
    evaluation, evaluation_residual = fit(counts, np.array([seconds.evaluation for seconds in medians]))
    errors = np.array([price_errors(counts, rounds[..., part]) for part in (0, 1)])
    exact = [
        {"insertions": list(architecture.insertions), "train_s": seconds.train, "eval_s": seconds.evaluation}
        for architecture, seconds in zip(architectures, medians, strict=True)
    ]
    model = {
        "train": train,
        "evaluation": evaluation,
        "own_macs": own_macs(base),
        "residual": {"train_s": train_residual, "eval_s": evaluation_residual},
        "exact": exact,
    }
    source = f"medians of {settings.epochs} epochs of each of {len(architectures)} architectures"
    source += f" on {data}" if data else ""
    values = {
        "name": name,
        "gpu": gpu,
        "source": f"{source}, measured by `schedlab adaptation calibrate`",
        "batch_size": settings.batch_size,
        "kind": "linear",
        "models": {base.model: model},
    }
    timing = validate(TimingSettings, values, lambda path: f"timing {name}: {'.'.join(str(key) for key in path)}")
    return Calibration(timing, errors, np.percentile(rounds, (25, 75), axis=0))


def architectures_to_measure(base: Architecture) -> list[Architecture]:
    """Return the unchanged model, and one and two insertions behind each block: two points for each price."""
    singles = [base.deepened(block) for block in range(len(base.insertions))]
    return [base, *singles, *(single.deepened(block) for block, single in enumerate(singles))]


def price_errors(counts: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """Return the standard error of each price (blocks,), from prices that are fitted to each round of epochs alone.

    counts  insertions of each architecture, shape (architectures, blocks)
    rounds  seconds, shape (rounds, architectures)
    """
    columns = np.column_stack([np.ones(len(counts)), counts])
    prices = np.linalg.lstsq(columns, rounds.T, rcond=None)[0][1:]
    return prices.std(axis=1, ddof=1) / np.sqrt(len(rounds))


def fit(counts: np.ndarray, seconds: np.ndarray) -> tuple[dict, float]:
    """Fit base + counts @ prices to seconds by least squares with prices of at least zero.

    counts   insertions of each architecture, shape (architectures, blocks)
    seconds  shape (architectures,)
    Returns (base and per_insertion as LinearCost takes them, largest residual), rounded to microseconds. A negative
    price is noise, because more layers take more time: the most negative price is set to zero and the others are fitted
    again, until none is negative. Raises UserError if the base is not positive.
    """
    prices = np.zeros(counts.shape[1])
    free = list(range(counts.shape[1]))
    while True:
        columns = np.column_stack([np.ones(len(seconds)), counts[:, free]])
        solution = np.linalg.lstsq(columns, seconds, rcond=None)[0]
        if not free or solution[1:].min() >= 0:
            break
        del free[int(solution[1:].argmin())]
    base, prices[free] = round(float(solution[0]), 6), solution[1:].round(6)
    if not base > 0:
        what = f"the measured seconds give a base of {base} s"
        raise UserError(what, expected="more than 0", remedy="measure more epochs on an idle machine")
    residual = float(np.abs(seconds - base - counts @ prices).max())
    return {"base": base, "per_insertion": prices.tolist()}, round(residual, 6)


def write_timing(path: Path | str, settings: TimingSettings) -> None:
    """Write a timing as a configuration file (conf/gpu/<name>.yaml), atomically."""
    import yaml

    values = settings.model_dump(mode="json", exclude_none=True)
    write_text(path, yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True))


def epoch_measure(data: DataSet, device: str, settings: CalibrateSettings | None = None) -> Measure:
    """Return a function that measures one epoch of an architecture on a device (`cpu`, one thread; `cuda`).

    An epoch is that of a simulation: one shuffled pass over the training images, then one evaluation on validation and
    test images. Networks are kept between calls, so that the first call warms up. Raises UserError if there is no such
    device; the returned function raises it if the images do not fit the architecture.
    """
    place = find_device(device)
    options = TrainingSettings(batch_size=(settings or CalibrateSettings()).batch_size)
    training.prepare_torch(place.type)
    splits = training.samples(data, str(place))
    order = generator(0, "calibrate").permutation(len(data.train_labels))
    states: dict[str, training.TrainState] = {}

    def measure(architecture: Architecture) -> tuple[float, float]:
        require_fit(architecture, data.name, data.input_shape, data.classes)
        if architecture.key not in states:
            states[architecture.key] = training.TrainState(
                models.build(architecture, 0).to(place), options.learning_rate
            )
        state = states[architecture.key]
        train_s = _seconds(place, lambda: training.train_epoch(state, splits["train"], order, options))
        return train_s, _seconds(place, lambda: training.evaluate(state.network, splits))

    return measure


def _rounds(architectures: list[Architecture], measure: Measure, settings: CalibrateSettings) -> np.ndarray:
    """Return the measured seconds, shape (rounds, architectures, 2): training and evaluation."""
    measured = [
        [measure(architecture) for architecture in architectures] for _ in range(settings.warm_up + settings.epochs)
    ]
    return np.array(measured[settings.warm_up :], dtype=float)


def _seconds(place: torch.device, work: Callable[[], object]) -> float:
    """Return the elapsed seconds of some work, including the work of the GPU."""
    wait_for(place)
    begin = time.perf_counter()
    work()
    wait_for(place)
    return time.perf_counter() - begin
