"""Boxes: the middle half of values, their median, and whiskers at the same percentiles on every axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from schedlab.figures.theme import INK

WHISKERS = (5, 95)  # percentiles; the same on linear and logarithmic axes
KEY = "middle half; lines, {} to {} %".format(*WHISKERS)  # what a box and its lines are, for a legend


def quartiles(axes: Axes, values: Mapping[float, np.ndarray], colour: str, *, upright: bool = False) -> None:
    """Draw a box for each place (height of the row; upright: horizontal place), which it names no ticks for."""
    thin: dict[str, Any] = {"color": colour, "linewidth": 0.8}
    axes.boxplot(
        list(values.values()), positions=list(values), orientation="vertical" if upright else "horizontal",
        widths=0.62, whis=WHISKERS, showfliers=False, patch_artist=True, whiskerprops=thin, capprops=thin,
        boxprops={"facecolor": colour, "alpha": 0.3, "linewidth": 0},
        medianprops={"color": INK, "linewidth": 1.3}, manage_ticks=False,
    )  # fmt: skip
