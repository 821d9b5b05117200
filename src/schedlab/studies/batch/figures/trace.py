"""The figure of a trace: its jobs, when they arrive, and how long they waited, in the log or under a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.batch.figures.settings import TraceSettings
from schedlab.studies.batch.figures.windows import three_digits
from schedlab.studies.batch.jobs import Jobs, jobs_of, machine_of
from schedlab.studies.batch.metrics import SHORT
from schedlab.workloads.pictures import log_histogram, size_histogram
from schedlab.workloads.statistics import DAY
from schedlab.workloads.swf import read_swf
from schedlab.workloads.trace import Trace

HOUR = 3600.0
NEAR = 4.0  # ratio to the mean below which a label above a point would lie on the mean's line
MANY = 1500  # dots above which they are drawn as one picture, so that files stay small
SHORTEST = 10  # least windows of the moving averages in a trace; averages over longer ones are nearly its mean
TOP = 0.1  # share of the jobs of the largest bounded slowdowns, whose correlation is told apart


@dataclass(frozen=True)
class Waited:
    """What jobs waited (s) and their bounded slowdowns, and in whose order they ran."""

    wait: np.ndarray
    bsld: np.ndarray
    whose: str

    def correlation(self, share: float = 1.0) -> float | None:
        """Return Pearson's r of wait and slowdown of the jobs of the largest slowdowns; None where one is constant."""
        top = np.argsort(-self.bsld, kind="stable")[: max(1, round(share * len(self.bsld)))]
        pair = self.wait[top], self.bsld[top]
        return None if min(np.ptp(values) for values in pair) == 0 else float(np.corrcoef(*pair)[0, 1])


def draw_trace_study(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Nine panels on the trace of the figure's first scenario: slowdowns, jobs, arrivals. Settings: TraceSettings."""
    settings = helpers.settings_of(spec, TraceSettings)
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
    helpers.legend_outside(figure, _keys(), columns=5)
    return Drawing(
        figure, f"{spec.caption} {_caption_text(name, jobs, waited, window)}", left_out=helpers.after_the_first(spec)
    )


def recorded_waits(trace: Trace) -> Waited | None:
    """Return the waits that the log holds; None where it has none."""
    table = trace.jobs[(trace.jobs["wait"] >= 0) & (trace.jobs["run"] >= 0)]
    if table.empty:
        return None
    wait, run = table["wait"].to_numpy(dtype=float), table["run"].to_numpy(dtype=float)
    return Waited(wait, bounded_slowdown(wait + run, run, SHORT), "as recorded")


def scheduled_waits(tables: StudyTables, spec: FigureSpec, scenario: str, rule: str) -> Waited:
    """Return the waits on the test windows of a scenario under a rule. Raises UserError where it was not scored."""
    rows = tables.details["jobs"]
    rows = rows[(rows["scenario"] == scenario) & (rows["policy"] == rule) & (rows["split"] == "test")]
    if rows.empty:
        raise UserError(
            f"'{rule}' is not scored in {scenario}",
            where=f"figure {spec.name}: params.rule",
            expected="one of its rules",
        )
    return Waited(
        rows["wait"].to_numpy(dtype=float), rows["bsld"].to_numpy(dtype=float), f"under {rule} on the test windows"
    )


def percentile_panel(axes: Axes, waited: Waited) -> None:
    """Draw the percentiles of the bounded slowdown, median and 90 % labelled, and the mean."""
    ordered = np.sort(waited.bsld)
    mean = float(ordered.mean())
    axes.plot(np.linspace(0, 100, len(ordered)), ordered, color=theme.colour(0))
    for share in (50, 90):
        value = np.percentile(ordered, share)
        axes.plot([share], [value], "o", color=INK, markersize=3)
        below = value < mean < NEAR * value  # else the label would lie on the line of the mean
        axes.annotate(
            f"{share} %: {three_digits(value)}",
            (share, value),
            (-4, -3 if below else 3),
            textcoords="offset points",
            ha="right",
            va="top" if below else "bottom",
            fontsize="x-small",
            bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 0.5},
        )
    axes.axhline(mean, color=theme.colour(1), linewidth=0.9)
    axes.set(yscale="log", title="a  bounded slowdown", xlabel="percentile of the jobs", ylabel="bounded slowdown")


def wait_panel(axes: Axes, waited: Waited) -> None:
    """Draw the bounded slowdown of each job that waited over its wait."""
    shown = waited.wait > 0
    axes.set(title="b  wait and slowdown", xlabel="wait (h)", ylabel="bounded slowdown")
    if not shown.any():  # nothing that a logarithmic axis can hold
        axes.text(
            0.5,
            0.5,
            "no job waited",
            transform=axes.transAxes,
            ha="center",
            va="center",
            color=MUTED,
            fontstyle="italic",
        )
        return
    many = int(shown.sum()) > MANY
    look: dict[str, Any] = {"markersize": 2, "alpha": 0.35} if many else {"markersize": 5, "alpha": 0.6}
    axes.plot(
        waited.wait[shown] / HOUR,
        waited.bsld[shown],
        ".",
        color=theme.colour(0),
        markeredgewidth=0,
        rasterized=many,
        **look,
    )
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
    """Return the jobs of each whole day (hour, below 20 days) in each tenth of the time that a trace spans."""
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
    smooth = helpers.running_mean(values, window)[window - 1 :]
    axes.plot(
        (submit[window - 1 :] - submit.min()) / DAY,
        smooth,
        color=theme.colour(0),
        linewidth=0.8,
        rasterized=len(smooth) > MANY,
    )
    axes.axhline(values.mean(), color=theme.colour(1), linewidth=0.9)
    axes.set(title=title, xlabel="days since the first job", ylabel=label)
    axes.set_ylim(bottom=0)


def _keys() -> list[object]:
    orange: dict[str, Any] = {"color": theme.colour(1), "linewidth": 0.9}
    return [
        Line2D([], [], label="mean (a, d, h, i)", **orange),
        Line2D([], [], label="twice the mean (d)", **{**orange, "linestyle": (0, (1.2, 1.2))}),
        Line2D([], [], color="black", linewidth=0.8, linestyle="--", label="median (d, f)"),
        Line2D([], [], linestyle="none", marker="D", markersize=3, color=theme.colour(1), label="mean (g)"),
        Line2D([], [], color=MUTED, linewidth=5, alpha=0.5, label="middle half; lines, 5 to 95 % (g)"),
    ]


def _caption_text(name: str, jobs: Jobs, waited: Waited, window: int) -> str:
    bsld, run = waited.bsld, jobs.run
    related = [(waited.correlation(), "all jobs"), (waited.correlation(TOP), "the tenth of the largest slowdowns")]
    words = [f"{value:.3f} over {what}" for value, what in related if value is not None]
    means = [part.mean() for part in arrivals_a_day(jobs.submit)]
    unit = "a day" if np.ptp(jobs.submit) >= 20 * DAY else "an hour"
    return (
        f"Scenario {name}: {len(jobs)} jobs over {np.ptp(jobs.submit) / DAY:.0f} days. Slowdowns and waits (a, b) "
        f"{waited.whose}, {len(bsld)} jobs: mean {bsld.mean():.2f}, median {np.median(bsld):.3g}, 90th "
        f"percentile {np.percentile(bsld, 90):.4g}; {100 * np.mean(waited.wait == 0):.0f} % waited not at all "
        f"(not in b){'; correlation of wait and slowdown ' + ' and '.join(words) if words else ''}. Run times: "
        f"median {np.median(run):.0f} s, mean {run.mean():.0f} s. Jobs submitted {unit}, from {min(means):.3g} "
        f"to {max(means):.3g} over the tenths of the time. Moving averages over {window} jobs."
    )
