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
from schedlab.figures.panels.axes import shared_xlabel
from schedlab.figures.panels.bars import bar_colours, grouped_bars
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.learning import Curve, Level, curves
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
    points = tables.curves[tables.curves["metric"].isin(settings.metrics) & (tables.curves["split"] == "validation")]
    learned = {name: policy_of(tables.scores, settings.policy, name) for name in spec.scenarios}
    shown = {name: points[points["policy"] == policy] for name, policy in learned.items()}
    shown = {name: rows for name, rows in shown.items() if len(rows)}
    if not shown:
        return nothing_to_draw("no such curve is learned at this scale")
    labels = {name: settings.labels.get(name, name) for name in shown}

    def panel(axes: Axes, place: tuple[str, Metric]) -> None:
        name, metric = place
        curve = shown[name][shown[name]["metric"] == metric.name]
        _against_rules(axes, curve, tables.scores, name, settings, metric)

    groups = [("", (name, metric)) for name in shown for metric in metrics]
    figure, _ = facets(groups, panel, Grid(len(metrics), 42, 16, y=list(labels.values())), columns=4)
    shared_xlabel(figure.axes[-len(metrics) :], "generation")
    blocking = {}
    for name, rows in shown.items():
        means = rows[rows["metric"] == data.BLOCKING].groupby("step")["value"].mean()
        if len(means):
            ends = {"first": means.iloc[0], "last": means.iloc[-1], "generations": int(means.index[-1])}
            blocking[labels[name]] = ends
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
    learned = Curve(curve.assign(value=curve["value"] / unit.size), theme.Style(theme.colour(0), "o"))
    levels = {}
    for number, (rule, found) in enumerate(values.items()):
        look: dict[str, Any] = {"color": theme.RULE_GREYS[number % len(theme.RULE_GREYS)]}
        look["linestyle"] = theme.DASHES[number % len(theme.DASHES)]
        if len(found):
            mean, low, high = (value / unit.size for value in (found.mean(), found.min(), found.max()))
            levels[rule] = Level(mean, look, low, high)
    curves(axes, {LEARNED: learned}, levels)
    axes.set_title(unit.label)


def draw_scores(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a bar a policy: leader over value, or value over leader. Settings: ScoresSettings."""
    settings = settings_of(spec, ScoresSettings)
    metrics = [metric for metric in data.BY_NAME.values() if metric.name in settings.metrics]
    rows = data.tested(tables.summary, tables)
    kinds = kinds_of(rows)
    scores = _means(rows[rows["policy"].isin(settings.policies)], spec)
    if not scores:
        return nothing_to_draw(data.NOT_RUN)
    colours = bar_colours(list(settings.policies))
    named = [(settings.labels.get(name, name), found) for name, found in scores.items()]

    def panel(axes: Axes, found: pd.DataFrame) -> dict[str, Any]:
        groups = {TICKS.get(metric.name, metric.name): _relative(found, metric, kinds) for metric in metrics}
        grouped_bars(axes, groups, colours)
        rates = found[data.BLOCKING].to_dict()
        leader = ranked(rates, "lower", kinds)[0]
        most = max(float(score.max()) for scores in groups.values() for score in scores.values())
        return {"policy": leader, "rate": rates[leader], "most": most}

    grid = Grid(2, 48, 14, y="score (1: best)", subplots={"sharey": True})
    figure, leaders = facets(named, panel, grid, columns=5)
    figure.axes[0].set_ylim(0, 1.02 * max(1.0, *(leader.pop("most") for leader in leaders)))
    least = dict(zip((label for label, _ in named), leaders, strict=True))
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

    def panel(axes: Axes, name: str) -> dict[str, float]:
        ours, published = rates[name], settings.published.get(name, {})
        beside_published(axes, order, ours, published, dict.fromkeys(order, theme.colour(0)))
        axes.grid(True, axis="both", alpha=0.6)
        both = [abs(ours[policy] - value) for policy, value in published.items() if policy in ours]
        return {settings.labels.get(name, name): max(both)} if both else {}

    groups = [(settings.labels.get(name, name), name) for name in rates]
    grid = Grid(COLUMNS, row_mm, 12, "blocking rate", subplots={"sharey": True})
    figure, found = facets(groups, panel, grid, keys=published_keys(theme.colour(0)), columns=2)
    distances = {label: distance for each in found for label, distance in each.items()}
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
