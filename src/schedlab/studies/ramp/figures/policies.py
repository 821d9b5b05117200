"""Figures of policies: learning against the rules, scores relative to the leader, blocking rates and published ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.order import kinds_of, ranked
from schedlab.figures.panels.axes import legend_outside, shared_xlabel
from schedlab.figures.panels.bars import bar_colours, grouped_bars
from schedlab.figures.panels.curves import learning_curve
from schedlab.figures.panels.points import beside_published, published_keys
from schedlab.figures.selection import policy_of
from schedlab.studies.ramp.figures import data
from schedlab.studies.ramp.figures.settings import PairsSettings, ScoresSettings, ValidationSettings

ROW_MM, COLUMNS = 5.0, 4
LEARNED = "linear values, searched"
NARROW = data.SHORT | {"demand_throughput": "throughput"}  # four panels in a line
TICKS = NARROW | {data.BLOCKING: "blocking", "jct": "completion"}


def draw_validation(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A line a scenario, a panel a measure: validation while a policy learned. Settings: ValidationSettings."""
    settings = settings_of(spec, ValidationSettings)
    metrics = [data.BY_NAME[name] for name in settings.metrics if name in data.BY_NAME]
    curves = tables.curves[tables.curves["metric"].isin(settings.metrics) & (tables.curves["split"] == "validation")]
    learned = {name: policy_of(tables.scores, settings.policy, name) for name in spec.scenarios}
    shown = {name: curves[curves["policy"] == policy] for name, policy in learned.items()}
    shown = {name: rows for name, rows in shown.items() if len(rows)}
    if not shown:
        return nothing_to_draw("no such curve is learned at this scale")
    figure, _, lines = theme.new_panels(len(shown) * len(metrics), len(metrics), row_mm=42, around_mm=16)
    blocking = {}
    for line, (name, rows) in zip(lines, shown.items(), strict=True):
        for axes, metric in zip(line, metrics, strict=True):
            _against_rules(axes, rows[rows["metric"] == metric.name], tables.scores, name, settings, metric)
        label = settings.labels.get(name, name)
        line[0].set_ylabel(label)
        means = rows[rows["metric"] == data.BLOCKING].groupby("step")["value"].mean()
        if len(means):
            blocking[label] = {"first": means.iloc[0], "last": means.iloc[-1], "generations": int(means.index[-1])}
    shared_xlabel(lines[-1], "generation")
    legend_outside(figure, columns=4)
    caption = "Blocking: {blocking:{name} {first:.3f} at first, {last:.3f} after {generations} generations}."
    missing = left_out(spec, shown, f"no {settings.policy} was learned on it")
    return Drawing(figure, caption, {"blocking": blocking}, left_out=missing)


def _against_rules(
    axes: Axes, curve: pd.DataFrame, scores: pd.DataFrame, scenario: str, settings: ValidationSettings, metric: Metric
) -> None:
    """One measure: the curve, and the mean and range of each rule's validation scores."""
    rows = scores[(scores["scenario"] == scenario) & (scores["split"] == "validation")]
    rows = rows[rows["metric"] == metric.name]
    values = {rule: rows.loc[rows["policy"] == rule, "value"] for rule in settings.baselines}
    unit = data.short_unit(metric, float(pd.concat([curve["value"], *values.values()]).max()), NARROW)
    style = theme.Style(theme.colour(0), "o")
    learning_curve(axes, curve.assign(value=curve["value"] / unit.size), style, label=LEARNED)
    for number, (rule, found) in enumerate(values.items()):
        if len(found):
            colour = theme.RULE_GREYS[number % len(theme.RULE_GREYS)]
            axes.axhspan(found.min() / unit.size, found.max() / unit.size, color=colour, alpha=0.15, linewidth=0)
            dashes = theme.DASHES[number % len(theme.DASHES)]
            axes.axhline(found.mean() / unit.size, color=colour, linewidth=1.0, linestyle=dashes, label=rule)
    axes.set_title(unit.label)
    axes.margins(x=0.02)


def draw_scores(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a bar a policy: leader over value, or value over leader. Settings: ScoresSettings."""
    settings = settings_of(spec, ScoresSettings)
    metrics = [metric for metric in data.BY_NAME.values() if metric.name in settings.metrics]
    rows = data.tested(tables.summary, tables)
    kinds = kinds_of(rows)
    scores = _means(rows[rows["policy"].isin(settings.policies)], spec)
    if not scores:
        return nothing_to_draw(data.NOT_RUN)
    colours, least = bar_colours(list(settings.policies)), {}
    figure, panels, lines = theme.new_panels(len(scores), 2, row_mm=48, around_mm=14, sharey=True)
    for axes, (name, found) in zip(panels, scores.items(), strict=True):
        groups = {TICKS.get(metric.name, metric.name): _relative(found, metric, kinds) for metric in metrics}
        grouped_bars(axes, groups, colours)
        axes.set_title(settings.labels.get(name, name))
        axes.set_ylim(0, 1.02 * max(1.0, *(score.max() for scores in groups.values() for score in scores.values())))
        rates = found[data.BLOCKING].to_dict()
        leader = ranked(rates, "lower", kinds)[0]
        least[settings.labels.get(name, name)] = {"policy": leader, "rate": rates[leader]}
    for line in lines:
        line[0].set_ylabel("score (1: best)")
    legend_outside(figure, columns=5)
    missing = left_out(spec, scores, data.NOT_SCORED)
    return Drawing(figure, "Least blocking: {least:{name} {policy} ({rate:.3f})}.", {"least": least}, left_out=missing)


def _relative(found: pd.DataFrame, metric: Metric, kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Policy -> its score relative to the leader's in a measure: 1 or less, but for oracles, which lead nothing."""
    values = found.get(metric.name, pd.Series(dtype=float)).dropna()
    if values.empty:
        return {}
    best = values[ranked(values.to_dict(), metric.better, kinds)[0]]
    scores = best / values if metric.better == "lower" else values / best
    return {str(policy): np.array([score]) for policy, score in scores.items()}


def draw_pairs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a row a policy: blocking rate, the published one as a ring. Settings: PairsSettings."""
    settings = settings_of(spec, PairsSettings)
    scores = _means(data.tested(tables.summary, tables), spec)
    rates = {name: found[data.BLOCKING].to_dict() for name, found in scores.items()}
    if not rates:
        return nothing_to_draw(data.NOT_RUN)
    names = {policy for values in [*rates.values(), *settings.published.values()] for policy in values}
    first = next(iter(rates.values()))
    order = sorted(names, key=lambda policy: (first.get(policy, 0.0), policy))
    row_mm = 18 + ROW_MM * len(order)
    figure, panels, lines = theme.new_panels(len(rates), COLUMNS, row_mm=row_mm, around_mm=12, sharey=True)
    distances = {}
    for axes, (name, ours) in zip(panels, rates.items(), strict=True):
        published, label = settings.published.get(name, {}), settings.labels.get(name, name)
        beside_published(axes, order, ours, published, dict.fromkeys(order, theme.colour(0)))
        axes.set_title(label)
        axes.grid(True, axis="both", alpha=0.6)
        both = [abs(ours[policy] - value) for policy, value in published.items() if policy in ours]
        distances |= {label: max(both)} if both else {}
    for line in lines:
        shared_xlabel(line, "blocking rate")
    legend_outside(figure, published_keys(theme.colour(0)), columns=2)
    caption = "[Largest distance of a rule from its published value: {distances:{name} {value:.3f}}.]"
    return Drawing(figure, caption, {"distances": distances}, left_out=left_out(spec, rates, data.NOT_SCORED))


def _means(summary: pd.DataFrame, spec: FigureSpec) -> dict[str, pd.DataFrame]:
    """Scenario -> means on test episodes: a row for each policy with a blocking rate, a column a measure."""
    found: dict[str, Any] = {}
    for name in spec.scenarios:
        rows = summary[summary["scenario"] == name]
        table = rows.pivot_table(index="policy", columns="metric", values="value")
        if data.BLOCKING in table:
            found[name] = table[table[data.BLOCKING].notna()]
    return found
