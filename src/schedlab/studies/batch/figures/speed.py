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
from schedlab.figures.panels.axes import key, name_rows
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import INK
from schedlab.studies.batch.figures.settings import DecisionLatencySettings, DeviceSpeedSettings

ROW_MM = 5.0
PUBLISHED = "#a9a9a9"
NONE = "none"  # without backfilling


@dataclass(frozen=True)
class Measured:
    """One device under one setting, or one policy: the median, smallest and largest repeat. machine: empty for
    published values.
    """

    label: str
    median: float
    low: float
    high: float
    machine: str = ""
    backfill: str = NONE


def draw_device_speed(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a bar for each device and setting, published ones first, and lines between the extreme repeats
    (DeviceSpeedSettings).
    """
    del tables
    settings = settings_of(spec, DeviceSpeedSettings)
    published = [Measured(f"{name} (published)", rate, rate, rate) for name, rate in settings.published.items()]
    ours = [bar for record in settings.records for bar in recorded_speeds(record)]
    if not (bars := published + ours):
        where = f"figure {spec.name}: params"
        raise UserError("there is no rate to show", where=where, expected="published or records")
    figure, axes = theme.new_figure(width=0.75, height_mm=18 + ROW_MM * len(bars))
    for height, bar in enumerate(bars):
        axes.barh(height, bar.median, height=0.62, color=theme.colour(0) if bar.machine else PUBLISHED)
        _repeats(axes, bar, height, f"{bar.median:.0f}", INK)
    name_rows(axes, [bar.label for bar in bars])
    axes.margins(x=0.1)
    axes.set_xlabel("steps a second, an update each")
    fastest = max(ours, key=lambda bar: bar.median, default=Measured("", 0, 0, 0))
    caption = "[The fastest here: {fastest}, {steps:.0f} steps a second.]"
    return Drawing(figure, caption, {"fastest": fastest.label, "steps": fastest.median}, of_scores=False)


def draw_decision_latency(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each machine, with a row for each policy, the fastest first. Filled points are without
    backfilling, open ones with it; lines join the extreme repeats (DecisionLatencySettings).
    """
    del tables
    settings = settings_of(spec, DecisionLatencySettings)
    found = sorted((each for name in settings.records for each in recorded_latencies(name)), key=lambda one: one.median)
    if not found:
        where = f"figure {spec.name}: params.records"
        raise UserError("there is nothing to show", where=where, expected="at least one record")
    low, high = 0.5 * min(each.low for each in found), 3 * max(each.high for each in found)  # room for the last number
    machines = list(dict.fromkeys(each.machine for each in found))

    def panel(axes: Axes, mine: Sequence[Measured]) -> int:
        rows = list(dict.fromkeys(each.label for each in mine))
        for each in mine:
            height = rows.index(each.label) + (-0.17 if each.backfill == NONE else 0.17)
            _repeats(axes, each, height, three_digits(each.median), INK, fontsize="x-small")
            axes.plot([each.median], [height], **_point(each.backfill))
        name_rows(axes, rows, below=0.7, above=0.7)
        axes.grid(True, axis="x")
        axes.set(xscale="log", xlim=(low, high))
        axes.xaxis.set_major_formatter("{x:g}")
        return len(rows)

    groups = [(name.replace(", ", ",\n"), [one for one in found if one.machine == name]) for name in machines]
    most = max(len({each.label for each in mine}) for _, mine in groups)
    kinds = sorted({each.backfill for each in found}, key=lambda kind: (kind != NONE, kind))
    keys = [
        key("without backfilling" if kind == NONE else f"with {kind} backfilling", **_point(kind)) for kind in kinds
    ]
    figure, _ = facets(groups, panel, Grid(2, 14 + 1.5 * ROW_MM * most, 10, "µs a decision"), keys=keys)
    times: dict[str, dict[str, list]] = {name: {"policies": []} for name in machines}
    for each in found:
        label = each.label if each.backfill == NONE else f"{each.label} with {each.backfill}"
        times[each.machine]["policies"].append({"policy": label, "us": each.median})
    caption = "Times by machine: {times:{name}: {policies:{policy} {us:digits} µs}}."
    return Drawing(figure, caption, {"times": times}, of_scores=False)


def recorded_speeds(name: str) -> list[Measured]:
    """Return the bars of a record that `schedlab batch speed --out` wrote. Raises UserError where it is none."""
    return _read(name, "device speeds", "steps_per_s", "speed")


def recorded_latencies(name: str) -> list[Measured]:
    """Return the points of a record that `schedlab batch latency --out` wrote. Raises UserError where it is none."""
    return _read(name, "what decisions cost", "us_per_decision", "latency")


def _read(name: str, what: str, repeats: str, command: str) -> list[Measured]:
    try:
        record = json.loads(find_resource(name).read_text(encoding="utf-8"))
        machine, backfill, found = record["name"], record.get("backfill", NONE), []
        for row in record["measured"]:
            label = row["policy"] if command == "latency" else _device(machine, row)
            ends = float(row["median"]), min(row[repeats]), max(row[repeats])
            found.append(Measured(label, *ends, machine, backfill))
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = f"make it by schedlab batch {command} --out"
        raise UserError(f"no record of {what} ({error})", where=name, remedy=remedy) from None
    return found


def _device(name: str, row: dict) -> str:
    threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
    return f"{name}, {threads}, batch {row['batch_size']}"


def _repeats(axes: Axes, bar: Measured, height: float, text: str, colour: str, **look: Any) -> None:
    """A line between the extreme repeats, with the median as a number behind it."""
    axes.plot([bar.low, bar.high], [height, height], color=colour, linewidth=0.8)
    axes.annotate(text, (bar.high, height), xytext=(5, 0), textcoords="offset points", va="center", **look)


def _point(backfill: str) -> dict[str, Any]:
    ring: dict[str, Any] = {"marker": "o", "linestyle": "none", "markersize": 4, "markeredgewidth": 0.9, "zorder": 3}
    face = theme.colour(0) if backfill == NONE else "white"
    return {**ring, "color": theme.colour(0), "markerfacecolor": face}
