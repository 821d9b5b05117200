"""The pictures of the report of an optimised training."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Drawing
from schedlab.config.settings import ThemeSettings
from schedlab.figures.save import save_as
from schedlab.figures.theme import INK, MUTED, applied, colour, new_figure
from schedlab.studies.cloud.live_model import constant_totals
from schedlab.studies.cloud.optimize import Optimization, optimized_values
from schedlab.studies.cloud.optimize_tables import undominated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HELD = ("gpu_count", "cpu_count", "memory_gb")
NAMES = {"gpu_count": "GPUs", "cpu_count": "cores", "memory_gb": "memory (GB)"}


def plots(found: Optimization) -> dict[str, str]:
    """Return caption -> picture, as the address of an SVG image that holds the whole picture."""
    made = {}
    with applied(ThemeSettings()), tempfile.TemporaryDirectory() as folder:
        for number, (caption, draw) in enumerate(DRAWN.items()):
            path = Path(folder, f"{number}.svg")
            save_as(draw(found, caption), [path])
            made[caption] = "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
    return made


def _plane(found: Optimization, caption: str) -> Drawing:
    figure, axes = new_figure(height_mm=70)
    time, cost = constant_totals(found.replay)
    finite = np.isfinite(time)
    axes.plot(time[finite], cost[finite], ".", color=MUTED, markersize=3, label="constant allocations, by the model")
    front = undominated(time, cost)
    axes.plot(time[front], cost[front], "-D", color=INK, markersize=3.5, label="those that none beats")
    base, new = found.baseline, optimized_values(found)
    told = "baseline" + (", by the model" if base["source"] == "model" else ", extrapolated")
    axes.plot([base["time"]], [base["cost"]], "s", color=colour(1), label=told)
    axes.plot([new["time"]], [new["cost"]], "o", color=colour(0), label="this run, measured")
    _limits(axes, found)
    axes.set(xlabel="training time (s)", ylabel="cost ($)")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return Drawing(figure, caption)


def _limits(axes: Axes, found: Optimization) -> None:
    """Draw the limits on time and cost where they lie within what is shown."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    if left < found.sla.time_max < right:
        axes.axvline(found.sla.time_max, color=MUTED, linestyle=(0, (2, 2)), label="limits")
    if low < found.sla.cost_max < high:
        axes.axhline(found.sla.cost_max, color=MUTED, linestyle=(0, (2, 2)))


def _allocation(found: Optimization, caption: str) -> Drawing:
    figure, panels = new_figure(1, 3, height_mm=50)
    start = dict(zip(HELD, found.start, strict=True))
    for axes, name in zip(panels, HELD, strict=True):
        for number, (course, told) in enumerate(((found.live, "run"), (found.learned.course, "by the model"))):
            epochs = [0, *(float(taken.record["epoch"]) for taken in course)]
            values = [float(taken.record[name]) for taken in course]
            values = [values[0] if told == "run" and not found.resumes else float(start[name]), *values]
            style = {"color": colour(0)} if told == "run" else {"color": MUTED, "linestyle": (0, (4, 2))}
            axes.step(epochs, values, where="pre", label=told, linewidth=1.6 - 0.6 * number, **style)
        axes.set(xlabel="epochs", title=NAMES[name])
        axes.set_ylim(0, max(1.0, 1.1 * float(getattr(found.resource.most, name))))
    panels[0].legend(loc="upper left")
    return Drawing(figure, caption)


def _course(found: Optimization, caption: str) -> Drawing:
    figure, panels = new_figure(1, 3, height_mm=50)
    drawn = {"throughput": ("throughput (samples/s)", found.sla.throughput_min), "time_so_far": ("time (s)", found.sla.time_max)}
    drawn["cost_so_far"] = ("cost ($)", found.sla.cost_max)
    for axes, (name, (label, limit)) in zip(panels, drawn.items(), strict=True):
        for course, told in ((found.live, "run"), (found.learned.course, "by the model")):
            style = {"color": colour(0), "marker": "o"} if told == "run" else {"color": MUTED, "linestyle": (0, (4, 2))}
            axes.plot([t.record["epoch"] for t in course], [t.record[name] for t in course], label=told, markersize=3.5, **style)
        axes.axhline(limit, color=INK, linewidth=0.8, linestyle=(0, (2, 2)), label="limit")
        axes.set(xlabel="epochs", title=label)
        axes.set_ylim(bottom=0)
    panels[0].legend(loc="lower right")
    return Drawing(figure, caption)


DRAWN = {
    "Time and cost of every constant allocation by the model, of the baseline and of this run.": _plane,
    "What the training held after each decision.": _allocation,
    "Throughput, time and cost over the epochs, with their limits.": _course,
}
