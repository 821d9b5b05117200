"""`schedlab cloud plan`: the cheapest allocation that meets the limits, or the fastest within a budget, with the
probability that it does, the front between time and cost, and what to measure next.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.contract import Drawing
from schedlab.config.errors import UserError
from schedlab.config.readers import read_json, read_yaml
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures.panels.axes import log_ticks
from schedlab.figures.save import save_as
from schedlab.figures.theme import INK, MUTED, applied, colour, new_figure
from schedlab.studies.cloud.model.allocation import PRICES, ResourceConfig, whole
from schedlab.studies.cloud.model.cost import money
from schedlab.studies.cloud.model.plan import HOUR, Forecast, Measured, allocation, forecast, read_job, undominated
from schedlab.studies.cloud.optimize.settings import LimitSettings

INTERVAL = (0.05, 0.95)  # quantiles of the intervals that are printed
SURE = 0.02  # relative width of an interval below which measuring an allocation says nothing new
RIVAL = 0.05  # share of resamples in which an allocation is the best from which on it is worth measuring
PROBE_EPOCHS = 2  # of a measurement that is proposed
UNITS = {"time_max": "s", "cost_max": "$", "throughput_min": "samples/s", "memory_max": "GB"}


@dataclass(frozen=True)
class Plan:
    """A forecast, what was asked of it, and what follows.

    likely    probability that an allocation meets all limits, (n,); 0 where the model says that it breaks one
    chosen    number of the allocation to take; None: no allocation meets the limits (reason)
    front     numbers of those that no other one beats in time and cost, fastest first
    next_one  number of the allocation to measure next; None: no measurement is likely to change the choice
    """

    forecast: Forecast
    limits: LimitSettings
    probability: float
    likely: np.ndarray
    chosen: int | None
    fastest: int
    cheapest: int
    front: list[int]
    next_one: int | None
    reason: str | None


def plan(found: Forecast, limits: LimitSettings, probability: float = 0.9) -> Plan:
    """Choose an allocation: with a limit on time, or with none, the cheapest of those that meet all limits with the
    probability; with one on cost alone the fastest of them. Raises UserError for a limit that nothing can be said of.
    """
    costs = found.times * found.price / HOUR
    possible = _possible(found, limits)
    time_max, cost_max = (math.inf if value is None else value for value in (limits.time_max, limits.cost_max))
    meets = (found.times <= time_max) & (costs <= cost_max) & possible
    likely = np.where((found.time <= time_max) & (found.cost <= cost_max), meets.mean(axis=0), 0.0)
    by_time = limits.cost_max is not None and limits.time_max is None
    sought, tie = (found.time, found.cost) if by_time else (found.cost, found.time)
    order = np.lexsort((tie, sought))
    allowed = [int(number) for number in order if likely[number] >= probability]
    chosen = allowed[0] if allowed else None
    return Plan(
        forecast=found,
        limits=limits,
        probability=probability,
        likely=likely,
        chosen=chosen,
        fastest=int(np.lexsort((found.cost, found.time))[0]),
        cheapest=int(np.lexsort((found.time, found.cost))[0]),
        front=undominated(found.time, found.cost),
        next_one=_next(found, meets, found.times if by_time else costs, chosen),
        reason=None if allowed else _reason(found, limits, possible, likely, probability),
    )


def _possible(found: Forecast, limits: LimitSettings) -> np.ndarray:
    """Which allocations meet the limits on throughput, memory and utilisation by the fitted model, (n,)."""
    throughput = found.job.epochs * found.job.samples / np.maximum(found.time - found.job.start, 1e-12)
    meets = np.ones(len(found.time), dtype=bool)
    if limits.throughput_min is not None:
        meets &= throughput >= limits.throughput_min
    if limits.memory_max is not None:
        meets &= found.allocations[:, 2] <= limits.memory_max
    if limits.gpu_util_min is not None and found.allocations[:, 0].any():
        meets &= 100.0 * found.gpu_util >= limits.gpu_util_min
    if limits.cpu_util_min is not None:
        if np.isnan(found.cpu_util).any():
            raise UserError(
                "the logs do not show what cores do, since no two settings differ in their cores alone",
                where="--limits: cpu_util_min",
                remedy="measure the same GPUs with other numbers of cores, or leave this limit out",
            )
        meets &= 100.0 * found.cpu_util >= limits.cpu_util_min
    return meets


def _reason(
    found: Forecast, limits: LimitSettings, possible: np.ndarray, likely: np.ndarray, probability: float
) -> str:
    """Why no allocation can be chosen."""
    asked = " and ".join(
        f"{name.rpartition('_')[0]} {'of at most' if name.endswith('max') else 'of at least'} {_amount(name, value)}"
        for name, value in limits.model_dump().items()
        if value is not None
    )
    if likely.max() > 0:
        best = int(likely.argmax())
        return (
            f"no allocation meets {asked} with a probability of {probability:.0%}; the likeliest, "
            f"{_words(found, best)}, does with {likely[best]:.0%}"
        )
    if not possible.any():
        return f"no allocation meets {asked}: none reaches the limits on throughput, memory and utilisation"
    inside = np.flatnonzero(possible)
    fastest, cheapest = inside[found.time[inside].argmin()], inside[found.cost[inside].argmin()]
    return (
        f"no allocation meets {asked}: the fastest takes {duration(found.time[fastest])}, "
        f"the cheapest costs {money(found.cost[cheapest])}"
    )


def _next(found: Forecast, meets: np.ndarray, sought: np.ndarray, chosen: int | None) -> int | None:
    """The unmeasured allocation whose time is least sure among those that are the best in some resamples; where no
    resample meets the limits, among those of the front.
    """
    values = np.where(meets, sought, np.inf)
    some = np.isfinite(values).any(axis=1)
    if some.any():
        wins = np.bincount(values[some].argmin(axis=1), minlength=values.shape[1]) / some.sum()
        rivals = np.flatnonzero(wins >= RIVAL)
    else:
        rivals = np.array(undominated(found.time, found.cost))
    if chosen is not None:
        rivals = np.union1d(rivals, [chosen])
    low, high = np.quantile(found.times[:, rivals], INTERVAL, axis=0)
    width = np.where(found.measured[rivals], 0.0, (high - low) / found.time[rivals])
    return int(rivals[width.argmax()]) if len(rivals) and width.max() > SURE else None


def duration(seconds: float) -> str:
    """Return a time in words, in the unit that suits it."""
    for unit, length in (("d", 86400.0), ("h", HOUR), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds:.0f} s"


def _amount(name: str, value: float) -> str:
    if name == "time_max":
        return duration(value)
    return money(value) if name == "cost_max" else f"{value:g} {UNITS.get(name, '%')}"


def _words(found: Forecast, number: int) -> str:
    gpus, cores, memory = allocation(found, number)
    counts = [f"{count:g} {unit}{'' if count == 1 else 's'}" for count, unit in ((gpus, "GPU"), (cores, "core"))]
    return f"{', '.join(counts)}, {memory:g} GB"


def seconds_of(text: str) -> float:
    """Return a duration in s: a number, or one with s, m, h or d behind it, as 90m. Raises ArgumentTypeError."""
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
    """$ of a measurement of PROBE_EPOCHS epochs."""
    job, each = found.forecast.job, found.forecast.cost[number] / found.forecast.time[number]
    epoch = (found.forecast.time[number] - job.start) / job.epochs
    return float(each * (job.start + PROBE_EPOCHS * epoch))


def warnings(found: Plan) -> list[str]:
    """Return what a reader of the plan should know of its forecasts."""
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
    lines += [
        "",
        f"{'':9}{'GPUs':>5}{'cores':>6}{'GB':>5}  {'time (90 % interval)':30}{'cost (90 % interval)':30}limits",
    ]
    for name, number in rows:
        row = _row(found, number)
        times = f"{duration(row['time_s'])} ({' to '.join(map(duration, row['time_interval_s']))})"
        costs = f"{money(row['cost'])} ({' to '.join(map(money, row['cost_interval']))})"
        held = f"{row['gpus']:>5}{row['cpu_cores']:>6}{row['memory_gb']:>5}"
        lines.append(f"{name:9}{held}  {times:30}{costs:30}met with {row['probability']:.0%}")
    if found.next_one is not None:
        cost = money(_bill(found, found.next_one))
        lines += ["", f"to be surer, measure {_words(forecast_, found.next_one)} for {PROBE_EPOCHS} epochs ({cost})"]
    return "\n".join([*lines, *(f"WARNING: {note}" for note in warnings(found))]) + "\n"


def _some(front: list[int], shown: set[int], most: int = 8) -> list[int]:
    """At most so many of the front, evenly spread, without those that are shown."""
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
                label=f"plan: {_words(forecast_, found.chosen)}",
            )
        for axis, values_ in ((axes.xaxis, forecast_.time), (axes.yaxis, forecast_.cost)):
            log_ticks(axis, float(values_.min()), float(values_.max()))
        axes.set(xlabel="training time (s)", ylabel="cost ($)")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
        save_as(Drawing(figure, "Time and cost of every allocation by the fitted model."), [path])


def run(arguments: argparse.Namespace) -> int:
    """Run `schedlab cloud plan`; the exit status is 1 where no allocation meets the limits."""
    limits = limits_of(arguments)
    if not 0 < arguments.probability <= 1:
        raise UserError(f"{arguments.probability:g}", where="--probability", expected="above 0, at most 1")
    if arguments.picture is not None and arguments.picture.suffix not in (".png", ".svg", ".pdf"):
        raise UserError("unknown form", where=f"--picture {arguments.picture}", expected="a .png, .svg or .pdf file")
    for name in ("epochs", "batch_size", "gpus_per_node"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            where = f"--{name.replace('_', '-') if name == 'gpus_per_node' else name}"
            raise UserError(f"{getattr(arguments, name)}", where=where, expected="1 or more")
    measured = read_job(arguments.logs, arguments.gpus_per_node, arguments.epochs, arguments.batch_size)
    found = plan(
        forecast(measured, resources_of(measured, arguments.max, arguments.prices), arguments.seed),
        limits,
        arguments.probability,
    )
    if arguments.picture is not None:
        picture(found, arguments.picture)
    print(json.dumps(values(found), indent=1, allow_nan=False) if arguments.json else text(found).rstrip("\n"))
    return int(found.chosen is None)


def limits_of(arguments: argparse.Namespace) -> LimitSettings:
    """Return the limits of a file, over which the options are laid. Raises UserErrors."""
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
    """Return what may be allocated: `most` GPUs, cores and GB, else as many as in the logs and any memory."""
    settings = measured.settings
    most = most or (float(settings["gpus"].max()), float(settings["cores"].max()), 1e6)
    gpus, cores, memory = map(whole, most)
    paid = dict(zip(PRICES, prices, strict=True)) if prices else PRICES
    least = 0 if not len(measured.steps) else 1
    values = {"gpu_count_max": gpus if least else 0, "gpu_count_min": least, "cpu_count_max": cores}
    return validate(
        ResourceConfig, {**values, "memory_max": memory, "memory_min": min(1, memory), **paid}, lambda _: "--max"
    )
