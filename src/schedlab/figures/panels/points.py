"""Points with their uncertainty, pairs of published values and ours, and the legend of bars and lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from schedlab.figures import theme
from schedlab.figures.panels.axes import key, log_ticks, name_rows, short_ticks
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import INK, MUTED, Style

LETTERS_IN_A_ROW = 110  # of a legend below a figure of the theme's width, with space for the handles
UNCERTAINTY = "[Bars: {interval}.] [Thin lines: {range}.]"  # caption for the values that `explain_uncertainty` returns
BAR: dict[str, Any] = {"linewidth": 2.2, "alpha": 0.55, "solid_capstyle": "butt"}
THIN: dict[str, Any] = {"linewidth": 0.7, "markersize": 4}
DOT: dict[str, Any] = {"markersize": 4, "markeredgewidth": 0}
RING: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.8, "markersize": 7}


def span(axes: Axes, row: Mapping[str, Any], place: float, *, colour: str, upright: bool = False) -> None:
    """Draw the uncertainty of a row of a summary at a height (upright: at a horizontal place): the interval as a bar
    or, without an interval, the range as a thin line.
    """
    bar = np.isfinite(row["ci_low"])
    ends = [row["ci_low"], row["ci_high"]] if bar else [row["range_low"], row["range_high"]]
    if ends[1] > ends[0]:
        look = BAR if bar else {**THIN, "marker": "_" if upright else "|"}
        axes.plot(*([place, place], ends)[:: 1 if upright else -1], color=colour, **look)


def points_with_uncertainty(
    axes: Axes,
    rows: pd.DataFrame,
    order: Sequence[str],
    styles: Mapping[str, Style],
    *,
    shift: float = 0.0,
    absent: str = "not run",
) -> None:
    """Draw one row for each policy, the first on top: a point, and its interval as a bar or, without an interval, its
    range as a thin line.

    rows    rows of the summary or of the comparisons (then `difference` is shown) of one scenario, split and metric
    shift   distance of the points from the middle of their rows, in heights of a row
    absent  text in the row of a policy without a value
    """
    value = "value" if "value" in rows.columns else "difference"
    known = {row["policy"]: row for row in rows.to_dict("records")}
    for height, policy in enumerate(order):
        if policy in known:
            span(axes, known[policy], height + shift, colour=styles[policy].colour)
            axes.plot([known[policy][value]], [height + shift], zorder=3, **styles[policy].point())
        else:
            look: dict[str, Any] = {"color": MUTED, "va": "center", "fontstyle": "italic"}
            axes.text(0.01, height, absent, transform=axes.get_yaxis_transform(), **look)
    name_rows(axes, order)
    axes.grid(True, axis="x")


def score_panels(
    groups: Iterable[tuple[str, pd.DataFrame]],
    order: Sequence[str],
    styles: Mapping[str, Style],
    level: float,
    grid: Grid,
    more: Sequence[Any] = (),
) -> tuple[Figure, dict[str, str]]:
    """Return a figure with a panel of points for each group of rows (see points_with_uncertainty), and the values of
    UNCERTAINTY.

    level  coverage of the intervals
    more   further handles for the legend
    """
    pairs = list(groups)

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        points_with_uncertainty(axes, rows, order, styles)
        short_ticks(axes)

    figure, _ = facets(pairs, panel, grid, keys=())
    return figure, explain_uncertainty(figure, pd.concat([rows for _, rows in pairs]), level, more=more)


def explain_uncertainty(
    figure: Figure, rows: pd.DataFrame, level: float, *, more: Sequence[Any] = (), over: str = ""
) -> dict[str, str]:
    """Explain, below the figure, the bars and thin lines that occur in `rows`; return the values of UNCERTAINTY.

    level  coverage of the intervals, from the study's statistics
    more   further handles for the legend
    over   what the bootstrap resamples, if a study has another word for it ("workloads"); default: seeds and blocks
    """
    given = np.isfinite(rows["ci_low"].to_numpy(dtype=float))
    ranged = ~given & (rows["range_high"] > rows["range_low"]).to_numpy()
    bar = f"{100 * level:g} % interval (bootstrap over {over or 'seeds and blocks'})"
    line = f"smallest to largest {over.removesuffix('s') if over else 'seed (a rule: block)'}; too few for an interval"
    handles: list[Any] = [key(bar, color=MUTED, **BAR)] if given.any() else []
    handles += [key(line, color=MUTED, marker="|", **THIN)] if ranged.any() else []
    handles += more
    if handles:
        wide = sum(len(handle.get_label()) + 8 for handle in handles) > LETTERS_IN_A_ROW
        columns = min(2, len(handles)) if wide else len(handles)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    return {"interval": bar if given.any() else "", "range": line if ranged.any() else ""}


@dataclass(frozen=True)
class Beside:
    """Our values and the published ones by name, and the published value of a learned policy."""

    ours: Mapping[str, float]
    published: Mapping[str, float]
    learned: float | None = None

    def ahead(self, better: str) -> list[str]:
        """Return the names whose value here is better (lower, higher) than that of the published learned policy."""
        if self.learned is None:
            return []
        return [
            name
            for name, own in self.ours.items()
            if own != self.learned and (own < self.learned) == (better == "lower")
        ]


def published_panels(
    groups: Iterable[tuple[str, Beside]], order: Sequence[str], grid: Grid, *, better: str = "lower", log: bool = False
) -> Figure:
    """Return a figure with a panel for each group and a row for each name: a dot for our value, which is coloured if it
    is better than the published learned policy; a ring for the published value; and a line for the learned policy.
    """
    pairs = list(groups)
    learned = any(values.learned is not None for _, values in pairs)

    def panel(axes: Axes, values: Beside) -> None:
        ahead = values.ahead(better) if learned else order
        for height, name in enumerate(order):
            if name in values.ours:
                colour = theme.colour(0) if name in ahead else theme.MUTED
                axes.plot([values.ours[name]], [height], "o", color=colour, zorder=4, **DOT)
            if name in values.published:
                axes.plot([values.published[name]], [height], "o", color="none", zorder=3, **RING)
        every = [*values.ours.values(), *values.published.values()]
        if values.learned is not None:
            axes.axvline(values.learned, color=theme.colour(1), linewidth=1.1, zorder=2)
            every.append(values.learned)
        name_rows(axes, order, below=0.6, above=0.6)
        axes.margins(x=0.1)
        if log:
            axes.set_xscale("log")
            log_ticks(axes.xaxis, min(every), max(every))
        axes.grid(True, axis="both", alpha=0.6)

    dot: dict[str, Any] = {"linestyle": "none", "marker": "o"}
    keys = [key("published", color="white", **dot, **RING)]
    keys.append(key("here", color=theme.MUTED if learned else theme.colour(0), **dot, **DOT))
    if learned:
        side = "below" if better == "lower" else "above"
        keys.append(key(f"here, {side} the learned policy", color=theme.colour(0), **dot, **DOT))
        keys.append(key("published, learned policy", color=theme.colour(1), linewidth=1.1))
    return facets(pairs, panel, grid, keys=keys)[0]
