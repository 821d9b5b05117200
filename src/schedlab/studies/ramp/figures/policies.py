"""Figures of policies: learning against the rules, scores over the best, blocking rates and published ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK
from schedlab.figures.units import scaled
from schedlab.studies.ramp.figures.parts import NOT_SCORED, SHORT, family, left_out, nothing_to_draw
from schedlab.studies.ramp.figures.settings import PairsSettings, ScoresSettings, ValidationSettings
from schedlab.studies.ramp.scenario import METRICS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

BLOCKING = "blocking_rate"
ROW_MM, COLUMNS = 5.0, 4
RING: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.8, "markersize": 7}
LEARNED = "linear values, searched"
NARROW = SHORT | {"demand_throughput": "throughput"}  # four panels in a line


def draw_validation(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A line a scenario, a panel a measure: validation while a policy learned. Settings: ValidationSettings."""
    settings = helpers.settings_of(spec, ValidationSettings)
    metrics = [metric for name in settings.metrics for metric in METRICS if metric.name == name]
    curves = tables.curves[tables.curves["metric"].isin(settings.metrics) & (tables.curves["split"] == "validation")]
    shown = [
        (name, rows)
        for name in spec.scenarios
        if len(rows := curves[curves["policy"] == _learned(settings.policy, name)])
    ]
    if not shown:
        return nothing_to_draw(spec, "no such curve is learned at this scale")
    figure, lines = theme.new_grid(len(shown) * len(metrics), len(metrics), row_mm=42, around_mm=16)
    told = []
    for line, (name, rows) in zip(lines, shown, strict=True):
        label = settings.labels.get(name, name)
        bands = {rule: _scores(tables, name, rule, "validation") for rule in settings.baselines}
        for axes, metric in zip(line, metrics, strict=True):
            _against_rules(axes, rows[rows["metric"] == metric.name], bands, metric)
        line[0].set_ylabel(label)
        blocking = rows[rows["metric"] == BLOCKING]
        first, last = (
            blocking.loc[blocking["step"] == step, "value"].mean()
            for step in (blocking["step"].min(), blocking["step"].max())
        )
        told.append(f"{label} {first:.3f} at first, {last:.3f} after {blocking['step'].max()} generations")
    helpers.shared_xlabel(lines[-1], "generation")
    helpers.legend_outside(figure, columns=4)
    caption = f"{spec.caption} Blocking: {'; '.join(told)}."
    return Drawing(figure, caption, left_out=left_out(spec, dict(shown), f"no {settings.policy} was learned on it"))


def _against_rules(axes: Axes, curve: pd.DataFrame, bands: dict[str, pd.DataFrame], metric: Metric) -> None:
    """One measure: the curve, and the mean and range of each rule; bands: the rules' scores."""
    import pandas as pd

    values = {rule: scores.loc[scores["metric"] == metric.name, "value"] for rule, scores in bands.items()}
    largest = pd.concat([curve["value"], *values.values()]).max()
    unit = scaled(replace(metric, label=NARROW.get(metric.name, metric.label)), float(largest))
    helpers.learning_curve(
        axes, curve.assign(value=curve["value"] / unit.size), theme.Style(theme.colour(0), "o"), label=LEARNED
    )
    for number, (rule, found) in enumerate(values.items()):
        if len(found):
            colour = theme.RULE_GREYS[number % len(theme.RULE_GREYS)]
            axes.axhspan(found.min() / unit.size, found.max() / unit.size, color=colour, alpha=0.15, linewidth=0)
            dashes = theme.DASHES[number % len(theme.DASHES)]
            axes.axhline(found.mean() / unit.size, color=colour, linewidth=1.0, linestyle=dashes, label=rule)
    axes.set_title(unit.label)
    axes.margins(x=0.02)


def bar_colours(count: int) -> list[str]:
    """Return so many colours: those of the theme, each once, then greys."""
    own = dict.fromkeys(theme.colour(number) for number in range(count))
    return [*own, *(theme.RULE_GREYS[number % len(theme.RULE_GREYS)] for number in range(count - len(own)))]


def draw_scores(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a bar a policy: best over value, or value over best. Settings: ScoresSettings."""
    import numpy as np

    settings = helpers.settings_of(spec, ScoresSettings)
    metrics = [metric for metric in METRICS if metric.name in settings.metrics]
    panels = [(name, values) for name in spec.scenarios if (values := _values(tables, name, settings.policies))]
    if not panels:
        return nothing_to_draw(spec, "no such scenario is run at this scale")
    colours = dict(zip(settings.policies, bar_colours(len(settings.policies)), strict=True))
    figure, lines = theme.new_grid(len(panels), 2, row_mm=48, around_mm=14, sharey=True)
    best = []
    for axes, (name, values) in zip([axes for line in lines for axes in line], panels, strict=True):
        width = 0.8 / len(settings.policies)
        for group, metric in enumerate(metrics):
            found = {policy: scores[metric.name] for policy, scores in values.items() if metric.name in scores}
            if not found:  # no policy completed a job
                continue
            top = (min if metric.better == "lower" else max)(found.values())
            for place, policy in enumerate(settings.policies):
                if policy in found:
                    score = top / found[policy] if metric.better == "lower" else found[policy] / top
                    axes.bar(group - 0.4 + (place + 0.5) * width, score, width, color=colours[policy], label=policy)
        rates = {policy: scores[BLOCKING] for policy, scores in values.items()}
        leader = min(rates, key=lambda policy: (rates[policy], policy))
        best.append(f"{settings.labels.get(name, name)} {leader} ({rates[leader]:.3f})")
        axes.set_xticks(np.arange(len(metrics)), [_short(metric.name) for metric in metrics])
        axes.set_title(settings.labels.get(name, name))
        axes.set_ylim(0, 1.02)
    for line in lines:
        line[0].set_ylabel("score (1: best)")
    helpers.legend_outside(figure, columns=5)
    return Drawing(
        figure, f"{spec.caption} Least blocking: {'; '.join(best)}.", left_out=left_out(spec, dict(panels), NOT_SCORED)
    )


def draw_pairs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a row a policy: blocking rate, the published one as a ring. Settings: PairsSettings."""
    settings = helpers.settings_of(spec, PairsSettings)
    panels = [(name, values) for name in spec.scenarios if (values := _values(tables, name, ()))]
    if not panels:
        return nothing_to_draw(spec, "no such scenario is run at this scale")
    order = sorted(
        {policy for _, values in panels for policy in values}
        | {policy for rows in settings.published.values() for policy in rows}
    )
    first = panels[0][1]
    order.sort(key=lambda policy: (first.get(policy, {}).get(BLOCKING, 0.0), policy))
    figure, lines = theme.new_grid(len(panels), COLUMNS, row_mm=18 + ROW_MM * len(order), around_mm=12, sharey=True)
    told = []
    for axes, (name, values) in zip([axes for line in lines for axes in line], panels, strict=True):
        published = settings.published.get(name, {})
        _pairs(axes, {policy: scores[BLOCKING] for policy, scores in values.items()}, published, order)
        axes.set_title(settings.labels.get(name, name))
        both = [abs(values[policy][BLOCKING] - value) for policy, value in published.items() if policy in values]
        if both:
            told.append(f"{settings.labels.get(name, name)} {max(both):.3f}")
    for line in lines:
        helpers.shared_xlabel(line, "blocking rate")
    helpers.legend_outside(figure, _keys(), columns=2)
    widest = f" Largest distance of a rule from its published value: {'; '.join(told)}." if told else ""
    return Drawing(figure, f"{spec.caption}{widest}", left_out=left_out(spec, dict(panels), NOT_SCORED))


def _pairs(axes: Axes, ours: dict[str, float], published: dict[str, float], order: list[str]) -> None:
    for height, policy in enumerate(order):
        if policy in ours:
            axes.plot([ours[policy]], [height], "o", color=theme.colour(0), markersize=4, markeredgewidth=0, zorder=4)
        if policy in published:
            axes.plot([published[policy]], [height], "o", color="none", zorder=3, **RING)
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="both", alpha=0.6)
    axes.margins(x=0.1)


def _keys() -> list[object]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], linestyle="none", marker="o", color="white", label="published", **RING),
        Line2D([], [], linestyle="none", marker="o", color=theme.colour(0), label="here", markersize=4),
    ]


def _learned(policy: str, scenario: str) -> str:
    return f"{policy}-{scenario.replace('_', '-')}"


def _scores(tables: StudyTables, scenario: str, policy: str, split: str) -> pd.DataFrame:
    rows = tables.scores
    return rows[(rows["scenario"] == scenario) & (rows["policy"] == policy) & (rows["split"] == split)]


def _values(tables: StudyTables, scenario: str, policies: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Policy (without its scenario) -> measure -> mean on test episodes; of those named, or of all."""
    rows = tables.summary
    rows = rows[(rows["scenario"] == scenario) & (rows["split"] == "test")]
    found: dict[str, dict[str, float]] = {}
    for policy, metric, value in zip(rows["policy"], rows["metric"], rows["value"], strict=True):
        name = family(policy, scenario)
        if not policies or name in policies:
            found.setdefault(name, {})[metric] = float(value)
    return {name: scores for name, scores in found.items() if BLOCKING in scores}


def _short(metric: str) -> str:
    return {
        "blocking_rate": "blocking",
        "demand_throughput": "throughput",
        "jct": "completion",
        "speedup": "speed-up",
    }.get(metric, metric)
