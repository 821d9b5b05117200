"""Learning curves of policies over the budget used so far, and the levels with which they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.figures.panels.curves import learning_curve, running_mean, seeds_by_place
from schedlab.figures.theme import Style

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


@dataclass(frozen=True)
class Level:
    """A value with which curves are compared, such as a rule's: a line, and a band from `low` to `high` if they are
    given.
    """

    value: float
    look: Mapping[str, Any] = field(default_factory=dict)
    low: float | None = None
    high: float | None = None


def curves(
    axes: Axes, shown: Mapping[str, Curve], levels: Mapping[str, Level] | None = None, *, x: str = "step"
) -> dict[str, dict[str, Any]]:
    """Draw, for each label, a line (mean over the seeds) in a band from the lowest to the highest seed, and a
    horizontal line for each level; return label -> `curve_ends`.

    x  column of the points for the horizontal axis (step, episode, update, decisions)
    """
    for label, curve in shown.items():
        for stretch in stretches(curve.points, curve.restarts, x):
            smooth = stretch if curve.smoothing is None else exponential(stretch, curve.smoothing, x)
            window = curve.window if curve.smoothing is None else 1
            learning_curve(axes, smooth, curve.style, window=window, whole=curve.whole, x=x, label=label)
    for label, level in (levels or {}).items():
        if level.low is not None and level.high is not None:
            axes.axhspan(level.low, level.high, color=level.look["color"], alpha=0.15, linewidth=0)
        axes.axhline(level.value, label=label, **{"zorder": 1, "linewidth": 1.0, **level.look})
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
    """Return the exponential means of each seed, starting at its first point; the weight of each point is `smoothing`
    times that of the next one.
    """
    points = points.sort_values(x, kind="stable")
    means = points.groupby("policy_seed")["value"].transform(lambda values: values.ewm(alpha=1 - smoothing).mean())
    return points.assign(value=means)
