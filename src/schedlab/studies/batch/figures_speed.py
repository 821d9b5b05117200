"""The figure of device speeds: published rates and recorded ones, a bar each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.figures import theme
from schedlab.figures.theme import MUTED
from schedlab.studies.batch.figure_settings import DeviceSpeedSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW_MM = 5.0
PUBLISHED = "#a9a9a9"


@dataclass(frozen=True)
class Bar:
    """One device under one setting: the median rate, smallest and largest repeat (steps/s)."""

    label: str
    median: float
    low: float
    high: float
    published: bool = False


def draw_device_speed(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A bar a device and setting, published ones first; lines go from the slowest to the fastest repeat. Settings: DeviceSpeedSettings."""
    del tables
    settings = validate(DeviceSpeedSettings, spec.params)
    published = [Bar(name, rate, rate, rate, published=True) for name, rate in settings.published.items()]
    bars = published + [bar for record in settings.records for bar in recorded(record)]
    if not bars:
        raise UserError("there is no rate to show", where=f"figure {spec.name}: params", expected="published or records")
    figure, axes = theme.new_figure(width=0.75, height_mm=18 + ROW_MM * len(bars))
    _bars(axes, bars)
    ours = [bar for bar in bars if not bar.published]
    fastest = max(ours, key=lambda bar: bar.median, default=None)
    told = f" The fastest here: {fastest.label}, {fastest.median:.0f} steps a second." if fastest else ""
    return Drawing(figure, f"{spec.caption}{told}")


def recorded(name: str) -> list[Bar]:
    """Return the bars of a record that `schedlab batch speed --out` wrote. Raises UserError where it is none."""
    try:
        record = json.loads(find_resource(name).read_text(encoding="utf-8"))
        return [
            Bar(_label(record["name"], row), float(row["median"]), min(row["steps_per_s"]), max(row["steps_per_s"]))
            for row in record["measured"]
        ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"no record of device speeds ({error})", where=name, remedy="make it by schedlab batch speed --out") from None


def _label(name: str, row: dict) -> str:
    threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
    return f"{name}, {threads}, batches of {row['batch_size']}"


def _bars(axes: Axes, bars: list[Bar]) -> None:
    for height, bar in enumerate(bars):
        axes.barh(height, bar.median, height=0.62, color=PUBLISHED if bar.published else theme.colour(0))
        axes.plot([bar.low, bar.high], [height, height], color=theme.INK, linewidth=0.8)
        axes.annotate(f"{bar.median:.0f}", (bar.high, height), xytext=(3, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(bars)), [f"{bar.label}{' (published)' if bar.published else ''}" for bar in bars])
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlabel("steps a second, an update each")
    axes.margins(x=0.1)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_color(MUTED)
