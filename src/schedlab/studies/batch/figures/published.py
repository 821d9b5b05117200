"""The figure of the published tables: the means of rules on the published windows, here and as published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.captions import number_text
from schedlab.figures.drawing import left_out, settings_of
from schedlab.figures.panels.axes import key, legend_outside, log_ticks, shared_xlabel
from schedlab.figures.panels.points import beside_published, published_keys
from schedlab.figures.theme import MUTED
from schedlab.studies.batch.figures.settings import PublishedPanel, PublishedSettings
from schedlab.studies.batch.figures.windows import BY_NAME

ROW_MM, COLUMNS = 4.4, 4
CAPTION = (
    "{equal} of {values} published values of rules are reproduced to {decimals:decimal|decimals}. "
    "[Rules {side} the published learned policy: {traces:{name} ({learned}) [{rules:{rule} {value}}][{none}none]}.]"
)
Panels = Sequence[tuple[PublishedPanel, dict[str, float]]]  # a trace, and rule -> its mean here


def draw_published(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each trace, with a row for each rule: a dot for our value, a ring for the published one, a line
    for the learned policy (PublishedSettings).
    """
    settings = settings_of(spec, PublishedSettings)
    metric = BY_NAME[settings.metric]
    rows = tables.summary[(tables.summary["metric"] == metric.name) & (tables.summary["split"] == "test")]
    means = {name: dict(zip(own["policy"], own["value"], strict=True)) for name, own in rows.groupby("scenario")}
    panels = [(panel, means.get(panel.scenario, {})) for panel in settings.panels]
    if missing := [panel.scenario for panel, ours in panels if not ours or set(panel.published) - set(ours)]:
        what = f"no scores of rules with a published value in {', '.join(missing)}"
        raise UserError(what, where=f"figure {spec.name}: params.panels", expected="rules scored there")
    scored = {rule for _, ours in panels for rule in ours}
    order = [rule for rule in settings.order if rule in scored]
    order += sorted(scored - set(order))
    row_mm = 15 + ROW_MM * len(order)
    figure, grid, lines = theme.new_panels(len(panels), COLUMNS, row_mm=row_mm, around_mm=12, sharey=True)
    for axes, (panel, ours) in zip(grid, panels, strict=True):
        _panel(axes, panel, ours, order, metric)
    for line in lines:
        shared_xlabel(line, metric.label)
    side = "below" if metric.better == "lower" else "above"
    dot: dict[str, Any] = {"color": theme.colour(0), "markersize": 4, "linestyle": "none", "marker": "o"}
    keys = [*published_keys(MUTED), key(f"here, {side} the learned policy", **dot)]
    keys.append(key("published, learned policy", color=theme.colour(1), linewidth=1.1))
    legend_outside(figure, keys, columns=4)
    beating = {panel.title: _beating(panel, ours, metric, settings.decimals) for panel, ours in panels}
    facts: dict[str, Any] = {**_reproduced(panels, settings.decimals), "side": side}
    facts["traces"] = {title: found for title, found in beating.items() if found}
    unplaced = left_out(spec, {panel.scenario for panel, _ in panels}, "has no panel in params.panels")
    return Drawing(figure, CAPTION, facts, left_out=dict(sorted(unplaced.items())))


def _beats(ours: float, learned: float, metric: Metric) -> bool:
    return ours < learned if metric.better == "lower" else ours > learned


def _panel(axes: Axes, panel: PublishedPanel, ours: dict[str, float], order: list[str], metric: Metric) -> None:
    learned = [] if panel.learned is None else [panel.learned]
    ahead = {rule: any(_beats(value, each, metric) for each in learned) for rule, value in ours.items()}
    colours = {rule: theme.colour(0) if better else MUTED for rule, better in ahead.items()}
    beside_published(axes, order, ours, panel.published, colours)
    for value in learned:
        axes.axvline(value, color=theme.colour(1), linewidth=1.1, zorder=2)
    if metric.better == "lower":  # slowdowns and waits; shares lie between 0 and 1
        axes.set_xscale("log")
        shown = [*ours.values(), *panel.published.values(), *learned]
        log_ticks(axes.xaxis, min(shown), max(shown))
    axes.set_title(panel.title)
    axes.grid(True, axis="y", alpha=0.6)


def _reproduced(panels: Panels, decimals: int) -> dict[str, int]:
    """How many published numbers of rules are reproduced."""
    agrees = 0.501 * 10**-decimals
    pairs = [(value, ours[rule]) for panel, ours in panels for rule, value in panel.published.items() if rule in ours]
    equal = sum(abs(published - own) <= agrees for published, own in pairs)
    return {"equal": equal, "values": len(pairs), "decimals": decimals}


def _beating(panel: PublishedPanel, ours: dict[str, float], metric: Metric, decimals: int) -> dict[str, Any]:
    """The rules that beat the published learned policy of a trace, by their means; nothing where there is none."""
    if panel.learned is None:
        return {}
    form = f"{{:.{decimals}f}}"
    better = sorted((value, rule) for rule, value in ours.items() if _beats(value, panel.learned, metric))
    rules = [{"rule": rule, "value": number_text(value, form)} for value, rule in better]
    return {"learned": number_text(panel.learned, form), "rules": rules, "none": not rules}
