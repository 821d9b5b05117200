"""Bars: groups of vertical bars with the range of the seeds, and rows of stacked parts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from schedlab.figures.panels.axes import name_rows
from schedlab.figures.theme import INK

Groups = Mapping[str, Mapping[str, np.ndarray]]


def grouped_bars(axes: Axes, groups: Groups, colours: Mapping[str, str]) -> None:
    """Draw a group of bars for each entry: a bar for the mean of the values of each label, and a thin line from the
    smallest to the largest value.

    groups: group -> label -> values (n,), such as one for each seed; a label that a group lacks leaves its place empty
    colours: label -> colour, in the order of the bars
    """
    width = 0.8 / len(colours)
    for group, values in enumerate(groups.values()):
        for place, (label, colour) in enumerate(colours.items()):
            if label not in values:
                continue
            heights, x = np.asarray(values[label]), group - 0.4 + (place + 0.5) * width
            axes.bar(x, heights.mean(), width * 0.92, color=colour, label=label)
            if np.ptp(heights) > 1e-9:
                axes.plot([x, x], [heights.min(), heights.max()], color=INK, linewidth=0.8)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.tick_params(axis="x", length=0)


def stacked_rows(axes: Axes, rows: Mapping[str, Mapping[str, float]], colours: Mapping[str, str]) -> dict[str, float]:
    """Draw a row of adjacent parts for each entry, the first row on top; return row -> sum.

    rows: row -> part -> length. colours: part -> colour
    """
    for height, parts in enumerate(rows.values()):
        start = 0.0
        for part, length in parts.items():
            axes.barh(height, length, left=start, color=colours[part], height=0.7, label=part)
            start += length
    name_rows(axes, list(rows), below=0.6, above=0.6)
    return {row: sum(parts.values()) for row, parts in rows.items()}
