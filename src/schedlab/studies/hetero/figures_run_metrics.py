"""Two runs side by side in Batsim's totals: energy, makespan, and largest and mean slowdown, turnaround and waiting time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from schedlab.config.contract import Drawing, Metric
from schedlab.figures import helpers, theme, units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = {  # of out_schedule.csv -> quantity; in the order of the panels
    "consumed_joules": Metric("energy", "J", "lower", label="energy"),
    "max_slowdown": Metric("max_slowdown", "-", "lower", label="largest slowdown"),
    "max_turnaround_time": Metric("max_turnaround", "s", "lower", label="largest turnaround time"),
    "max_waiting_time": Metric("max_wait", "s", "lower", label="largest waiting time"),
    "makespan": Metric("makespan", "s", "lower", label="makespan"),
    "mean_slowdown": Metric("mean_slowdown", "-", "lower", label="mean slowdown"),
    "mean_turnaround_time": Metric("mean_turnaround", "s", "lower", label="mean turnaround time"),
    "mean_waiting_time": Metric("mean_wait", "s", "lower", label="mean waiting time"),
}


def draw_comparison(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Drawing:
    """Draw a 2 x 4 grid of bars from two rows of out_schedule.csv; each bar bears its number, in all of them less is better."""
    figure, panels = theme.new_figure(2, 4, height_mm=105)
    for axes, (column, metric) in zip(panels.ravel(), COLUMNS.items(), strict=True):
        _bars(axes, metric, [row[column] for row in rows])
    helpers.legend_outside(figure, _handles(names))
    return Drawing(figure, f"{names[1]} against {names[0]}: " + "; ".join(_told(rows)) + ". Less is better in all of them.")


def _bars(axes: Axes, metric: Metric, values: Sequence[float]) -> None:
    scale = units.scaled(metric, max(values))
    bars = axes.bar(
        range(len(values)), [value / scale.size for value in values], width=0.7, color=[theme.colour(n) for n in range(len(values))]
    )
    for bar, value in zip(bars, values, strict=True):
        place = (bar.get_x() + bar.get_width() / 2, bar.get_height())
        number = value / scale.size
        text = helpers.number_text(number, "{:#.3g}" if abs(number) < 1000 else "{:.0f}").rstrip(".")
        axes.annotate(text, place, xytext=(0, 2), textcoords="offset points", ha="center", fontsize="small")
    unit = f" ({scale.unit})" if scale.unit not in ("", "-") else ""
    axes.set_title(f"{metric.label}{unit}")
    axes.set_xticks([])
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    axes.margins(x=0.15, y=0.16)
    axes.set_ylim(bottom=0)


def _handles(names: Sequence[str]) -> list[object]:
    from matplotlib.patches import Patch

    return [Patch(color=theme.colour(number), label=name) for number, name in enumerate(names)]


def _told(rows: Sequence[Mapping[str, float]]) -> list[str]:
    told = []
    for column, metric in COLUMNS.items():
        first, second = (row[column] for row in rows)
        change = "as much" if first == second else "none before" if not first else f"{100 * (second / first - 1):+.1f} %"
        told.append(f"{metric.label} {change}")
    return [text.replace("-", "\N{MINUS SIGN}") for text in told]
