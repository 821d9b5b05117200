"""Points with their uncertainty: one for each policy, pairs of published values and ours, and the legend of bars and
lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from schedlab.figures.panels.axes import key, name_rows
from schedlab.figures.theme import INK, MUTED, Style

LETTERS_IN_A_ROW = 110  # of a legend below a figure of the theme's width, with room for the handles
UNCERTAINTY = "[Bars: {interval}.] [Thin lines: {range}.]"  # what `explain_uncertainty` returns, for a caption
BAR: dict[str, Any] = {"linewidth": 2.2, "alpha": 0.55, "solid_capstyle": "butt"}
THIN: dict[str, Any] = {"linewidth": 0.7, "markersize": 4}
RING: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.8, "markersize": 7}


def span(axes: Axes, row: Mapping[str, Any], place: float, *, colour: str, upright: bool = False) -> None:
    """Draw the uncertainty of a row of a summary at a height (upright: a horizontal place): the interval as a bar, else
    the range, if there is one, as a thin line.
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
    shift   of the points from the middle of their rows, in heights of a row
    absent  what stands in the row of a policy without a value
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


def explain_uncertainty(
    figure: Figure, rows: pd.DataFrame, level: float, *, more: Sequence[Any] = (), over: str = ""
) -> dict[str, str]:
    """Explain below the figure those of bars and thin lines that occur in `rows`; return the values of
    UNCERTAINTY.

    level  coverage of the intervals, from the study's statistics
    more   further handles for the key
    over   what the bootstrap draws, where a study has its own word for it ("workloads"); else seeds and blocks
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


def beside_published(
    axes: Axes,
    order: Sequence[str],
    ours: Mapping[str, float],
    published: Mapping[str, float],
    colours: Mapping[str, str],
) -> None:
    """Draw a row for each policy: a dot for our value, a ring for the published one."""
    for height, policy in enumerate(order):
        if policy in ours:
            look: dict[str, Any] = {"color": colours[policy], "markersize": 4, "markeredgewidth": 0, "zorder": 4}
            axes.plot([ours[policy]], [height], "o", **look)
        if policy in published:
            axes.plot([published[policy]], [height], "o", color="none", zorder=3, **RING)
    name_rows(axes, order, below=0.6, above=0.6)
    axes.margins(x=0.1)


def published_keys(colour: str) -> list[Any]:
    """Return the legend's entries of `beside_published`."""
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o"}
    return [key("published", color="white", **dot, **RING), key("here", color=colour, markersize=4, **dot)]
