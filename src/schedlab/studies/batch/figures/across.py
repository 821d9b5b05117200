"""Figures across scenarios: means along a sweep, and what was learned in one place tested in others."""

from __future__ import annotations

import pandas as pd

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, settings_of
from schedlab.figures.order import kinds_of, ranked, trained
from schedlab.figures.panels.axes import axis_label, direct_labels, log_ticks
from schedlab.figures.panels.cells import heat_map
from schedlab.studies.batch.figures.comparison import METRIC
from schedlab.studies.batch.figures.settings import SweepSettings
from schedlab.studies.batch.figures.windows import BY_NAME, window_means

ROW_MM = 7.0
SPAN = (0.75, 1.5)  # ratios at which the colours of a matrix end


def draw_sweep(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A line a policy through its means over the test windows of each scenario of a sweep (SweepSettings)."""
    settings = settings_of(spec, SweepSettings)
    metric, kinds = BY_NAME[settings.metric], kinds_of(tables.scores)
    scores = tables.scores[tables.scores["scenario"].isin(spec.scenarios)]
    if settings.x not in scores or not pd.api.types.is_numeric_dtype(scores[settings.x]):
        where = f"figure {spec.name}: params.x"
        raise UserError(f"'{settings.x}' is no fact of the scenarios", where=where, expected="one that is a number")
    places = scores.groupby("scenario")[settings.x].first().dropna().drop_duplicates().sort_values()
    columns = {
        float(at): window_means(scores, str(name), metric.name, spec.policies).mean() for name, at in places.items()
    }
    means = pd.DataFrame(columns).dropna()
    if means.empty:
        where = f"figure {spec.name}: scenarios"
        raise UserError("no policy is scored in all scenarios", where=where, expected="one at least")
    means = means.sort_values(means.columns[-1])
    looks = theme.styles_of(tables.scores)
    figure, axes = theme.new_figure(width=0.75, height_mm=75)
    for policy, values in means.iterrows():
        look = looks[policy]
        axes.plot(values.index, values, label=policy, linewidth=1.1, **look.line())
        axes.plot(values.index, values, **look.point())
    axes.set_yscale("log")
    log_ticks(axes.yaxis, float(means.min().min()), float(means.max().max()))
    axes.set_xticks(means.columns, [f"{at:g}" for at in means.columns])
    axes.set(xlabel=settings.label, ylabel=axis_label(metric))
    direct_labels(axes)
    leaders = {at: ranked(values.to_dict(), metric.better, kinds)[0] for at, values in means.items()}
    best = {f"{at:g}": {"policy": leader, "mean": float(means.loc[leader, at])} for at, leader in leaders.items()}
    caption = "Best mean by {swept}: {best:{name}: {policy} ({mean:.3g})}."
    missing = left_out(spec, places.index, f"has no {settings.label} of its own")
    return Drawing(figure, caption, {"swept": settings.label, "best": best}, left_out=dict(sorted(missing.items())))


def draw_matrix(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A row a policy, a column a scenario: its mean over that of the best rule there."""
    kinds, learned = kinds_of(tables.scores), trained(tables.scores)
    ratios, best = {}, {}
    for name in spec.scenarios:
        means = window_means(tables.scores, name, METRIC).mean()
        rules = [policy for policy in means.index if kinds[policy] == "rule" and policy not in learned]
        if not rules:
            where = f"figure {spec.name}: scenarios"
            raise UserError(f"no rule is scored in {name}", where=where, expected="scenarios with rules")
        best[name] = means[rules].idxmin()
        ratios[name.replace("_", " ")] = means / means[rules].min()
    table = pd.DataFrame(ratios).reindex(list(spec.policies)).dropna(how="all")
    if table.empty:
        where = f"figure {spec.name}: policies"
        raise UserError("none of the policies is scored", where=where, expected="policies of its scenarios")
    figure, axes = theme.new_figure(width=0.9, height_mm=28 + ROW_MM * len(table))
    heat_map(axes, table, label="ratio to the best rule", colours="cividis_r", vmin=SPAN[0], vmax=SPAN[1])
    stacked = table.stack()
    policy, scenario = stacked.idxmin()
    facts = {"rules": best, "ratio": float(stacked.min()), "policy": policy, "scenario": scenario}
    caption = (
        "The best rules: {rules:{name}: {value}}. The lowest ratio is that of {policy} on {scenario}, {ratio:.2f}."
    )
    return Drawing(figure, caption, facts)
