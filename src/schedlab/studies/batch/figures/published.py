"""The figure of the published tables: the means of rules on the published windows, here and as published."""

from __future__ import annotations

from itertools import chain
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.batch.figures.settings import PublishedPanel, PublishedSettings
from schedlab.studies.batch.figures.windows import BY_NAME, label_rows

ROW_MM, COLUMNS = 4.4, 4
RING: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.8, "markersize": 7}


def draw_published(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a trace, a row a rule: a dot ours, a ring published, a line the learned policy (PublishedSettings)."""
    settings = helpers.settings_of(spec, PublishedSettings)
    metric = BY_NAME[settings.metric]
    panels = [(panel, _ours(tables, panel.scenario, metric.name)) for panel in settings.panels]
    if missing := [panel.scenario for panel, ours in panels if not ours or set(panel.published) - set(ours)]:
        where = f"figure {spec.name}: params.panels"
        raise UserError(
            f"no scores of rules with a published value in {', '.join(missing)}",
            where=where,
            expected="rules scored there",
        )
    order = [rule for rule in settings.order if any(rule in ours for _, ours in panels)]
    order += sorted({rule for _, ours in panels for rule in ours} - set(order))
    figure, lines = theme.new_grid(len(panels), COLUMNS, row_mm=15 + ROW_MM * len(order), around_mm=12, sharey=True)
    for axes, (panel, ours) in zip(chain(*lines), panels, strict=True):
        _panel(axes, panel, ours, order, metric)
    for line in lines:
        helpers.shared_xlabel(line, metric.label)
    helpers.legend_outside(figure, _keys(metric), columns=4)
    left_out = dict.fromkeys(
        sorted(set(spec.scenarios) - {panel.scenario for panel, _ in panels}), "has no panel in params.panels"
    )
    return Drawing(figure, f"{spec.caption} {_caption_text(panels, metric, settings.decimals)}", left_out=left_out)


def _beats(ours: float, learned: float, metric: Metric) -> bool:
    return ours < learned if metric.better == "lower" else ours > learned


def _ours(tables: StudyTables, scenario: str, metric: str) -> dict[str, float]:
    rows = tables.summary
    rows = rows[(rows["scenario"] == scenario) & (rows["metric"] == metric) & (rows["split"] == "test")]
    return dict(zip(rows["policy"], rows["value"], strict=True))


def _panel(axes: Axes, panel: PublishedPanel, ours: dict[str, float], order: list[str], metric: Metric) -> None:
    for height, rule in enumerate(order):
        if rule in ours:
            better = panel.learned is not None and _beats(ours[rule], panel.learned, metric)
            colour = theme.colour(0) if better else MUTED
            axes.plot([ours[rule]], [height], "o", color=colour, markersize=4, markeredgewidth=0, zorder=4)
        if rule in panel.published:
            axes.plot([panel.published[rule]], [height], "o", color="none", zorder=3, **RING)
    if panel.learned is not None:
        axes.axvline(panel.learned, color=theme.colour(1), linewidth=1.1, zorder=2)
    if metric.better == "lower":  # slowdowns and waits; shares lie between 0 and 1
        axes.set_xscale("log")
        shown = [*ours.values(), *panel.published.values(), *([] if panel.learned is None else [panel.learned])]
        helpers.log_ticks(axes.xaxis, min(shown), max(shown))
    axes.set_title(panel.title)
    label_rows(axes, order)
    axes.grid(True, axis="y", alpha=0.6)
    axes.margins(x=0.1)


def _keys(metric: Metric) -> list[object]:
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o"}
    better = f"here, {_side(metric)} the learned policy"
    return [
        Line2D([], [], color="white", label="published", **dot, **RING),
        Line2D([], [], color=MUTED, markersize=4, label="here", **dot),
        Line2D([], [], color=theme.colour(0), markersize=4, label=better, **dot),
        Line2D([], [], color=theme.colour(1), linewidth=1.1, label="published, learned policy"),
    ]


def _side(metric: Metric) -> str:
    return "below" if metric.better == "lower" else "above"


def _caption_text(panels: list[tuple[PublishedPanel, dict[str, float]]], metric: Metric, decimals: int) -> str:
    """How many published numbers of rules are reproduced, and which rules beat the published learned policy."""
    agrees = 0.501 * 10**-decimals
    pairs = [(value, ours[rule]) for panel, ours in panels for rule, value in panel.published.items() if rule in ours]
    equal = sum(abs(published - own) <= agrees for published, own in pairs)
    told = []
    for panel, ours in panels:
        if panel.learned is None:
            continue
        better = sorted((value, rule) for rule, value in ours.items() if _beats(value, panel.learned, metric))
        words = ", ".join(f"{rule} {value:.{decimals}f}" for value, rule in better)
        told.append(f"{panel.title} ({panel.learned:.{decimals}f}) {words or 'none'}")
    text = f"{equal} of {len(pairs)} published values of rules come out to {decimals} decimals."
    return f"{text} Rules {_side(metric)} the published learned policy: {'; '.join(told)}." if told else text
