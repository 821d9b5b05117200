"""Figures of traces: jobs, arrivals, waits in the log or under a rule; and how far predicted run times are off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.figures import theme
from schedlab.figures.captions import three_digits
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.panels.axes import key, legend_outside, words
from schedlab.figures.panels.curves import running_mean
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.batch.figures.settings import PredictionSettings, TraceSettings
from schedlab.studies.batch.jobs import Jobs, jobs_of, machine_of, recorded_ends
from schedlab.studies.batch.metrics import SHORT
from schedlab.studies.batch.prediction_errors import (
    PREDICTORS,
    error_table,
    log_errors,
    predictions_of_test_part,
    user_errors,
)
from schedlab.workloads.pictures import log_histogram, size_histogram
from schedlab.workloads.statistics import DAY
from schedlab.workloads.swf import read_swf
from schedlab.workloads.trace import Trace

HOUR = 3600.0
NEAR = 4.0  # ratio to the mean below which a label above a point would lie on the mean's line
MANY = 1500  # dots above which they are drawn as one picture, so that files stay small
SHORTEST = 10  # least windows of the moving averages in a trace; averages over longer ones are nearly its mean
TOP = 0.1  # share of the jobs of the largest bounded slowdowns, whose correlation is given too
CAPTION = (
    "Scenario {scenario}: {jobs} jobs over {days:.0f} days. Slowdowns and waits (a, b) {whose}, {waited} jobs: mean "
    "{mean:.2f}, median {median:.3g}, 90th percentile {p90:.4g}; {at_once:.0%} did not wait (not in b)"
    "[; correlation of wait and slowdown {correlation:.3f} over all jobs[ and {top_correlation:.3f} over the tenth "
    "with the largest slowdowns]]. Run times: median {run_median:.0f} s, mean {run_mean:.0f} s. Jobs submitted {unit}, "
    "from {least:.3g} to {most:.3g} by tenth of the time. Moving averages over {window} jobs."
)
PERCENT = np.arange(0.5, 100.0)
PREDICTIONS = (
    "{traces:{name}: {rows:{predictor} {under:.0%} under-predicted, off by a factor of {factor:.2g}[ (median user "
    "{user:.2g})]}}. Factors are exp of the mean size of the logarithm of prediction over run time."
)


@dataclass(frozen=True)
class Waited:
    """The waits of jobs (s), their bounded slowdowns, and the name of the order in which they ran."""

    wait: np.ndarray
    bsld: np.ndarray
    whose: str

    def correlation(self, share: float = 1.0) -> float | None:
        """Return Pearson's r of wait and slowdown over the jobs of largest slowdowns; None if one is constant."""
        top = np.argsort(-self.bsld, kind="stable")[: max(1, round(share * len(self.bsld)))]
        pair = self.wait[top], self.bsld[top]
        return None if min(np.ptp(values) for values in pair) == 0 else float(np.corrcoef(*pair)[0, 1])


def draw_trace(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Nine panels on the trace of the figure's first scenario: slowdowns, jobs, arrivals. Settings: TraceSettings."""
    settings = settings_of(spec, TraceSettings)
    name = (spec.scenarios or sorted(tables.scenarios))[0]
    trace = read_swf(tables.inputs[name]["trace"])
    jobs = jobs_of(trace, machine_of(trace))
    waited = recorded_waits(trace) or scheduled_waits(tables, spec, name, settings.rule)
    figure, panels = theme.new_figure(3, 3, height_mm=150)
    percentile_panel(panels[0, 0], waited)
    wait_panel(panels[0, 1], waited)
    _submitted(panels[0, 2], jobs.submit)
    _run_times(panels[1, 0], jobs.run)
    size_histogram(panels[1, 1], jobs.procs)
    panels[1, 1].set_title("e  sizes")
    gaps = np.diff(np.sort(jobs.submit))
    log_histogram(panels[1, 2], gaps[gaps > 0], "f  gaps between arrivals", "gap (s)", "gaps (%)")
    _tenths(panels[2, 0], jobs.submit)
    window = max(1, min(settings.window, len(jobs) // SHORTEST))
    for axes, letter, values, label in (
        (panels[2, 1], "h", jobs.run / HOUR, "run time (h)"),
        (panels[2, 2], "i", jobs.procs.astype(float), "processors"),
    ):
        _moving(axes, jobs.submit, values, window, f"{letter}  moving average", label)
    legend_outside(figure, _keys(), columns=5)
    return Drawing(figure, CAPTION, _facts(name, jobs, waited, window), left_out=after_the_first(spec))


def recorded_waits(trace: Trace) -> Waited | None:
    """Return the waits in the log; None if it has none."""
    table = trace.jobs[(trace.jobs["wait"] >= 0) & (trace.jobs["run"] >= 0)]
    if table.empty:
        return None
    wait, run = table["wait"].to_numpy(dtype=float), table["run"].to_numpy(dtype=float)
    return Waited(wait, bounded_slowdown(wait + run, run, SHORT), "as recorded")


def scheduled_waits(tables: StudyTables, spec: FigureSpec, scenario: str, rule: str) -> Waited:
    """Return the waits on the test windows of a scenario under a rule. Raises UserError where it was not scored."""
    rows = select(tables.details["jobs"], scenario=scenario, policy=rule, split="test")
    if rows.empty:
        where = f"figure {spec.name}: params.rule"
        raise UserError(f"'{rule}' is not scored in {scenario}", where=where, expected="one of its rules")
    wait, bsld = (rows[name].to_numpy(dtype=float) for name in ("wait", "bsld"))
    return Waited(wait, bsld, f"under {rule} on the test windows")


def percentile_panel(axes: Axes, waited: Waited) -> None:
    """Draw the percentiles of the bounded slowdown, median and 90 % labelled, and the mean."""
    ordered = np.sort(waited.bsld)
    mean = float(ordered.mean())
    axes.plot(np.linspace(0, 100, len(ordered)), ordered, color=theme.colour(0))
    for share in (50, 90):
        value = np.percentile(ordered, share)
        axes.plot([share], [value], "o", color=INK, markersize=3)
        below = value < mean < NEAR * value  # else the label would lie on the line of the mean
        look: dict[str, Any] = {"ha": "right", "va": "top" if below else "bottom", "fontsize": "x-small"}
        look["bbox"] = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5}
        place, text = (-4, -3 if below else 3), f"{share} %: {three_digits(value)}"
        axes.annotate(text, (share, value), place, textcoords="offset points", **look)
    axes.axhline(mean, color=theme.colour(1), linewidth=0.9)
    axes.set(yscale="log", title="a  bounded slowdown", xlabel="percentile of the jobs", ylabel="bounded slowdown")


def wait_panel(axes: Axes, waited: Waited) -> None:
    """Draw the bounded slowdown of each job that waited over its wait."""
    shown = waited.wait > 0
    axes.set(title="b  wait and slowdown", xlabel="wait (h)", ylabel="bounded slowdown")
    if not shown.any():  # nothing that a logarithmic axis can hold
        words(axes, "no job waited")
        return
    many = int(shown.sum()) > MANY
    look: dict[str, Any] = {"markersize": 2, "alpha": 0.35} if many else {"markersize": 5, "alpha": 0.6}
    look |= {"color": theme.colour(0), "markeredgewidth": 0, "rasterized": many}
    axes.plot(waited.wait[shown] / HOUR, waited.bsld[shown], ".", **look)
    axes.set(xscale="log", yscale="log")
    _few_labels(axes, waited.wait[shown])
    axes.xaxis.set_major_formatter("{x:g}")


def _few_labels(axes: Axes, waits: np.ndarray) -> None:
    """Label a range of less than two decades at a few places: one a decade is too few, one a digit too many."""
    decades = np.ptp(np.log10(waits)) if len(waits) else 0.0
    if decades < 2:
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if decades > 0.5 else MaxNLocator(3))
        axes.xaxis.set_minor_formatter("")


def _submitted(axes: Axes, submit: np.ndarray) -> None:
    days = (submit - submit.min()) / DAY
    axes.hist(days, bins=40, linewidth=0)
    axes.set(title="c  submit times", xlabel="days since the first job", ylabel="jobs")


def _run_times(axes: Axes, run: np.ndarray) -> None:
    log_histogram(axes, run, "d  run times", "run time (s)", "jobs (%)")
    axes.axvline(run.mean(), color=theme.colour(1), linewidth=0.9)
    axes.axvline(2 * run.mean(), color=theme.colour(1), linewidth=0.9, linestyle=(0, (1.2, 1.2)))


def arrivals_a_day(submit: np.ndarray) -> list[np.ndarray]:
    """Return the jobs of each whole day (hour, if there are fewer than 20 days), in each tenth of a trace's time."""
    first, length = submit.min(), np.ptp(submit)
    unit = DAY if length >= 20 * DAY else HOUR
    counts = np.bincount(((submit - first) // unit).astype(int))
    return [part for part in np.array_split(counts[:-1] if len(counts) > 10 else counts, 10) if len(part)]


def _tenths(axes: Axes, submit: np.ndarray) -> None:
    parts = arrivals_a_day(submit)
    axes.boxplot(
        parts, widths=0.6, whis=(5, 95), showfliers=False, patch_artist=True, manage_ticks=False,
        boxprops={"facecolor": theme.colour(0), "alpha": 0.5, "linewidth": 0},
        medianprops={"color": INK, "linewidth": 1.2}, whiskerprops={"linewidth": 0.7}, capprops={"linewidth": 0.7},
    )  # fmt: skip
    places = range(1, len(parts) + 1)
    axes.plot(
        places, [part.mean() for part in parts], linestyle="none", marker="D", markersize=3, color=theme.colour(1)
    )
    axes.set_xticks(places)
    unit = "a day" if np.ptp(submit) >= 20 * DAY else "an hour"
    axes.set(title="g  arrivals", xlabel="tenth of the time", ylabel=f"jobs {unit}")
    axes.set_ylim(bottom=0)


def _moving(axes: Axes, submit: np.ndarray, values: np.ndarray, window: int, title: str, label: str) -> None:
    smooth = running_mean(values, window)[window - 1 :]
    days, many = (submit[window - 1 :] - submit.min()) / DAY, len(smooth) > MANY
    axes.plot(days, smooth, color=theme.colour(0), linewidth=0.8, rasterized=many)
    axes.axhline(values.mean(), color=theme.colour(1), linewidth=0.9)
    axes.set(title=title, xlabel="days since the first job", ylabel=label)
    axes.set_ylim(bottom=0)


def _keys() -> list[Any]:
    orange: dict[str, Any] = {"color": theme.colour(1), "linewidth": 0.9}
    return [
        key("mean (a, d, h, i)", **orange),
        key("twice the mean (d)", **{**orange, "linestyle": (0, (1.2, 1.2))}),
        key("median (d, f)", color="black", linewidth=0.8, linestyle="--"),
        key("mean (g)", linestyle="none", marker="D", markersize=3, color=theme.colour(1)),
        key("middle half; lines, 5 to 95 % (g)", color=MUTED, linewidth=5, alpha=0.5),
    ]


def _facts(name: str, jobs: Jobs, waited: Waited, window: int) -> dict[str, Any]:
    """The values of CAPTION."""
    bsld, run, length = waited.bsld, jobs.run, np.ptp(jobs.submit)
    arrivals = [part.mean() for part in arrivals_a_day(jobs.submit)]
    return {
        "scenario": name,
        "jobs": len(jobs),
        "days": length / DAY,
        "whose": waited.whose,
        "waited": len(bsld),
        "mean": bsld.mean(),
        "median": float(np.median(bsld)),
        "p90": float(np.percentile(bsld, 90)),
        "at_once": float(np.mean(waited.wait == 0)),
        "correlation": waited.correlation(),
        "top_correlation": waited.correlation(TOP),
        "run_median": float(np.median(run)),
        "run_mean": run.mean(),
        "unit": "a day" if length >= 20 * DAY else "an hour",
        "least": min(arrivals),
        "most": max(arrivals),
        "window": window,
    }


def draw_predictions(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw two panels for each scenario: percentiles over jobs of prediction over run time, and over users of the
    factor by which predictions are off (PredictionSettings).
    """
    titles = settings_of(spec, PredictionSettings).titles
    groups: list[tuple[str, tuple[pd.DataFrame, str]]] = []
    traces = {}
    for name in spec.scenarios or sorted(tables.scenarios):
        trace = read_swf(tables.inputs[name]["trace"])
        jobs = jobs_of(trace, machine_of(trace))
        predicted = predictions_of_test_part(jobs, recorded_ends(trace))
        title = titles.get(name, name.replace("_", " "))
        groups += [(title, (log_errors(jobs, predicted), "jobs")), (title, (user_errors(jobs, predicted), "users"))]
        traces[title] = {"rows": [_errors(row) for row in error_table(jobs, predicted).to_dict("records")]}
    keys = [key(name.replace("_", " "), color=theme.colour(number)) for number, name in enumerate(PREDICTORS)]
    figure, _ = facets(groups, _predicted, Grid(2, 48, 14, each=True), keys=keys, columns=len(keys))
    return Drawing(figure, PREDICTIONS, {"traces": traces})


def _predicted(axes: Axes, content: tuple[pd.DataFrame, str]) -> None:
    logs, counted = content
    for number, name in enumerate(PREDICTORS):
        if len(values := logs[name].dropna()):
            axes.plot(np.exp(np.percentile(values, PERCENT)), PERCENT, color=theme.colour(number))
    jobs = counted == "jobs"
    axes.set(xscale="log", xlim=(1e-4, 1e4) if jobs else (1, 1e3), ylim=(0, 100), ylabel=f"{counted} (%)")
    axes.set_xlabel("prediction / run time" if jobs else "factor by which a user's predictions are off")
    if jobs:
        axes.axvline(1, color=MUTED, linewidth=0.7, linestyle="--")


def _errors(row: dict[str, Any]) -> dict[str, Any]:
    """A predictor's values of PREDICTIONS."""
    return {
        "predictor": row["predictor"].replace("_", " "),
        "under": row["under_predicted"],
        "factor": np.exp(row["mean_absolute_log"]),
        "user": np.exp(row["user_median"]) if row["users"] else None,
    }
