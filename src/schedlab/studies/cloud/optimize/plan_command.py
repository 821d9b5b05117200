"""`schedlab cloud plan`: its arguments, and a plan as values, text and picture.

If a command is given instead of logs, it is measured on this machine first, as by `schedlab cloud optimize`.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import Drawing
from schedlab.config.errors import UserError
from schedlab.config.plugins import load_object
from schedlab.config.readers import read_json, read_yaml
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures.panels.axes import log_ticks
from schedlab.figures.save import save_as
from schedlab.figures.theme import INK, MUTED, applied, colour, new_figure
from schedlab.studies.cloud.model.allocation import PRICES, ResourceConfig, whole
from schedlab.studies.cloud.model.cost import money
from schedlab.studies.cloud.model.plan import HOUR, Measured, allocation, forecast, read_job
from schedlab.studies.cloud.optimize.plan import INTERVAL, Plan, duration, plan, words
from schedlab.studies.cloud.optimize.settings import LimitSettings

PROBE_EPOCHS = 2  # length of a proposed measurement, epochs


def seconds_of(text: str) -> float:
    """Return a duration in s from a number, or from a number with the unit s, m, h or d, such as 90m. Raises
    ArgumentTypeError.
    """
    factor = {"s": 1.0, "m": 60.0, "h": HOUR, "d": 86400.0}.get(text[-1:].lower())
    try:
        value = float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no duration, as 3600, 90m or 1.5h")
    return value


def values(found: Plan) -> dict[str, Any]:
    """Return a plan as plain values."""
    forecast_, job = found.forecast, found.forecast.job
    following = found.next_one
    return {
        "feasible": found.chosen is not None,
        "plan": _row(found, found.chosen) if found.chosen is not None else None,
        "fastest": _row(found, found.fastest),
        "cheapest": _row(found, found.cheapest),
        "front": [_row(found, number) for number in found.front],
        "reason": found.reason,
        "limits": {name: value for name, value in found.limits.model_dump().items() if value is not None},
        "probability": found.probability,
        "measure_next": None if following is None else {**_row(found, following), "bill": _bill(found, following)},
        "job": {"model": job.model or None, "epochs": job.epochs, "samples": job.samples, "start_s": job.start},
        "median_relative_error": forecast_.median_error,
        "warnings": warnings(found),
    }


def _row(found: Plan, number: int) -> dict[str, Any]:
    forecast_ = found.forecast
    held = allocation(forecast_, number)
    low, high = np.quantile(forecast_.times[:, number], INTERVAL)
    price = forecast_.price[number] / HOUR
    return {
        "gpus": held.gpu_count,
        "cpu_cores": held.cpu_count,
        "memory_gb": held.memory_gb,
        "batch_size": int(forecast_.batch[number]),
        "time_s": float(forecast_.time[number]),
        "cost": float(forecast_.cost[number]),
        "probability": float(found.likely[number]),
        "time_interval_s": [float(low), float(high)],
        "cost_interval": [float(low * price), float(high * price)],
        "measured": bool(forecast_.measured[number]),
    }


def _bill(found: Plan, number: int) -> float:
    """Return the cost of a measurement of PROBE_EPOCHS epochs, $."""
    job, each = found.forecast.job, found.forecast.cost[number] / found.forecast.time[number]
    epoch = (found.forecast.time[number] - job.start) / job.epochs
    return float(each * (job.start + PROBE_EPOCHS * epoch))


def warnings(found: Plan) -> list[str]:
    """Return warnings about the forecasts for readers of the plan."""
    job, notes = found.forecast.job, []
    if not found.forecast.determined:
        notes.append(
            "the model has as many parameters as the logs have settings: the probabilities hold the noise of "
            "measurements alone, not the error of the model; measure more allocations"
        )
    if job.cores_per_gpu is not None:
        notes.append(
            f"the logs do not show what cores do: every allocation has {job.cores_per_gpu:g} cores for each GPU, as in "
            "the logs"
        )
    if job.memory is None:
        notes.append("the logs have no column memory_used_gb: about 3 GB, and 1.5 GB for each GPU, are assumed")
    return notes


def text(found: Plan) -> str:
    """Return a plan as lines for a terminal."""
    forecast_ = found.forecast
    job = forecast_.job
    lines = [f"{job.model or 'the job'}: {job.epochs} epochs of {job.samples:.0f} samples"]
    lines[0] += f"; the model misses the measured settings by {forecast_.median_error:.1%} (median)"
    if found.reason:
        lines += [found.reason]
    named = [("plan", found.chosen), ("fastest", found.fastest), ("cheapest", found.cheapest)]
    rows = [(name, number) for name, number in named if number is not None]
    rows += [("front", number) for number in _some(found.front, {number for _, number in rows})]
    cells = [("time (90 % interval)", "cost (90 % interval)")]
    for _, number in rows:
        row = _row(found, number)
        times = f"{duration(row['time_s'])} ({' to '.join(map(duration, row['time_interval_s']))})"
        cells.append((times, f"{money(row['cost'])} ({' to '.join(map(money, row['cost_interval']))})"))
    wide, high = (max(map(len, column)) for column in zip(*cells, strict=True))
    table = [f"{times:{wide}}  {costs:{high}}  " for times, costs in cells]
    lines += ["", f"{'':9}{'GPUs':>5}{'cores':>6}{'GB':>5}  {table[0]}limits"]
    for (name, number), shown in zip(rows, table[1:], strict=True):
        row = _row(found, number)
        held = f"{row['gpus']:>5}{row['cpu_cores']:>6}{row['memory_gb']:>5}"
        lines.append(f"{name:9}{held}  {shown}met with {row['probability']:.0%}")
    if found.next_one is not None:
        cost = money(_bill(found, found.next_one))
        lines += ["", f"to be surer, measure {words(forecast_, found.next_one)} for {PROBE_EPOCHS} epochs ({cost})"]
    return "\n".join([*lines, *(f"WARNING: {note}" for note in warnings(found))]) + "\n"


def _some(front: list[int], shown: set[int], most: int = 8) -> list[int]:
    """Return at most `most` allocations of the front, evenly spread, without those in `shown`."""
    places = np.unique(np.linspace(0, len(front) - 1, min(most, len(front))).astype(int))
    return [front[place] for place in places if front[place] not in shown]


def picture(found: Plan, path: Path) -> None:
    """Draw time and cost of all allocations, the front, the limits, and the plan with its 90 % interval."""
    forecast_ = found.forecast
    with applied(ThemeSettings()):
        figure, axes = new_figure(height_mm=80)
        axes.loglog(forecast_.time, forecast_.cost, ".", color=MUTED, markersize=3, label="allocations")
        front = np.array(found.front)
        axes.plot(forecast_.time[front], forecast_.cost[front], "-D", color=INK, markersize=3.5, label="front")
        for limit, draw, name in (
            (found.limits.time_max, axes.axvline, "limit on time"),
            (found.limits.cost_max, axes.axhline, "limit on cost"),
        ):
            if limit is not None:
                style = (0, (4, 2)) if draw == axes.axvline else (0, (1, 1))
                draw(limit, color=colour(1), linewidth=1, linestyle=style, label=name)
        if found.chosen is not None:
            row = _row(found, found.chosen)
            pairs = [(row["time_s"], row["time_interval_s"]), (row["cost"], row["cost_interval"])]
            errors = [[[value - low], [high - value]] for value, (low, high) in pairs]
            axes.errorbar(
                [row["time_s"]],
                [row["cost"]],
                xerr=np.maximum(errors[0], 0),
                yerr=np.maximum(errors[1], 0),
                fmt="o",
                color=colour(0),
                label=f"plan: {words(forecast_, found.chosen)}",
            )
        for axis, values_ in ((axes.xaxis, forecast_.time), (axes.yaxis, forecast_.cost)):
            log_ticks(axis, float(values_.min()), float(values_.max()))
        axes.set(xlabel="training time (s)", ylabel="cost ($)")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
        save_as(Drawing(figure, "Time and cost of every allocation by the fitted model."), [path])


def run(arguments: argparse.Namespace) -> int:
    """Run `schedlab cloud plan`. Return exit status 1 if no allocation meets the limits."""
    limits = limits_of(arguments)
    if not 0 < arguments.probability <= 1:
        raise UserError(f"{arguments.probability:g}", where="--probability", expected="above 0, at most 1")
    if arguments.picture is not None and arguments.picture.suffix not in (".png", ".svg", ".pdf"):
        raise UserError("unknown form", where=f"--picture {arguments.picture}", expected="a .png, .svg or .pdf file")
    for name in ("epochs", "batch_size", "gpus_per_node"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            where = f"--{name.replace('_', '-') if name == 'gpus_per_node' else name}"
            raise UserError(f"{getattr(arguments, name)}", where=where, expected="1 or more")
    words_given = [str(path) for path in arguments.logs]
    if not words_given[0].endswith(".csv") and shutil.which(words_given[0]):
        measure = load_object("schedlab.studies.cloud.optimize.command:measured_plan")
        found = measure(arguments, words_given, limits)
    else:
        measured = read_job(arguments.logs, arguments.gpus_per_node, arguments.epochs, arguments.batch_size)
        resources = resources_of(measured, arguments.max, arguments.prices)
        found = plan(forecast(measured, resources, arguments.seed), limits, arguments.probability)
    if arguments.picture is not None:
        picture(found, arguments.picture)
    print(json.dumps(values(found), indent=1, allow_nan=False) if arguments.json else text(found).rstrip("\n"))
    return int(found.chosen is None)


def limits_of(arguments: argparse.Namespace) -> LimitSettings:
    """Return the limits of a file, replaced by those of the options. Raises UserErrors."""
    given: dict[str, Any] = {}
    if (file := arguments.limits) is not None:
        given = read_json(file, "limits") if file.suffix.lower() == ".json" else read_yaml(file)
        if not isinstance(given, Mapping):
            raise UserError("the file holds no mapping", where=str(file), expected="limits, as time_max: 3600")
        validate(LimitSettings, given, lambda path: f"{file}: {'.'.join(map(str, path))}")
    options = {"time_max": arguments.deadline, "cost_max": arguments.budget}
    over = {name: value for name, value in options.items() if value is not None}
    return validate(LimitSettings, {**given, **over}, lambda path: {"cost_max": "--budget"}.get(path[0], "--deadline"))


def resources_of(
    measured: Measured, most: tuple[float, ...] | None, prices: tuple[float, ...] | None
) -> ResourceConfig:
    """Return the resources that may be allocated: `most` GPUs, cores and GB; if None, as many as in the logs and any
    memory.
    """
    settings = measured.settings
    most = most or (float(settings["gpus"].max()), float(settings["cores"].max()), 1e6)
    gpus, cores, memory = map(whole, most)
    paid = dict(zip(PRICES, prices, strict=True)) if prices else PRICES
    least = 0 if not len(measured.steps) else 1
    values = {"gpu_count_max": gpus if least else 0, "gpu_count_min": least, "cpu_count_max": cores}
    return validate(
        ResourceConfig, {**values, "memory_max": memory, "memory_min": min(1, memory), **paid}, lambda _: "--max"
    )
