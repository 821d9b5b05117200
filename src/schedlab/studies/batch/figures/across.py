"""Figures across scenarios: sweeps, policies learned on one scenario and tested on others, and published means."""

from __future__ import annotations

from typing import Any

import pandas as pd

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.captions import number_text
from schedlab.figures.drawing import left_out, settings_of
from schedlab.figures.order import kinds_of, ranked, trained
from schedlab.figures.panels.axes import axis_label, log_ticks
from schedlab.figures.panels.cells import heat_map
from schedlab.figures.panels.curves import sweep
from schedlab.figures.panels.facets import Grid
from schedlab.figures.panels.points import UNCERTAINTY, Beside, published_panels
from schedlab.figures.selection import select
from schedlab.studies.batch.comparison import METRIC
from schedlab.studies.batch.figures.settings import PublishedSettings, SweepSettings
from schedlab.studies.batch.figures.windows import BY_NAME, window_means

ROW_MM = 7.0
RULE_MM, COLUMNS = 4.4, 4  # height of a rule's row beside published values, and panels in a row
SPAN = (0.75, 1.5)  # ratios at which the colours of a matrix end
PUBLISHED = (
    "{equal} of {values} published values of rules are reproduced to {decimals:decimal|decimals}. "
    "[Rules {side} the published learned policy: {traces:{name} ({learned}) [{rules:{rule} {value}}][{none}none]}.]"
)


def draw_sweep(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a line for each policy through its means over the test windows of a sweep's scenarios (SweepSettings)."""
    settings = settings_of(spec, SweepSettings)
    metric, kinds = BY_NAME[settings.metric], kinds_of(tables.scores)
    scores = select(tables.scores, scenario=spec.scenarios)
    if settings.x not in scores or not pd.api.types.is_numeric_dtype(scores[settings.x]):
        where = f"figure {spec.name}: params.x"
        raise UserError(f"'{settings.x}' is not a numeric fact of the scenarios", where=where, expected="such a fact")
    places = scores.groupby("scenario")[settings.x].first().dropna().drop_duplicates()
    rows = select(tables.summary, scenario=places.index, split="test", metric=metric.name)
    rows = select(rows, policy=spec.policies) if spec.policies else rows
    rows = rows.assign(x=rows["scenario"].map(places).astype(float))
    everywhere = rows["policy"].value_counts() == len(places)
    rows = select(rows, policy=everywhere.index[everywhere])
    if rows.empty:
        where = f"figure {spec.name}: scenarios"
        raise UserError("no policy is scored in all scenarios", where=where, expected="one at least")
    grid = Grid(1, 78, 14, settings.label, axis_label(metric))
    looks, level = theme.styles_of(tables.scores), tables.statistics.confidence
    figure, facts = sweep([("", rows)], "x", sorted(map(float, places)), looks, level, grid)
    figure.axes[0].set_yscale("log")
    log_ticks(figure.axes[0].yaxis, float(rows["value"].min()), float(rows["value"].max()))
    best = {}
    for at, here in rows.groupby("x"):
        means = dict(zip(here["policy"], here["value"], strict=True))
        leader = ranked(means, metric.better, kinds)[0]
        best[f"{at:g}"] = {"policy": leader, "mean": float(means[leader])}
    caption = f"Best mean by {{swept}}: {{best:{{name}}: {{policy}} ({{mean:.3g}})}}. {UNCERTAINTY}"
    missing = left_out(spec, places.index, f"has no {settings.label} of its own")
    values = {"swept": settings.label, "best": best, **facts}
    return Drawing(figure, caption, values, left_out=dict(sorted(missing.items())))


def draw_matrix(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw cells of policies (rows) and scenarios (columns): the policy's mean over that of the best rule there."""
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


def draw_published(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each trace, with a row for each rule: a dot for our value, a ring for the published one, a line
    for the learned policy (PublishedSettings).
    """
    settings = settings_of(spec, PublishedSettings)
    metric = BY_NAME[settings.metric]
    rows = select(tables.summary, metric=metric.name, split="test")
    means = {name: dict(zip(own["policy"], own["value"], strict=True)) for name, own in rows.groupby("scenario")}
    panels = settings.panels
    lacking = [
        one.scenario for one in panels if not (ours := means.get(one.scenario)) or set(one.published) - set(ours)
    ]
    if lacking:
        what = f"no scores of rules with a published value in {', '.join(lacking)}"
        raise UserError(what, where=f"figure {spec.name}: params.panels", expected="rules scored there")
    beside = {each.title: Beside(means[each.scenario], each.published, each.learned) for each in panels}
    scored = {rule for values in beside.values() for rule in values.ours}
    order = [rule for rule in settings.order if rule in scored]
    order += sorted(scored - set(order))
    lower, form = metric.better == "lower", f"{{:.{settings.decimals}f}}"  # slowdowns and waits; shares are in [0, 1]
    grid = Grid(COLUMNS, 15 + RULE_MM * len(order), 12, metric.label, subplots={"sharey": True})
    figure = published_panels(beside.items(), order, grid, better=metric.better, log=lower)
    pairs = [
        (it.ours[rule], value) for it in beside.values() for rule, value in it.published.items() if rule in it.ours
    ]
    equal = sum(abs(own - value) <= 0.501 * 10**-settings.decimals for own, value in pairs)
    traces = {}
    for title, it in beside.items():
        ahead = sorted((it.ours[rule], rule) for rule in it.ahead(metric.better))
        rules = [{"rule": rule, "value": number_text(value, form)} for value, rule in ahead]
        if it.learned is not None:
            traces[title] = {"learned": number_text(it.learned, form), "rules": rules, "none": not rules}
    facts: dict[str, Any] = {"equal": equal, "values": len(pairs), "decimals": settings.decimals, "traces": traces}
    facts["side"] = "below" if lower else "above"
    unplaced = left_out(spec, {each.scenario for each in panels}, "has no panel in params.panels")
    return Drawing(figure, PUBLISHED, facts, left_out=dict(sorted(unplaced.items())))
