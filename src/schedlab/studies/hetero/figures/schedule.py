"""Figures of one workload: the place of each job (Gantt), and queue, utilisation and energy over time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.ticker import MaxNLocator

from schedlab.batsim.files.results import intervals
from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.figures import theme, units
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.panels.axes import legend_outside, policy_handles
from schedlab.figures.panels.cells import colour_bar
from schedlab.figures.panels.timeline import boxes, means_within
from schedlab.figures.theme import INK
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import GanttSettings, WorkloadShownSettings
from schedlab.studies.hetero.prepare import scenario_of

TIME = Metric("time", "s", "lower", label="time since the first submission")
BINS = 60  # intervals of the mean utilisation
LOWEST_LABELLED = 0.06  # height of a box, as a share of all cores, that holds its job's number
DARKEST = 100.0  # bounded slowdown from which boxes are no darker
MOST_CLUSTERS = 8  # whose speeds are written beside a panel


def draw_gantt(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each scheduler: a box for each job and run of neighbouring cores, coloured by its bounded
    slowdown.
    """
    settings = settings_of(spec, GanttSettings)
    shown = data.workload(tables, spec, settings.unit)
    threshold = scenario_of(tables.scenarios[shown.scenario]).bounded_slowdown_threshold
    found = {policy: with_slowdown(jobs, threshold) for policy, jobs in shown.detail("jobs").items()}
    ends = {policy: float(jobs["finish"].max()) for policy, jobs in found.items()}
    machine, scale = shown.machine(), units.scaled(TIME, max(ends.values()))
    colours, count = ScalarMappable(LogNorm(1.0, DARKEST), "viridis_r"), len(found)
    figure, panels = theme.new_figure(count, 1, height_mm=22 + 34 * count, sharex=True, squeeze=False)
    for axes, (policy, jobs) in zip(panels[:, 0], found.items(), strict=True):
        gantt_panel(axes, jobs, scale.size, colours, machine)
        if settings.labels:
            job_numbers(axes, jobs, scale.size, colours)
        axes.set_title(policy)
    panels[-1, 0].set(xlabel=scale.label, xlim=(0, max(ends.values()) / scale.size))
    worst = max(float(jobs["slowdown"].max()) for jobs in found.values())
    slowdown_bar(list(panels[:, 0]), colours, worst, aspect=40, pad=0.01)
    slowdown = units.scaled(data.BY_NAME["mean_bounded_slowdown"], 1.0)
    outcomes = {
        policy: {"makespan": scale.of(ends[policy]), "slowdown": slowdown.of(jobs["slowdown"].mean())}
        for policy, jobs in found.items()
    }
    count = len(found[shown.policies[0]])
    facts = {"unit": shown.unit, "scenario": shown.scenario, "outcomes": outcomes, "jobs": count}
    caption = "Makespan and mean bounded slowdown: {outcomes:{name} {makespan} ({slowdown})}."
    caption = f"Workload {{unit}} of {{scenario}}. {{jobs}} jobs. {caption}"
    return Drawing(figure, caption, facts, left_out=after_the_first(spec))


def slowdown_bar(panels: Any, colours: ScalarMappable, worst: float, **look: Any) -> None:
    """Add the colour scale of bounded slowdowns, with an arrow if the worst job exceeds it."""
    extend = "max" if worst > DARKEST else "neither"
    bar = colour_bar(panels, colours, "bounded slowdown of the job", extend=extend, **look)
    bar.ax.yaxis.set_major_formatter("{x:g}")


def with_slowdown(jobs: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Return the jobs that ran, with their bounded slowdown, times counted from the first submission."""
    first = jobs["submit"].min()
    ran = jobs[jobs["start"].notna()]
    slowdown = np.maximum((ran["finish"] - ran["submit"]) / np.maximum(ran["finish"] - ran["start"], threshold), 1.0)
    return ran.assign(slowdown=slowdown, **{key: ran[key] - first for key in ("submit", "start", "finish")})


def gantt_panel(
    axes: Axes, jobs: pd.DataFrame, size: float, colours: ScalarMappable, machine: Hierarchy | None
) -> None:
    """Draw a box for each job and run of neighbouring cores, lines that join the boxes of a job, and the machine's
    clusters if they are known.

    size  seconds of a unit of the time axis
    """
    places, faces, joins = [], [], []
    for job in jobs.itertuples():
        cores, start = intervals(job.allocation), job.start / size
        for first, last in cores:
            places.append((start, job.finish / size, first - 0.5, last + 0.5))
            faces.append(colours.to_rgba(job.slowdown))
        joins += [(start, last + 0.5, first - 0.5) for (_, last), (first, _) in pairwise(sorted(cores))]
    boxes(axes, places, faces, edgecolors="white", linewidths=0.3)
    if joins:
        axes.vlines(*zip(*joins, strict=True), color=INK, linewidth=0.5)
    axes.set_ylabel("core")
    if machine is not None:
        clusters(axes, machine)


def job_numbers(
    axes: Axes, jobs: pd.DataFrame, size: float, colours: ScalarMappable, lowest: float = LOWEST_LABELLED
) -> None:
    """Write the job's number into the middle of its tallest box, if the box is large enough."""
    cores = 1 + max(last for text in jobs["allocation"] for _, last in intervals(text))
    span = float(jobs["finish"].max())
    for job in jobs.itertuples():
        first, last = max(intervals(job.allocation), key=lambda cores: cores[1] - cores[0])
        wide = (job.finish - job.start) > 0.012 * len(job.job) * span
        if wide and last - first + 1 >= lowest * cores:
            middle = ((job.start + job.finish) / 2 / size, (first + last) / 2)
            ink = theme.ink_on(colours.to_rgba(job.slowdown))
            axes.text(*middle, job.job, ha="center", va="center", fontsize="xx-small", color=ink)


def clusters(axes: Axes, machine: Hierarchy) -> None:
    """Draw lines between clusters, and their speeds to the right."""
    inside = [[chip for node in cluster.nodes for chip in node.processors] for cluster in machine.clusters]
    edges = np.cumsum([0, *(sum(chip.cores for chip in chips) for chips in inside)])
    axes.set_ylim(-0.5, machine.cores - 0.5)
    if len(inside) > MOST_CLUSTERS:
        return
    if len(inside) > 1:
        axes.set_yticks(edges[:-1], [str(edge) for edge in edges[:-1]])
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    look: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": "x-small"}
    for chips, low, high in zip(inside, edges, edges[1:], strict=False):
        if low:
            axes.axhline(low - 0.5, color=INK, linewidth=0.5)
        speeds = {round(chip.gflops_per_core, 1) for chip in chips}
        text = " to ".join(f"{speed:g}" for speed in dict.fromkeys((min(speeds), max(speeds))))
        axes.text(1.01, (low + high - 1) / 2, f"{text}\nGflop/s", color=INK, **look)


def draw_course(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw waiting jobs, mean utilisation and energy so far over time, with a line for each scheduler."""
    shown = data.workload(tables, spec, settings_of(spec, WorkloadShownSettings).unit)
    looks, cores = shown.looks(), shown.machine().cores
    loads, energies = shown.detail("load"), shown.detail("energy")
    first = min(float(load["time"].iloc[0]) for load in loads.values())
    last = max(float(load["time"].iloc[-1]) for load in loads.values())
    scale = units.scaled(TIME, last - first)
    with_energy = all(len(energy) for energy in energies.values())
    figure, panels = theme.new_figure(3 if with_energy else 2, 1, height_mm=150 if with_energy else 105, sharex=True)
    outcomes: dict[str, dict[str, Any]] = {}
    for policy, load in loads.items():
        look, times = looks[policy].line(), load["time"].to_numpy()
        panels[0].plot((times - first) / scale.size, load["waiting"], drawstyle="steps-post", label=policy, **look)
        edges = np.linspace(first, last, BINS + 1)
        edges = np.append(edges[edges < times[-1]], times[-1])  # the last interval ends with the last job
        use = load["busy_hosts"].to_numpy() / cores
        means = means_within(times, use, edges)
        panels[1].stairs(means, (edges - first) / scale.size, baseline=None, linewidth=1.2, **look)
        mean = float(means_within(times, use, times[[0, -1]])[0])
        outcomes[policy] = {"queue": int(load["waiting"].max()), "utilisation": mean, "energy": ""}
    panels[0].set(ylabel="waiting jobs")
    panels[1].set(ylabel="utilisation", ylim=(0, 1.02))
    for policy, energy in energies.items():
        if len(energy):
            most = float(energy["energy"].max())
            outcomes[policy]["energy"] = units.scaled(data.BY_NAME["energy"], most).of(most)
    if with_energy:
        joule = units.scaled(data.BY_NAME["energy"], max(float(each["energy"].max()) for each in energies.values()))
        panels[2].set(ylabel=f"energy so far ({joule.unit})")
        for policy, energy in energies.items():
            x, y = (energy["time"] - first) / scale.size, energy["energy"] / joule.size
            panels[2].plot(x, y, **looks[policy].line())
    panels[-1].set(xlabel=scale.label, xlim=(0, (last - first) / scale.size))
    for axes in panels:
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")
    legend_outside(figure, policy_handles(looks, shown.policies, lines=True))
    what = "Longest queue, mean utilisation until the last end, energy"
    one = "{name} {queue} jobs, {utilisation:.0%}[, {energy}]"
    caption = f"Workload {{unit}} of {{scenario}}. Utilisation is averaged over sixtieths of the time. {what}: "
    facts = {"unit": shown.unit, "scenario": shown.scenario, "outcomes": outcomes}
    return Drawing(figure, f"{caption}{{outcomes:{one}}}.", facts, left_out=after_the_first(spec))
