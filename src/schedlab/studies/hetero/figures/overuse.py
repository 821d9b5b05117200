"""Figures of scarce resources: memory bandwidth (`overuse`), and cores and memory for the next job (`bubbles`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme, units
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.panels.axes import legend_outside, policy_handles
from schedlab.figures.panels.cells import cells, colour_bar
from schedlab.figures.panels.timeline import means_within
from schedlab.figures.theme import MUTED
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.schedule import BINS, TIME
from schedlab.studies.hetero.figures.settings import WorkloadShownSettings

ROW_MM = 4.6
LEAST = 5.0  # smallest upper end of the axis of shares, %
LARGEST = 160  # area of the largest bubble, in square points
COLOURS = {"cores": 1, "memory": 2}  # number of the colour of what was lacking
FLAT: dict[str, Any] = {"alpha": 0.55, "edgecolor": "white", "linewidth": 0.4}

Steps = tuple[np.ndarray, np.ndarray]  # times (s) and values from each on
Span = tuple[int, float, float]  # processor, start (s), length (s)


def draw_overuse(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the share of over-subscribed processors: above over time, with a line for each policy; below in a panel for
    each policy, for each kind of processor in sixtieths of the time.
    """
    shown = data.workload(tables, spec, settings_of(spec, WorkloadShownSettings).unit)
    looks, names, jobs = shown.looks(), shown.policies, shown.detail("jobs")
    kinds = [chip.type for chip in shown.machine().processors()]
    processors = len(kinds)
    first = min(float(some["submit"].min()) for some in jobs.values())
    ends = {policy: float(some["finish"].max()) - first for policy, some in jobs.items()}
    spans = {policy: _spans(rows, first) for policy, rows in shown.detail("overuse").items()}
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
    facts = {"unit": shown.unit, "scenario": shown.scenario, "jobs": len(jobs[names[0]]), "found": found}
    caption = f"Workload {{unit}} of {{scenario}}, {{jobs}} jobs. Over-subscribed: {{found:{one}}}."
    return Drawing(figure, caption, {**facts, "processors": processors}, left_out=after_the_first(spec))


def shares_by_kind(spans: Sequence[Span], kinds: Sequence[str], edges: np.ndarray) -> pd.DataFrame:
    """Return the share (%) of the processors of each kind (rows) that was over-subscribed in each interval (columns).

    kinds: kind of each processor. edges: s, (intervals + 1,)
    """
    found = {}
    for kind, count in sorted(Counter(kinds).items()):
        times, counts = _counts([span for span in spans if kinds[span[0]] == kind], edges[-1])
        found[kind] = 100 * means_within(times, counts, edges) / count
    return pd.DataFrame(found).T


def _spans(rows: pd.DataFrame, first: float) -> list[Span]:
    return [(int(row.processor), float(row.start) - first, float(row.duration)) for row in rows.itertuples()]


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
    """Label the axis of shares, and let it reach above the largest share of several lists of spans."""
    most = max((_counts(spans, 0.0)[1].max() for spans in found), default=0)
    axes.set(ylabel="over-subscribed (%)", ylim=(0, max(LEAST, 105 * most / processors)))
    axes.grid(True, axis="y")


def _counts(spans: Sequence[Span], last: float) -> tuple[np.ndarray, np.ndarray]:
    """Times of change from 0 to `last`, and how many processors are over-subscribed from each on."""
    changes = sorted([(start, 1) for _, start, _ in spans] + [(start + length, -1) for _, start, length in spans])
    times = np.array([0.0, *[time for time, _ in changes], last])
    return times, np.cumsum([0, *[change for _, change in changes], 0])


def draw_bubbles(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each policy: the queue, and bubbles whose areas show how often the next job could not start, and
    why.
    """
    shown = data.workload(tables, spec, settings_of(spec, WorkloadShownSettings).unit)
    load, held, names = shown.detail("load"), shown.detail("refusals"), shown.policies
    first = min(float(some["time"].iloc[0]) for some in load.values())
    last = max(float(some["time"].iloc[-1]) for some in load.values()) - first
    scale, edges = units.scaled(TIME, last), np.linspace(0.0, last, BINS + 1)
    counts = {
        (policy, lacking): np.histogram(some.loc[some["lacking"] == lacking, "time"].to_numpy() - first, edges)[0]
        for policy, some in held.items()
        for lacking in COLOURS
    }
    most = max((int(found.max()) for found in counts.values()), default=0)
    looks = {"height_mm": 24 + 42 * len(names), "sharex": True, "sharey": True, "squeeze": False}
    figure, panels = theme.new_figure(len(names), 1, **looks)
    for axes, policy in zip(panels[:, 0], names, strict=True):
        queue = load[policy]["time"].to_numpy() - first, load[policy]["waiting"].to_numpy(float)
        queue_line(axes, queue, scale.size)
        for lacking, colour in COLOURS.items():
            bubbles(axes, queue, counts[policy, lacking], edges, scale.size, most, theme.colour(colour))
        axes.set(title=policy, ylabel="waiting jobs")
    panels[-1, 0].set(xlabel=scale.label, xlim=(0, last / scale.size or 1.0), ylim=(0, None))
    for lacking, colour in COLOURS.items():
        panels[0, 0].scatter([], [], s=40, color=theme.colour(colour), label=f"for lack of {lacking}", **FLAT)
    size_keys(panels[0, 0], most, MUTED)
    legend_outside(figure)
    one = "{name} {cores} times for lack of cores and {memory} times for lack of memory"
    found = {name: {what: int((some["lacking"] == what).sum()) for what in COLOURS} for name, some in held.items()}
    facts = {"unit": shown.unit, "scenario": shown.scenario, "held": found}
    caption = f"Workload {{unit}} of {{scenario}}. Held back: {{held:{one}}}. A bubble counts a sixtieth of the time."
    return Drawing(figure, caption, facts, left_out=after_the_first(spec))


def queue_line(axes: Axes, queue: Steps, size: float) -> None:
    """Draw the queue over time, with room for bubbles above; size: seconds of a unit of the time axis."""
    times, waiting = queue
    axes.plot(times / size, waiting, drawstyle="steps-post", color=MUTED, linewidth=0.8, label="waiting jobs")
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.12 * max(1.0, waiting.max())))


def bubbles(
    axes: Axes, queue: Steps, counts: np.ndarray, edges: np.ndarray, size: float, most: int, color: str
) -> None:
    """Draw a bubble in each interval with a count above 0, at the queue's mean; `most` has the largest area."""
    found = counts > 0
    if found.any():
        middles, heights = (edges[1:] + edges[:-1]) / 2 / size, means_within(*queue, edges)
        axes.scatter(middles[found], heights[found], s=LARGEST * counts[found] / most, color=color, zorder=2, **FLAT)


def size_keys(axes: Axes, most: int, color: str) -> None:
    """Explain the areas in the legend: one, a quarter of the largest count, and the largest count."""
    for count in dict.fromkeys((1, max(1, most // 4), most)) if most else ():
        label = f"held back {count} time{'s' * (count > 1)}"
        axes.scatter([], [], s=LARGEST * count / most, color=color, label=label, **FLAT)
