"""Pictures of what a launch left in its directory, as HDeepRM and Evalys draw them (specification, section 7)."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from schedlab.batsim.files.results import intervals, read_jobs
from schedlab.config.contract import Drawing, Metric
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.settings import ThemeSettings
from schedlab.evaluation.job_metrics import load_over_time
from schedlab.figures import save, theme, units
from schedlab.figures.captions import number_text
from schedlab.figures.panels.axes import direct_labels, legend_outside
from schedlab.figures.panels.curves import running_mean
from schedlab.figures.panels.timeline import means_within
from schedlab.figures.theme import INK, MUTED
from schedlab.studies.hetero.figures import overuse, schedule
from schedlab.studies.hetero.figures.learning import NAMED, PALE, SMOOTH, episode_axis, preference_lines
from schedlab.studies.hetero.hdeeprm import run_files
from schedlab.studies.hetero.hdeeprm.launch_outputs import LOSSES, PREFIX, REWARDS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

log = logging.getLogger("schedlab.hetero.launch")
ENDINGS = (".svg", ".pdf", ".png")
THRESHOLD = 10.0  # s, of the bounded slowdown
LOWEST_LABELLED = 0.03  # height of a box, as a share of all cores, that holds its job's number


def draw_queue_size(folder: Path) -> Drawing:
    """Jobs that wait, and the cores that they ask for, over time."""
    load, scale = _load(folder)
    figure, panels = theme.new_figure(2, 1, height_mm=90, sharex=True)
    times = (load["time"] - load["time"].iloc[0]) / scale.size
    labels = {"waiting": "waiting jobs", "waiting_hosts": "cores that they ask for"}
    for axes, (column, label) in zip(panels, labels.items(), strict=True):
        axes.fill_between(times, load[column], step="post", alpha=0.18, linewidth=0)
        axes.plot(times, load[column], drawstyle="steps-post")
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")
    _time_axis(panels[1], scale, float(times.iloc[-1]))
    weights = np.diff(load["time"])
    mean = float(np.average(load["waiting"][:-1], weights=weights)) if weights.sum() else 0.0
    return Drawing(figure, f"Waiting jobs over time: {int(load['waiting'].max())} at most, {mean:.3g} on average.")


def draw_utilization(folder: Path) -> Drawing:
    """Share of the cores that are busy over time, and its means over sixtieths of the time."""
    load, scale = _load(folder)
    cores = _cores(folder)
    times, use = load["time"].to_numpy() - load["time"].iloc[0], load["busy_hosts"].to_numpy() / cores
    figure, axes = theme.new_figure(1, 1, height_mm=65)
    axes.plot(times / scale.size, use, drawstyle="steps-post", color=PALE, linewidth=0.7, label="at each moment")
    edges = np.linspace(0.0, times[-1], schedule.BINS + 1)
    means, label = means_within(times, use, edges), "mean of a sixtieth of the time"
    axes.stairs(means, edges / scale.size, baseline=None, linewidth=1.4, label=label)
    mean = float(means_within(times, use, times[[0, -1]])[0])
    axes.axhline(mean, color=INK, linewidth=0.8, linestyle=(0, (5, 1.5)), label="mean")
    axes.set(ylabel="utilisation", ylim=(0, 1.02))
    _time_axis(axes, scale, times[-1] / scale.size)
    legend_outside(figure)
    return Drawing(figure, f"Busy cores over time as a share of {cores}: {mean:.1%} on average.")


def draw_lifecycle(folder: Path) -> Drawing:
    """A row a job in the order of submission: a thin line while it waits, a thick one while it runs."""
    jobs = _ran(folder)
    scale = units.scaled(schedule.TIME, float(jobs["finish"].max()))
    height = min(160, 40 + 0.5 * len(jobs))
    figure, axes = theme.new_figure(1, 1, height_mm=height)
    rows = np.arange(len(jobs))
    thick = float(np.clip((height - 25) / len(jobs) * 2.2, 0.5, 4.0))
    submit, start, finish = (jobs[name] / scale.size for name in ("submit", "start", "finish"))
    axes.hlines(rows, submit, start, color=PALE, linewidth=max(0.4, thick / 3), label="waits")
    axes.hlines(rows, start, finish, color=theme.colour(0), linewidth=thick, label="runs")
    axes.set(ylabel="job, by submission", ylim=(len(jobs) - 0.5, -0.5))
    _time_axis(axes, scale, float(finish.max()))
    legend_outside(figure)
    wait = jobs["start"] - jobs["submit"]
    waits = f"waiting {scale.text(wait.mean())} on average, {scale.text(wait.max())} at most."
    return Drawing(figure, f"{len(jobs)} jobs: {waits}")


def draw_gantt(folder: Path, labels: bool = True) -> Drawing:
    """Cores from bottom to top, a box for each job and run of neighbouring cores, coloured by its bounded slowdown."""
    jobs = _ran(folder)
    scale = units.scaled(schedule.TIME, float(jobs["finish"].max()))
    colours = ScalarMappable(LogNorm(1.0, schedule.DARKEST), "viridis_r")
    figure, axes = theme.new_figure(1, 1, height_mm=95)
    schedule.job_boxes(axes, jobs, scale.size, colours)
    if labels:
        schedule.job_numbers(axes, jobs, scale.size, colours, LOWEST_LABELLED)
    machine = run_files.read_resources(folder)
    if machine is not None:
        schedule.clusters(axes, machine)
        if len(machine.clusters) == 1:
            axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
            axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set(ylabel="core", ylim=(-0.5, _cores(folder) - 0.5))
    _time_axis(axes, scale, float(jobs["finish"].max()) / scale.size)
    schedule.slowdown_bar(axes, colours, jobs["slowdown"].max(), pad=0.02)
    told = f"mean bounded slowdown {jobs['slowdown'].mean():.3g}"
    return Drawing(figure, f"When and where {len(jobs)} jobs ran: makespan {scale.text(jobs['finish'].max())}, {told}.")


def draw_mem_bw_overutilization(folder: Path) -> Drawing:
    """Above, the share of processors whose memory bandwidth is over-subscribed; below, when each of them is."""
    logged = run_files.read_overuse(folder)
    jobs = _ran(folder)
    first, last = float(_submitted(folder)["submit"].min()), float(jobs["finish"].max())
    scale = units.scaled(schedule.TIME, last)
    spans = []
    for number, start, length in logged["spans"]:
        spans.append((number, start - first, last - (start - first) if length is None else length))
    figure, panels = theme.new_figure(2, 1, height_mm=110, sharex=True, height_ratios=[1, 2])
    processors = logged["processors"]
    overuse.share_line(panels[0], spans, processors, last, scale.size, {"color": theme.colour(1)})
    overuse.share_axis(panels[0], [spans], processors)
    overuse.span_rows(panels[1], spans, processors, scale.size, theme.colour(1))
    _time_axis(panels[1], scale, last / scale.size)
    share = f"{overuse.share_of_time(spans, processors, last):.1%} of all processors' time."
    told = f"{overuse.count_oversubscribed(spans)} of {processors} processors at some time, {share}"
    return Drawing(figure, f"Memory bandwidth over-subscribed (jobs there run at 75 %): {told}")


def draw_action_preferences(folder: Path) -> Drawing:
    """The probability of each action at the first decision of each episode."""
    names, rows = run_files.read_preferences(folder)
    table = np.array(rows)
    episodes = np.arange(1, len(table) + 1)
    ranked = np.argsort(-(table[-1] + 1e-6 * table.max(axis=0)), kind="stable")
    chosen = ranked[:NAMED]
    figure, axes = theme.new_figure(1, 1, height_mm=75)
    preference_lines(axes, episodes, {names[action]: table[None, :, action] for action in ranked})
    axes.set(ylabel="probability at the first decision", ylim=(0, min(1.02, 1.2 * table.max())))
    episode_axis(axes, len(table))
    axes.grid(True, axis="y")
    direct_labels(axes)
    told = ", ".join(f"{names[action]} {table[-1, action]:.3g}" for action in chosen[:3])
    rest = f" Grey: {len(ranked) - NAMED} others." if len(ranked) > NAMED else ""
    what = f"Probabilities of the actions at the first decision of {len(table)} episodes"
    return Drawing(figure, f"{what}; in the last one {told}.{rest}")


def draw_refusals(folder: Path, kind: str, what: str) -> Drawing:
    """The queue over time, and bubbles on it: how often a job was held back in a sixtieth of the time."""
    dates = np.array(run_files.read_overuse(folder)[kind])
    load, scale = _load(folder)
    times = load["time"].to_numpy() - load["time"].iloc[0]
    queue, edges = (times, load["waiting"].to_numpy(float)), np.linspace(0.0, times[-1], schedule.BINS + 1)
    counts = np.histogram(dates - load["time"].iloc[0], edges)[0]
    most = int(counts.max())
    figure, axes = theme.new_figure(1, 1, height_mm=75)
    overuse.queue_line(axes, queue, scale.size)
    overuse.bubbles(axes, queue, counts, edges, scale.size, most, theme.colour(1))
    overuse.size_keys(axes, most, theme.colour(1))
    if not most:
        axes.text(0.98, 0.92, f"never short of {what}", transform=axes.transAxes, ha="right", color=MUTED)
    axes.set_ylabel("waiting jobs")
    _time_axis(axes, scale, times[-1] / scale.size)
    legend_outside(figure)
    told = f"{len(dates)} times" if len(dates) else "never"
    caption = f"Decisions at which the next job did not start for lack of {what}: {told}."
    return Drawing(figure, f"{caption} Bubbles count a sixtieth of the time.")


def draw_log(folder: Path, name: str, label: str) -> Drawing:
    """The numbers of a log, one an episode, and their running mean."""
    values = np.array(run_files.read_log(folder / name))
    episodes, window = np.arange(1, len(values) + 1), max(1, len(values) // SMOOTH)
    figure, axes = theme.new_figure(1, 1, height_mm=65)
    axes.plot(episodes, values, color=PALE, linewidth=0.7, marker="." if len(values) < 30 else "", label="each episode")
    if window > 1:
        axes.plot(episodes, running_mean(values, window), linewidth=1.4, label=f"mean of the last {window}")
    axes.set_ylabel(label)
    episode_axis(axes, len(values))
    axes.grid(True, axis="y")
    legend_outside(figure)
    told = f"first {values[0]:.4g}, last {values[-1]:.4g}, mean of the last {window} {values[-window:].mean():.4g}"
    return Drawing(figure, f"{label[:1].upper()}{label[1:]} of {len(values)} episodes: {told}.")


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


def _submitted(folder: Path) -> pd.DataFrame:
    return read_jobs(folder / PREFIX)


def _ran(folder: Path) -> pd.DataFrame:
    """The jobs that ran, times from the first submission on. Raises UserError where none did."""
    jobs = schedule.with_slowdown(_submitted(folder), THRESHOLD)
    if jobs.empty:
        raise UserError("no job ran", where=str(folder / f"{PREFIX}_jobs.csv"), expected="something to draw")
    return jobs.reset_index(drop=True)


def _load(folder: Path) -> tuple[pd.DataFrame, units.Scaled]:
    _ran(folder)
    load = load_over_time(_submitted(folder))
    return load, units.scaled(schedule.TIME, float(load["time"].iloc[-1] - load["time"].iloc[0]))


def _cores(folder: Path) -> int:
    """Cores of the platform; without its file those up to the last one that a job ran on."""
    machine = run_files.read_resources(folder)
    if machine is not None:
        return machine.cores
    return 1 + max(last for text in _ran(folder)["allocation"] for _, last in intervals(text))


def _time_axis(axes: Axes, scale: units.Scaled, last: float) -> None:
    axes.set_xlabel(scale.label)
    axes.set_xlim(0, last or 1.0)


COLUMNS = {  # of out_schedule.csv -> quantity; in the order of the panels
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
    """Draw a 2 x 4 grid of bars from two rows of out_schedule.csv; in all of them less is better."""
    figure, panels = theme.new_figure(2, 4, height_mm=105)
    for axes, (column, metric) in zip(panels.ravel(), COLUMNS.items(), strict=True):
        _bars(axes, metric, [row[column] for row in rows])
    legend_outside(figure, [Patch(color=theme.colour(number), label=name) for number, name in enumerate(names)])
    changes = "; ".join(_changes(rows))
    return Drawing(figure, f"{names[1]} against {names[0]}: {changes}. Less is better in all of them.")


def _bars(axes: Axes, metric: Metric, values: Sequence[float]) -> None:
    scale = units.scaled(metric, max(values))
    colours = [theme.colour(number) for number in range(len(values))]
    bars = axes.bar(range(len(values)), [value / scale.size for value in values], width=0.7, color=colours)
    for bar, value in zip(bars, values, strict=True):
        place = (bar.get_x() + bar.get_width() / 2, bar.get_height())
        number = value / scale.size
        text = number_text(number, "{:#.3g}" if abs(number) < 1000 else "{:.0f}").rstrip(".")
        axes.annotate(text, place, xytext=(0, 2), textcoords="offset points", ha="center", fontsize="small")
    unit = f" ({scale.unit})" if scale.unit not in ("", "-") else ""
    axes.set_title(f"{metric.label}{unit}")
    axes.set_xticks([])
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    axes.margins(x=0.15, y=0.16)
    axes.set_ylim(bottom=0)


def _changes(rows: Sequence[Mapping[str, float]]) -> list[str]:
    changes = []
    for column, metric in COLUMNS.items():
        first, second = (row[column] for row in rows)
        percent = f"{100 * (second / first - 1):+.1f} %" if first else "none before"
        changes.append(f"{metric.label} {'as much' if first == second else percent}")
    return [text.replace("-", "\N{MINUS SIGN}") for text in changes]


def run_metrics(arguments: argparse.Namespace) -> int:
    """Draw two runs side by side."""
    paths = (arguments.first, arguments.second)
    target = _target(arguments.save, "metrics")
    rows = [run_files.read_schedule(path, list(COLUMNS)) for path in paths]
    folders = [path.resolve().parent.name for path in paths]
    defaults = folders if folders[0] != folders[1] else ["first", "second"]
    names = [arguments.name1 or defaults[0], arguments.name2 or defaults[1]]
    _write(lambda: draw_comparison(rows, names), target)
    return 0


def run_visual(arguments: argparse.Namespace) -> int:
    """Draw a picture of the launch in the working directory."""
    kind = arguments.kind
    if kind not in KINDS:
        raise UserError(f"unknown picture '{kind}'", where="visual", remedy=did_you_mean(kind, KINDS))
    _write(lambda: KINDS[kind](Path()), _target(arguments.save, kind))
    return 0


def _target(path: Path | None, name: str) -> Path:
    """The file to write. Raises UserError for an ending that is no form of a picture."""
    path = path or Path(f"{name}.svg")
    if not path.suffix:
        path = path.with_name(f"{path.name}.svg")
    if path.suffix not in ENDINGS:
        expected = "a name that ends in " + ", ".join(ENDINGS)
        raise UserError(f"'{path}' has the ending {path.suffix}", where="-s", expected=expected)
    return path


def _write(draw: Callable[[], Drawing], target: Path) -> None:
    """Draw in the house's look, write the file, print what is seen."""
    with theme.applied(ThemeSettings()):
        drawing = draw()
        save.save_as(drawing, [target])
    print(drawing.caption)
    log.info("wrote %s", target)
