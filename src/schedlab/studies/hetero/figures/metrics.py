"""The figure of scores: every scheduler in every metric, with its uncertainty, and scenarios side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.seeds import generator
from schedlab.evaluation import statistics
from schedlab.figures import theme, units
from schedlab.figures.captions import number_text
from schedlab.figures.drawing import left_out, settings_of
from schedlab.figures.order import kinds_of, ranked
from schedlab.figures.panels.axes import BETTER, key, log_ticks, short_ticks
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, points_with_uncertainty
from schedlab.figures.selection import select
from schedlab.figures.theme import INK, Style
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import MetricsSettings

ROW_MM, COLUMNS = 4.8, 4
TITLE, LINE_MM = 20, 3.4  # characters in a line of a panel's title, and the height of the line
GROWS_WITH_WASTE = "utilisation"  # so neither a high nor a low value is better
WIDE = 8.0  # ratio of the largest to the smallest value from which an axis is logarithmic
CAPTION = (
    "[{metric}: {ends:best in {scenario} is {best} ({value})[, worst {worst} ({worst_value})]}.] "
    "[Better than {baseline} on {first}, by the whole interval: "
    "{surely:{metric} [{none}none][{better:{policy} ({percent})}]}.] "
    "[Relative to {beside}, least to most over the schedulers: {between:{metric} {low} to {high}}.] "
    "[Zero for all: {zero}.] [Not shown, because {baseline} has 0 or no policy differs from it: {missing}.] "
    "[{utilisation}Utilisation is the time that cores are busy: the same work keeps slower cores busy for longer, so "
    "neither high nor low is better.] "
    "[Means over {workloads} test workloads.][{one}One test workload in each scenario, so without intervals.] "
) + UNCERTAINTY


def draw_metrics(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each metric, with a row for each scheduler from best to worst, and a point with its interval for
    each scenario.

    A metric that is 0 everywhere, or in which the scheduler `against` scores 0, has no panel; the caption reports it.
    """
    settings = settings_of(spec, MetricsSettings)
    names, baseline, beside = data.scenarios(tables, spec), settings.against or "", settings.beside or ""
    if beside:
        rows = _beside(tables, beside, names)
    elif baseline:
        rows = _against(tables, baseline, names, spec)
    else:
        rows = select(tables.summary, scenario=names, split="test")
    order = [name for name in data.policies(tables, spec, names) if name != baseline]
    rows = select(rows, policy=order)
    chosen = [data.BY_NAME[name] for name in settings.metrics or data.BY_NAME]
    nothing = {name for name, values in rows.groupby("metric")["value"] if not values.any()}
    metrics = [metric for metric in chosen if metric.name in set(rows["metric"]) - nothing]
    if not metrics:
        what = f"every difference to '{baseline}', or its score, is 0" if baseline else "every score to be shown is 0"
        raise UserError(what, where=f"figure {spec.name}: params.metrics", expected="others")
    titles = max(_title(metric).count("\n") for metric in metrics) * LINE_MM
    row_mm = 17 + titles + ROW_MM * len(order)
    unit = "%" if baseline or beside else ""

    def panel(axes: Axes, metric: Metric) -> None:
        _panel(axes, select(rows, metric=metric.name), metric, order, names, unit)

    grid = Grid(COLUMNS, row_mm, 16, subplots={"sharey": True})
    figure, _ = facets([(_title(metric), metric) for metric in metrics], panel, grid, keys=())
    over = "workloads" if rows["seeds"].max() == 1 else ""
    keys = [key(f"scenario {name}", **_look(name, names).point()) for name in names if len(names) > 1]
    facts: dict[str, Any] = explain_uncertainty(figure, rows, tables.statistics.confidence, more=keys, over=over)
    scored = set(tables.summary.loc[tables.summary["scenario"].isin(names), "metric"])
    missing = [metric.label for metric in chosen if metric not in metrics and metric.name in scored]
    counts = sorted(set(rows["units"]))
    facts |= {
        "metric": metrics[0].label.capitalize(),
        "ends": [] if baseline or beside else _ends(tables, names, order, metrics[0]),
        "baseline": baseline,
        "first": names[0],
        "surely": _surely(rows, names[0], metrics) if baseline else [],
        "beside": beside,
        "between": _between(rows, metrics) if beside else [],
        "zero": [] if baseline or beside else [metric.label for metric in chosen if metric.name in nothing],
        "missing": missing if baseline and settings.metrics else [],
        "utilisation": any(metric.name == GROWS_WITH_WASTE for metric in metrics),
        "workloads": "" if counts == [1] else " to ".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))),
        "one": counts == [1],
    }
    empty = left_out(spec, set(rows["scenario"]), "scores none of these schedulers") if spec.scenarios else {}
    return Drawing(figure, CAPTION, facts, left_out=empty)


def _against(tables: StudyTables, baseline: str, names: Sequence[str], spec: FigureSpec) -> pd.DataFrame:
    """Return the paired differences to a scheduler in percent of its mean, except where its mean is 0.

    Differences to the study's baseline are read from the comparisons. If the scheduler is not that baseline or a policy
    has several seeds, the differences are computed from the scores in the same way, so that every interval is over
    workloads.
    """
    compared = select(tables.comparisons, baseline=baseline, scenario=names, role="baseline", split="test")
    compared = compared.rename(columns={"difference": "value"})
    if compared.empty or compared["seeds"].max() > 1:
        compared = _paired(tables, baseline, names, spec)
    reference = select(tables.summary, policy=baseline, split="test").rename(columns={"value": "reference"})
    rows = compared.merge(reference[["scenario", "metric", "reference"]], on=["scenario", "metric"])
    rows = rows[rows["reference"] != 0]
    return units.divided(rows, rows["reference"].abs() / 100)


def _beside(tables: StudyTables, reference: str, names: Sequence[str]) -> pd.DataFrame:
    """Return the paired differences between each policy's test scores in the scenarios and in a reference scenario, in
    percent of its mean in the reference, except where that mean is 0.
    """
    there, rows = select(tables.scores, scenario=reference, split="test"), []
    for (name, policy, metric), found in _by(select(tables.scores, scenario=names), "scenario", "policy", "metric"):
        other = select(there, policy=policy, metric=metric)
        if mean := abs(other["value"].mean()) if len(other) else 0.0:
            sides = statistics.sample(found), statistics.sample(other)
            difference = _difference(tables, metric, *sides, name, reference, metric, policy)
            rows.append({"scenario": name, "policy": policy, "metric": metric, "mean": mean, **difference})
    made = pd.DataFrame(rows)
    return units.divided(made, made["mean"] / 100)


def _paired(tables: StudyTables, baseline: str, names: Sequence[str], spec: FigureSpec) -> pd.DataFrame:
    """Return the paired differences of the test scores to a scheduler's. Raises UserError if it has no scores."""
    scores = select(tables.scores, scenario=names)
    if baseline not in set(scores["policy"]):
        what = f"'{baseline}' has no scores in {', '.join(names)}"
        remedy = did_you_mean(baseline, set(scores["policy"]))
        raise UserError(what, where=f"figure {spec.name}: params.against", remedy=remedy)
    groups = _by(scores, "scenario", "metric", "policy")
    samples, rows = {place: statistics.averaged(statistics.sample(own)) for place, own in groups}, []
    for (scenario, metric, policy), own in samples.items():
        if policy != baseline and (other := samples.get((scenario, metric, baseline))):
            difference = _difference(tables, metric, own, other, scenario, metric, policy, baseline)
            rows.append({"scenario": scenario, "policy": policy, "metric": metric, **difference})
    return pd.DataFrame(rows)


def _by(scores: pd.DataFrame, *columns: str) -> Any:
    """Return the groups of the test scores, sorted."""
    return select(scores, split="test").groupby(list(columns))


def _difference(tables: StudyTables, metric: str, own: Any, other: Any, *words: str) -> dict[str, Any]:
    """Return the difference of two samples with its uncertainty; words: name the stream of random numbers."""
    rng = generator(0, "bootstrap", "figure", *words)
    return vars(statistics.compare(own, other, data.BY_NAME[metric].better, tables.statistics, rng).difference)


def _panel(
    axes: Axes, rows: pd.DataFrame, metric: Metric, order: Sequence[str], names: Sequence[str], unit: str
) -> None:
    """Draw one metric; unit: that of differences, empty for scores."""
    scale = units.Scaled(1.0, metric.label, unit) if unit else units.scaled(metric, float(rows["value"].max()))
    rows = units.divided(rows, scale.size)
    shifts = np.linspace(-0.17, 0.17, len(names)) if len(names) > 1 else [0.0]
    for name, shift in zip(names, shifts, strict=True):
        looks = dict.fromkeys(order, _look(name, names))
        points_with_uncertainty(axes, select(rows, scenario=name), order, looks, shift=shift, absent="")
    better = "" if metric.name == GROWS_WITH_WASTE else BETTER[metric.better]
    axes.set(xlabel=f"{scale.unit}   {better}".strip())
    axes.margins(x=0.08)
    if unit:
        axes.axvline(0, color=INK, linewidth=0.8, zorder=1)
    if unit or rows["value"].min() <= 0 or rows["value"].max() < WIDE * rows["value"].min():
        short_ticks(axes, 4)
    else:
        axes.set_xscale("log")
        log_ticks(axes.xaxis, float(rows["value"].min()), float(rows["value"].max()))


def _title(metric: Metric) -> str:
    """Return the metric's label, broken into lines that fit above a narrow panel."""
    return textwrap.fill(metric.label[:1].upper() + metric.label[1:], TITLE, break_on_hyphens=False)


def _look(name: str, names: Sequence[str]) -> Style:
    """Return the style of a scenario, which is the same in every figure of the same scenarios, whatever their order."""
    number, markers = sorted(names).index(name), theme.LEARNED_MARKERS
    return Style(theme.colour(number), markers[number % len(markers)])


def _ends(tables: StudyTables, names: Sequence[str], order: Sequence[str], metric: Metric) -> list[dict[str, Any]]:
    """Return the best and the worst schedulers of each scenario in a metric, without oracles."""
    kinds, found = kinds_of(tables.scores), []
    for name in names:
        scored = data.split_means(tables.summary, metric.name, name)
        means = {policy: scored[policy] for policy in order if policy in scored}
        places = ranked(means, metric.better, kinds)
        scale = units.scaled(metric, max(means.values()))
        best, worst = ([policy for policy in places if means[policy] == means[end]] for end in (places[0], places[-1]))
        ends = {"scenario": name, "best": best, "value": scale.of(means[places[0]])}
        worst = worst if worst != best else []
        found.append({**ends, "worst": worst, "worst_value": scale.of(means[places[-1]])})
    return found


def _surely(rows: pd.DataFrame, scenario: str, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """Return, for each metric, the schedulers whose whole interval is better than the baseline in a scenario."""
    found = []
    for metric in metrics:
        some = select(rows, metric=metric.name, scenario=scenario)
        sure = some[some["ci_high"] < 0] if metric.better == "lower" else some[some["ci_low"] > 0]
        better = [{"policy": row.policy, "percent": _percent(row.value)} for row in sure.itertuples()]
        found.append({"metric": metric.label, "better": better, "none": not better})
    return found


def _between(rows: pd.DataFrame, metrics: Sequence[Metric]) -> list[dict[str, Any]]:
    """Return the smallest and the largest difference in each metric."""
    ends = rows.groupby("metric")["value"].agg(["min", "max"]).map(_percent)
    return [{"metric": it.label, **dict(zip(("low", "high"), ends.loc[it.name], strict=True))} for it in metrics]


def _percent(value: float) -> str:
    return number_text(value, "{:+.0f}" if abs(value) >= 10 else "{:+.2g}") + " %"
