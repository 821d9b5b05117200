"""The figure of learning: how a learner's measures went with its steps, for any learner that records curves."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.batch.figures.settings import CurveShown, LearningSettings

DASHED: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}
MOST_DECADES = 5  # of a logarithmic axis whose numbers are written out


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a curve, a line a policy (mean over seeds) in a band from the lowest to the highest seed.

    Policies that record none of the curves are not shown; where none does, the figure says so (LearningSettings).
    """
    settings = helpers.settings_of(spec, LearningSettings)
    rows = tables.curves
    rows = rows[rows["policy"].isin(spec.policies)] if spec.policies else rows
    rows = rows[rows["train_scenario"].isin([*(spec.scenarios or tables.scenarios), ""])]
    found = {curve: _points(rows, curve) for curve in settings.curves}
    found = {curve: points for curve, points in found.items() if len(points)}
    if not found:
        figure, axes = theme.new_figure(height_mm=20)
        axes.axis("off")
        axes.text(0.5, 0.5, "none of these curves is learned at this scale", ha="center", va="center", color=MUTED)
        return Drawing(figure, f"{spec.caption} None of these curves is learned at this scale.")
    names = sorted({name for points in found.values() for name in points["policy"]})
    borders = {name: fresh_starts(of_policy) for name, of_policy in rows.groupby("policy")}
    kinds = dict.fromkeys(names, "learned") | dict(zip(tables.scores["policy"], tables.scores["kind"], strict=True))
    looks = theme.policy_styles(kinds)
    columns = 3 if len(found) != 4 else 2
    figure, lines = theme.new_grid(len(found), columns, row_mm=52, around_mm=14, sharey=settings.shared)
    for axes, (curve, points) in zip(chain(*lines), found.items(), strict=True):
        _panel(axes, curve, points, looks, borders, settings)
    helpers.legend_outside(figure, _keys(found, looks, borders), columns=3)
    learned_on = {name for points in found.values() for name in points["train_scenario"]}
    elsewhere = [] if "" in learned_on else sorted(set(spec.scenarios) - learned_on)
    missing = dict.fromkeys(elsewhere, "none of these curves was learned there")
    told = " ".join(_caption_text(curve, points, settings) for curve, points in found.items())
    return Drawing(figure, f"{spec.caption} {told}", left_out=missing)


def _keys(
    found: Mapping[CurveShown, pd.DataFrame], looks: Mapping[str, Style], borders: Mapping[str, list[int]]
) -> list[Any]:
    """A line a policy, or a point where its curves are single points; and what the dashed lines are."""
    every = pd.concat(list(found.values()), ignore_index=True)
    handles = []
    for name, rows in every.groupby("policy", sort=True):
        stretches = [
            stretch for _, curve in rows.groupby(["metric", "split"]) for stretch in _stretches(curve, borders[name])
        ]
        longest = max(stretch["step"].nunique() for stretch in stretches)
        handles += helpers.policy_handles(looks, [name], lines=longest > 1)
    labels = dict.fromkeys(curve.line_label for curve in found if curve.line is not None and curve.line_label)
    return handles + [Line2D([], [], label=label, **DASHED) for label in labels]


def _points(rows: pd.DataFrame, curve: CurveShown) -> pd.DataFrame:
    """The rows of a curve; the phases of a policy follow each other."""
    points = rows[(rows["metric"] == curve.metric) & (rows["split"] == curve.split)]
    if points["phase"].nunique() < 2:
        return points
    parts, before = [], {}
    for (policy, _), part in points.groupby(["policy", "phase"], sort=True):
        parts.append(part.assign(step=part["step"] + before.get(policy, 0)))
        before[policy] = int(parts[-1]["step"].max())
    return pd.concat(parts, ignore_index=True)


def fresh_starts(rows: pd.DataFrame) -> list[int]:
    """Return the steps at which a policy's learner began anew: those at which its count of updates falls."""
    updates = rows.groupby("step")["update"].max()
    return [int(step) for step in updates.index[updates.diff() < 0]]


def _stretches(rows: pd.DataFrame, borders: list[int]) -> list[pd.DataFrame]:
    """Cut a curve where its learner began anew, so that no line joins what does not follow from the other."""
    places = np.searchsorted(borders, rows["step"].to_numpy(), side="right")
    return [part for _, part in rows.groupby(places)]


def smoothed(rows: pd.DataFrame, smoothing: float) -> pd.DataFrame:
    """Return the exponential means of each seed from its first point on; a point weighs `smoothing` of the next."""
    rows = rows.sort_values("step", kind="stable")
    means = rows.groupby("policy_seed")["value"].transform(lambda values: values.ewm(alpha=1 - smoothing).mean())
    return rows.assign(value=means)


def _panel(
    axes: Axes,
    curve: CurveShown,
    points: pd.DataFrame,
    looks: Mapping[str, Style],
    borders: Mapping[str, list[int]],
    settings: LearningSettings,
) -> None:
    for name, rows in points.groupby("policy", sort=True):
        for stretch in _stretches(rows, borders.get(name, [])):
            if curve.smoothing is None:
                helpers.learning_curve(axes, stretch, looks[name], window=settings.window)
            else:
                helpers.learning_curve(axes, smoothed(stretch, curve.smoothing), looks[name])
            if stretch["step"].nunique() == 1:  # of which a line shows nothing
                axes.plot(stretch["step"].iloc[:1], [stretch["value"].mean()], **looks[name].point())
    if curve.line is not None:
        axes.axhline(curve.line, zorder=1, **DASHED)
    axes.set_xlabel(settings.counted)
    axes.locator_params(axis="x", nbins=3)  # counts of six digits would run into each other
    axes.set_title(curve.title)
    axes.margins(x=0.02)
    if curve.log:
        axes.set_yscale("log")
        decades = np.ptp(np.log10(points["value"]))
        if decades < MOST_DECADES:  # else powers of ten, as Matplotlib writes them
            axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}" if decades < 1 else "")


def _caption_text(curve: CurveShown, points: pd.DataFrame, settings: LearningSettings) -> str:
    """First and last value of each policy (mean over seeds) and the range of seeds in the end."""
    told = []
    for name, rows in points.groupby("policy", sort=True):
        grid = rows.pivot_table(index="policy_seed", columns="step", values="value").dropna(axis="columns")
        if grid.empty:
            continue
        last = grid.iloc[:, -1]
        seeds = f" (seeds {_number(last.min())} to {_number(last.max())})" if len(last) > 1 else ""
        first = f"{_number(grid.iloc[:, 0].mean())} at first, " if len(grid.columns) > 1 else ""
        told.append(f"{name} {first}{_number(last.mean())} after {grid.columns[-1]}{seeds}")
    return f"{curve.title[:1].upper()}{curve.title[1:]} by {settings.counted}: {'; '.join(told)}."


def _number(value: float) -> str:
    """Three digits, without an exponent where the number is no longer for it (2150, not 2.15e+03)."""
    return helpers.number_text(float(f"{value:.3g}"), "{:g}")
