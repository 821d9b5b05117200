"""`schedlab cloud plan`: its arguments, and the picture of a plan.

If a command is given instead of logs, it is measured on this machine first, as by `schedlab cloud optimize`.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from pathlib import Path

import numpy as np

from schedlab.config.contract import Drawing
from schedlab.config.errors import UserError, shortened
from schedlab.config.plugins import load_object
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures.panels.axes import log_ticks
from schedlab.figures.save import save_as
from schedlab.figures.theme import INK, MUTED, applied, colour, new_figure
from schedlab.studies.cloud.model.allocation import PRICES, ResourceConfig, whole
from schedlab.studies.cloud.model.instances import offers_of, read_instances
from schedlab.studies.cloud.model.plan import (
    HOUR,
    Forecast,
    Measured,
    Renting,
    forecast,
    forecast_offers,
    read_job,
)
from schedlab.studies.cloud.optimize.plan import Plan, plan, row_of, text, values, words
from schedlab.studies.cloud.optimize.settings import LimitSettings, read_section


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


def picture(found: Plan, path: Path) -> None:
    """Draw time and cost of all allocations, the front, the limits, and the plan with its 90 % interval."""
    every, limits = found.forecast, found.limits
    with applied(ThemeSettings()):
        figure, axes = new_figure(height_mm=80)
        axes.loglog(every.time, every.cost, ".", color=MUTED, markersize=3, label="allocations")
        axes.plot(every.time[found.front], every.cost[found.front], "-D", color=INK, markersize=3.5, label="front")
        for limit, draw, name, dashes in (
            (limits.time_max, axes.axvline, "limit on time", (4, 2)),
            (limits.cost_max, axes.axhline, "limit on cost", (1, 1)),
        ):
            if limit is not None:
                draw(limit, color=colour(1), linewidth=1, linestyle=(0, dashes), label=name)
        if found.chosen is not None:
            row = row_of(found, found.chosen)
            errors = [
                np.maximum([[value - low], [high - value]], 0)
                for value, (low, high) in ((row["time_s"], row["time_interval_s"]), (row["cost"], row["cost_interval"]))
            ]
            label = f"plan: {words(every, found.chosen)}"
            axes.errorbar([row["time_s"]], [row["cost"]], errors[1], errors[0], "o", color=colour(0), label=label)
        for axis, values_ in ((axes.xaxis, every.time), (axes.yaxis, every.cost)):
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
    counts = {"--epochs": arguments.epochs, "--batch_size": arguments.batch_size, "--checkpoint": arguments.checkpoint}
    for option, value in {**counts, "--gpus-per-node": arguments.gpus_per_node}.items():
        if value is not None and value < 1:
            raise UserError(f"{value}", where=option, expected="1 or more")
    logs, found, notes = [Path(name) for name in arguments.logs], None, list[str]()
    if not arguments.logs[0].endswith(".csv") and shutil.which(arguments.logs[0]):
        measure = load_object("schedlab.studies.cloud.optimize.command:measured_plan")
        found, log = measure(arguments, arguments.logs, limits)
        logs = [log]
    if found is None or arguments.instances is not None:
        measured = read_job(logs, arguments.gpus_per_node, arguments.epochs, arguments.batch_size)
        if arguments.instances is not None:
            expected, notes = instances_forecast(measured, arguments)
        else:
            expected = forecast(measured, resources_of(measured, arguments.max, arguments.prices), arguments.seed)
        found = plan(expected, limits, arguments.probability)
    if arguments.picture is not None:
        picture(found, arguments.picture)
    shown = json.dumps(values(found, notes), indent=1, allow_nan=False) if arguments.json else text(found, notes)
    print(shown.rstrip("\n"))
    return int(found.chosen is None)


def instances_forecast(measured: Measured, arguments: argparse.Namespace) -> tuple[Forecast, list[str]]:
    """Return the forecast of a job on the instance types of a catalogue, and warnings about types that are left out."""
    rate = arguments.interruption_rate
    if rate is not None and not 0 <= rate <= 1:
        raise UserError(f"{rate:g}", where="--interruption-rate", expected="a probability, from 0 to 1")
    for option in ("max", "prices"):
        if getattr(arguments, option) is not None:
            what = "the catalogue states what can be rented, and the prices"
            raise UserError(what, where=f"--{option}", expected="none with --instances")
    offers, unknown = offers_of(read_instances(arguments.instances, arguments.region), rate)
    renting = Renting(arguments.gpu_kind, arguments.checkpoint, arguments.restart)
    found, left_out = forecast_offers(measured, offers, renting, arguments.seed)
    notes = [f"left out, {reason}" for reason in left_out]
    if unknown:
        what = "left out, spot instances whose interruption rate is unknown"
        notes.append(f"{what}: {shortened(unknown)}; give --interruption-rate")
    return found, notes


def limits_of(arguments: argparse.Namespace) -> LimitSettings:
    """Return the limits of a file, replaced by those of the options. Raises UserErrors."""
    given = read_section(arguments.limits, LimitSettings) if arguments.limits is not None else {}
    options = {"time_max": arguments.deadline, "cost_max": arguments.budget}
    over = {name: value for name, value in options.items() if value is not None}
    return validate(LimitSettings, {**given, **over}, lambda path: {"cost_max": "--budget"}.get(path[0], "--deadline"))


def resources_of(
    measured: Measured, most: tuple[float, ...] | None, prices: tuple[float, ...] | None
) -> ResourceConfig:
    """Return the resources that may be allocated: `most` GPUs, cores and GB; if None, as many as in the logs and any
    memory. Raises UserError if the logs are of several kinds of GPUs.
    """
    kinds = sorted(set(measured.steps["kind"])) if "kind" in measured.steps.columns else []
    if len(kinds) > 1:
        what, remedy = (
            f"the logs are of several kinds of GPUs: {', '.join(kinds)}",
            "give --instances, or one kind's logs",
        )
        raise UserError(what, where="LOG.csv", expected="GPUs of one kind", remedy=remedy)
    settings, least = measured.settings, int(len(measured.steps) > 0)
    gpus, cores, memory = map(whole, most or (settings["gpus"].max(), settings["cores"].max(), 1e6))
    values = {"gpu_count_max": gpus if least else 0, "gpu_count_min": least, "cpu_count_max": cores}
    values |= {"memory_max": memory, "memory_min": min(1, memory)}
    paid = dict(zip(PRICES, prices, strict=True)) if prices else PRICES
    return validate(ResourceConfig, {**values, **paid}, lambda _: "--max")
