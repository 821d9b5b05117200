"""Figures of policies: searches for values and settings, scores, placements, rates next to published ones."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.drawing import left_out, nothing_to_draw, settings_of
from schedlab.figures.order import kinds_of, ranked
from schedlab.figures.panels import points
from schedlab.figures.panels.axes import key, labelled, legend_outside
from schedlab.figures.panels.curves import Curve, curves
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import policy_of, select
from schedlab.studies.ramp.figures import data
from schedlab.studies.ramp.figures.settings import (
    PairsSettings,
    PlacementsSettings,
    ScoresSettings,
    TuningSettings,
    ValidationSettings,
)

ROW_MM, COLUMNS = 5.0, 4
PLACES_MM, APART = 6.0, 0.22  # height of a row of several placements; distance of its points, in heights of a row
RECORDED = ["configuration", "rung", "step", "blocked"]  # columns of a recorded search
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
    recorded = select(tables.curves, metric=data.BLOCKING, split="validation")
    learned = {name: policy_of(tables.scores, settings.policy, name) for name in spec.scenarios}
    shown = {name: rows for name, policy in learned.items() if len(rows := select(recorded, policy=policy or ""))}
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
                levels[rule] = {"y": found.mean(), **look}
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
    rows = data.scored(tables, spec.scenarios, settings.metrics, policy=settings.policies)
    shown = [name for name in spec.scenarios if name in set(rows["scenario"])]
    if not shown:
        return nothing_to_draw(data.NOT_RUN)
    labels = {name: settings.labels.get(name, name) for name in shown}
    groups: list[tuple[str, pd.DataFrame]] = []
    titles: list[str] = []
    for metric in settings.metrics:
        title, found = data.panel(rows, data.BY_NAME[metric])
        groups += [("" if titles else labels[name], select(found, scenario=name)) for name in shown]
        titles.append(title)
    row_mm, subplots = 14 + ROW_MM * len(settings.policies), {"sharey": True, "sharex": "row"}
    grid = Grid(len(shown), row_mm, 14, titles, subplots=subplots)
    looks, level = data.looks(settings.policies), tables.statistics.confidence
    figure, facts = points.score_panels(groups, settings.policies, looks, level, grid)
    least, kinds = {}, kinds_of(rows)
    for name in shown:
        of_scenario = select(rows, scenario=name, metric=data.BLOCKING)
        rates = dict(zip(of_scenario["policy"], of_scenario["value"], strict=True))
        leader = ranked(rates, "lower", kinds)[0]
        least[labels[name]] = {"policy": leader, "rate": rates[leader]}
    caption = f"Least blocking: {{least:{{name}} {{policy}} ({{rate:.3f}})}}. {points.UNCERTAINTY}"
    return Drawing(figure, caption, {"least": least, **facts}, left_out=left_out(spec, shown, data.NOT_SCORED))


def draw_pairs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per scenario, one row per policy: blocking rate, and the published rate as a ring (PairsSettings)."""
    settings = settings_of(spec, PairsSettings)
    rows = data.scored(tables, spec.scenarios)
    found = {name: dict(zip(own["policy"], own["value"], strict=True)) for name, own in rows.groupby("scenario")}
    rates = {name: found[name] for name in spec.scenarios if name in found}
    if not rates:
        return nothing_to_draw(data.NOT_RUN)
    names = {policy for values in [*rates.values(), *settings.published.values()] for policy in values}
    first = next(iter(rates.values()))
    order = sorted(names, key=lambda policy: (first.get(policy, 0.0), policy))
    beside = {
        settings.labels.get(name, name): points.Beside(own, settings.published.get(name, {}))
        for name, own in rates.items()
    }
    grid = Grid(COLUMNS, 18 + ROW_MM * len(order), 12, "blocking rate", subplots={"sharey": True})
    figure, distances = points.published_panels(beside.items(), order, grid), {}
    for label, values in beside.items():
        if both := [abs(values.ours[name] - rate) for name, rate in values.published.items() if name in values.ours]:
            distances[label] = max(both)
    caption = "[Largest distance of a rule from its published value: {distances:{name} {value:.3f}}.]"
    return Drawing(figure, caption, {"distances": distances}, left_out=left_out(spec, rates, data.NOT_SCORED))


def draw_placements(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per distribution of limits, one row per policy, in it one point per placement (PlacementsSettings)."""
    settings = settings_of(spec, PlacementsSettings)
    rows = data.scored(tables, spec.scenarios, policy=settings.policies)
    run = set(rows["scenario"])
    panels = {label: own for label, own in settings.panels.items() if run & set(own.values())}
    if not panels:
        return nothing_to_draw(data.NOT_RUN)
    looks = data.looks(dict.fromkeys(place for own in panels.values() for place in own))
    shifts = {place: APART * (number - (len(looks) - 1) / 2) for number, place in enumerate(looks)}
    shown = [policy for policy in settings.policies if policy in set(rows["policy"])]

    def panel(axes: Axes, own: dict[str, str]) -> dict[str, Any]:
        for place, scenario in own.items():
            found, alike = select(rows, scenario=scenario), dict.fromkeys(shown, looks[place])
            points.points_with_uncertainty(axes, found, shown, alike, shift=shifts[place], absent="")
        best = select(rows, scenario=own.values()).sort_values(["value", "policy", "scenario"], kind="stable").iloc[0]
        place = next(place for place, scenario in own.items() if scenario == best["scenario"])
        return {"policy": best["policy"], "place": place, "rate": best["value"]}

    grid = Grid(2, 14 + PLACES_MM * len(shown), 16, "blocking rate", subplots={"sharey": True})
    figure, least = facets(panels, panel, grid, keys=())
    handles = [key(place, **look.point()) for place, look in looks.items()]
    facts = points.explain_uncertainty(figure, rows, tables.statistics.confidence, more=handles)
    caption = f"Least blocking: {{least:{{name}} {{policy}}, {{place}} ({{rate:.3f}})}}. {points.UNCERTAINTY}"
    missing = left_out(spec, run, data.NOT_SCORED)
    return Drawing(figure, caption, {"least": dict(zip(panels, least, strict=True)), **facts}, left_out=missing)


def draw_tuning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per rung, one line per configuration: share of blocked validation decisions. Settings: TuningSettings.

    Raises UserError where the record has other columns.
    """
    del tables
    settings = settings_of(spec, TuningSettings)
    rows = pd.read_csv(find_resource(settings.record), dtype={"configuration": str})
    if list(rows.columns) != RECORDED:
        raise UserError(f"columns {', '.join(rows.columns)}", where=settings.record, expected=", ".join(RECORDED))
    runs, rules = rows[rows["rung"].notna()], rows[rows["rung"].isna()].set_index("configuration")["blocked"]
    rungs = sorted(runs["rung"].unique())
    order = list(dict.fromkeys(name for rung in reversed(rungs) for name in _from_least(runs[runs["rung"] == rung])))

    def panel(axes: Axes, mine: pd.DataFrame) -> None:
        for number, name in reversed(list(enumerate(order))):
            curve = mine[mine["configuration"] == name]
            look: dict[str, Any] = {"color": theme.MUTED, "alpha": 0.5}
            if number < settings.named:
                look = {"color": theme.colour(number), "label": name, "zorder": 3}
            if len(curve):
                axes.plot(curve["step"] / 1000, curve["blocked"], marker="o", markersize=2.5, **look)
        for number, (rule, value) in enumerate(rules.items()):
            dashes = theme.DASHES[1 + number % (len(theme.DASHES) - 1)]
            look = {"color": theme.RULE_GREYS[number % len(theme.RULE_GREYS)], "linestyle": dashes}
            axes.axhline(value, linewidth=1.0, label=rule, **look)
        axes.set_ylim(0, settings.most)

    of_rung = [(rung, runs[runs["rung"] == rung]) for rung in rungs]
    groups = [(f"rung {int(n)}: {mine['configuration'].nunique()} configurations", mine) for n, mine in of_rung]
    grid = Grid(4, 60, 14, "thousand decisions", "blocked share of decisions", subplots={"sharey": True})
    figure, _ = facets(groups, panel, grid, keys=())
    legend_outside(figure, sorted(labelled(figure), key=lambda handle: str(handle.get_label())), columns=6)
    last = runs[(runs["rung"] == rungs[-1]) & (runs["configuration"] == order[0])]
    facts = {"configuration": order[0], "blocked": last["blocked"].min(), "rules": rules.to_dict()}
    caption = "Lowest in the last rung: configuration {configuration}, with {blocked:.3f} in its lowest validation"
    return Drawing(figure, f"{caption}; {{rules:{{name}} {{value:.3f}}}}.", facts)


def _from_least(rows: pd.DataFrame) -> list[str]:
    """Return the configurations in ascending order of their lowest blocking rate."""
    least = rows.groupby("configuration")["blocked"].min().reset_index()
    return least.sort_values(["blocked", "configuration"])["configuration"].tolist()
