"""Axes: labels with units, ticks, names of rows, legends, and labels at the ends of lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from scipy.optimize import isotonic_regression

from schedlab.config.contract import Metric
from schedlab.figures.captions import number_text
from schedlab.figures.theme import MUTED, Style

# (ratio of the largest to the smallest value, multiples of powers of ten)
CLOSE = (1, 1.1, 1.2, 1.3, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
TICKS = ((1.01, (1, 2, 5)), (1.7, CLOSE), (3.2, (1, 1.5, 2, 3, 5, 7)), (15.0, (1, 2, 5)), (60.0, (1, 3)))
BETTER = {"lower": "\N{LEFTWARDS ARROW} better", "higher": "\N{RIGHTWARDS ARROW} better"}


def axis_label(metric: Metric) -> str:
    """Return 'Label (unit)', or 'Label' if there is no unit."""
    label = metric.label or metric.name.replace("_", " ")
    return label if metric.unit in ("", "-", "1") else f"{label} ({metric.unit})"


def shared_xlabel(panels: Sequence[Axes], text: str) -> None:
    """Write one centred label below a row of panels. A label of the whole figure would overlap a legend below it."""
    odd, middle = len(panels) % 2, len(panels) // 2
    panels[middle].set_xlabel(text, x=0.5 if odd else 0.0, horizontalalignment="center")


def short_ticks(axes: Axes, most: int = 3) -> None:
    """Give a narrow panel few ticks on its horizontal axis, with labels as short as possible (0.05, 0)."""
    axes.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value, "{:.4g}")))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Label a logarithmic axis of values from `low` to `high` with plain numbers: at powers of ten, and between them if
    those are few.

    Call it after the scale is set.
    """
    axis.set_major_locator(LogLocator(subs=next((subs for ratio, subs in TICKS if high < ratio * low), (1,))))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def legend_outside(figure: Figure, handles: Iterable[Any] | None = None, *, columns: int = 0) -> None:
    """Put one legend for all axes below the figure, with each label once; none if there are no labels. columns 0: at
    most four.

    handles  handles with labels; None: all labelled artists of all axes
    """
    once = {handle.get_label(): handle for handle in (labelled(figure) if handles is None else handles)}
    columns = columns or min(4, max(1, len(once)))
    if once:
        figure.legend(list(once.values()), list(once), loc="outside lower center", ncols=columns)


def labelled(figure: Figure) -> list[Any]:
    """Return the labelled artists of all axes."""
    return [handle for axes in figure.axes for handle in axes.get_legend_handles_labels()[0]]


def policy_handles(styles: Mapping[str, Style], policies: Iterable[str], *, lines: bool = False) -> list[Any]:
    """Return legend handles for policies: markers, or lines."""
    return [Line2D([], [], label=name, **(styles[name].line() if lines else styles[name].point())) for name in policies]


def direct_labels(axes: Axes, *, gap: float = 1.2) -> None:
    """Write each line's label to the right of the axes instead of in a legend. Labels that would overlap are moved
    apart and connected to their lines by thin leaders.

    gap  smallest distance of two labels, in heights of the text. Call it last, when limits and scales of the axes are
         final
    """
    figure: Any = axes.figure
    figure.draw_without_rendering()  # computes the layout
    lines: list[Any] = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    lines = [line for line in lines if len(line.get_xdata())]
    ends = [(line.get_xdata()[-1], line.get_ydata()[-1]) for line in lines]
    box, ticks = axes.get_window_extent(), axes.xaxis.get_ticklabels()
    size = float(ticks[0].get_fontsize() if ticks else rcParams["font.size"])
    wanted = [(axes.transData.transform(end)[1] - box.y0) / box.height for end in ends]
    heights = spread(wanted, gap * size * figure.dpi / 72 / box.height)
    for line, end, height in zip(lines, ends, heights, strict=True):
        colour = line.get_color()
        leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.4, "alpha": 0.6, "shrinkA": 1, "shrinkB": 1}
        leader |= {"relpos": (0, 0.5)}
        look: dict[str, Any] = {"color": colour, "va": "center", "fontsize": size, "annotation_clip": False}
        axes.annotate(line.get_label(), end, (1.03, height), textcoords="axes fraction", arrowprops=leader, **look)


def spread(heights: Sequence[float], distance: float) -> list[float]:
    """Return the heights moved apart to at least `distance`, in their order and as near as least squares allow."""
    order = np.argsort(heights, kind="stable")
    steps, moved = distance * np.arange(len(heights)), np.zeros(len(heights))
    if len(heights):
        moved[order] = isotonic_regression(np.asarray(heights)[order] - steps).x + steps
    return moved.tolist()


def key(label: str, **look: Any) -> Line2D:
    """Return a legend entry: a line, or a marker if `look` has linestyle="none"."""
    return Line2D([], [], label=label, **look)


def name_rows(axes: Axes, names: Sequence[str], *, below: float = 0.5, above: float = 0.5) -> None:
    """Name the rows of a panel, at the heights 0, 1, 2 ... from the top.

    below, above: space below the last row and above the first one, in heights of a row
    """
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 1 + below, -above)
    axes.tick_params(axis="y", length=0)


def words(axes: Axes, text: str) -> None:
    """Write a text into the middle of an empty panel."""
    look: dict[str, Any] = {"ha": "center", "va": "center", "color": MUTED, "fontstyle": "italic"}
    axes.text(0.5, 0.5, text, transform=axes.transAxes, **look)
