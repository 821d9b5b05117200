"""Curves: running means, learning curves of several seeds over the budget used so far, lines over swept values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
FEW_DOTS = 100  # largest number of points of a panel that are drawn large
MANY = 1500  # number of points of a panel above which they are drawn as a bitmap, so that files stay small
ENDS = "{name} [from {first:.4g} to ]{last:.4g}[ (seeds {low:.4g} to {high:.4g})]"  # of `curve_ends`, for a caption


@dataclass(frozen=True)
class Curve:
    """One policy's learning in one panel.

    points     rows of the curves table of one policy, scenario, split and metric
    window     number of points of the running mean
    smoothing  weight of a point relative to the next one in an exponential mean; None: the running mean
    restarts   places at which its learner began again; the line is interrupted there
    whole      nothing is drawn before the first complete window, if there is one
    """

    points: pd.DataFrame
    style: Style
    window: int = 1
    smoothing: float | None = None
    restarts: Sequence[int] = ()
    whole: bool = False


def running_mean(values: Sequence[float] | np.ndarray, window: int) -> np.ndarray:
    """Return the mean of the last `window` values (fewer at the start) at each place of values (n,) or (curves, n)."""
    columns = pd.DataFrame(np.asarray(values, dtype=float).T)
    return columns.rolling(window, min_periods=1).mean().to_numpy().T.reshape(np.shape(values))


def learning_curve(axes: Axes, curve: Curve, *, x: str = "step", label: str = "") -> None:
    """Draw the mean over the seeds of a curve as a line, and their range as a band, at the places that all seeds
    reached. Few points are marked, because a line alone would not show where values were recorded.
    """
    for stretch in stretches(curve.points, curve.restarts, x):
        if curve.smoothing is None:
            grid, window = seeds_by_place(stretch, x), curve.window
        else:
            grid, window = seeds_by_place(exponential(stretch, curve.smoothing, x), x), 1
        first = min(window, len(grid.columns)) - 1 if curve.whole else 0
        values, places = running_mean(grid.to_numpy(), window)[:, first:], grid.columns.to_numpy()[first:]
        marks: dict[str, Any] = {"marker": curve.style.marker, "markersize": 4} if len(places) <= FEW else {}
        mean_and_range(axes, places, values, label=label, **curve.style.line(), **marks)


def mean_and_range(axes: Axes, places: np.ndarray, values: np.ndarray, *, color: str, **look: Any) -> None:
    """Draw the mean of several curves (curves, n) at places (n,) as a line, and their range as a band."""
    if len(values) > 1:
        axes.fill_between(places, values.min(axis=0), values.max(axis=0), color=color, **BAND)
    axes.plot(places, values.mean(axis=0), color=color, **look)


def seeds_by_place(points: pd.DataFrame, x: str = "step") -> pd.DataFrame:
    """Return a curve with a row for each seed and a column for each place that all seeds reached."""
    return points.pivot_table(index="policy_seed", columns=x, values="value", aggfunc="mean").dropna(axis="columns")


def curves(
    axes: Axes, shown: Mapping[str, Curve], levels: Mapping[str, Any] | None = None, *, x: str = "step"
) -> dict[str, dict[str, Any]]:
    """Draw a learning curve for each label, and lines at levels to compare them with; return label -> `curve_ends`.

    levels  label -> keywords of `Axes.axhline`: its height `y`, and its look
    x       column of the points for the horizontal axis (step, episode, update, decisions)
    """
    for label, curve in shown.items():
        learning_curve(axes, curve, x=x, label=label)
    for label, level in (levels or {}).items():
        axes.axhline(label=label, **{"zorder": 1, "linewidth": 1.0, **level})
    axes.margins(x=0.02)
    ends = {label: curve_ends(curve.points, x, curve.window) for label, curve in shown.items()}
    return {label: found for label, found in ends.items() if found}


def curve_ends(points: pd.DataFrame, x: str = "step", window: int = 1) -> dict[str, Any]:
    """Return the mean of the first and of the last `window` points of a curve (`first`: None if these are all points),
    the last place (`steps`), and the range of the seeds at the end (None for one seed). Empty if the seeds have no
    place in common.
    """
    grid = seeds_by_place(points, x)
    if grid.empty:
        return {}
    last = grid.iloc[:, -window:].mean(axis=1)
    several = len(last) > 1
    return {
        "first": float(grid.iloc[:, :window].to_numpy().mean()) if len(grid.columns) > window else None,
        "last": float(last.mean()),
        "steps": int(grid.columns[-1]),
        "low": float(last.min()) if several else None,
        "high": float(last.max()) if several else None,
    }


def seed_curves(axes: Axes, points: pd.DataFrame, style: Style, window: int) -> None:
    """Draw every recorded point as a dot, and the running mean of each seed as a line."""
    dots: dict[str, Any] = {"color": style.colour, "alpha": 0.4, "markeredgewidth": 0, "zorder": 2}
    dots["markersize"] = 2.5 if len(points) > FEW_DOTS else 6
    axes.plot(points["step"].to_numpy(), points["value"].to_numpy(), ".", rasterized=len(points) > MANY, **dots)
    for _, seed in points.groupby("policy_seed"):
        smooth = running_mean(seed["value"].to_numpy(), window)
        axes.plot(seed["step"].to_numpy(), smooth, color=style.colour, linewidth=1.1, zorder=3)
    axes.set_xlim(left=0)


def restarts(points: pd.DataFrame) -> list[int]:
    """Return the steps at which a policy's learner began again: its count of updates decreases there."""
    updates = points.groupby("step")["update"].max()
    return [int(step) for step in updates.index[updates.diff() < 0]]


def stretches(points: pd.DataFrame, borders: Sequence[int], x: str = "step") -> list[pd.DataFrame]:
    """Return the parts of a curve between the steps at which its learner began again."""
    places = np.searchsorted(list(borders), points[x].to_numpy(), side="right")
    return [part for _, part in points.groupby(places)]


def exponential(points: pd.DataFrame, smoothing: float, x: str = "step") -> pd.DataFrame:
    """Return exponential means of each seed; the weight of each point is `smoothing` times that of the next one."""
    points = points.sort_values(x, kind="stable")
    means = points.groupby("policy_seed")["value"].transform(lambda values: values.ewm(alpha=1 - smoothing).mean())
    return points.assign(value=means)


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
