"""The pictures of the report of an optimised training."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Drawing
from schedlab.config.settings import ThemeSettings
from schedlab.figures.save import save_as
from schedlab.figures.theme import INK, MUTED, applied, colour, new_figure
from schedlab.studies.cloud.live.model import constant_totals
from schedlab.studies.cloud.model.cost import money
from schedlab.studies.cloud.model.plan import undominated
from schedlab.studies.cloud.optimize.flow import Optimization, optimized_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EDGE = 0.08  # free share of an axis at both of its ends
NAMES = {"gpu_count": "GPUs", "cpu_count": "cores", "memory_gb": "memory (GB)"}
COURSE = {  # column -> title of its panel, unit, limit
    "throughput": ("throughput (samples/s)", "samples/s", "throughput_min"),
    "time_so_far": ("time (s)", "s", "time_max"),
    "cost_so_far": ("cost ($)", "$", "cost_max"),
}
DASHED: dict[str, Any] = {"color": MUTED, "linestyle": (0, (4, 2))}  # what the model predicts


@dataclass(frozen=True)
class Picture:
    """A picture of the report: caption, alternative text, and a data URL that contains the whole SVG image."""

    caption: str
    alternative: str
    address: str


def plots(outcome: Optimization) -> list[Picture]:
    """Return the pictures of the report."""
    made = []
    with applied(ThemeSettings()), tempfile.TemporaryDirectory() as folder:
        for number, (caption, draw) in enumerate(DRAWN.items()):
            path = Path(folder, f"{number}.svg")
            figure, alternative = draw(outcome)
            save_as(Drawing(figure, caption), [path])
            address = "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
            made.append(Picture(caption, alternative, address))
    return made


def _plane(outcome: Optimization) -> tuple[Figure, str]:
    figure, axes = new_figure(height_mm=70)
    time, cost = constant_totals(outcome.replay)
    finite, front = np.isfinite(time), undominated(time, cost)
    axes.plot(time[finite], cost[finite], ".", color=MUTED, markersize=3, label="constant allocations, by the model")
    axes.plot(time[front], cost[front], "-D", color=INK, markersize=3.5, label="those that none beats")
    base, new, sla = outcome.baseline, optimized_values(outcome), outcome.job.sla
    label = "baseline" + (", by the model" if base["source"] == "model" else ", extrapolated")
    axes.plot([base["time"]], [base["cost"]], "s", color=colour(1), label=label)
    axes.plot([new["time"]], [new["cost"]], "o", color=colour(0), label="this run, measured")
    axes.margins(EDGE)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    if left < sla.time_max < right:  # a limit that lies far beyond all points is not drawn
        axes.axvline(sla.time_max, color=MUTED, linestyle=(0, (2, 2)), label="limits")
        axes.set_xlim(left, max(right, sla.time_max + EDGE * (right - left)))
    if low < sla.cost_max < high:
        axes.axhline(sla.cost_max, color=MUTED, linestyle=(0, (2, 2)))
        axes.set_ylim(low, max(high, sla.cost_max + EDGE * (high - low)))
    axes.set(xlabel="training time (s)", ylabel="cost ($)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    points = [(each["time"], each["cost"]) for each in (base, new)]
    points += [(time[number], cost[number]) for number in (front[0], front[-1])]
    old, run, fastest, cheapest = (f"{seconds:.1f} s at {money(dollars)}" for seconds, dollars in points)
    constants = f"{finite.sum()} constant allocations by the model, {len(front)} that none beats"
    return figure, f"Cost over training time: baseline {old}; this run {run}; {constants} from {fastest} to {cheapest}"


def _allocation(outcome: Optimization) -> tuple[Figure, str]:
    shown = [name for name in NAMES if name != "gpu_count" or outcome.job.resource.gpu_count_max]
    figure, panels = new_figure(1, len(shown), height_mm=50)
    runs = {"in the run": (outcome.live, {"color": colour(0), "linewidth": 1.6})}
    runs["by the model"] = outcome.learned.course, {**DASHED, "linewidth": 1.0}
    texts = []
    for axes, name in zip(panels, shown, strict=True):
        shown_values = []
        for label, (course, style) in runs.items():
            values = [float(taken.record[name]) for taken in course]
            shown_values.append(f"{', '.join(f'{value:g}' for value in values)} {label}")
            once = course is outcome.live and not outcome.resumes
            begin = values[0] if once else float(getattr(outcome.job.first, name))
            epochs = [0, *(float(taken.record["epoch"]) for taken in course)]
            axes.step(epochs, [begin, *values], where="pre", label=label.removeprefix("in the "), **style)
        axes.set(xlabel="epochs", title=NAMES[name])
        axes.set_ylim(0, max(1.0, 1.1 * float(getattr(outcome.job.resource.most, name))))
        texts.append(f"{NAMES[name]}: {', '.join(shown_values)}")
    panels[0].legend(loc="lower left")
    return figure, f"What the training held after each decision. {'; '.join(texts)}"


def _course(outcome: Optimization) -> tuple[Figure, str]:
    figure, panels = new_figure(1, 3, height_mm=50)
    runs = {"in the run": (outcome.live, {"color": colour(0), "marker": "o"})}
    runs["by the model"] = outcome.learned.course, DASHED
    texts = []
    for axes, (name, (title, unit, key)) in zip(panels, COURSE.items(), strict=True):
        limit = getattr(outcome.job.sla, key)
        most, shown_values = limit, []
        for label, (course, style) in runs.items():
            values = [float(taken.record[name]) for taken in course]
            shown_values.append(f"{values[-1]:.4g} {unit} {label}")
            most = max(most, *values)
            epochs, short = [taken.record["epoch"] for taken in course], label.removeprefix("in the ")
            axes.plot(epochs, values, label=short, markersize=3.5, **style)
        axes.axhline(limit, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), label="limit")
        axes.set(xlabel="epochs", title=title)
        axes.margins(x=EDGE)
        axes.set_ylim(0, (1 + EDGE) * most or 1.0)
        texts.append(f"{', '.join(shown_values)}, limit {limit:.4g}")
    panels[0].legend(loc="lower right")
    return figure, f"Throughput, time and cost over the epochs; at the end {'; '.join(texts)}"


DRAWN: dict[str, Callable[[Optimization], tuple[Figure, str]]] = {
    "Time and cost of every constant allocation by the model, of the baseline and of this run.": _plane,
    "What the training held after each decision.": _allocation,
    "Throughput, time and cost over the epochs, with their limits.": _course,
}  # caption -> the function that draws the figure and describes it in words
