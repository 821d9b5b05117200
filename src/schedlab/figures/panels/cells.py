"""Coloured cells with or without numbers, and tables of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from schedlab.figures.captions import number_text, three_digits
from schedlab.figures.theme import GRID, INK, MUTED, ink_on, new_figure

LINE_MM, BETWEEN_MM = 3.6, 1.4  # of a table: height of a line of text, and space between rows


def heat_map(
    axes: Axes, table: pd.DataFrame, *, form: str = "{:.2f}", label: str = "", colours: str = "cividis", **limits: Any
) -> None:
    """Draw a table as coloured cells that contain their numbers, in dark text on light cells and light text on dark
    ones; a cell without a value contains a dash.

    form    format of a number; "digits": as `three_digits`. label: of the colour bar. limits: vmin, vmax, norm
    """
    values = table.to_numpy(dtype=float)
    image = cells(axes, np.ma.masked_invalid(values), list(table.index), cmap=colours, **limits)
    for row, column in np.ndindex(values.shape):
        number = float(values[row, column])
        if not np.isfinite(number):
            axes.plot([column + 0.35, column + 0.65], [row + 0.5] * 2, color=GRID, linewidth=1)
            continue
        ink = ink_on(image.cmap(image.norm(number)))
        text = three_digits(number) if form == "digits" else number_text(number, form)
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=ink)
    axes.set_xticks(np.arange(table.shape[1]) + 0.5, [str(name) for name in table.columns])
    if label:
        colour_bar(axes, image, label, pad=0.02)


def cells(axes: Axes, values: np.ndarray, rows: Sequence[Any], **look: Any) -> Any:
    """Draw values (rows, columns) as coloured cells, the first row on top, with the names of the rows; return the
    image. look: keywords of `Axes.pcolormesh`; `edges` (columns + 1,) are the borders of the columns.
    """
    columns, count = look.pop("edges", np.arange(values.shape[1] + 1)), len(rows)
    image = axes.pcolormesh(columns, np.arange(count + 1), values, **{"edgecolors": "white", "linewidth": 0.6, **look})
    axes.set_yticks(np.arange(count) + 0.5, [str(name) for name in rows])
    axes.set_ylim(count, 0)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def colour_bar(panels: Any, image: Any, label: str, **look: Any) -> Any:
    """Add the colour scale of an image to the right of one or several panels; return it."""
    first = panels if isinstance(panels, Axes) else next(iter(panels))
    bar = first.figure.colorbar(image, ax=panels, label=label, **{"aspect": 30, **look})
    bar.outline.set_visible(False)
    return bar


def text_table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> Figure:
    """Return a figure of a table of texts, whose height fits its lines of text.

    The first column is aligned to the left, the others to the right. There is a line below the header and below the
    last row. Columns are as wide as their longest lines.
    """
    every = [header, *rows]
    counts = [1 + max(text.count("\n") for text in row) for row in every]
    letters = [3 + max(len(line) for row in every for line in row[column].split("\n")) for column in range(len(header))]
    letters[0] -= 2
    ends, bottoms = np.cumsum(letters) / sum(letters), np.cumsum([LINE_MM * count + BETWEEN_MM for count in counts])
    figure, axes = new_figure(height_mm=float(bottoms[-1]) + 4)
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(bottoms[-1], 0))
    for row, count, bottom in zip(every, counts, bottoms, strict=True):
        middle, head = bottom - (LINE_MM * count + BETWEEN_MM) / 2, row is header
        for column, text in enumerate(row):
            look: dict[str, Any] = {"ha": "right" if column else "left", "color": MUTED if head else INK}
            place = (ends[column] if column else 0.0, bottom - BETWEEN_MM / 2 if head else middle)
            axes.text(*place, text, va="bottom" if head else "center", **look)
    for height in (bottoms[0], bottoms[-1]):
        axes.axhline(height, color=INK, linewidth=0.6, clip_on=False)
    return figure
