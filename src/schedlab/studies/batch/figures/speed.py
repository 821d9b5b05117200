"""Figures of what was measured on a machine: device speeds, published and recorded, and what decisions cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.figures import helpers, theme
from schedlab.figures.theme import MUTED
from schedlab.studies.batch.figures.settings import DecisionLatencySettings, DeviceSpeedSettings
from schedlab.studies.batch.figures.windows import label_rows, three_digits

ROW_MM = 5.0
PUBLISHED = "#a9a9a9"


@dataclass(frozen=True)
class Bar:
    """One device under one setting, or one policy on a machine: the median, smallest and largest repeat."""

    label: str
    median: float
    low: float
    high: float
    published: bool = False
    machine: str = ""


def draw_device_speed(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A bar a device and setting, published ones first; lines between the extreme repeats (DeviceSpeedSettings)."""
    del tables
    settings = validate(DeviceSpeedSettings, spec.params)
    published = [Bar(name, rate, rate, rate, published=True) for name, rate in settings.published.items()]
    bars = published + [bar for record in settings.records for bar in recorded_speeds(record)]
    if not bars:
        raise UserError(
            "there is no rate to show", where=f"figure {spec.name}: params", expected="published or records"
        )
    figure, axes = theme.new_figure(width=0.75, height_mm=18 + ROW_MM * len(bars))
    _bars(axes, bars)
    axes.set_xlabel("steps a second, an update each")
    ours = [bar for bar in bars if not bar.published]
    fastest = max(ours, key=lambda bar: bar.median, default=None)
    told = f" The fastest here: {fastest.label}, {fastest.median:.0f} steps a second." if fastest else ""
    return Drawing(figure, f"{spec.caption}{told}", of_scores=False)


def draw_decision_latency(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A point a policy and machine, fastest first; lines between the extreme repeats (DecisionLatencySettings)."""
    del tables
    settings = validate(DecisionLatencySettings, spec.params)
    bars = sorted((bar for name in settings.records for bar in recorded_latencies(name)), key=lambda bar: bar.median)
    if not bars:
        raise UserError(
            "there is nothing to show", where=f"figure {spec.name}: params.records", expected="at least one record"
        )
    figure, axes = theme.new_figure(width=0.75, height_mm=18 + ROW_MM * len(bars))
    machines = list(dict.fromkeys(bar.machine for bar in bars))
    for height, bar in enumerate(bars):  # points: a bar has no length on a logarithmic axis
        number = machines.index(bar.machine)
        look = {"color": theme.colour(number), "marker": theme.LEARNED_MARKERS[number % len(theme.LEARNED_MARKERS)]}
        axes.plot([bar.low, bar.high], [height, height], color=theme.colour(number), linewidth=0.8)
        axes.plot([bar.median], [height], linestyle="none", markersize=4.5, label=f"measured on {bar.machine}", **look)
        _number(axes, bar, height, three_digits(bar.median))
    _rows(axes, [bar.label for bar in bars])
    axes.grid(True, axis="x")
    axes.set_xscale("log")
    axes.set_xlim(0.5 * min(bar.low for bar in bars), 3 * max(bar.high for bar in bars))  # room for the last number
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("µs a decision")
    helpers.legend_outside(figure, columns=1)
    told = [
        f"{name}: {'; '.join(f'{bar.label} {three_digits(bar.median)} µs' for bar in bars if bar.machine == name)}"
        for name in machines
    ]
    return Drawing(figure, f"{spec.caption} On {'. On '.join(told)}.", of_scores=False)


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
            Bar(label(record, row), float(row["median"]), min(row[repeats]), max(row[repeats]), machine=machine)
            for row in record["measured"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"no record of {what} ({error})", where=name, remedy=f"make it by schedlab batch {command} --out"
        ) from None


def _label(name: str, row: dict) -> str:
    threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
    return f"{name}, {threads}, batch {row['batch_size']}"


def _bars(axes: Axes, bars: list[Bar]) -> None:
    for height, bar in enumerate(bars):
        axes.barh(height, bar.median, height=0.62, color=PUBLISHED if bar.published else theme.colour(0))
        axes.plot([bar.low, bar.high], [height, height], color=theme.INK, linewidth=0.8)
        _number(axes, bar, height, f"{bar.median:.0f}")
    _rows(axes, [f"{bar.label}{' (published)' if bar.published else ''}" for bar in bars])
    axes.margins(x=0.1)


def _number(axes: Axes, bar: Bar, height: int, text: str) -> None:
    axes.annotate(text, (bar.high, height), xytext=(5, 0), textcoords="offset points", va="center")


def _rows(axes: Axes, labels: list[str]) -> None:
    label_rows(axes, labels, below=0.5, above=0.5)
    axes.spines["left"].set_color(MUTED)
