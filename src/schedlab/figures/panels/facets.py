"""Figures of several panels, one for each group, with shared titles, labels, limits and legend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from schedlab.figures import theme
from schedlab.figures.panels.axes import legend_outside, shared_xlabel

G = TypeVar("G")
V = TypeVar("V")


@dataclass(frozen=True)
class Grid:
    """The layout and the labels of the panels.

    most               largest number of panels in a row; there are as few rows as possible, of equal lengths
    row_mm, around_mm  height of a row, and of everything above and below all rows (titles, legend)
    x, y               labels: below the middle of each row (with `sharex`, only the last one), left of each row;
                       several are one for each row; with `each`, at every panel
    lines              grid lines of every panel: x, y or both
    zero               vertical axes begin at 0
    subplots           keywords of `Figure.subplots` (sharex, sharey ...); width_ratios are used only for a single row
    """

    most: int = 2
    row_mm: float = 48
    around_mm: float = 14
    x: str | Sequence[str] = ""
    y: str | Sequence[str] = ""
    each: bool = False
    lines: Literal["", "x", "y", "both"] = ""
    zero: bool = False
    subplots: Mapping[str, Any] = field(default_factory=dict)


def facets(
    groups: Mapping[str, G] | Iterable[tuple[str, G]],
    panel: Callable[[Axes, G], V],
    grid: Grid = Grid(),
    *,
    keys: Iterable[Any] | None = None,
    columns: int = 0,
) -> tuple[Figure, list[V]]:
    """Draw a panel for each group (title, content); return the figure and the results of the calls of `panel`.

    keys     handles of the legend below all panels; None: all labelled artists; empty: no legend
    columns  of the legend; 0: at most four
    """
    pairs = list(groups.items()) if isinstance(groups, Mapping) else list(groups)
    rows = -(-len(pairs) // grid.most)
    across = -(-len(pairs) // rows)
    look = {name: value for name, value in grid.subplots.items() if rows == 1 or name != "width_ratios"}
    height = grid.around_mm + rows * grid.row_mm
    figure, places = theme.new_figure(rows, across, height_mm=height, squeeze=False, **look)
    panels = list(places.flat)
    for axes in panels[len(pairs) :]:
        axes.remove()
    for axes in panels[max(0, len(pairs) - across) : len(pairs)]:
        axes.tick_params(labelbottom=True)  # the last panel of its column, even if the row below is shorter
    lines = [panels[start : min(start + across, len(pairs))] for start in range(0, len(pairs), across)]
    values = []
    for axes, (title, group) in zip(panels, pairs, strict=False):
        values.append(panel(axes, group))
        if title:
            axes.set_title(title)
        if grid.lines:
            axes.grid(True, axis=grid.lines)
    for axes in panels[: len(pairs)] if grid.zero else ():
        axes.set_ylim(bottom=0)
    _label(lines, grid)
    if keys is None or (keys := list(keys)):
        legend_outside(figure, keys, columns=columns)
    return figure, values


def _label(lines: Sequence[Sequence[Axes]], grid: Grid) -> None:
    """Label the axes of the rows of panels; a panel's own label stays if the grid has none."""
    xs, ys = ([text] * len(lines) if isinstance(text, str) else text for text in (grid.x, grid.y))
    for number, (line, x, y) in enumerate(zip(lines, xs, ys, strict=True)):
        for axes in line if grid.each else line[:1]:
            axes.set_ylabel(y or axes.get_ylabel())
        if not x or (isinstance(grid.x, str) and grid.subplots.get("sharex") and number < len(lines) - 1):
            continue
        if grid.each:
            for axes in line:
                axes.set_xlabel(x)
        else:
            shared_xlabel(line, x)
