"""The figure of windows: each policy on every test window, as boxes with a dot a window, a panel a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import helpers, theme, units
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.batch.figures.settings import WindowsSettings
from schedlab.studies.batch.metrics import METRICS

ROW_MM = 4.6
WHISKERS = (5, 95)  # percentiles; the same on linear and logarithmic axes
FEWEST_BOXED = 6  # windows; the quartiles of fewer are the dots themselves
FEWEST_MARKED = 3  # windows; mean and median of fewer lie where no window is, and stand in the columns alone
HEAVIEST = 3  # windows whose part of the mean is told
NUMBERS = (24, 52)  # points right of a panel at which the columns of means and medians end
GOLDEN = (5**0.5 - 1) / 2  # multiples of it spread dots evenly, whatever their number
# Hollow, so that it hides no window.
MEAN_MARK: dict[str, Any] = {
    "linestyle": "none",
    "marker": "D",
    "markerfacecolor": "none",
    "markeredgecolor": INK,
    "markeredgewidth": 0.9,
    "markersize": 4,
}
BACKFILLING = {
    "none": "without backfilling",
    "legacy": "with the published backfilling",
    "easy": "with EASY backfilling",
    "conservative": "with conservative backfilling",
}
BY_NAME = {metric.name: metric for metric in METRICS}


def draw_windows(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a row a policy from best to worst mean, a dot a test window (mean over seeds).

    Marks of mean and median take FEWEST_MARKED windows, a box FEWEST_BOXED (WindowsSettings).
    """
    settings = helpers.settings_of(spec, WindowsSettings)
    metric = BY_NAME[settings.metric]
    names = list(spec.scenarios or sorted(tables.scenarios))
    if unknown := sorted({*settings.titles, *settings.learned} - set(names)):
        what, where = f"{', '.join(unknown)}: not in this figure", f"figure {spec.name}: params"
        raise UserError(what, where=where, expected=", ".join(names))
    kinds = dict(zip(tables.scores["policy"], tables.scores["kind"], strict=True))
    found, chosen = {}, {}
    for name in names:
        table = window_means(tables.scores, name, metric.name, spec.policies)
        chosen[name] = same_as_rules(table, kinds)
        found[name] = table.drop(columns=list(chosen[name]))
    if empty := [name for name in names if found[name].empty]:
        raise UserError(
            f"no scores of {metric.name} in {', '.join(empty)}",
            where=f"figure {spec.name}: policies",
            expected="scored ones",
        )
    scale = units.scaled(metric, max(float(means.max().max()) for means in found.values()))
    rows = max(means.shape[1] for means in found.values())
    figure, lines = theme.new_grid(len(names), 2, row_mm=17 + ROW_MM * rows, around_mm=10)
    looks = row_styles(tables.scores)
    for axes, name in zip(chain(*lines), names, strict=True):
        _panel(axes, found[name] / scale.size, looks)
        axes.set_title(settings.titles.get(name, name.replace("_", " ")))
        _axis(axes, found[name] / scale.size)
        for value in settings.learned.get(name, ()):
            axes.axvline(value / scale.size, color=theme.colour(1), linewidth=0.8, zorder=1)
    for axes in lines[-1]:
        axes.set_xlabel(scale.label)
    most = max(int(table.count().max()) for table in found.values())
    coloured = any(kinds[policy] != "rule" for table in found.values() for policy in table)
    helpers.legend_outside(figure, _keys(_dot_label(tables.scores, names), most, bool(settings.learned)), columns=5)
    told = [
        _caption_text(
            settings.titles.get(name, name), table, metric, scale, tables.scenarios[name].get("backfill", "none")
        )
        for name, table in found.items()
    ]
    colours = " Grey, rules; in colour, learned policies." if coloured else ""
    return Drawing(figure, f"{spec.caption}{colours} {' '.join(told)}{_chosen_text(chosen)}")


def row_styles(scores: pd.DataFrame) -> dict[str, Style]:
    """Return the looks of policies whose rows name them: all rules are grey, as their colours would mean nothing."""
    rules = set(scores.loc[scores["kind"] == "rule", "policy"])
    styles = theme.styles_of(scores)
    return {name: replace(look, colour=MUTED) if name in rules else look for name, look in styles.items()}


def window_means(scores: pd.DataFrame, scenario: str, metric: str, policies: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a metric on test windows, mean over seeds: a row a window, a column a policy, lowest mean first."""
    rows = scores[(scores["scenario"] == scenario) & (scores["metric"] == metric) & (scores["split"] == "test")]
    if policies:
        rows = rows[rows["policy"].isin(policies)]
    table = rows.pivot_table(index="unit", columns="policy", values="value", aggfunc="mean")
    means = table.mean()
    return table[sorted(table.columns, key=lambda name: (means[name], name))]


def same_as_rules(table: pd.DataFrame, kinds: Mapping[str, str]) -> dict[str, str]:
    """Return learned policy -> rule, for those with exactly a rule's scores; kinds: policy -> learned or rule."""
    rules, learned = ([name for name in table if kinds[name] == kind] for kind in ("rule", "learned"))
    equal = {name: [rule for rule in rules if table[rule].equals(table[name])] for name in learned}
    return {name: same[0] for name, same in equal.items() if same}


def _panel(axes: Axes, table: pd.DataFrame, looks: Mapping[str, Style]) -> None:
    for height, policy in enumerate(table.columns):
        values, look = table[policy].dropna().to_numpy(), looks[policy]
        boxed, marked = len(values) >= FEWEST_BOXED, len(values) >= FEWEST_MARKED
        if boxed:
            thin: dict[str, Any] = {"color": look.colour, "linewidth": 0.8}
            axes.boxplot(
                values, positions=[height], orientation="horizontal", widths=0.62, whis=WHISKERS, showfliers=False,
                patch_artist=True, boxprops={"facecolor": look.colour, "alpha": 0.28, "linewidth": 0},
                medianprops={"color": INK, "linewidth": 1.3}, whiskerprops=thin, capprops=thin, manage_ticks=False,
            )  # fmt: skip
        elif marked:
            axes.plot([np.median(values)] * 2, [height - 0.31, height + 0.31], color=INK, linewidth=1.3)
        places = height + 0.42 * ((np.arange(1, len(values) + 1) * GOLDEN) % 1 - 0.5)
        size = 3.2 if boxed else 5.0
        axes.plot(values, places, ".", color=look.colour, markersize=size, markeredgewidth=0, alpha=0.75, zorder=3)
        if marked:
            axes.plot([values.mean()], [height], **MEAN_MARK, zorder=4)
        for place, value in zip(NUMBERS, (values.mean(), np.median(values)), strict=True):
            _beside(axes, three_digits(value), (1, height), (place, 0), axes.get_yaxis_transform(), va="center")
    for place, what in zip(NUMBERS, ("mean", "median"), strict=True):
        _beside(axes, what, (1, 1), (place, 3), "axes fraction", color=MUTED)
    label_rows(axes, list(table.columns))
    axes.grid(True, axis="x")


def _beside(axes: Axes, text: str, at: tuple[float, float], points: tuple[float, float], of: Any, **look: Any) -> None:
    """Write small text that ends so many points from a place."""
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "fontsize": "x-small"}
    axes.annotate(text, at, points, xycoords=of, **style, **look)


def _axis(axes: Axes, table: pd.DataFrame) -> None:
    """A logarithmic axis; where a window has a value of 0, linear below the smallest mean of a policy."""
    low, high = float(table.min().min()), float(table.max().max())
    if low > 0:
        axes.set_xscale("log")
        helpers.log_ticks(axes.xaxis, low, high)
    else:
        axes.set_xscale("symlog", linthresh=10 ** np.floor(np.log10(float(table.mean().min()))))
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:g}")


def _dot_label(scores: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """What a dot is: windows of published protocols are told by their kind, for those that overlap judge nothing."""
    shown = scores[scores["scenario"].isin(scenarios) & (scores["split"] == "test")]["unit_kind"].unique()
    return "a " + " or ".join(sorted("test window" if kind == "window" else f"window ({kind})" for kind in shown))


def _keys(dot: str, windows: int, learned: bool) -> list[object]:
    """Handles of the legend for panels of at most so many windows."""
    keys: list[object] = [Line2D([], [], linestyle="none", marker=".", color=MUTED, markersize=4, label=dot)]
    if windows >= FEWEST_BOXED:
        keys.append(Patch(facecolor=MUTED, alpha=0.35, label="middle half; lines, 5 to 95 %"))
    if windows >= FEWEST_MARKED:
        keys.append(Line2D([], [], color=INK, linewidth=1.3, label="median"))
        keys.append(Line2D([], [], label="mean", **MEAN_MARK))
    if learned:
        what = "published means of learned policies"
        keys.append(Line2D([], [], color=theme.colour(1), linewidth=0.8, label=what))
    return keys


def _caption_text(name: str, table: pd.DataFrame, metric: Metric, scale: units.Scaled, backfill: str) -> str:
    """The best and worst policy by mean, the best by median, and the share of a few windows in a mean."""
    lower, means, medians = metric.better == "lower", table.mean(), table.median()
    what = f"{name}, {BACKFILLING[backfill]}, {len(table)} window{'s' if len(table) > 1 else ''}"
    best, worst = (table.columns[0], table.columns[-1]) if lower else (table.columns[-1], table.columns[0])
    if means[best] == means[worst]:
        return f"{what}: all policies alike ({scale.text(means[best])})."
    by_median = medians.idxmin() if lower else medians.idxmax()
    words = (
        f"{what}: best mean {best} ({scale.text(means[best])}), worst {worst} ({scale.text(means[worst])}), "
        f"best median {by_median} ({scale.text(medians[by_median])})"
    )
    heavy = min(HEAVIEST, len(table) - 1)
    if not lower or not heavy:
        return f"{words}."
    share = 100 * table[best].nlargest(heavy).sum() / table[best].sum()
    return f"{words}; {heavy} {'windows make' if heavy > 1 else 'window makes'} {share:.0f} % of the mean of {best}."


def _chosen_text(chosen: Mapping[str, Mapping[str, str]]) -> str:
    """Which learned policies are rules and thus have no row of their own."""
    told = [f"in {name} {policy} is {rule}" for name, same in chosen.items() for policy, rule in same.items()]
    return f" Not shown apart: {', '.join(told)}." if told else ""


def label_rows(axes: Axes, labels: list[str], below: float = 0.4, above: float = 0.6) -> None:
    """Name the rows of a panel from the top down, which ends so far from the number of rows and from 0."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - below, -above)
    axes.tick_params(axis="y", length=0)


def three_digits(value: float) -> str:
    """Return a number of three digits, or of all before the point."""
    return f"{value:#.3g}".rstrip(".") if abs(value) < 1000 else f"{value:.0f}"
