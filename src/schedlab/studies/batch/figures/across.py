"""Figures across scenarios: means along a sweep, and what was learned in one place tested in others."""

from __future__ import annotations

import numpy as np
import pandas as pd

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import helpers, theme
from schedlab.studies.batch.figures.comparison import METRIC
from schedlab.studies.batch.figures.settings import MatrixSettings, SweepSettings
from schedlab.studies.batch.figures.windows import BY_NAME, window_means

ROW_MM = 7.0
SPAN = (0.75, 1.5)  # ratios at which the colours of a matrix end


def draw_sweep(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A line a policy through its means over the test windows of each scenario of a sweep (SweepSettings)."""
    settings = helpers.settings_of(spec, SweepSettings)
    metric = BY_NAME[settings.metric]
    columns = {
        point.at: window_means(tables.scores, point.scenario, metric.name, spec.policies).mean()
        for point in settings.points
    }
    means = _frame(columns)
    if means.empty:
        where = f"figure {spec.name}: params.points"
        raise UserError("no policy is scored in all scenarios", where=where, expected="one at least")
    looks = theme.styles_of(tables.scores)
    figure, axes = theme.new_figure(width=0.75, height_mm=75)
    for policy, values in means.iterrows():
        look = looks[policy]
        axes.plot(values.index, values, label=policy, linewidth=1.1, **look.line())
        axes.plot(values.index, values, **look.point())
    axes.set_yscale("log")
    helpers.log_ticks(axes.yaxis, float(means.min().min()), float(means.max().max()))
    axes.set_xticks(means.columns, [f"{at:g}" for at in means.columns])
    axes.set_xlabel(settings.label)
    axes.set_ylabel(helpers.axis_label(metric))
    helpers.direct_labels(axes)
    missing = dict.fromkeys(
        sorted(set(spec.scenarios) - {point.scenario for point in settings.points}), "has no place in params.points"
    )
    better = "idxmin" if metric.better == "lower" else "idxmax"
    told = [
        f"{at:g}: {best} ({helpers.number_text(means.loc[best, at], '{:.3g}')})"
        for at, best in getattr(means, better)().items()
    ]
    return Drawing(figure, f"{spec.caption} Best mean by {settings.label}: {'; '.join(told)}.", left_out=missing)


def _frame(columns: dict[float, pd.Series]) -> pd.DataFrame:
    """A row for each policy that every column has, a column a place of the sweep; lowest last mean first."""
    means = pd.DataFrame(dict(sorted(columns.items()))).dropna()
    return means.sort_values(means.columns[-1])


def draw_matrix(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A row a policy, a column a scenario: its mean over that of the best rule there (MatrixSettings)."""
    settings = helpers.settings_of(spec, MatrixSettings)
    kinds = dict(zip(tables.scores["policy"], tables.scores["kind"], strict=True))
    ratios, best = {}, {}
    for name in spec.scenarios:
        means = window_means(tables.scores, name, METRIC).mean()
        compared = [policy for policy in means.index if policy not in settings.not_among_rules]
        rules = means[[policy for policy in compared if kinds[policy] == "rule"]]
        if rules.empty:
            where = f"figure {spec.name}: scenarios"
            raise UserError(f"no rule is scored in {name}", where=where, expected="scenarios with rules")
        best[name] = rules.idxmin()
        ratios[name.replace("_", " ")] = means / rules.min()
    table = pd.DataFrame(ratios).reindex(list(spec.policies)).dropna(how="all")
    if table.empty:
        where = f"figure {spec.name}: policies"
        raise UserError("none of the policies is scored", where=where, expected="policies of its scenarios")
    figure, axes = theme.new_figure(width=0.9, height_mm=28 + ROW_MM * len(table))
    helpers.heat_map(axes, table, label="ratio to the best rule", colours="cividis_r", vmin=SPAN[0], vmax=SPAN[1])
    told = "; ".join(f"{name}: {rule}" for name, rule in best.items())
    lowest = table.stack().sort_values()
    where, value = lowest.index[0], float(np.asarray(lowest)[0])
    words = f"The best rules: {told}. The lowest ratio is that of {where[0]} on {where[1]}, {value:.2f}."
    return Drawing(figure, f"{spec.caption} {words}")
