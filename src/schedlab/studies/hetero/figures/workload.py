"""Figures of one workload: places of jobs (Gantt), queue, use, energy, memory bandwidth, jobs held back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.figures import theme, units
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.panels.axes import legend_outside, policy_handles
from schedlab.figures.panels.cells import cells, colour_bar
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.timeline import boxes, means_within
from schedlab.figures.theme import INK, MUTED
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import WorkloadShownSettings
from schedlab.studies.hetero.prepare import scenario_of

TIME = Metric("time", "s", "lower", label="time since the first submission")
BINS = 60  # intervals of the time axis in which means are taken
DARKEST = 100.0  # bounded slowdown above which boxes get no darker
SLOWDOWNS = ScalarMappable(LogNorm(1.0, DARKEST), "viridis_r")  # colours of boxes
MOST_CLUSTERS = 8  # largest number of clusters whose speeds are written next to a panel
ROW_MM = 4.6
LEAST = 5.0  # smallest upper end of the axis of shares, %
LARGEST = 160  # area of the largest bubble, in square points
COLOURS = {"cores": 1, "memory": 2}  # lacking resource -> number of its colour
FLAT: dict[str, Any] = {"alpha": 0.55, "edgecolor": "white", "linewidth": 0.4}
SHOWN = "Workload {unit} of {scenario}"

Steps = tuple[np.ndarray, np.ndarray]  # times (s), and the value from each time on
Span = tuple[int, float, float]  # processor, start (s), length (s)


def draw_gantt(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw for each scheduler a box for each job and run of neighbouring cores, coloured by its bounded slowdown."""
    shown = data.workload(tables, spec, settings_of(spec, WorkloadShownSettings).unit)
    threshold = scenario_of(tables.scenarios[shown.scenario]).bounded_slowdown_threshold
    found = {policy: with_slowdown(jobs, threshold) for policy, jobs in shown.detail("jobs").items()}
    ends = {policy: float(jobs["finish"].max()) for policy, jobs in found.items()}
    machine, scale = shown.machine(), units.scaled(TIME, max(ends.values()))

    def panel(axes: Axes, jobs: pd.DataFrame) -> None:
        gantt_panel(axes, jobs, scale.size, machine)
        axes.set_xlim(0, max(ends.values()) / scale.size)

    figure, _ = facets(found, panel, Grid(1, 34, 22, scale.label, "core", subplots={"sharex": True}))
    worst = max(float(jobs["slowdown"].max()) for jobs in found.values())
    slowdown_bar(list(figure.axes), worst, aspect=40, pad=0.01)
    slowdown = units.scaled(data.BY_NAME["mean_bounded_slowdown"], 1.0)
    outcomes = {
        policy: {"makespan": scale.of(ends[policy]), "slowdown": slowdown.of(jobs["slowdown"].mean())}
        for policy, jobs in found.items()
    }
    facts = {**shown.facts(), "outcomes": outcomes, "jobs": len(found[shown.policies[0]])}
    caption = "Makespan and mean bounded slowdown: {outcomes:{name} {makespan} ({slowdown})}."
    return Drawing(figure, f"{SHOWN}. {{jobs}} jobs. {caption}", facts, left_out=after_the_first(spec))


def slowdown_bar(panels: Any, worst: float, **look: Any) -> None:
    """Add the colour scale of bounded slowdowns, with an arrow if the worst job exceeds it."""
    extend = "max" if worst > DARKEST else "neither"
    colours = ScalarMappable(SLOWDOWNS.norm, SLOWDOWNS.cmap)  # one a figure, because it keeps its bar alive
    bar = colour_bar(panels, colours, "bounded slowdown of the job", extend=extend, **look)
    bar.ax.yaxis.set_major_formatter("{x:g}")


def with_slowdown(jobs: pd.DataFrame, threshold: float) -> pd.DataFrame:
    """Return the jobs that ran, with their bounded slowdown and with times (s) since the first submission."""
    first, ran = jobs["submit"].min(), jobs[jobs["start"].notna()]
    slowdown = bounded_slowdown(ran["finish"] - ran["submit"], ran["finish"] - ran["start"], threshold)
    return ran.assign(slowdown=slowdown, **{key: ran[key] - first for key in ("submit", "start", "finish")})


def gantt_panel(axes: Axes, jobs: pd.DataFrame, size: float, machine: Hierarchy | None) -> None:
    """Draw a box for each job and run of neighbouring cores, lines that join the boxes of a job, and the machine's
    clusters if they are known.

    size  seconds of a unit of the time axis
    """
    places, faces, joins = [], [], []
    for job in jobs.itertuples():
        cores, start = intervals(job.allocation), job.start / size
        for first, last in cores:
            places.append((start, job.finish / size, first - 0.5, last + 0.5))
            faces.append(SLOWDOWNS.to_rgba(job.slowdown))
        joins += [(start, last + 0.5, first - 0.5) for (_, last), (first, _) in pairwise(sorted(cores))]
    boxes(axes, places, faces, edgecolors="white", linewidths=0.3)
    if joins:
        axes.vlines(*zip(*joins, strict=True), color=INK, linewidth=0.5)
    axes.set_ylabel("core")
    if machine is not None:
        clusters(axes, machine)


def clusters(axes: Axes, machine: Hierarchy) -> None:
    """Draw lines between clusters, and write the clusters' speeds to the right."""
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
    first, last = _span_of(loads)
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
    caption = f"{SHOWN}. Utilisation is averaged over sixtieths of the time. {what}: {{outcomes:{one}}}."
    return Drawing(figure, caption, {**shown.facts(), "outcomes": outcomes}, left_out=after_the_first(spec))


def _span_of(loads: dict[str, pd.DataFrame]) -> tuple[float, float]:
    """Return the times (s) of the first and the last recorded load."""
    times = [load["time"] for load in loads.values()]
    return min(float(each.iloc[0]) for each in times), max(float(each.iloc[-1]) for each in times)


def draw_overuse(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the share of over-subscribed processors over time: above, a line for each policy; below, a panel for each
    policy with a row for each kind of processor, in sixtieths of the time.
    """
    shown = data.workload(tables, spec, settings_of(spec, WorkloadShownSettings).unit)
    looks, names, jobs = shown.looks(), shown.policies, shown.detail("jobs")
    kinds = [chip.type for chip in shown.machine().processors()]
    processors = len(kinds)
    first = min(float(some["submit"].min()) for some in jobs.values())
    ends = {policy: float(some["finish"].max()) - first for policy, some in jobs.items()}
    spans = {
        policy: [(int(row.processor), float(row.start) - first, float(row.duration)) for row in rows.itertuples()]
        for policy, rows in shown.detail("overuse").items()
    }
    last = max(ends.values())
    scale, edges = units.scaled(TIME, last), np.linspace(0.0, last, BINS + 1)
    shares = {policy: shares_by_kind(found, kinds, edges) for policy, found in spans.items()}
    rows_mm = 12 + ROW_MM * len(set(kinds))
    size: dict[str, Any] = {"height_mm": 66 + rows_mm * len(names), "height_ratios": [34] + [rows_mm] * len(names)}
    figure, panels = theme.new_figure(1 + len(names), 1, sharex=True, **size)
    for policy in names:
        share_line(panels[0], spans[policy], processors, last, scale.size, looks[policy].line())
    share_axis(panels[0], [found for found in spans.values() if found], processors)
    most = max(float(found.to_numpy().max()) for found in shares.values()) or 1.0
    for axes, policy in zip(panels[1:], names, strict=True):
        look = {"edges": edges / scale.size, "cmap": "viridis_r", "vmin": 0.0, "vmax": most, "linewidth": 0}
        image = cells(axes, shares[policy].to_numpy(), list(shares[policy].index), **look)
        axes.set_title(policy)
    colour_bar(list(panels[1:]), image, "over-subscribed (%)", pad=0.01)
    panels[-1].set(xlabel=scale.label, xlim=(0, last / scale.size))
    panels[-1].tick_params(axis="x", length=2.5)
    legend_outside(figure, policy_handles(looks, names, lines=True))
    found = {
        policy: {
            "count": count_oversubscribed(spans[policy]),
            "share": share_of_time(spans[policy], processors, ends[policy]),
            "kind": shares[policy].mean(axis=1).idxmax() if spans[policy] else "",
            "end": scale.of(ends[policy]),
        }
        for policy in names
    }
    one = (
        "{name} {count} of {processors} processors at some time, {share:.1%} of all processors' time until {end}"
        "[, mostly processors of the kind {kind}]"
    )
    facts = {**shown.facts(), "jobs": len(jobs[names[0]]), "found": found, "processors": processors}
    caption = f"{SHOWN}, {{jobs}} jobs. Over-subscribed: {{found:{one}}}."
    return Drawing(figure, caption, facts, left_out=after_the_first(spec))


def shares_by_kind(spans: Sequence[Span], kinds: Sequence[str], edges: np.ndarray) -> pd.DataFrame:
    """Return the share (%) of the processors of each kind (rows) that was over-subscribed in each interval (columns).

    kinds  kind of each processor
    edges  edges of the intervals (s), (intervals + 1,)
    """
    found = {}
    for kind, count in sorted(Counter(kinds).items()):
        times, counts = _counts([span for span in spans if kinds[span[0]] == kind], edges[-1])
        found[kind] = 100 * means_within(times, counts, edges) / count
    return pd.DataFrame(found).T


def count_oversubscribed(spans: Sequence[Span]) -> int:
    """Return the number of processors that were ever over-subscribed."""
    return len({number for number, _, _ in spans})


def share_of_time(spans: Sequence[Span], processors: int, last: float) -> float:
    """Return the share of all processors' time until `last` (s) in which they were over-subscribed."""
    return sum(length for _, _, length in spans) / (processors * last) if last else 0.0


def share_line(
    axes: Axes, spans: Sequence[Span], processors: int, last: float, size: float, look: dict[str, Any]
) -> None:
    """Draw the share (%) of over-subscribed processors from 0 to `last` (s); size: seconds in a unit of the axis."""
    times, counts = _counts(spans, last)
    axes.plot(times / size, 100 * counts / processors, drawstyle="steps-post", **look)


def share_axis(axes: Axes, found: Sequence[Sequence[Span]], processors: int) -> None:
    """Label the axis of shares, and set its upper end above the largest share of any list of spans."""
    most = max((_counts(spans, 0.0)[1].max() for spans in found), default=0)
    axes.set(ylabel="over-subscribed (%)", ylim=(0, max(LEAST, 105 * most / processors)))
    axes.grid(True, axis="y")


def _counts(spans: Sequence[Span], last: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of change from 0 to `last` (s), and the number of over-subscribed processors from each on."""
    changes = sorted([(start, 1) for _, start, _ in spans] + [(start + length, -1) for _, start, length in spans])
    times = np.array([0.0, *[time for time, _ in changes], last])
    return times, np.cumsum([0, *[change for _, change in changes], 0])


def draw_bubbles(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each policy: the queue, and bubbles whose areas show how often the next job could not start and
    whose colours show the reason.
    """
    shown = data.workload(tables, spec, settings_of(spec, WorkloadShownSettings).unit)
    load, held = shown.detail("load"), shown.detail("refusals")
    first, last = _span_of(load)
    scale, edges = units.scaled(TIME, last - first), np.linspace(0.0, last - first, BINS + 1)
    counts = {
        (policy, lacking): np.histogram(some.loc[some["lacking"] == lacking, "time"].to_numpy() - first, edges)[0]
        for policy, some in held.items()
        for lacking in COLOURS
    }
    most = max((int(found.max()) for found in counts.values()), default=0)

    def panel(axes: Axes, policy: str) -> None:
        queue = load[policy]["time"].to_numpy() - first, load[policy]["waiting"].to_numpy(float)
        queue_line(axes, queue, scale.size)
        for lacking, number in COLOURS.items():
            colour = theme.colour(number)
            bubbles(axes, queue, counts[policy, lacking], edges, scale.size, most, colour)
            if policy == shown.policies[0]:
                axes.scatter([], [], s=40, color=colour, label=f"for lack of {lacking}", **FLAT)
        if policy == shown.policies[0]:
            size_keys(axes, most, MUTED)
        axes.set_xlim(0, (last - first) / scale.size or 1.0)

    grid = Grid(1, 42, 24, scale.label, "waiting jobs", subplots={"sharex": True, "sharey": True})
    figure, _ = facets([(policy, policy) for policy in shown.policies], panel, grid)
    one = "{name} {cores} times for lack of cores and {memory} times for lack of memory"
    found = {name: {what: int((some["lacking"] == what).sum()) for what in COLOURS} for name, some in held.items()}
    caption = f"{SHOWN}. Held back: {{held:{one}}}. A bubble counts a sixtieth of the time."
    return Drawing(figure, caption, {**shown.facts(), "held": found}, left_out=after_the_first(spec))


def queue_line(axes: Axes, queue: Steps, size: float) -> None:
    """Draw the queue over time, with room for bubbles above; size: seconds of a unit of the time axis."""
    times, waiting = queue
    axes.plot(times / size, waiting, drawstyle="steps-post", color=MUTED, linewidth=0.8, label="waiting jobs")
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.12 * max(1.0, waiting.max())))


def bubbles(
    axes: Axes, queue: Steps, counts: np.ndarray, edges: np.ndarray, size: float, most: int, color: str
) -> None:
    """Draw a bubble at the queue's mean in each interval with a count above 0; a count of `most` has area LARGEST."""
    found = counts > 0
    if found.any():
        middles, heights = (edges[1:] + edges[:-1]) / 2 / size, means_within(*queue, edges)
        axes.scatter(middles[found], heights[found], s=LARGEST * counts[found] / most, color=color, zorder=2, **FLAT)


def size_keys(axes: Axes, most: int, color: str) -> None:
    """Explain the areas in the legend: one, a quarter of the largest count, and the largest count."""
    for count in dict.fromkeys((1, max(1, most // 4), most)) if most else ():
        label = f"held back {count} time{'s' * (count > 1)}"
        axes.scatter([], [], s=LARGEST * count / most, color=color, label=label, **FLAT)
