"""A picture of a trace: when its jobs arrive, how long and how large they are, and the offered load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Drawing
from schedlab.config.errors import UserError
from schedlab.figures.panels.axes import words
from schedlab.figures.theme import new_figure
from schedlab.workloads.statistics import DAY, arrivals, load_over_time, statistics
from schedlab.workloads.trace import Trace, job_processors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_DIGITS = 24  # of the labels below one panel
CAPTION = (
    "{jobs} jobs[ on {processors} processors] over {days:.1f} days[, offered load {load:.3g}]. "
    "[Run times: median {run_median:.0f} s, mean {run_mean:.0f} s.] Dashed: medians (c, d) and a full machine (f). "
    "Values of 0 are not shown in c and d."
)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def draw_trace(trace: Trace) -> Drawing:
    """Draw a trace in the current theme: arrivals by hour and weekday, run times, sizes, gaps, and the load over time.

    Raises UserError for a trace without jobs.
    """
    if not len(trace.jobs):
        raise UserError("the trace has no job", where=trace.source, expected="something to draw")
    figure, panels = new_figure(2, 3, height_mm=95)
    hours, weekdays = arrivals(trace)
    _bars(panels[0, 0], hours / hours.sum() * 100, [str(hour) if hour % 6 == 0 else "" for hour in range(24)])
    panels[0, 0].set(title="a  arrivals by hour", xlabel="hour of the day", ylabel="jobs (%)")
    _weekdays(panels[0, 1], weekdays)
    gaps = np.diff(np.sort(trace.jobs["submit"].to_numpy()))
    log_histogram(panels[0, 2], gaps[gaps > 0], "c  gaps between arrivals", "gap (s)", "gaps (%)")
    runs = trace.jobs["run"].to_numpy()
    log_histogram(panels[1, 0], runs[runs > 0], "d  run times", "run time (s)", "jobs (%)")
    size_histogram(panels[1, 1], job_processors(trace.jobs))
    _load(panels[1, 2], trace)
    found = statistics(trace)
    run = found["run"] or {"median": None, "mean": None}
    return Drawing(figure, CAPTION, {**found, "run_median": run["median"], "run_mean": run["mean"]})


def _bars(axes: Axes, values: np.ndarray, labels: list[str] | tuple[str, ...]) -> None:
    axes.bar(range(len(values)), values, width=0.85)
    places = [place for place, label in enumerate(labels) if label]
    axes.set_xticks(places, [labels[place] for place in places])


def _weekdays(axes: Axes, weekdays: np.ndarray | None) -> None:
    axes.set_title("b  arrivals by weekday")
    if weekdays is None:
        words(axes, "the header names no date")
        axes.set_axis_off()
        return
    _bars(axes, weekdays / weekdays.sum() * 100, WEEKDAYS)
    axes.set_ylabel("jobs (%)")


def log_histogram(axes: Axes, values: np.ndarray, title: str, label: str, counted: str) -> None:
    """Draw positive values as shares of all in 40 bins of equal ratio, with a dashed line at their median."""
    axes.set(title=title, xlabel=label, ylabel=counted)
    if not len(values):
        return
    low, high = max(values.min(), 1e-3), values.max()
    bins = np.geomspace(low, high if high > low else 2 * low, 41)
    axes.hist(
        np.clip(values, low, None), bins=bins.tolist(), weights=np.full(len(values), 100 / len(values)), linewidth=0
    )
    axes.axvline(np.median(values), color="black", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    if high < 10 * low:  # whole decades, because labels within one would overlap
        axes.set_xlim(10.0 ** np.floor(np.log10(low)), 10.0 ** (np.floor(np.log10(high)) + 1))


def size_histogram(axes: Axes, processors: np.ndarray) -> None:
    """Draw the processors that jobs request as shares of all jobs, in classes that end at powers of two, which are
    their labels.
    """
    axes.set(title="e  sizes", xlabel="processors, at most", ylabel="jobs (%)")
    known = processors[processors > 0]
    if not len(known):
        return
    classes = np.ceil(np.log2(known)).astype(int)  # 1, 2, 3-4, 5-8, ...
    shares = np.bincount(classes) * 100 / len(known)
    names = [str(1 << place) for place in range(len(shares))]
    step = -(-sum(map(len, names)) // MOST_DIGITS)
    _bars(axes, shares, [name if place % step == 0 else "" for place, name in enumerate(names)])
    axes.tick_params(axis="x", labelsize="x-small")


def _load(axes: Axes, trace: Trace) -> None:
    axes.set(title="f  offered load", xlabel="days since the first job", ylabel="work submitted / machine")
    if trace.processors is None:
        words(axes, "size of the machine unknown")
        return
    edges, loads = load_over_time(trace, bins=60)
    axes.stairs(loads, (edges - edges[0]) / DAY, fill=True)
    axes.axhline(1, color="black", linewidth=0.8, linestyle="--")
