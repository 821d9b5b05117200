"""The figure of scores: every scheduler in every metric, with its uncertainty, scenario beside scenario."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import statistics
from schedlab.figures import helpers, theme, units
from schedlab.figures.theme import INK
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import MetricsSettings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

ROW_MM, COLUMNS = 4.8, 4
TITLE, LINE_MM = 20, 3.4  # letters in a line of a panel's title, and its height
WIDE = 20.0  # largest over smallest value from which an axis is logarithmic


def draw_metrics(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a metric, a row a scheduler from best to worst, a point with its interval for each scenario.

    A metric that is 0 everywhere, or that `against` scores 0 in, has no panel, and the caption says so.
    """
    settings = helpers.settings_of(spec, MetricsSettings)
    names = data.scenarios(tables, spec)
    baseline = settings.against or ""
    rows = _against(tables, baseline, names, spec) if baseline else tables.summary
    order = [name for name in data.policies(tables, spec, names) if name != baseline]
    rows = rows[rows["scenario"].isin(names) & (rows["split"] == "test") & rows["policy"].isin(order)]
    chosen = [data.BY_NAME[name] for name in settings.metrics or data.BY_NAME]
    nothing = {name for name, values in rows.groupby("metric")["value"] if not values.any()}
    metrics = [metric for metric in chosen if metric.name in set(rows["metric"]) - nothing]
    if not metrics:
        what = f"every difference to '{baseline}', or its score, is 0" if baseline else "every score to be shown is 0"
        raise UserError(what, where=f"figure {spec.name}: params.metrics", expected="others")
    columns = min(COLUMNS, len(metrics))
    lines = -(-len(metrics) // columns)
    titles = max(_title(metric).count("\n") for metric in metrics) * LINE_MM
    height = 16 + lines * (17 + titles + ROW_MM * len(order))
    figure, panels = theme.new_figure(lines, columns, height_mm=height, sharey=True, squeeze=False)
    for axes in panels.ravel()[len(metrics) :]:
        axes.set_visible(False)
    for axes, metric in zip(panels.ravel(), metrics, strict=False):
        _metric_panel(axes, rows[rows["metric"] == metric.name], metric, order, names, bool(baseline))
    over = "workloads" if rows["seeds"].max() == 1 else ""
    explained = helpers.explain_uncertainty(figure, rows, more=_keys(names) if len(names) > 1 else (), over=over)
    zero = [metric.label for metric in chosen if metric.name in nothing]
    told = [
        _caption(tables, names, order, metrics) if not baseline else _caption_against(rows, names, metrics, baseline)
    ]
    told += [f"Zero for all: {', '.join(zero)}."] if zero and not baseline else []
    scored = set(tables.summary.loc[tables.summary["scenario"].isin(names), "metric"])
    missing = [metric.label for metric in chosen if metric not in metrics and metric.name in scored]
    if baseline and settings.metrics and missing:
        told.append(f"Not shown, as {baseline} scores 0 or none differs from it: {', '.join(missing)}.")
    if any(metric.name == "utilisation" for metric in metrics):
        told.append("Utilisation is the time that cores are busy: the same work keeps slower cores busy for longer.")
    empty = [name for name in names if name not in set(rows["scenario"])]
    caption = f"{spec.caption} {' '.join(told)} {_workloads(rows)} {explained}"
    return Drawing(figure, caption, left_out=dict.fromkeys(empty, "scores none of these schedulers"))


def _against(tables: StudyTables, baseline: str, names: Sequence[str], spec: FigureSpec) -> pd.DataFrame:
    """The paired differences to a scheduler in percent of its mean; none where its mean is 0.

    Those to the study's baseline stand in the comparisons; others are made from the scores in the same way.
    """
    compared = tables.comparisons
    compared = compared[(compared["baseline"] == baseline) & compared["scenario"].isin(names)]
    compared = compared[compared["role"] == "baseline"].rename(columns={"difference": "value"})
    if compared.empty:
        compared = _paired(tables, baseline, names, spec)
    kept = ["scenario", "split", "metric", "value"]
    reference = tables.summary.loc[tables.summary["policy"] == baseline, kept].rename(columns={"value": "reference"})
    rows = compared.merge(reference, on=["scenario", "split", "metric"])
    rows = rows[rows["reference"] != 0]
    parts = ["value", "ci_low", "ci_high", "range_low", "range_high"]
    return rows.assign(**{name: 100 * rows[name].astype(float) / rows["reference"].abs() for name in parts})


def _paired(tables: StudyTables, baseline: str, names: Sequence[str], spec: FigureSpec) -> pd.DataFrame:
    """Paired differences of the test scores to a scheduler's, with their uncertainty. Raises UserError."""
    import pandas as pd

    scores = tables.scores[tables.scores["scenario"].isin(names) & (tables.scores["split"] == "test")]
    if baseline not in set(scores["policy"]):
        what, remedy = (
            f"'{baseline}' has no scores in {', '.join(names)}",
            did_you_mean(baseline, set(scores["policy"])),
        )
        raise UserError(what, where=f"figure {spec.name}: params.against", remedy=remedy)
    settings = StatisticsSettings(statistic=tables.summary["statistic"].iloc[0])
    rows = []
    for (scenario, metric), found in scores.groupby(["scenario", "metric"], sort=True):
        samples = {policy: statistics.sample(own) for policy, own in found.groupby("policy", sort=True)}
        for policy in samples.keys() - {baseline} if baseline in samples else ():
            rng = generator(0, "bootstrap", "figure", scenario, metric, policy, baseline)
            better = data.BY_NAME[metric].better
            difference = statistics.compare(samples[policy], samples[baseline], better, settings, rng).difference
            rows.append({"scenario": scenario, "policy": policy, "split": "test", "metric": metric, **vars(difference)})
    return pd.DataFrame(rows).sort_values(["scenario", "metric", "policy"], ignore_index=True)


def _metric_panel(
    axes: Axes, rows: pd.DataFrame, metric: Metric, order: Sequence[str], names: Sequence[str], difference: bool
) -> None:
    scale = units.Scaled(1.0, metric.label, "%") if difference else units.scaled(metric, float(rows["value"].max()))
    offsets = np.linspace(-0.17, 0.17, len(names)) if len(names) > 1 else [0.0]
    for name, offset in zip(names, offsets, strict=True):
        found = {row["policy"]: row for _, row in rows[rows["scenario"] == name].iterrows()}
        for height, policy in enumerate(order):
            if policy in found:
                _point(axes, found[policy], height + offset, scale.size, _look(name, names))
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.5, -0.5)
    arrow = "\N{LEFTWARDS ARROW}" if metric.better == "lower" else "\N{RIGHTWARDS ARROW}"
    unit = f"{scale.unit}   " if scale.unit else ""
    axes.set(title=_title(metric), xlabel=f"{unit}{arrow} better")
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)
    if difference:
        axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
    _spread_axis(axes, rows["value"].to_numpy() / scale.size, difference)
    axes.grid(True, axis="x")


def _title(metric: Metric) -> str:
    """The metric's label in lines that fit above a narrow panel."""
    return textwrap.fill(metric.label[:1].upper() + metric.label[1:], TITLE, break_on_hyphens=False)


def _spread_axis(axes: Axes, values: np.ndarray, difference: bool) -> None:
    """A logarithmic axis where values differ by orders of magnitude; else few ticks."""
    if difference or values.min() <= 0 or values.max() < WIDE * values.min():
        helpers.short_ticks(axes, 4)
        return
    from matplotlib.ticker import NullFormatter

    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _point(axes: Axes, row: pd.Series, height: float, size: float, look: Mapping[str, Any]) -> None:
    low, high, width = ("ci_low", "ci_high", 2.2) if np.isfinite(row["ci_low"]) else ("range_low", "range_high", 0.7)
    span = {"color": look["color"], "linewidth": width, "alpha": 0.55, "solid_capstyle": "butt"}
    axes.plot([row[low] / size, row[high] / size], [height] * 2, **span)
    edge: dict[str, Any] = {"zorder": 3, "markeredgecolor": "white", "markeredgewidth": 0.3}
    axes.plot([row["value"] / size], [height], linestyle="none", **edge, **look)


def _look(name: str, names: Sequence[str]) -> dict[str, Any]:
    """The look of a scenario: the same in every figure of the same scenarios, in whatever order they stand."""
    number, markers = sorted(names).index(name), theme.LEARNED_MARKERS
    return {"color": theme.colour(number), "marker": markers[number % len(markers)], "markersize": 4}


def _keys(names: Sequence[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    return [Line2D([], [], linestyle="none", label=f"scenario {name}", **_look(name, names)) for name in names]


def _caption(tables: StudyTables, names: Sequence[str], order: Sequence[str], metrics: Sequence[Metric]) -> str:
    """The best and the worst scheduler of each scenario in the first metric shown."""
    metric, told = metrics[0], []
    for name in names:
        scored = data.split_means(tables.summary, metric.name, name)
        means = {policy: value for policy, value in scored.items() if policy in order}
        sign = 1 if metric.better == "lower" else -1
        ranked = sorted(means, key=lambda policy: (sign * means[policy], policy))
        scale = units.scaled(metric, max(means.values()))
        best, worst = ([policy for policy in ranked if means[policy] == means[end]] for end in (ranked[0], ranked[-1]))
        if len(best) == len(ranked):
            told.append(f"{'all alike' if len(ranked) > 1 else ranked[0]} in {name} ({scale.text(means[ranked[0]])})")
            continue
        ends = (f"{', '.join(policies)} ({scale.text(means[policies[0]])})" for policies in (best, worst))
        told.append(f"best in {name} is {next(ends)}, worst {next(ends)}")
    return f"{metric.label.capitalize()}: {'; '.join(told)}."


def _caption_against(rows: pd.DataFrame, names: Sequence[str], metrics: Sequence[Metric], baseline: str) -> str:
    """Which schedulers are better than the baseline beyond doubt in the first scenario, metric by metric."""
    told = []
    for metric in metrics:
        some = rows[(rows["metric"] == metric.name) & (rows["scenario"] == names[0])]
        sure = some[some["ci_high"] < 0] if metric.better == "lower" else some[some["ci_low"] > 0]
        better = ", ".join(f"{row.policy} ({_percent(row.value)})" for row in sure.itertuples())
        told.append(f"{metric.label} {better or 'none'}")
    return f"Better than {baseline} on {names[0]} with the whole interval: {'; '.join(told)}."


def _percent(value: float) -> str:
    return helpers.number_text(value, "{:+.0f}" if abs(value) >= 10 else "{:+.2g}") + " %"


def _workloads(rows: pd.DataFrame) -> str:
    counts = sorted(set(rows["units"]))
    if counts == [1]:
        return "One test workload each, so without intervals."
    return f"Means over {' to '.join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))} test workloads."
