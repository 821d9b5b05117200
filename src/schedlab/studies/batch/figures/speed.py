"""Figures of measurements on a machine: published and recorded speeds of devices, and the cost of decisions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.captions import three_digits
from schedlab.figures.drawing import settings_of
from schedlab.figures.panels.axes import name_rows
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import INK
from schedlab.studies.batch.figures.settings import DecisionLatencySettings, DeviceSpeedSettings

ROW_MM = 6.0
PUBLISHED = "published"
NONE = "none"  # without backfilling
REPEATS = {"speed": "steps_per_s", "latency": "us_per_decision"}  # command -> key of its repeats in a record
KINDS = {PUBLISHED: PUBLISHED, NONE: "without backfilling"}  # what a point is; others: with that backfilling


@dataclass(frozen=True)
class Measured:
    """One device under one setting, or one policy: the median, smallest and largest repeat, on which machine, and how
    (PUBLISHED, or a kind of backfilling).
    """

    label: str
    median: float
    low: float
    high: float
    machine: str = ""
    kind: str = NONE


def draw_device_speed(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a row for each device and setting, published ones first (DeviceSpeedSettings)."""
    del tables
    settings = settings_of(spec, DeviceSpeedSettings)
    published = [Measured(name, rate, rate, rate, kind=PUBLISHED) for name, rate in settings.published.items()]
    ours = [each for record in settings.records for each in recorded(record, "speed")]
    figure = _rows(spec, {"": published + ours}, "steps a second, an update each", "linear", {NONE: "here"})
    fastest = max(ours, key=lambda each: each.median, default=Measured("", 0, 0, 0))
    caption = "[The fastest here: {fastest}, {steps:.0f} steps a second.]"
    return Drawing(figure, caption, {"fastest": fastest.label, "steps": fastest.median}, of_scores=False)


def draw_decision_latency(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each machine, with a row for each policy, the fastest first (DecisionLatencySettings)."""
    del tables
    settings = settings_of(spec, DecisionLatencySettings)
    found = sorted(
        (each for name in settings.records for each in recorded(name, "latency")), key=lambda one: one.median
    )
    machines = {each.machine: [one for one in found if one.machine == each.machine] for each in found}
    figure = _rows(spec, machines, "µs a decision", "log")
    times = {
        name: {"policies": [{"policy": _called(each), "us": each.median} for each in mine]}
        for name, mine in machines.items()
    }
    caption = "Times by machine: {times:{name}: {policies:{policy} {us:digits} µs}}."
    return Drawing(figure, caption, {"times": times}, of_scores=False)


def _called(each: Measured) -> str:
    return each.label if each.kind == NONE else f"{each.label} with {each.kind}"


def _rows(
    spec: FigureSpec, groups: dict[str, list[Measured]], x: str, scale: str, kinds: dict[str, str] | None = None
) -> Any:
    """A panel for each group: a row for each label, a point for each median with its number, and a line between the
    extreme repeats; kinds: what a point is called. Raises UserError where there is nothing to show.
    """
    if not (every := [each for mine in groups.values() for each in mine]):
        where = f"figure {spec.name}: params"
        raise UserError("there is nothing to show", where=where, expected="published values, or records")
    looks = {kind: _look(kind) for kind in sorted({each.kind for each in every}, key=lambda kind: (kind != NONE, kind))}
    low, high = min(each.low for each in every), max(each.high for each in every)

    def panel(axes: Axes, mine: Sequence[Measured]) -> None:
        rows = list(dict.fromkeys(each.label for each in mine))
        several = len(mine) > len(rows)
        for each in mine:
            height = rows.index(each.label) + several * (-0.17 if each.kind == NONE else 0.17)
            axes.plot([each.low, each.high], [height, height], color=INK, linewidth=0.8)
            style: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "x-small"}
            text = three_digits(each.median) if scale == "log" else f"{each.median:.0f}"
            axes.annotate(text, (each.high, height), xytext=(5, 0), **style)
            label = (kinds or {}).get(each.kind) or KINDS.get(each.kind, f"with {each.kind} backfilling")
            axes.plot([each.median], [height], label=label, **looks[each.kind])
        name_rows(axes, rows, below=0.7, above=0.7)
        axes.set(xscale=scale, xlim=(0.5 * low, 3 * high) if scale == "log" else (0, 1.2 * high))  # room for numbers
        axes.xaxis.set_major_formatter("{x:g}")

    most = max(len({each.label for each in mine}) for mine in groups.values())
    named = {name.replace(", ", ",\n"): mine for name, mine in groups.items()}
    return facets(named, panel, Grid(2, 14 + ROW_MM * most, 12, x, lines="x"))[0]


def _look(kind: str) -> dict[str, Any]:
    ring: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 4, "markeredgewidth": 0.9, "zorder": 3}
    colour = theme.MUTED if kind == PUBLISHED else theme.colour(0)
    return {**ring, "color": colour, "markerfacecolor": colour if kind in KINDS else "white"}


def recorded(name: str, command: str) -> list[Measured]:
    """Return what `schedlab batch speed --out` (or latency) recorded in a file. Raises UserError where it is none."""
    try:
        record = json.loads(find_resource(name).read_text(encoding="utf-8"))
        machine, backfill, found = record["name"], record.get("backfill", NONE), []
        for row in record["measured"]:
            if command == "latency":
                label = row["policy"]
            else:
                label = f"{machine}, {row['threads']} thread{'s' * (row['threads'] > 1)}, batch {row['batch_size']}"
            repeats = row[REPEATS[command]]
            found.append(Measured(label, float(row["median"]), min(repeats), max(repeats), machine, backfill))
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = f"make it by schedlab batch {command} --out"
        raise UserError(f"no record of {command} ({error})", where=name, remedy=remedy) from None
    return found
