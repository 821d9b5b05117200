"""The figure of the toy."""

from __future__ import annotations

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.order import policy_order
from schedlab.figures.panels.axes import axis_label, direct_labels
from schedlab.figures.panels.curves import Curve, learning_curve
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, points_with_uncertainty


def draw_costs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Left of the last panel: the cost of each policy in each scenario; last: the learning curves."""
    from toy_study.study import STUDY

    metric = STUDY.metrics[0]
    styles = theme.styles_of(tables.scores)
    rows = tables.summary[(tables.summary["metric"] == metric.name) & (tables.summary["split"] == "test")]
    order = [policy for policy in policy_order(rows, metric) if policy in (spec.policies or styles)]
    figure, panels = theme.new_figure(1, len(spec.scenarios) + 1, height_mm=60)
    for axes, scenario in zip(panels, spec.scenarios, strict=False):
        points_with_uncertainty(axes, rows[rows["scenario"] == scenario], order, styles)
        axes.set(title=scenario, xlabel=axis_label(metric))
    for policy, points in tables.curves.groupby("policy"):
        learning_curve(panels[-1], Curve(points, styles[policy]), label=policy)
    panels[-1].set(title="learning", xlabel="step", ylabel=axis_label(metric))
    direct_labels(panels[-1])
    values = {"best": order[0], **explain_uncertainty(figure, rows, tables.statistics.confidence)}
    return Drawing(figure, f"Best at the median: {{best}}. {UNCERTAINTY}", values)
