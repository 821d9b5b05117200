"""The figure of learning: how a learner's measures went with its steps, for any learner that records curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.order import kinds_of
from schedlab.figures.panels.axes import key, legend_outside, policy_handles
from schedlab.figures.panels.curves import learning_curve, seeds_by_place
from schedlab.figures.theme import INK, Style
from schedlab.studies.batch.figures.settings import CurveShown, LearningSettings

DASHED: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}
MOST_DECADES = 5  # of a logarithmic axis whose numbers are written out
CAPTION = (
    "By {counted}: {curves:{title}: "
    "{policies:{name} [from {first:.3g} to ]{last:.3g} after {steps}[ (seeds {low:.3g} to {high:.3g})]}}."
)


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a curve, a line a policy (mean over seeds) in a band from the lowest to the highest seed.

    Policies that record none of the curves are not shown; where none does, the figure says so (LearningSettings).
    """
    settings = settings_of(spec, LearningSettings)
    rows = tables.curves
    rows = rows[rows["policy"].isin(spec.policies)] if spec.policies else rows
    rows = rows[rows["train_scenario"].isin([*(spec.scenarios or tables.scenarios), ""])]
    found = {curve: points for curve in settings.curves if len(points := _points(rows, curve))}
    if not found:
        return nothing_to_draw("none of these curves is learned at this scale")
    every = pd.concat(list(found.values()), ignore_index=True)
    borders = {name: fresh_starts(of_policy) for name, of_policy in rows.groupby("policy")}
    looks = theme.policy_styles(dict.fromkeys(every["policy"], "learned") | kinds_of(tables.scores))
    columns = 3 if len(found) != 4 else 2
    figure, panels, _ = theme.new_panels(len(found), columns, row_mm=52, around_mm=14, sharey=settings.shared)
    for axes, (curve, points) in zip(panels, found.items(), strict=True):
        _panel(axes, curve, points, looks, borders, settings)
    handles = [_policy_key(name, own, looks, borders[name]) for name, own in every.groupby("policy", sort=True)]
    labels = dict.fromkeys(curve.line_label for curve in found if curve.line is not None and curve.line_label)
    legend_outside(figure, [*handles, *(key(label, **DASHED) for label in labels)], columns=3)
    curves = [{"title": curve.title, "policies": _ends(points)} for curve, points in found.items()]
    facts = {"counted": settings.counted, "curves": curves}
    learned_on = set(every["train_scenario"])
    missing = {} if "" in learned_on else left_out(spec, learned_on, "none of these curves was learned there")
    return Drawing(figure, CAPTION, facts, left_out=dict(sorted(missing.items())))


def _policy_key(name: str, rows: pd.DataFrame, looks: Mapping[str, Style], borders: list[int]) -> Any:
    """A line, or a point where all curves of a policy are single points."""
    curves = rows.groupby(["metric", "split"])
    longest = max(part["step"].nunique() for _, curve in curves for part in _stretches(curve, borders))
    return policy_handles(looks, [name], lines=longest > 1)[0]


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
    """Return the steps at which a policy's learner began afresh: those at which its count of updates falls."""
    updates = rows.groupby("step")["update"].max()
    return [int(step) for step in updates.index[updates.diff() < 0]]


def _stretches(rows: pd.DataFrame, borders: list[int]) -> list[pd.DataFrame]:
    """Cut a curve where its learner began afresh, so that no line joins what does not follow from the other."""
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
    exponential = curve.smoothing is not None
    for name, rows in points.groupby("policy", sort=True):
        for stretch in _stretches(rows, borders.get(name, [])):
            shown = smoothed(stretch, curve.smoothing or 0.0) if exponential else stretch
            learning_curve(axes, shown, looks[name], window=1 if exponential else settings.window)
            if stretch["step"].nunique() == 1:  # of which a line shows nothing
                axes.plot(stretch["step"].iloc[:1], [stretch["value"].mean()], **looks[name].point())
    if curve.line is not None:
        axes.axhline(curve.line, zorder=1, **DASHED)
    axes.set(title=curve.title, xlabel=settings.counted)
    axes.locator_params(axis="x", nbins=3)  # counts of six digits would run into each other
    axes.margins(x=0.02)
    if curve.log:
        axes.set_yscale("log")
        decades = np.ptp(np.log10(points["value"]))
        if decades < MOST_DECADES:  # else powers of ten, as Matplotlib writes them
            axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}" if decades < 1 else "")


def _ends(points: pd.DataFrame) -> dict[str, Any]:
    """First and last value of each policy (mean over seeds) and the range of seeds in the end."""
    found = {}
    for name, rows in points.groupby("policy", sort=True):
        grid = seeds_by_place(rows)
        if grid.empty:
            continue
        last = grid.iloc[:, -1]
        ends = (float(last.min()), float(last.max())) if len(last) > 1 else (None, None)
        first = float(grid.iloc[:, 0].mean()) if len(grid.columns) > 1 else None
        steps = int(grid.columns[-1])
        found[name] = {"first": first, "last": float(last.mean()), "steps": steps, "low": ends[0], "high": ends[1]}
    return found
