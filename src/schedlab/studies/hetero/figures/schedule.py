"""Figures of one workload: where each job ran (Gantt), and queue, utilisation and energy over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.batsim.files.results import intervals
from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.figures import helpers, theme, units
from schedlab.figures.theme import INK, Style
from schedlab.platforms.hierarchy import Hierarchy, read_hierarchy
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import CourseSettings, GanttSettings
from schedlab.studies.hetero.prepare import scenario_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

TIME = Metric("time", "s", "lower", label="time since the first submission")
BINS = 60  # intervals of the mean utilisation
LOWEST_LABELLED = 0.06  # height of a box, as a share of all cores, that holds its job's number
DARKEST = 100.0  # bounded slowdown from which boxes are no darker


def draw_gantt(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scheduler: a box for each job and run of neighbouring cores, coloured by its bounded slowdown."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    settings = helpers.settings_of(spec, GanttSettings)
    name = data.scenarios(tables, spec)[0]
    names, unit = data.policies(tables, spec, [name]), data.unit_shown(tables, spec, name, settings.unit)
    threshold = scenario_of(tables.scenarios[name]).bounded_slowdown_threshold
    found = {policy: with_slowdown(data.detail(tables, "jobs", name, unit, policy), threshold) for policy in names}
    machine = read_hierarchy(tables.inputs[name]["resources"])
    scale = units.scaled(TIME, max(_span(jobs) for jobs in found.values()))
    worst = max(float(jobs["slowdown"].max()) for jobs in found.values())
    colours = ScalarMappable(LogNorm(1.0, DARKEST), "viridis_r")
    figure, panels = theme.new_figure(len(names), 1, height_mm=22 + 34 * len(names), sharex=True, squeeze=False)
    for axes, (policy, jobs) in zip(panels[:, 0], found.items(), strict=True):
        boxes(axes, jobs, scale.size, colours)
        if settings.labels:
            numbers(axes, jobs, scale.size, colours)
        clusters(axes, machine)
        axes.set_title(policy)
    panels[-1, 0].set_xlabel(scale.label)
    panels[-1, 0].set_xlim(0, max(_span(jobs) for jobs in found.values()) / scale.size)
    slowdown_bar(figure, colours, list(panels[:, 0]), worst, aspect=40, pad=0.01)
    caption = f"{spec.caption} Workload {unit} of {name}. {_gantt_caption(found, scale)}"
    return Drawing(figure, caption, left_out=helpers.after_the_first(spec))


def slowdown_bar(figure: Figure, colours: ScalarMappable, axes: Any, worst: float, aspect: float, pad: float) -> None:
    """Add the scale of the colours by bounded slowdown, with an arrow where the worst job lies beyond it."""
    extend = "max" if worst > DARKEST else "neither"
    label = "bounded slowdown of the job"
    bar = figure.colorbar(colours, ax=axes, label=label, aspect=aspect, pad=pad, extend=extend)
    bar.ax.yaxis.set_major_formatter("{x:g}")
    bar.outline.set_visible(False)


def with_slowdown(jobs: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Return the jobs that ran, with their bounded slowdown, times counted from the first submission."""
    first = jobs["submit"].min()
    ran = jobs[jobs["start"].notna()]
    slowdown = np.maximum((ran["finish"] - ran["submit"]) / np.maximum(ran["finish"] - ran["start"], threshold), 1.0)
    return ran.assign(slowdown=slowdown, **{key: ran[key] - first for key in ("submit", "start", "finish")})


def _span(jobs: pd.DataFrame) -> float:
    return float(jobs["finish"].max())


def boxes(axes: Axes, jobs: pd.DataFrame, size: float, colours: ScalarMappable) -> None:
    """Draw a box for each job and run of neighbouring cores; size: seconds of a unit of the time axis."""
    from matplotlib.collections import PolyCollection

    corners, faces = [], []
    for job in jobs.itertuples():
        for first, last in intervals(job.allocation):
            left, right, bottom, top = job.start / size, job.finish / size, first - 0.5, last + 0.5
            corners.append([(left, bottom), (right, bottom), (right, top), (left, top)])
            faces.append(colours.to_rgba(job.slowdown))
    axes.add_collection(PolyCollection(corners, facecolors=faces, edgecolors="white", linewidths=0.3))


def numbers(
    axes: Axes, jobs: pd.DataFrame, size: float, colours: ScalarMappable, lowest: float = LOWEST_LABELLED
) -> None:
    """Write the job's number in the middle of its tallest box, where the box is wide and high enough to hold it."""
    cores = 1 + max(last for text in jobs["allocation"] for _, last in intervals(text))
    for job in jobs.itertuples():
        first, last = max(intervals(job.allocation), key=lambda span: span[1] - span[0])
        wide = (job.finish - job.start) > 0.012 * len(job.job) * _span(jobs)
        if wide and last - first + 1 >= lowest * cores:
            middle = ((job.start + job.finish) / 2 / size, (first + last) / 2)
            ink = theme.ink_on(colours.to_rgba(job.slowdown))
            axes.text(*middle, job.job, ha="center", va="center", fontsize="xx-small", color=ink)


def clusters(axes: Axes, machine: Hierarchy) -> None:
    """Draw lines between clusters; right of them their speeds."""
    processors = [
        [processor for node in cluster.nodes for processor in node.processors] for cluster in machine.clusters
    ]
    cores = [sum(processor.cores for processor in inside) for inside in processors]
    edges = np.cumsum([0, *cores])
    axes.set_ylim(-0.5, machine.cores - 0.5)
    axes.set_yticks(edges[:-1], [str(edge) for edge in edges[:-1]]) if len(cores) <= 8 else None
    axes.set_ylabel("core")
    if len(cores) > 8:
        return
    look: dict[str, Any] = {
        "transform": axes.get_yaxis_transform(),
        "va": "center",
        "fontsize": "x-small",
        "color": INK,
    }
    for inside, low, high in zip(processors, edges, edges[1:], strict=False):
        if low:
            axes.axhline(low - 0.5, color=INK, linewidth=0.5)
        speeds = {round(processor.gflops_per_core, 1) for processor in inside}
        text = " to ".join(f"{speed:g}" for speed in dict.fromkeys((min(speeds), max(speeds))))
        axes.text(1.01, (low + high - 1) / 2, f"{text}\nGflop/s", **look)


def _gantt_caption(found: Mapping[str, pd.DataFrame], scale: units.Scaled) -> str:
    slowdown = units.scaled(data.BY_NAME["mean_bounded_slowdown"], 1.0)
    told = []
    for policy, jobs in found.items():
        told.append(f"{policy} {scale.text(_span(jobs))} ({slowdown.text(jobs['slowdown'].mean())})")
    return f"{len(next(iter(found.values())))} jobs. Makespan and mean bounded slowdown: {', '.join(told)}."


def draw_course(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Waiting jobs, mean utilisation and energy so far against time, a line a scheduler."""
    settings = helpers.settings_of(spec, CourseSettings)
    name = data.scenarios(tables, spec)[0]
    names, unit = data.policies(tables, spec, [name]), data.unit_shown(tables, spec, name, settings.unit)
    styles, cores = data.looks(tables, names), read_hierarchy(tables.inputs[name]["resources"]).cores
    loads = {policy: data.detail(tables, "load", name, unit, policy) for policy in names}
    energies = {policy: data.detail(tables, "energy", name, unit, policy) for policy in names}
    first = min(float(load["time"].iloc[0]) for load in loads.values())
    last = max(float(load["time"].iloc[-1]) for load in loads.values())
    scale = units.scaled(TIME, last - first)
    with_energy = all(len(energy) for energy in energies.values())
    figure, panels = theme.new_figure(3 if with_energy else 2, 1, height_mm=150 if with_energy else 105, sharex=True)
    for policy, load in loads.items():
        look = {"drawstyle": "steps-post", "label": policy, **styles[policy].line()}
        panels[0].plot((load["time"] - first) / scale.size, load["waiting"], **look)
        _use_line(panels[1], load, cores, np.linspace(first, last, BINS + 1), first, scale.size, styles[policy])
    panels[0].set(ylabel="waiting jobs")
    panels[1].set(ylabel="utilisation", ylim=(0, 1.02))
    if with_energy:
        _energy_lines(panels[2], energies, first, scale.size, styles)
    panels[-1].set(xlabel=scale.label, xlim=(0, (last - first) / scale.size))
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")
    helpers.legend_outside(figure, helpers.policy_handles(styles, names, lines=True))
    caption = f"{spec.caption} Workload {unit} of {name}. {_course_caption(loads, energies, cores)}"
    return Drawing(figure, caption, left_out=helpers.after_the_first(spec))


def _use_line(
    axes: Axes, load: pd.DataFrame, cores: int, edges: np.ndarray, first: float, size: float, style: Style
) -> None:
    end = load["time"].iloc[-1]
    edges = np.append(edges[edges < end], end)  # the last interval ends with the last job
    means = data.means_within(load["time"].to_numpy(), load["busy_hosts"].to_numpy() / cores, edges)
    axes.stairs(means, (edges - first) / size, baseline=None, color=style.colour, linestyle=style.dashes, linewidth=1.2)


def _energy_lines(
    axes: Axes, energies: Mapping[str, pd.DataFrame], first: float, size: float, styles: Mapping[str, Style]
) -> None:
    scale = units.scaled(data.BY_NAME["energy"], max(float(energy["energy"].max()) for energy in energies.values()))
    for policy, energy in energies.items():
        axes.plot((energy["time"] - first) / size, energy["energy"] / scale.size, **styles[policy].line())
    axes.set(ylabel=f"energy so far ({scale.unit})")


def _course_caption(loads: Mapping[str, pd.DataFrame], energies: Mapping[str, pd.DataFrame], cores: int) -> str:
    """Longest queue, mean utilisation until the last job has ended, and energy of each scheduler."""
    told = []
    for policy, load in loads.items():
        times = load["time"].to_numpy()
        use = data.means_within(times, load["busy_hosts"].to_numpy() / cores, times[[0, -1]])[0]
        text = f"{policy} {int(load['waiting'].max())} jobs, {100 * use:.0f} %"
        if len(energies[policy]):
            energy = float(energies[policy]["energy"].max())
            text += f", {units.scaled(data.BY_NAME['energy'], energy).text(energy)}"
        told.append(text)
    bins = "Utilisation is averaged over sixtieths of the time."
    return f"{bins} Longest queue, mean utilisation until the last end, energy: {'; '.join(told)}."
