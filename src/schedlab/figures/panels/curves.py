"""Curves: running means, learning curves of several seeds, lines over swept values, distributions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from schedlab.figures.panels.axes import log_ticks, policy_handles
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.points import explain_uncertainty, span
from schedlab.figures.theme import Style

BAND: dict[str, Any] = {"alpha": 0.16, "linewidth": 0}
FEW = 6  # largest number of places that are all labelled, and of points of a curve that are all marked
LARGEST = 6.5  # size of the largest marker, points
WIDE = 10.0  # ratio of the largest to the smallest place from which an axis is logarithmic


def running_mean(values: Sequence[float] | np.ndarray, window: int) -> np.ndarray:
    """Return the mean of the last `window` values (fewer at the start) at each place of the last axis of values (...,
    n), in the same shape.
    """
    values = np.asarray(values, dtype=float)
    if window < 1:
        raise ValueError("the window of a running mean is at least 1")
    sums = np.cumsum(values, axis=-1)
    sums[..., window:] = sums[..., window:] - sums[..., :-window].copy()
    return sums / np.minimum(np.arange(1, values.shape[-1] + 1), window)


def learning_curve(
    axes: Axes,
    points: pd.DataFrame,
    style: Style,
    *,
    window: int = 1,
    whole: bool = False,
    x: str = "step",
    label: str = "",
) -> None:
    """Draw the mean over seeds of one policy's curve after a running mean, and the range of the seeds as a band. If
    there are few points, they are marked, because a line alone would not show where values were recorded.

    points  rows of the curves table of one policy, phase, scenario, split and metric; only places that all seeds
            reached are drawn
    whole   draw nothing before the first complete window, if there is one
    """
    grid = seeds_by_place(points, x)
    smooth = running_mean(grid.to_numpy(), window)
    places = grid.columns.to_numpy()
    if whole:
        first = min(window, len(places)) - 1
        smooth, places = smooth[:, first:], places[first:]
    marks: dict[str, Any] = {"marker": style.marker, "markersize": 4} if len(places) <= FEW else {}
    mean_and_range(axes, places, smooth, label=label, **style.line(), **marks)


def mean_and_range(axes: Axes, places: np.ndarray, values: np.ndarray, *, color: str, **look: Any) -> None:
    """Draw the mean of several curves (curves, n) at places (n,) as a line, and their range as a band."""
    if len(values) > 1:
        axes.fill_between(places, values.min(axis=0), values.max(axis=0), color=color, **BAND)
    axes.plot(places, values.mean(axis=0), color=color, **look)


def seeds_by_place(points: pd.DataFrame, x: str = "step") -> pd.DataFrame:
    """Return a curve with a row for each seed and a column for each place that all seeds reached."""
    return points.pivot_table(index="policy_seed", columns=x, values="value", aggfunc="mean").dropna(axis="columns")


def line_over_values(
    axes: Axes, rows: pd.DataFrame, column: str, places: Sequence[Any], styles: Mapping[str, Style]
) -> None:
    """Draw a line for each policy over the values of a column, each point with its interval or range. With only two
    places, points are drawn without a line, since nothing is known between them. Later markers are smaller, so that
    none hides those below it.

    rows    rows of a summary, of one scenario, split and metric
    places  all values of the column in order: numbers are positions on the axis, words are evenly spaced
    """
    by_number = all(isinstance(place, int | float) for place in places)
    there = set(rows["policy"])
    for number, policy in enumerate(name for name in styles if name in there):
        known = {row[column]: row for row in rows[rows["policy"] == policy].to_dict("records")}
        at = {place: place if by_number else places.index(place) for place in places if place in known}
        look = styles[policy].point() | ({} if len(places) == 2 else styles[policy].line())
        look["markersize"] = max(3.0, LARGEST - number)
        axes.plot(list(at.values()), [known[place]["value"] for place in at], label=policy, **look)
        for place, x in at.items():
            span(axes, known[place], x, colour=styles[policy].colour, upright=True)
    if not by_number:
        axes.set_xticks(range(len(places)), list(places))
    elif min(places) > 0 and max(places) >= WIDE * min(places):
        axes.set_xscale("log")
        log_ticks(axes.xaxis, min(places), max(places))
    elif len(places) <= FEW:
        axes.set_xticks(list(places), [f"{place:g}" for place in places])
    axes.grid(True, axis="y")


def sweep(
    groups: Iterable[tuple[str, pd.DataFrame]],
    column: str,
    places: Sequence[Any],
    styles: Mapping[str, Style],
    level: float,
    grid: Grid,
) -> tuple[Figure, dict[str, str]]:
    """Return a figure with a panel for each group of rows (see line_over_values), and the values of UNCERTAINTY.

    level: coverage of the intervals
    """
    pairs = list(groups)
    every = pd.concat([rows for _, rows in pairs])
    keys = policy_handles(styles, [name for name in styles if name in set(every["policy"])], lines=len(places) != 2)
    panel = partial(line_over_values, column=column, places=places, styles=styles)
    figure, _ = facets(pairs, panel, replace(grid, around_mm=grid.around_mm + 2 * len(keys)), keys=())
    return figure, explain_uncertainty(figure, every, level, more=keys)


def distribution(axes: Axes, values: np.ndarray, **look: Any) -> None:
    """Draw the share of values that are at most x, over x; nothing if there are no values."""
    ordered = np.sort(values[np.isfinite(values)])
    if len(ordered):
        shares = np.arange(len(ordered) + 1) / len(ordered)
        axes.step(np.append(ordered, ordered[-1]), shares, where="pre", **look)
