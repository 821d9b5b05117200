"""Pictures of a launch's outputs, like those of HDeepRM and Evalys (docs/reference/hetero_launch.md)."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch

from schedlab.batsim.files.results import intervals, read_jobs
from schedlab.config.contract import Drawing, Metric
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.settings import ThemeSettings
from schedlab.evaluation.job_metrics import load_over_time
from schedlab.figures import save, theme, units
from schedlab.figures.captions import three_digits
from schedlab.figures.panels.axes import direct_labels, legend_outside
from schedlab.figures.panels.curves import running_mean
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.timeline import boxes, means_within
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.hetero.figures import workload
from schedlab.studies.hetero.figures.learning import NAMED, PALE, SMOOTH, episode_axis, preference_lines
from schedlab.studies.hetero.hdeeprm import run_files
from schedlab.studies.hetero.hdeeprm.launch_outputs import LOSSES, PREFIX, REWARDS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

log = logging.getLogger("schedlab.hetero.launch")
ENDINGS = (".svg", ".pdf", ".png")
SEPARATE = 60  # largest number of processors whose rows are separated by white
THRESHOLD = 10.0  # s, of the bounded slowdown
LOWEST_LABELLED = 0.03  # smallest height of a box, as a share of all cores, that holds its job's number


@dataclass(frozen=True)
class Launch:
    """The jobs of a launch that ran, and the load of the machine over time (s). Times count from the first submission,
    which was at the date `first` (s).
    """

    jobs: pd.DataFrame
    load: pd.DataFrame
    first: float

    @property
    def last(self) -> float:
        """The time at which the last job ended (s)."""
        return float(self.jobs["finish"].max())

    @property
    def scale(self) -> units.Scaled:
        """The unit of the time axis."""
        return units.scaled(workload.TIME, self.last)

    def finish(self, axes: Axes) -> None:
        """Label the time axis."""
        axes.set(xlabel=self.scale.label, xlim=(0, self.last / self.scale.size or 1.0))


def read_launch(folder: Path) -> Launch:
    """Read the jobs of a launch. Raises UserError if none ran."""
    submitted = read_jobs(folder / PREFIX)
    jobs = workload.with_slowdown(submitted, THRESHOLD).reset_index(drop=True)
    if jobs.empty:
        raise UserError("no job ran", where=str(folder / f"{PREFIX}_jobs.csv"), expected="something to draw")
    load, first = load_over_time(submitted), float(submitted["submit"].min())
    return Launch(jobs, load.assign(time=load["time"] - load["time"].iloc[0]), first)


def draw_queue_size(folder: Path) -> Drawing:
    """Draw the number of waiting jobs, and of the cores that they request, over time."""
    launch = read_launch(folder)
    load, times = launch.load, launch.load["time"] / launch.scale.size
    figure, panels = theme.new_figure(2, 1, height_mm=90, sharex=True)
    labels = {"waiting": "waiting jobs", "waiting_hosts": "cores that they ask for"}
    for axes, (column, label) in zip(panels, labels.items(), strict=True):
        axes.fill_between(times, load[column], step="post", alpha=0.18, linewidth=0)
        axes.plot(times, load[column], drawstyle="steps-post")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")
    launch.finish(panels[-1])
    whole, waiting = load["time"].to_numpy()[[0, -1]], load["waiting"].to_numpy(float)
    mean = float(means_within(load["time"].to_numpy(), waiting, whole)[0]) if np.ptp(whole) else 0.0
    caption = "Waiting jobs over time: {most} at most, {mean:.3g} on average."
    return Drawing(figure, caption, {"most": int(waiting.max()), "mean": mean})


def draw_utilization(folder: Path) -> Drawing:
    """Draw the share of busy cores over time, and its means over sixtieths of the time."""
    launch = read_launch(folder)
    times, size = launch.load["time"].to_numpy(), launch.scale.size
    cores, edges = _cores(folder, launch), np.linspace(0.0, times[-1], workload.BINS + 1)
    use = launch.load["busy_hosts"].to_numpy() / cores
    figure, axes = theme.new_figure(height_mm=65)
    axes.plot(times / size, use, drawstyle="steps-post", color=PALE, linewidth=0.7, label="at each moment")
    look: dict[str, Any] = {"baseline": None, "linewidth": 1.4, "label": "mean of a sixtieth of the time"}
    axes.stairs(means_within(times, use, edges), edges / size, **look)
    mean = float(means_within(times, use, times[[0, -1]])[0])
    axes.axhline(mean, color=INK, linewidth=0.8, linestyle=(0, (5, 1.5)), label="mean")
    axes.set(ylabel="utilisation", ylim=(0, 1.02))
    launch.finish(axes)
    legend_outside(figure)
    caption = "Busy cores over time as a share of {cores}: {mean:.1%} on average."
    return Drawing(figure, caption, {"cores": cores, "mean": mean})


def _cores(folder: Path, launch: Launch) -> int:
    """Return the number of cores of the platform; without its file, that up to the last core on which a job ran."""
    machine = run_files.read_resources(folder)
    last = (end for text in launch.jobs["allocation"] for _, end in intervals(text))
    return 1 + max(last) if machine is None else machine.cores


def draw_lifecycle(folder: Path) -> Drawing:
    """Draw a row for each job in the order of submission: a thin line while it waits, a thick one while it runs."""
    launch = read_launch(folder)
    jobs, scale = launch.jobs, launch.scale
    height, rows = min(160, 40 + 0.5 * len(jobs)), np.arange(len(jobs))
    figure, axes = theme.new_figure(height_mm=height)
    thick = float(np.clip((height - 25) / len(jobs) * 2.2, 0.5, 4.0))
    submit, start, finish = (jobs[name] / scale.size for name in ("submit", "start", "finish"))
    axes.hlines(rows, submit, start, color=PALE, linewidth=max(0.4, thick / 3), label="waits")
    axes.hlines(rows, start, finish, color=theme.colour(0), linewidth=thick, label="runs")
    axes.set(ylabel="job, by submission", ylim=(len(jobs) - 0.5, -0.5))
    launch.finish(axes)
    legend_outside(figure)
    wait = jobs["start"] - jobs["submit"]
    facts = {"jobs": len(jobs), "mean": scale.of(wait.mean()), "most": scale.of(wait.max())}
    return Drawing(figure, "{jobs:job|jobs}: waiting {mean} on average, {most} at most.", facts)


def draw_gantt(folder: Path, labels: bool = True) -> Drawing:
    """Draw a box for each job and run of neighbouring cores, coloured by its bounded slowdown."""
    launch = read_launch(folder)
    jobs, scale = launch.jobs, launch.scale
    machine = run_files.read_resources(folder)
    figure, axes = theme.new_figure(height_mm=95)
    workload.gantt_panel(axes, jobs, scale.size, machine)
    if labels:
        _job_numbers(axes, jobs, scale.size)
    if machine is None:
        axes.set(ylim=(-0.5, _cores(folder, launch) - 0.5))
    launch.finish(axes)
    workload.slowdown_bar(axes, jobs["slowdown"].max(), pad=0.02)
    facts = {"jobs": len(jobs), "makespan": scale.of(launch.last), "slowdown": float(jobs["slowdown"].mean())}
    caption = "When and where {jobs:job|jobs} ran: makespan {makespan}, mean bounded slowdown {slowdown:.3g}."
    return Drawing(figure, caption, facts)


def _job_numbers(axes: Axes, jobs: pd.DataFrame, size: float) -> None:
    """Write the job's number into the middle of its tallest box, if the box is large enough."""
    cores = 1 + max(last for text in jobs["allocation"] for _, last in intervals(text))
    span = float(jobs["finish"].max())
    for job in jobs.itertuples():
        first, last = max(intervals(job.allocation), key=lambda cores: cores[1] - cores[0])
        wide = (job.finish - job.start) > 0.012 * len(job.job) * span
        if wide and last - first + 1 >= LOWEST_LABELLED * cores:
            middle = ((job.start + job.finish) / 2 / size, (first + last) / 2)
            ink = theme.ink_on(workload.SLOWDOWNS.to_rgba(job.slowdown))
            axes.text(*middle, job.job, ha="center", va="center", fontsize="xx-small", color=ink)


def draw_mem_bw_overutilization(folder: Path) -> Drawing:
    """Draw the share of processors with over-subscribed memory bandwidth over time, and the spans of each (below)."""
    logged, launch = run_files.read_overuse(folder), read_launch(folder)
    last, size = launch.last, launch.scale.size
    starts = [(number, start - launch.first, length) for number, start, length in logged["spans"]]
    spans = [(number, start, last - start if length is None else length) for number, start, length in starts]
    figure, (above, below) = theme.new_figure(2, 1, height_mm=110, sharex=True, height_ratios=[1, 2])
    processors = logged["processors"]
    workload.share_line(above, spans, processors, last, size, {"color": theme.colour(1)})
    workload.share_axis(above, [spans], processors)
    _span_rows(below, spans, processors, size, theme.colour(1))
    launch.finish(below)
    share = workload.share_of_time(spans, processors, last)
    caption = (
        "Memory bandwidth over-subscribed (jobs there run at 75 %): {count} of {processors} processors at some time, "
        "{share:.1%} of all processors' time."
    )
    facts = {"count": workload.count_oversubscribed(spans), "processors": processors, "share": share}
    return Drawing(figure, caption, facts)


def _span_rows(axes: Axes, spans: Sequence[workload.Span], processors: int, size: float, colour: str) -> None:
    """Draw a row for each processor with a box for each span; size: seconds of a unit of the time axis."""
    half = 0.45 if processors <= SEPARATE else 0.5
    places = [(start / size, (start + length) / size, n - half, n + half) for n, start, length in spans]
    boxes(axes, places, colour, linewidths=0)
    axes.set(ylabel="processor", ylim=(-0.5, processors - 0.5))
    locator: Any = axes.yaxis.get_major_locator()
    locator.set_params(integer=True)


def draw_action_preferences(folder: Path) -> Drawing:
    """Draw the probability of each action at the first decision of each episode."""
    names, rows = run_files.read_preferences(folder)
    table = np.array(rows)
    order = np.argsort(-(table[-1] + 1e-6 * table.max(axis=0)), kind="stable")
    figure, axes = theme.new_figure(height_mm=75)
    preference_lines(axes, np.arange(1, len(table) + 1), {names[action]: table[None, :, action] for action in order})
    axes.set(ylabel="probability at the first decision", ylim=(0, min(1.02, 1.2 * table.max())))
    episode_axis(axes, len(table))
    axes.grid(True, axis="y")
    direct_labels(axes)
    caption = (
        "Probabilities of the actions at the first decision of {episodes:episode|episodes}; in the last one "
        "{last:{name} {value:.3g}}.[ Grey: {others} others.]"
    )
    last = {names[action]: float(table[-1, action]) for action in order[: min(3, NAMED)]}
    return Drawing(
        figure, caption, {"episodes": len(table), "last": last, "others": max(0, len(order) - NAMED) or None}
    )


def draw_refusals(folder: Path, kind: str, what: str) -> Drawing:
    """Draw the queue over time, with bubbles that show how often a job could not start in each sixtieth of the time."""
    dates, launch = np.array(run_files.read_overuse(folder)[kind]), read_launch(folder)
    times = launch.load["time"].to_numpy()
    queue, edges = (times, launch.load["waiting"].to_numpy(float)), np.linspace(0.0, times[-1], workload.BINS + 1)
    counts = np.histogram(dates - launch.first, edges)[0]
    most, size = int(counts.max()), launch.scale.size
    figure, axes = theme.new_figure(height_mm=75)
    workload.queue_line(axes, queue, size)
    workload.bubbles(axes, queue, counts, edges, size, most, theme.colour(1))
    workload.size_keys(axes, most, theme.colour(1))
    if not most:
        axes.text(0.98, 0.92, f"never short of {what}", transform=axes.transAxes, ha="right", color=MUTED)
    axes.set_ylabel("waiting jobs")
    launch.finish(axes)
    legend_outside(figure)
    caption = (
        "Decisions at which the next job did not start for lack of {what}: {count:time|times}. Bubbles count a "
        "sixtieth of the time."
    )
    return Drawing(figure, caption, {"what": what, "count": len(dates)})


def draw_log(folder: Path, name: str, label: str) -> Drawing:
    """Draw the numbers in a log, one for each episode, and their running mean."""
    values = np.array(run_files.read_log(folder / name))
    episodes, window = np.arange(1, len(values) + 1), max(1, len(values) // SMOOTH)
    figure, axes = theme.new_figure(height_mm=65)
    axes.plot(episodes, values, color=PALE, linewidth=0.7, marker="." if len(values) < 30 else "", label="each episode")
    if window > 1:
        axes.plot(episodes, running_mean(values, window), linewidth=1.4, label=f"mean of the last {window}")
    axes.set_ylabel(label)
    episode_axis(axes, len(values))
    axes.grid(True, axis="y")
    legend_outside(figure)
    facts = {"first": float(values[0]), "last": float(values[-1]), "mean": float(values[-window:].mean())}
    numbers = "first {first:.4g}, last {last:.4g}, mean of the last {window} {mean:.4g}"
    caption = f"{label.capitalize()} of {{episodes:episode|episodes}}: {numbers}."
    return Drawing(figure, caption, {"episodes": len(values), "window": window, **facts})


KINDS: dict[str, Callable[[Path], Drawing]] = {
    "queue_size": draw_queue_size,
    "utilization": draw_utilization,
    "lifecycle": draw_lifecycle,
    "gantt": draw_gantt,
    "gantt_no_label": partial(draw_gantt, labels=False),
    "core_bubbles": partial(draw_refusals, kind="core", what="free cores"),
    "mem_bubbles": partial(draw_refusals, kind="mem", what="memory"),
    "mem_bw_overutilization": draw_mem_bw_overutilization,
    "losses": partial(draw_log, name=LOSSES, label="loss"),
    "rewards": partial(draw_log, name=REWARDS, label="sum of rewards"),
    "action_preferences": draw_action_preferences,
}


COLUMNS = {  # column of out_schedule.csv -> quantity, in the order of the panels
    "consumed_joules": Metric("energy", "J", "lower", label="energy"),
    "max_slowdown": Metric("max_slowdown", "-", "lower", label="largest slowdown"),
    "max_turnaround_time": Metric("max_turnaround", "s", "lower", label="largest turnaround time"),
    "max_waiting_time": Metric("max_wait", "s", "lower", label="largest waiting time"),
    "makespan": Metric("makespan", "s", "lower", label="makespan"),
    "mean_slowdown": Metric("mean_slowdown", "-", "lower", label="mean slowdown"),
    "mean_turnaround_time": Metric("mean_turnaround", "s", "lower", label="mean turnaround time"),
    "mean_waiting_time": Metric("mean_wait", "s", "lower", label="mean waiting time"),
}


def draw_comparison(rows: Sequence[Mapping[str, float]], names: Sequence[str]) -> Drawing:
    """Draw a 2 x 4 grid of bars from two rows of out_schedule.csv; less is better in every panel."""
    groups, changes = [], {}
    for column, metric in COLUMNS.items():
        first, second = (row[column] for row in rows)
        scale = units.scaled(metric, max(first, second))
        groups.append((scale.label, (first / scale.size, second / scale.size)))
        same, change = first == second, second / first - 1 if first else None
        changes[metric.label] = {"same": same, "change": None if same else change, "new": not same and not first}
    keys = [Patch(color=theme.colour(number), label=name) for number, name in enumerate(names)]
    figure, _ = facets(groups, _bars, Grid(4, 45, 15), keys=keys)
    one = "{name} [{same}as much][{change:+.1%}][{new}none before]"
    caption = f"{{second}} against {{first}}: {{changes:{one}}}. Less is better in all of them."
    return Drawing(figure, caption, {"first": names[0], "second": names[1], "changes": changes})


def _bars(axes: Axes, values: Sequence[float]) -> None:
    """Draw a bar for each launch with its value above it."""
    colours = [theme.colour(number) for number in range(len(values))]
    bars = axes.bar(range(len(values)), values, width=0.7, color=colours)
    axes.bar_label(bars, fmt=three_digits, padding=2, fontsize="small")
    axes.set(xticks=[], yticks=[])
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.15, y=0.16)
    axes.set_ylim(bottom=0)


def run_metrics(arguments: argparse.Namespace) -> int:
    """Draw two runs side by side and return the exit status."""
    paths = (arguments.first, arguments.second)
    target = _target(arguments.save, "metrics")
    rows = [run_files.read_schedule(path, list(COLUMNS)) for path in paths]
    folders = [path.resolve().parent.name for path in paths]
    defaults = folders if folders[0] != folders[1] else ["first", "second"]
    names = [arguments.name1 or defaults[0], arguments.name2 or defaults[1]]
    _write(lambda: draw_comparison(rows, names), target)
    return 0


def run_visual(arguments: argparse.Namespace) -> int:
    """Draw a picture of the launch in this directory; return the exit status. Raises UserError for an unknown kind."""
    kind = arguments.kind
    if kind not in KINDS:
        raise UserError(f"unknown picture '{kind}'", where="visual", remedy=did_you_mean(kind, KINDS))
    _write(lambda: KINDS[kind](Path()), _target(arguments.save, kind))
    return 0


def _target(path: Path | None, name: str) -> Path:
    """Return the file to write. Raises UserError for an ending that is not a picture's."""
    path = path or Path(f"{name}.svg")
    if not path.suffix:
        path = path.with_name(f"{path.name}.svg")
    if path.suffix not in ENDINGS:
        expected = "a name that ends in " + ", ".join(ENDINGS)
        raise UserError(f"'{path}' has the ending {path.suffix}", where="-s", expected=expected)
    return path


def _write(draw: Callable[[], Drawing], target: Path) -> None:
    """Draw with the default theme, write the file and print the caption."""
    with theme.applied(ThemeSettings()):
        drawing = draw()
        save.save_as(drawing, [target])
    print(save.caption_of(drawing))
    log.info("wrote %s", target)
