"""Bubbles: when the next job was held back for lack of cores or memory, drawn on the queue, policy below policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme, units
from schedlab.figures.theme import MUTED
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.schedule import BINS, TIME
from schedlab.studies.hetero.figures.settings import BubblesSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST = 160  # area of the largest bubble, in square points
COLOURS = {"cores": 1, "memory": 2}  # number of the colour of what was lacking
FLAT = {"alpha": 0.55, "edgecolor": "white", "linewidth": 0.4}


def draw_bubbles(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a policy: the queue, and bubbles whose areas show how often the next job was held back, and why."""
    settings = helpers.settings_of(spec, BubblesSettings)
    name = data.scenarios(tables, spec)[0]
    names, unit = data.policies(tables, spec, [name]), data.unit_shown(tables, spec, name, settings.unit)
    load = {policy: data.detail(tables, "load", name, unit, policy) for policy in names}
    held = {policy: data.detail(tables, "refusals", name, unit, policy) for policy in names}
    first = min(float(some["time"].iloc[0]) for some in load.values())
    last = max(float(some["time"].iloc[-1]) for some in load.values()) - first
    scale, edges = units.scaled(TIME, last), np.linspace(0.0, last, BINS + 1)
    counts = {
        (policy, lacking): counted(some.loc[some["lacking"] == lacking, "time"].to_numpy() - first, edges)
        for policy, some in held.items()
        for lacking in COLOURS
    }
    most = max((int(found.max()) for found in counts.values()), default=0)
    figure, panels = theme.new_figure(
        len(names), 1, height_mm=24 + 42 * len(names), sharex=True, sharey=True, squeeze=False
    )
    for axes, policy in zip(panels[:, 0], names, strict=True):
        times, waiting = load[policy]["time"].to_numpy() - first, load[policy]["waiting"].to_numpy(float)
        queue_line(axes, times, waiting, scale.size)
        for lacking, colour in COLOURS.items():
            bubbles(axes, times, waiting, counts[policy, lacking], edges, scale.size, most, color=theme.colour(colour))
        axes.set(title=policy, ylabel="waiting jobs")
    panels[-1, 0].set(xlabel=scale.label, xlim=(0, last / scale.size or 1.0), ylim=(0, None))
    _legend(panels[0, 0], most)
    helpers.legend_outside(figure)
    told = "; ".join(f"{policy} {_told(some['lacking'].tolist())}" for policy, some in held.items())
    caption = f"{spec.caption} Workload {unit} of {name}. Held back: {told}. Bubbles count a sixtieth of the time."
    return Drawing(figure, caption, left_out=helpers.after_the_first(spec))


def counted(dates: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return how many dates lie in each interval between `edges` (n + 1,): (n,)."""
    return np.histogram(dates, edges)[0]


def queue_line(axes: Axes, times: np.ndarray, waiting: np.ndarray, size: float) -> None:
    """Draw the queue over time, with room for bubbles above; size: seconds of a unit of the time axis."""
    axes.plot(times / size, waiting, drawstyle="steps-post", color=MUTED, linewidth=0.8, label="waiting jobs")
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.12 * max(1.0, waiting.max())))


def bubbles(
    axes: Axes,
    times: np.ndarray,
    waiting: np.ndarray,
    counts: np.ndarray,
    edges: np.ndarray,
    size: float,
    most: int,
    color: str,
) -> None:
    """Draw a bubble in each interval that counts something, at the queue's mean; `most` has the largest area."""
    found = counts > 0
    if found.any():
        middles, heights = (edges[1:] + edges[:-1]) / 2 / size, data.means_within(times, waiting, edges)
        axes.scatter(middles[found], heights[found], s=LARGEST * counts[found] / most, color=color, zorder=2, **FLAT)


def size_keys(axes: Axes, most: int, color: str) -> None:
    """Add what areas mean to the legend: once, a quarter of the most, the most."""
    for count in dict.fromkeys((1, max(1, most // 4), most)) if most else ():
        axes.scatter(
            [], [], s=LARGEST * count / most, color=color, label=f"held back {count} time{'s' * (count > 1)}", **FLAT
        )


def _legend(axes: Axes, most: int) -> None:
    for lacking, colour in COLOURS.items():
        axes.scatter([], [], s=40, color=theme.colour(colour), label=f"for lack of {lacking}", **FLAT)
    size_keys(axes, most, MUTED)


def _told(lacking: list[str]) -> str:
    counts = [f"{lacking.count(what)} times for {what}" for what in COLOURS if what in lacking]
    return " and ".join(counts) or "never"
