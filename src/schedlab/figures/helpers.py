"""Drawing helpers that know no study: values of a figure, points with uncertainty, learning curves, heat maps, labels
and legends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from schedlab.config.contract import FigureSpec, Metric
from schedlab.config.schema import Settings, validate
from schedlab.figures.theme import GRID, INK, MUTED, Style, ink_on

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

TICKS = (
    (3.2, (1, 1.5, 2, 3, 5, 7)),
    (15.0, (1, 2, 5)),
    (60.0, (1, 3)),
)  # largest over smallest value -> multiples of powers of ten
S = TypeVar("S", bound=Settings)
LETTERS_IN_A_ROW = 110  # of a legend below a figure of the theme's width, with room for the handles


def settings_of(spec: FigureSpec, kind: type[S]) -> S:
    """Return the typed values of a figure. Raises UserErrors."""
    return validate(kind, spec.params, lambda path: f"figure {spec.name}: params.{'.'.join(map(str, path))}")


def after_the_first(spec: FigureSpec) -> dict[str, str]:
    """Return what a drawing of one scenario leaves out (see Drawing): all but the first that its figure names."""
    return dict.fromkeys(spec.scenarios[1:], "only the first scenario has a place here")


def axis_label(metric: Metric) -> str:
    """Return 'Label (unit)', without the unit where there is none."""
    label = metric.label or metric.name.replace("_", " ")
    return label if metric.unit in ("", "-", "1") else f"{label} ({metric.unit})"


def shared_xlabel(panels: Sequence[Axes], text: str) -> None:
    """Write one label below a row of panels, in their middle; a label of the whole figure would lie on a legend
    outside.
    """
    odd, middle = len(panels) % 2, len(panels) // 2
    panels[middle].set_xlabel(text, x=0.5 if odd else 0.0, horizontalalignment="center")


def short_ticks(axes: Axes, most: int = 3) -> None:
    """Give a narrow panel few ticks on its horizontal axis, written as short as they can be (0.05, 0)."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value, "{:.4g}")))


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Write plain numbers on a logarithmic axis of values from `low` to `high`, between powers of ten as well where
    those lie close.

    Call it after the scale is set.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=next((subs for ratio, subs in TICKS if high < ratio * low), (1,))))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def policy_order(summary: pd.DataFrame, metric: Metric) -> list[str]:
    """Return the policies of a summary from best to worst in a metric, by their median rank over the scenarios; ties by
    name.
    """
    rows = summary[summary["metric"] == metric.name]
    ranks = rows.groupby(["scenario", "split", "mode"])["value"].rank(ascending=metric.better == "lower")
    medians = ranks.groupby(rows["policy"]).median()
    return sorted(medians.index, key=lambda name: (medians[name], name))


def points_with_uncertainty(axes: Axes, rows: pd.DataFrame, order: Sequence[str], styles: Mapping[str, Style]) -> None:
    """Draw one row for each policy, the first on top: a point, its interval as a bar or, where there is none, its range
    as a thin line.

    rows  rows of the summary or of the comparisons (then `difference` is shown) of one scenario, split and metric
    """
    value = "value" if "value" in rows.columns else "difference"
    known = {row["policy"]: row for _, row in rows.iterrows()}
    for height, policy in enumerate(order):
        if policy not in known:
            axes.text(
                0.01,
                height,
                "not run",
                transform=axes.get_yaxis_transform(),
                color=MUTED,
                va="center",
                fontstyle="italic",
            )
            continue
        row, style = known[policy], styles[policy]
        if np.isfinite(row["ci_low"]):
            axes.plot(
                [row["ci_low"], row["ci_high"]],
                [height] * 2,
                color=style.colour,
                linewidth=2.2,
                solid_capstyle="butt",
                alpha=0.55,
            )
        elif row["range_high"] > row["range_low"]:
            axes.plot(
                [row["range_low"], row["range_high"]],
                [height] * 2,
                color=style.colour,
                linewidth=0.7,
                marker="|",
                markersize=4,
            )
        axes.plot([row[value]], [height], zorder=3, **style.point())
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")


def explain_uncertainty(
    figure: Figure, rows: pd.DataFrame, level: float = 0.95, *, more: Sequence[Any] = (), over: str = ""
) -> str:
    """Put a key of bars and thin lines below the figure, for those that occur in `rows`; returns the same as a
    sentence.

    more  further handles for the key
    over  what the bootstrap draws, where a study has its own word for it ("workloads"); else seeds and blocks
    """
    from matplotlib.lines import Line2D

    given = np.isfinite(rows["ci_low"].to_numpy(dtype=float))
    ranged = ~given & (rows["range_high"] > rows["range_low"]).to_numpy()
    bar = f"{100 * level:g} % interval (bootstrap over {over or 'seeds and blocks'})"
    line = f"smallest to largest {over.removesuffix('s') if over else 'seed (a rule: block)'}; too few for an interval"
    handles = [Line2D([], [], color=MUTED, linewidth=2.2, alpha=0.7, label=bar)] if given.any() else []
    handles += (
        [Line2D([], [], color=MUTED, linewidth=0.7, marker="|", markersize=4, label=line)] if ranged.any() else []
    )
    handles += more
    if not handles:
        return ""
    wide = sum(len(handle.get_label()) + 8 for handle in handles) > LETTERS_IN_A_ROW
    figure.legend(handles=handles, loc="outside lower center", ncols=min(2, len(handles)) if wide else len(handles))
    texts = [f"Bars: {bar}."] if given.any() else []
    return " ".join(texts + ([f"Thin lines: {line}."] if ranged.any() else []))


def running_mean(values: Sequence[float] | np.ndarray, window: int) -> np.ndarray:
    """Return the mean of the last `window` values at each place (fewer at the start), same length; values (..., n)
    along the last axis.
    """
    values = np.asarray(values, dtype=float)
    if window < 1:
        raise ValueError("the window of a running mean is at least 1")
    sums = np.cumsum(values, axis=-1)
    sums[..., window:] = sums[..., window:] - sums[..., :-window].copy()
    return sums / np.minimum(np.arange(1, values.shape[-1] + 1), window)


def learning_curve(
    axes: Axes,
    points: pd.DataFrame,
    style: Style,
    *,
    window: int = 1,
    whole: bool = False,
    x: str = "step",
    label: str = "",
) -> None:
    """Draw the mean over seeds of one policy's curve after a running mean, and the range of the seeds as a band.

    points  rows of the curves table of one policy, phase, scenario, split and metric; only places that all seeds
            reached are drawn
    whole   draw nothing before the first whole window, where there is one
    """
    grid = points.pivot_table(index="policy_seed", columns=x, values="value", aggfunc="mean").dropna(axis="columns")
    smooth = running_mean(grid.to_numpy(), window)
    places = grid.columns.to_numpy()
    if whole:
        first = min(window, len(places)) - 1
        smooth, places = smooth[:, first:], places[first:]
    if len(grid) > 1:
        axes.fill_between(places, smooth.min(axis=0), smooth.max(axis=0), color=style.colour, alpha=0.18, linewidth=0)
    axes.plot(places, smooth.mean(axis=0), label=label, **style.line())


def heat_map(
    axes: Axes, table: pd.DataFrame, *, form: str = "{:.2f}", label: str = "", colours: str = "cividis", **limits: Any
) -> None:
    """Draw a table as coloured cells with their numbers in them, dark on light and light on dark; a cell without a
    value holds a dash.

    form    how a number is written. label: of the colour bar (none if empty). limits: vmin, vmax, norm
    """
    numbers = np.ma.masked_invalid(table.to_numpy(dtype=float))
    image = axes.pcolormesh(numbers, cmap=colours, edgecolors="white", linewidth=0.6, **limits)
    axes.invert_yaxis()
    for row, column in np.ndindex(numbers.shape):
        if numbers.mask is not np.ma.nomask and numbers.mask[row, column]:
            axes.plot([column + 0.35, column + 0.65], [row + 0.5] * 2, color=GRID, linewidth=1)
            continue
        ink = ink_on(image.cmap(image.norm(numbers[row, column])))
        axes.text(column + 0.5, row + 0.5, number_text(numbers[row, column], form), ha="center", va="center", color=ink)
    axes.set_xticks(np.arange(table.shape[1]) + 0.5, [str(name) for name in table.columns])
    axes.set_yticks(np.arange(table.shape[0]) + 0.5, [str(name) for name in table.index])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if label:
        bar = axes.figure.colorbar(image, ax=axes, label=label, aspect=30, pad=0.02)
        bar.outline.set_visible(False)


def text_table(axes: Axes, cells: Sequence[Sequence[str]], header: Sequence[str], row_height: float) -> None:
    """Draw a table of texts with a line under each row, the first column to the left; row_height: in heights of its
    text.
    """
    axes.axis("off")
    table = axes.table(cells, colLabels=header, cellLoc="center", loc="center", edges="horizontal")
    table.auto_set_font_size(False)
    table.scale(1, row_height)
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor(INK if row == 0 else GRID)
        cell.set_linewidth(0.6)
        if column == 0:
            cell.set_text_props(ha="left")
            cell.PAD = 0.02
    table.auto_set_column_width(list(range(len(header))))


def number_text(value: float, form: str) -> str:
    """Return a number as text, with a minus sign as the axes have it and none before a zero."""
    text = form.format(value)
    return form.format(0.0) if text == form.format(-0.0) else text.replace("-", "\N{MINUS SIGN}")


def legend_outside(figure: Figure, handles: Iterable[Any] | None = None, *, columns: int = 0, title: str = "") -> None:
    """Put one legend for all axes below the figure, each label once; columns 0: four at most.

    handles  what to explain (with labels); None: all labelled things of all axes
    """
    found = (
        handles
        if handles is not None
        else [handle for axes in figure.axes for handle in axes.get_legend_handles_labels()[0]]
    )
    once = {handle.get_label(): handle for handle in found}
    figure.legend(
        once.values(),
        once.keys(),
        loc="outside lower center",
        ncols=columns or min(4, max(1, len(once))),
        title=title or None,
    )


def policy_handles(styles: Mapping[str, Style], policies: Iterable[str], *, lines: bool = False) -> list[Any]:
    """Return legend handles for policies: markers, or lines."""
    from matplotlib.lines import Line2D

    return [Line2D([], [], label=name, **(styles[name].line() if lines else styles[name].point())) for name in policies]


def direct_labels(axes: Axes, *, gap: float = 1.2) -> None:
    """Write each line's label right of the axes instead of in a legend, moved apart where they would overlap, with a
    thin leader.

    gap  smallest distance of two labels, in heights of the text. Call it last, when limits and scales of the axes are
         final
    """
    from matplotlib import rcParams

    axes.figure.draw_without_rendering()  # so that the layout is known
    lines = [line for line in axes.get_lines() if not line.get_label().startswith("_") and len(line.get_xdata())]
    ends = [(line.get_xdata()[-1], line.get_ydata()[-1]) for line in lines]
    box = axes.get_window_extent()
    size = axes.xaxis.get_ticklabels()[0].get_fontsize() if axes.xaxis.get_ticklabels() else rcParams["font.size"]
    wanted = [(axes.transData.transform(end)[1] - box.y0) / box.height for end in ends]
    heights = spread(wanted, gap * size * axes.figure.dpi / 72 / box.height)
    for line, end, height in zip(lines, ends, heights, strict=True):
        leader = {
            "arrowstyle": "-",
            "color": line.get_color(),
            "linewidth": 0.4,
            "alpha": 0.6,
            "shrinkA": 1,
            "shrinkB": 1,
        }
        axes.annotate(
            line.get_label(),
            xy=end,
            xytext=(1.03, height),
            textcoords="axes fraction",
            color=line.get_color(),
            va="center",
            fontsize=size,
            arrowprops={**leader, "relpos": (0, 0.5)},
            annotation_clip=False,
        )


def spread(heights: Sequence[float], distance: float) -> list[float]:
    """Return the heights moved apart to at least `distance`, in their order and as close to where they were as least
    squares gives.
    """
    order = np.argsort(heights, kind="stable")
    groups: list[list[float]] = []  # (sum of wanted heights of the first member, count): pool adjacent violators
    for place, index in enumerate(order):
        groups.append([heights[index] - place * distance, 1])
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, count = groups.pop()
            groups[-1] = [groups[-1][0] + total, groups[-1][1] + count]
    moved = [total / count for total, count in groups for _ in range(int(count))]
    result = [0.0] * len(heights)
    for place, index in enumerate(order):
        result[index] = moved[place] + place * distance
    return result
