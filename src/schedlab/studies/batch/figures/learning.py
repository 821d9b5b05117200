"""The figure of learning: a learner's measures over its steps, for every learner that records curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.order import kinds_of
from schedlab.figures.panels.axes import key, log_ticks, policy_handles
from schedlab.figures.panels.curves import Curve, curves, restarts, stretches
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.figures.theme import INK, Style
from schedlab.studies.batch.figures.settings import CurveShown, LearningSettings

FEW_POINTS = 3  # of a curve
DASHED: dict[str, Any] = {"color": INK, "linewidth": 0.8, "linestyle": (0, (4, 2))}
CAPTION = (
    "By {counted}: {curves:{title}: "
    "{policies:{name} [from {first:.3g} to ]{last:.3g}[ (seeds {low:.3g} to {high:.3g})] after {steps}}}. "
    "[{few}A curve of few points shows no course of learning; each point is marked.]"
)


def draw_learning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each curve, with a line for each policy (mean over seeds) in a band from the lowest to the
    highest seed.

    Policies that record none of the curves are not shown; where none does, the figure says so (LearningSettings).
    """
    settings = settings_of(spec, LearningSettings)
    rows = select(tables.curves, train_scenario=[*(spec.scenarios or tables.scenarios), ""])
    rows = select(rows, policy=spec.policies) if spec.policies else rows
    shown = {curve: points for curve in settings.curves if len(points := _points(rows, curve))}
    if not shown:
        return nothing_to_draw("none of these curves is learned at this scale")
    every = pd.concat(list(shown.values()), ignore_index=True)
    borders = {name: restarts(of_policy) for name, of_policy in rows.groupby("policy")}
    looks = theme.policy_styles(dict.fromkeys(every["policy"], "learned") | kinds_of(tables.scores))

    def panel(axes: Axes, group: tuple[CurveShown, pd.DataFrame]) -> dict[str, Any]:
        curve, points = group
        level = {} if curve.line is None else {"_line": {"y": curve.line, **DASHED}}
        of_policies = {
            name: Curve(own, looks[name], settings.window, curve.smoothing, borders[name])
            for name, own in points.groupby("policy", sort=True)
        }
        ends = curves(axes, of_policies, level)
        axes.locator_params(axis="x", nbins=3)  # counts of six digits would run into each other
        if curve.log:
            axes.set_yscale("log")
            log_ticks(axes.yaxis, float(points["value"].min()), float(points["value"].max()))
        return {"title": curve.title, "policies": ends}

    keys = [_policy_key(name, own, looks, borders[name]) for name, own in every.groupby("policy", sort=True)]
    labels = dict.fromkeys(curve.line_label for curve in shown if curve.line is not None and curve.line_label)
    grid = Grid(3 if len(shown) != 4 else 2, 52, 14, settings.counted, each=True, subplots={"sharey": settings.shared})
    panels = [(curve.title, (curve, points)) for curve, points in shown.items()]
    figure, ends = facets(panels, panel, grid, keys=[*keys, *(key(label, **DASHED) for label in labels)], columns=3)
    learned_on = set(every["train_scenario"])
    missing = {} if "" in learned_on else left_out(spec, learned_on, "none of these curves was learned there")
    counts = every.groupby(["metric", "split", "policy"])["step"].nunique()
    facts = {"counted": settings.counted, "curves": ends, "few": bool((counts <= FEW_POINTS).any())}
    return Drawing(figure, CAPTION, facts, left_out=dict(sorted(missing.items())))


def _policy_key(name: str, rows: pd.DataFrame, looks: Mapping[str, Style], borders: list[int]) -> Any:
    """A line, or a point where all curves of a policy are single points."""
    of_curves = rows.groupby(["metric", "split"])
    longest = max(part["step"].nunique() for _, curve in of_curves for part in stretches(curve, borders))
    return policy_handles(looks, [name], lines=longest > 1)[0]


def _points(rows: pd.DataFrame, curve: CurveShown) -> pd.DataFrame:
    """The rows of a curve; the phases of a policy follow each other."""
    points = select(rows, metric=curve.metric, split=curve.split)
    lengths = points.groupby(["policy", "phase"])["step"].max()
    before = (lengths.groupby("policy").cumsum() - lengths).rename("before")
    points = points.join(before, on=["policy", "phase"])
    return points.assign(step=points["step"] + points["before"])
