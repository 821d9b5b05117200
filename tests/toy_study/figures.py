"""The figure of the toy."""

from __future__ import annotations

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme


def draw_costs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Left of the last panel: the cost of each policy in each scenario; last: the learning curves."""
    from toy_study.study import STUDY

    metric = STUDY.metrics[0]
    styles = theme.styles_of(tables.scores)
    rows = tables.summary[(tables.summary["metric"] == metric.name) & (tables.summary["split"] == "test")]
    order = [policy for policy in helpers.policy_order(rows, metric) if policy in (spec.policies or styles)]
    figure, panels = theme.new_figure(1, len(spec.scenarios) + 1, height_mm=60)
    for axes, scenario in zip(panels, spec.scenarios, strict=False):
        helpers.points_with_uncertainty(axes, rows[rows["scenario"] == scenario], order, styles)
        axes.set(title=scenario, xlabel=helpers.axis_label(metric))
    for policy, points in tables.curves.groupby("policy"):
        helpers.learning_curve(panels[-1], points, styles[policy], label=policy)
    panels[-1].set(title="learning", xlabel="step", ylabel=helpers.axis_label(metric))
    helpers.direct_labels(panels[-1])
    explained = helpers.explain_uncertainty(figure, rows)
    return Drawing(figure, f"{spec.caption} Best at the median: {order[0]}. {explained}")
