"""Figures of policies: a search for values against the rules, scores with uncertainty, rates next to published ones."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.order import kinds_of, ranked
from schedlab.figures.panels.axes import short_ticks
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.learning import Curve, Level, curves
from schedlab.figures.panels.points import (
    UNCERTAINTY,
    beside_published,
    explain_uncertainty,
    points_with_uncertainty,
    published_keys,
)
from schedlab.figures.selection import policy_of, select
from schedlab.studies.ramp.figures import data
from schedlab.studies.ramp.figures.settings import PairsSettings, ScoresSettings, ValidationSettings

ROW_MM, COLUMNS = 5.0, 4
SEARCHED = "search for linear values (band: seeds)"
LEAST: dict[str, Any] = {"marker": "*", "linestyle": "none", "color": theme.INK, "markersize": 6}
VALIDATION = (
    "Blocking rate: {blocking:{name} {first:.3f} at first, {last:.3f} after {generations} generations, lowest "
    "{least:.3f}}."
)


def draw_validation(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per scenario: blocking on validation during the search for values, a star at each seed's minimum, and
    lines at the means of rules on the validation episodes. Settings: ValidationSettings.
    """
    settings = settings_of(spec, ValidationSettings)
    points = select(tables.curves, metric=data.BLOCKING, split="validation")
    learned = {name: policy_of(tables.scores, settings.policy, name) for name in spec.scenarios}
    shown = {name: rows for name, policy in learned.items() if len(rows := points[points["policy"] == policy])}
    if not shown:
        return nothing_to_draw("no such curve is learned at this scale")
    labels = {name: settings.labels.get(name, name) for name in shown}

    def panel(axes: Axes, name: str) -> dict[str, Any]:
        rows = shown[name].sort_values("step")
        scores = select(tables.scores, scenario=name, split="validation", metric=data.BLOCKING)
        levels = {}
        for number, rule in enumerate(settings.baselines):
            look = {"color": theme.RULE_GREYS[number % len(theme.RULE_GREYS)], "linestyle": theme.DASHES[number % 4]}
            if len(found := select(scores, policy=rule)["value"]):
                levels[rule] = Level(float(found.mean()), look)
        curves(axes, {SEARCHED: Curve(rows, theme.Style(theme.colour(0), "o"))}, levels)
        least = rows.sort_values("value", kind="stable").drop_duplicates("policy_seed")
        axes.plot(least["step"], least["value"], zorder=4, label="least of a seed", **LEAST)
        means = rows.groupby("step")["value"].mean()
        ends = {"first": means.iloc[0], "last": means.iloc[-1], "generations": int(means.index[-1])}
        return {**ends, "least": float(least["value"].mean())}

    grid = Grid(COLUMNS, 52, 16, "generation", "blocking rate", subplots={"sharey": True})
    figure, ends = facets([(labels[name], name) for name in shown], panel, grid, columns=4)
    blocking = dict(zip(labels.values(), ends, strict=True))
    missing = left_out(spec, shown, f"no {settings.policy} was learned on it")
    return Drawing(figure, VALIDATION, {"blocking": blocking}, left_out=missing)


def draw_scores(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One row of panels per measure, one column per scenario; a point with uncertainty per policy (ScoresSettings)."""
    settings = settings_of(spec, ScoresSettings)
    rows = data.tested(select(tables.summary, scenario=spec.scenarios), tables)
    rows, kinds = select(rows, policy=settings.policies, metric=settings.metrics), kinds_of(rows)
    shown = [name for name in spec.scenarios if name in set(rows["scenario"])]
    if not shown:
        return nothing_to_draw(data.NOT_RUN)
    labels = {name: settings.labels.get(name, name) for name in shown}
    looks, panels, names = data.looks(settings.policies), [], []
    for number, metric in enumerate(data.BY_NAME[name] for name in settings.metrics):
        title, found = data.panel(rows, metric)
        names.append(title)
        panels += [("" if number else labels[name], select(found, scenario=name)) for name in shown]

    def panel(axes: Axes, found: pd.DataFrame) -> None:
        points_with_uncertainty(axes, found, list(settings.policies), looks)
        short_ticks(axes)

    grid = Grid(len(shown), 14 + ROW_MM * len(settings.policies), 14, subplots={"sharey": True, "sharex": "row"})
    figure, _ = facets(panels, panel, grid, keys=())
    for line, name in enumerate(names):
        figure.axes[line * len(shown) + len(shown) // 2].set_xlabel(name)
    facts: dict[str, Any] = explain_uncertainty(figure, rows, tables.statistics.confidence)
    least = {}
    for name in shown:
        of_scenario = select(rows, scenario=name, metric=data.BLOCKING)
        rates = dict(zip(of_scenario["policy"], of_scenario["value"], strict=True))
        leader = ranked(rates, "lower", kinds)[0]
        least[labels[name]] = {"policy": leader, "rate": rates[leader]}
    caption = f"Least blocking: {{least:{{name}} {{policy}} ({{rate:.3f}})}}. {UNCERTAINTY}"
    return Drawing(figure, caption, {"least": least, **facts}, left_out=left_out(spec, shown, data.NOT_SCORED))


def draw_pairs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per scenario, one row per policy: blocking rate, and the published rate as a ring (PairsSettings)."""
    settings = settings_of(spec, PairsSettings)
    rows = data.tested(select(tables.summary, scenario=spec.scenarios, metric=data.BLOCKING), tables)
    found = {name: dict(zip(own["policy"], own["value"], strict=True)) for name, own in rows.groupby("scenario")}
    rates = {name: found[name] for name in spec.scenarios if name in found}
    if not rates:
        return nothing_to_draw(data.NOT_RUN)
    names = {policy for values in [*rates.values(), *settings.published.values()] for policy in values}
    first = next(iter(rates.values()))
    order = sorted(names, key=lambda policy: (first.get(policy, 0.0), policy))

    def panel(axes: Axes, name: str) -> dict[str, float]:
        ours, published = rates[name], settings.published.get(name, {})
        beside_published(axes, order, ours, published, dict.fromkeys(order, theme.colour(0)))
        axes.grid(True, axis="both", alpha=0.6)
        both = [abs(ours[policy] - value) for policy, value in published.items() if policy in ours]
        return {settings.labels.get(name, name): max(both)} if both else {}

    groups = [(settings.labels.get(name, name), name) for name in rates]
    grid = Grid(COLUMNS, 18 + ROW_MM * len(order), 12, "blocking rate", subplots={"sharey": True})
    figure, apart = facets(groups, panel, grid, keys=published_keys(theme.colour(0)), columns=2)
    distances = {label: distance for each in apart for label, distance in each.items()}
    caption = "[Largest distance of a rule from its published value: {distances:{name} {value:.3f}}.]"
    return Drawing(figure, caption, {"distances": distances}, left_out=left_out(spec, rates, data.NOT_SCORED))
