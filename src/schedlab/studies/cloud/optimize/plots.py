"""The pictures of the report of an optimised training."""

from __future__ import annotations

import base64
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
    from matplotlib.axes import Axes

HELD = ("gpu_count", "cpu_count", "memory_gb")
EDGE = 0.08  # free share of an axis at both of its ends
NAMES = {"gpu_count": "GPUs", "cpu_count": "cores", "memory_gb": "memory (GB)"}


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
        for number, (caption, (draw, tell)) in enumerate(DRAWN.items()):
            path = Path(folder, f"{number}.svg")
            save_as(draw(outcome, caption), [path])
            made.append(
                Picture(
                    caption, tell(outcome), "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
                )
            )
    return made


def _plane(outcome: Optimization, caption: str) -> Drawing:
    figure, axes = new_figure(height_mm=70)
    time, cost = constant_totals(outcome.replay)
    finite = np.isfinite(time)
    axes.plot(time[finite], cost[finite], ".", color=MUTED, markersize=3, label="constant allocations, by the model")
    front = undominated(time, cost)
    axes.plot(time[front], cost[front], "-D", color=INK, markersize=3.5, label="those that none beats")
    base, new = outcome.baseline, optimized_values(outcome)
    told = "baseline" + (", by the model" if base["source"] == "model" else ", extrapolated")
    axes.plot([base["time"]], [base["cost"]], "s", color=colour(1), label=told)
    axes.plot([new["time"]], [new["cost"]], "o", color=colour(0), label="this run, measured")
    axes.margins(EDGE)
    _limits(axes, outcome)
    axes.set(xlabel="training time (s)", ylabel="cost ($)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return Drawing(figure, caption)


def _tell_plane(outcome: Optimization) -> str:
    base, new = outcome.baseline, optimized_values(outcome)
    time, cost = constant_totals(outcome.replay)
    front = undominated(time, cost)
    ends = (
        f"from {time[front[0]]:.1f} s at {money(cost[front[0]])} to {time[front[-1]]:.1f} s at {money(cost[front[-1]])}"
    )
    points = (
        f"baseline {base['time']:.1f} s at {money(base['cost'])}; this run {new['time']:.1f} s at {money(new['cost'])}"
    )
    constants = f"{np.isfinite(time).sum()} constant allocations by the model, {len(front)} that none beats"
    return f"Cost over training time: {points}; {constants} {ends}"


def _limits(axes: Axes, outcome: Optimization) -> None:
    """Draw the limits on time and cost that lie within the axes and not on their edges."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    if left < outcome.sla.time_max < right:
        axes.axvline(outcome.sla.time_max, color=MUTED, linestyle=(0, (2, 2)), label="limits")
        axes.set_xlim(left, max(right, outcome.sla.time_max + EDGE * (right - left)))
    if low < outcome.sla.cost_max < high:
        axes.axhline(outcome.sla.cost_max, color=MUTED, linestyle=(0, (2, 2)))
        axes.set_ylim(low, max(high, outcome.sla.cost_max + EDGE * (high - low)))


def _shown(outcome: Optimization) -> list[str]:
    """Return the resources that can vary: without GPUs on the machine, only the others."""
    return [name for name in HELD if name != "gpu_count" or outcome.resource.gpu_count_max]


def _allocation(outcome: Optimization, caption: str) -> Drawing:
    shown = _shown(outcome)
    figure, panels = new_figure(1, len(shown), height_mm=50)
    start = dict(zip(HELD, outcome.start, strict=True))
    for axes, name in zip(panels, shown, strict=True):
        for number, (course, told) in enumerate(((outcome.live, "run"), (outcome.learned.course, "by the model"))):
            epochs = [0, *(float(taken.record["epoch"]) for taken in course)]
            values = [float(taken.record[name]) for taken in course]
            values = [values[0] if told == "run" and not outcome.resumes else float(start[name]), *values]
            style = {"color": colour(0)} if told == "run" else {"color": MUTED, "linestyle": (0, (4, 2))}
            axes.step(epochs, values, where="pre", label=told, linewidth=1.6 - 0.6 * number, **style)
        axes.set(xlabel="epochs", title=NAMES[name])
        axes.set_ylim(0, max(1.0, 1.1 * float(getattr(outcome.resource.most, name))))
    panels[0].legend(loc="lower left")
    return Drawing(figure, caption)


def _tell_allocation(outcome: Optimization) -> str:
    told = []
    for name in _shown(outcome):
        courses = [[taken.record[name] for taken in course] for course in (outcome.live, outcome.learned.course)]
        run, model = (", ".join(f"{value:g}" for value in values) for values in courses)
        told.append(f"{NAMES[name]}: {run} in the run, {model} by the model")
    return f"What the training held after each decision. {'; '.join(told)}"


def _course(outcome: Optimization, caption: str) -> Drawing:
    figure, panels = new_figure(1, 3, height_mm=50)
    drawn = {
        "throughput": ("throughput (samples/s)", outcome.sla.throughput_min),
        "time_so_far": ("time (s)", outcome.sla.time_max),
    }
    drawn["cost_so_far"] = ("cost ($)", outcome.sla.cost_max)
    for axes, (name, (label, limit)) in zip(panels, drawn.items(), strict=True):
        for course, told in ((outcome.live, "run"), (outcome.learned.course, "by the model")):
            style = {"color": colour(0), "marker": "o"} if told == "run" else {"color": MUTED, "linestyle": (0, (4, 2))}
            axes.plot(
                [t.record["epoch"] for t in course],
                [t.record[name] for t in course],
                label=told,
                markersize=3.5,
                **style,
            )
        axes.axhline(limit, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), label="limit")
        axes.set(xlabel="epochs", title=label)
        axes.margins(x=EDGE)
        most = max(limit, *(float(taken.record[name]) for taken in (*outcome.live, *outcome.learned.course)))
        axes.set_ylim(0, (1 + EDGE) * most or 1.0)
    panels[0].legend(loc="lower right")
    return Drawing(figure, caption)


def _tell_course(outcome: Optimization) -> str:
    last, model = outcome.live[-1].record, outcome.learned.course[-1].record
    limits = {
        "throughput": outcome.sla.throughput_min,
        "time_so_far": outcome.sla.time_max,
        "cost_so_far": outcome.sla.cost_max,
    }
    names = {"throughput": "samples/s", "time_so_far": "s", "cost_so_far": "$"}
    told = [
        f"{last[key]:.4g} {unit} in the run, {model[key]:.4g} by the model, limit {limits[key]:.4g}"
        for key, unit in names.items()
    ]
    return f"Throughput, time and cost over the epochs; at the end {'; '.join(told)}"


DRAWN = {
    "Time and cost of every constant allocation by the model, of the baseline and of this run.": (_plane, _tell_plane),
    "What the training held after each decision.": (_allocation, _tell_allocation),
    "Throughput, time and cost over the epochs, with their limits.": (_course, _tell_course),
}
