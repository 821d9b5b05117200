"""The figure of over-subscribed memory bandwidth: when, and on which processors, policy below policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import helpers, theme, units
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.schedule import TIME
from schedlab.studies.hetero.figures.settings import OveruseSettings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SEPARATE = 60  # processors at most whose rows have white between them
LEAST = 5.0  # smallest upper end of the axis of shares, %

Span = tuple[int, float, float]  # processor, start (s), length (s)


def draw_overuse(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Above, the share of over-subscribed processors, a line a policy; below, a panel a policy with the spans."""
    settings = helpers.settings_of(spec, OveruseSettings)
    name = data.scenarios(tables, spec)[0]
    names, unit = data.policies(tables, spec, [name]), data.unit_shown(tables, spec, name, settings.unit)
    looks, machine = data.looks(tables, names), data.resources(tables, name)
    processors = sum(len(node.processors) for cluster in machine.clusters for node in cluster.nodes)
    jobs = {policy: data.detail(tables, "jobs", name, unit, policy) for policy in names}
    first = min(float(some["submit"].min()) for some in jobs.values())
    last = max(float(some["finish"].max()) for some in jobs.values()) - first
    spans = {policy: _spans(data.detail(tables, "overuse", name, unit, policy), first) for policy in names}
    scale = units.scaled(TIME, last)
    rows = 1 + len(names)
    figure, panels = theme.new_figure(
        rows, 1, height_mm=30 + 40 * rows, sharex=True, height_ratios=[0.8] + [1.0] * len(names)
    )
    for policy in names:
        share_line(panels[0], spans[policy], processors, last, scale.size, looks[policy].line())
    share_axis(panels[0], [found for found in spans.values() if found], processors)
    for axes, policy in zip(panels[1:], names, strict=True):
        span_rows(axes, spans[policy], processors, scale.size, looks[policy].colour)
        axes.set_title(policy)
    panels[-1].set(xlabel=scale.label, xlim=(0, last / scale.size))
    helpers.legend_outside(figure, helpers.policy_handles(looks, names, lines=True))
    told = "; ".join(
        f"{policy} {_told(spans[policy], processors, _end(jobs[policy]) - first, scale)}" for policy in names
    )
    caption = f"{spec.caption} Workload {unit} of {name}, {len(jobs[names[0]])} jobs. {told}."
    return Drawing(figure, caption, left_out=helpers.after_the_first(spec))


def _end(jobs: pd.DataFrame) -> float:
    return float(jobs["finish"].max())


def _spans(rows: pd.DataFrame, first: float) -> list[Span]:
    return [(int(row.processor), float(row.start) - first, float(row.duration)) for row in rows.itertuples()]


def _told(spans: Sequence[Span], processors: int, last: float, scale: units.Scaled) -> str:
    """How many processors were touched, which part of all processors' time, until when."""
    share = part_of_time(spans, processors, last)
    return f"{touched(spans)} of {processors} processors at some time, {share:.1%} of all processors' time until {scale.text(last)}"


def touched(spans: Sequence[Span]) -> int:
    """Return the number of processors that were over-subscribed at some time."""
    return len({number for number, _, _ in spans})


def part_of_time(spans: Sequence[Span], processors: int, last: float) -> float:
    """Return the share of all processors' time until `last` (s) in which they were over-subscribed."""
    return sum(length for _, _, length in spans) / (processors * last) if last else 0.0


def share_line(
    axes: Axes, spans: Sequence[Span], processors: int, last: float, size: float, look: dict[str, object]
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


def span_rows(axes: Axes, spans: Sequence[Span], processors: int, size: float, colour: str) -> None:
    """Draw a row a processor with a box for each span; size: seconds of a unit of the time axis."""
    from matplotlib.collections import PolyCollection

    half = 0.45 if processors <= SEPARATE else 0.5
    corners = []
    for number, start, length in spans:
        left, right, bottom, top = start / size, (start + length) / size, number - half, number + half
        corners.append([(left, bottom), (right, bottom), (right, top), (left, top)])
    axes.add_collection(PolyCollection(corners, facecolors=colour, linewidths=0))
    axes.set(ylabel="processor", ylim=(-0.5, processors - 0.5))
    axes.yaxis.get_major_locator().set_params(integer=True)
