"""Figures of what was measured on a machine: device speeds, published and recorded, and what decisions cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.captions import three_digits
from schedlab.figures.drawing import settings_of
from schedlab.figures.panels.axes import legend_outside, name_rows
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.batch.figures.settings import DecisionLatencySettings, DeviceSpeedSettings

ROW_MM = 5.0
PUBLISHED = "#a9a9a9"


@dataclass(frozen=True)
class Bar:
    """One device under one setting, or one policy on a machine: the median, smallest and largest repeat."""

    label: str
    median: float
    low: float
    high: float
    machine: str = ""  # empty: published


def draw_device_speed(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A bar a device and setting, published ones first; lines between the extreme repeats (DeviceSpeedSettings)."""
    del tables
    settings = settings_of(spec, DeviceSpeedSettings)
    published = [Bar(name, rate, rate, rate) for name, rate in settings.published.items()]
    ours = [bar for record in settings.records for bar in recorded_speeds(record)]
    if not (bars := published + ours):
        where = f"figure {spec.name}: params"
        raise UserError("there is no rate to show", where=where, expected="published or records")
    figure, axes = theme.new_figure(width=0.75, height_mm=18 + ROW_MM * len(bars))
    for height, bar in enumerate(bars):
        axes.barh(height, bar.median, height=0.62, color=theme.colour(0) if bar.machine else PUBLISHED)
        _repeats(axes, bar, height, f"{bar.median:.0f}", INK)
    _rows(axes, [bar.label if bar.machine else f"{bar.label} (published)" for bar in bars])
    axes.margins(x=0.1)
    axes.set_xlabel("steps a second, an update each")
    fastest = max(ours, key=lambda bar: bar.median, default=Bar("", 0, 0, 0))
    caption = "[The fastest here: {fastest}, {steps:.0f} steps a second.]"
    return Drawing(figure, caption, {"fastest": fastest.label, "steps": fastest.median}, of_scores=False)


def draw_decision_latency(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A point a policy and machine, fastest first; lines between the extreme repeats (DecisionLatencySettings)."""
    del tables
    settings = settings_of(spec, DecisionLatencySettings)
    bars = sorted((bar for name in settings.records for bar in recorded_latencies(name)), key=lambda bar: bar.median)
    if not bars:
        where = f"figure {spec.name}: params.records"
        raise UserError("there is nothing to show", where=where, expected="at least one record")
    figure, axes = theme.new_figure(width=0.75, height_mm=18 + ROW_MM * len(bars))
    machines = list(dict.fromkeys(bar.machine for bar in bars))
    for height, bar in enumerate(bars):  # points: a bar has no length on a logarithmic axis
        number = machines.index(bar.machine)
        colour, marker = theme.colour(number), theme.LEARNED_MARKERS[number % len(theme.LEARNED_MARKERS)]
        _repeats(axes, bar, height, three_digits(bar.median), colour)
        look = {"linestyle": "none", "markersize": 4.5, "label": f"measured on {bar.machine}"}
        axes.plot([bar.median], [height], color=colour, marker=marker, **look)
    _rows(axes, [bar.label for bar in bars])
    axes.grid(True, axis="x")
    axes.set_xscale("log")
    axes.set_xlim(0.5 * min(bar.low for bar in bars), 3 * max(bar.high for bar in bars))  # room for the last number
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("µs a decision")
    legend_outside(figure, columns=1)
    times: dict[str, dict[str, list]] = {name: {"policies": []} for name in machines}
    for bar in bars:
        times[bar.machine]["policies"].append({"policy": bar.label.replace(", ", " with "), "us": bar.median})
    caption = "Times by machine: {times:{name}: {policies:{policy} {us:digits} µs}}."
    return Drawing(figure, caption, {"times": times}, of_scores=False)


def recorded_speeds(name: str) -> list[Bar]:
    """Return the bars of a record that `schedlab batch speed --out` wrote. Raises UserError where it is none."""
    return _read(name, "device speeds", "steps_per_s", "speed", lambda record, row: _label(record["name"], row))


def recorded_latencies(name: str) -> list[Bar]:
    """Return the bars of a record that `schedlab batch latency --out` wrote. Raises UserError where it is none."""

    def label(record: dict, row: dict) -> str:
        backfill = record.get("backfill", "none")
        return row["policy"] if backfill == "none" else f"{row['policy']}, {backfill}"

    return _read(name, "what decisions cost", "us_per_decision", "latency", label)


def _read(name: str, what: str, repeats: str, command: str, label: Callable[[dict, dict], str]) -> list[Bar]:
    try:
        record = json.loads(find_resource(name).read_text(encoding="utf-8"))
        machine = record["name"]
        return [
            Bar(label(record, row), float(row["median"]), min(row[repeats]), max(row[repeats]), machine)
            for row in record["measured"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = f"make it by schedlab batch {command} --out"
        raise UserError(f"no record of {what} ({error})", where=name, remedy=remedy) from None


def _label(name: str, row: dict) -> str:
    threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
    return f"{name}, {threads}, batch {row['batch_size']}"


def _repeats(axes: Axes, bar: Bar, height: int, text: str, colour: str) -> None:
    """A line between the extreme repeats, with the median as a number behind it."""
    axes.plot([bar.low, bar.high], [height, height], color=colour, linewidth=0.8)
    axes.annotate(text, (bar.high, height), xytext=(5, 0), textcoords="offset points", va="center")


def _rows(axes: Axes, labels: list[str]) -> None:
    name_rows(axes, labels)
    axes.spines["left"].set_color(MUTED)
