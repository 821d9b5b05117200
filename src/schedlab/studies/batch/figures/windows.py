"""The figure of windows: a panel for each scenario, a box for each policy, and a dot for each test window."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.evaluation.statistics import TIE
from schedlab.figures import theme, units
from schedlab.figures.captions import three_digits
from schedlab.figures.drawing import settings_of
from schedlab.figures.order import FITTED, kinds_of, ranked, trained
from schedlab.figures.panels.axes import key, log_ticks, name_rows
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.batch.backfilling import EASY_SJBF, ORDERED
from schedlab.studies.batch.figures.settings import WindowsSettings
from schedlab.studies.batch.metrics import METRICS

ROW_MM = 4.6
WHISKERS = (5, 95)  # percentiles; the same on linear and logarithmic axes
FEWEST_BOXED = 6  # windows; the quartiles of fewer are the dots themselves
FEWEST_MARKED = 3  # windows; mean and median of fewer lie where no window is, and stand in the columns alone
HEAVIEST = 3  # windows whose part of the mean is given
NUMBERS = (24, 52)  # points right of a panel at which the columns of means and medians end
GOLDEN = (5**0.5 - 1) / 2  # multiples of it spread dots evenly, whatever their number
# Hollow, so that it hides no window.
MEAN_MARK: dict[str, Any] = {"linestyle": "none", "marker": "D", "markerfacecolor": "none", "markersize": 4}
MEAN_MARK |= {"markeredgecolor": INK, "markeredgewidth": 0.9}
BACKFILLING = {
    "none": "without backfilling",
    "legacy": "with the published backfilling",
    "easy": "with EASY backfilling",
    "conservative": "with conservative backfilling",
}
METRIC = "avg_bsld"  # by which policies are chosen
BY_NAME = {metric.name: metric for metric in METRICS}
CAPTION = (
    "[{coloured}Grey: rules and planners. Coloured: learned and searched policies.] "
    "{scenarios:{title}, {backfilling}, {windows:window|windows}: [{alike}all policies alike, ]"
    "best mean {best} ({mean}[, {share:.0%} of it from {heavy:window|windows}]), worst {worst} ({worst_mean}), "
    "best median {best_median} ({median})}. "
    "[Without a row of its own: {same:in {scenario} {policy}, which acts as {rule}}.] "
    "[Not drawn: {folded} rules with another order of backfilling than EASY-SJBF and the best on validation.]"
)


def draw_windows(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each scenario, with a row for each policy from best to worst mean, and a dot for each test
    window (mean over seeds).

    Marks of mean and median take FEWEST_MARKED windows, a box FEWEST_BOXED (WindowsSettings).
    """
    settings = settings_of(spec, WindowsSettings)
    metric, kinds = BY_NAME[settings.metric], kinds_of(tables.scores)
    names = list(spec.scenarios or sorted(tables.scenarios))
    if unknown := sorted({*settings.titles, *settings.learned} - set(names)):
        what, where = f"{', '.join(unknown)}: not in this figure", f"figure {spec.name}: params"
        raise UserError(what, where=where, expected=", ".join(names))
    found, same, hidden = {}, [], set[str]()
    for name in names:
        hidden |= set() if spec.policies else folded(tables.scores, name)
        table = window_means(tables.scores, name, metric.name, spec.policies)
        chosen = same_as_rules(table, trained(tables.scores))
        same += [{"scenario": name, "policy": policy, "rule": rule} for policy, rule in chosen.items()]
        found[name] = table.drop(columns=list(chosen))
    if empty := [name for name in names if found[name].empty]:
        what, where = f"no scores of {metric.name} in {', '.join(empty)}", f"figure {spec.name}: policies"
        raise UserError(what, where=where, expected="scored ones")
    scale = units.scaled(metric, max(float(means.max().max()) for means in found.values()))
    row_mm = 17 + ROW_MM * max(means.shape[1] for means in found.values())
    looks = row_styles(tables.scores)

    def panel(axes: Axes, name: str) -> None:
        _panel(axes, found[name] / scale.size, looks)
        _axis(axes, found[name] / scale.size)
        for value in settings.learned.get(name, ()):
            axes.axvline(value / scale.size, color=theme.colour(1), linewidth=0.8, zorder=1)

    most = max(int(table.count().max()) for table in found.values())
    keys = _keys(_dot_label(tables.scores, names), most, bool(settings.learned))
    groups = [(settings.titles.get(name, name.replace("_", " ")), name) for name in names]
    figure, _ = facets(groups, panel, Grid(2, row_mm, 10, scale.label, lines="x"), keys=keys, columns=5)
    scenarios = []
    for name, table in found.items():
        backfilling = BACKFILLING[tables.scenarios[name].get("backfill", "none")]
        head = {"title": settings.titles.get(name, name), "backfilling": backfilling, "windows": len(table)}
        scenarios.append({**head, **_ends(table, metric, scale, kinds)})
    coloured = any(kinds[policy] in FITTED for table in found.values() for policy in table)
    return Drawing(
        figure, CAPTION, {"coloured": coloured, "scenarios": scenarios, "same": same, "folded": len(hidden) or None}
    )


def row_styles(scores: pd.DataFrame) -> dict[str, Style]:
    """Return the styles of policies whose rows name them: rules and planners are grey; colours would add nothing."""
    kinds = kinds_of(scores)
    looks = theme.styles_of(scores).items()
    return {name: replace(look, colour=MUTED) if kinds[name] not in FITTED else look for name, look in looks}


def window_means(scores: pd.DataFrame, scenario: str, metric: str, policies: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a metric on test windows, as the mean over seeds: a row for each window, a column for each policy, the
    best mean first. Without `policies`, those of `folded` are left out.
    """
    rows = select(scores, scenario=scenario, metric=metric, split="test")
    rows = select(rows, policy=policies) if policies else rows[~rows["policy"].isin(folded(scores, scenario))]
    table = rows.pivot_table(index="unit", columns="policy", values="value", aggfunc="mean")
    return table[ranked(table.mean().to_dict(), BY_NAME[metric].better)]


def folded(scores: pd.DataFrame, scenario: str) -> set[str]:
    """Return the rules with another order of backfilling that have no row of their own, for there are dozens: all but
    EASY-SJBF and the one of the best mean on validation.
    """
    here = select(scores, scenario=scenario, metric=METRIC, policy=ORDERED)
    means = select(here, split="validation").groupby("policy")["value"].mean()
    shown = {EASY_SJBF} if means.empty else {EASY_SJBF, ranked(means.to_dict(), "lower")[0]}
    return set(here["policy"]) - shown


def same_as_rules(table: pd.DataFrame, trained: Collection[str]) -> dict[str, str]:
    """Return trained policy -> policy that was not trained, for pairs with equal scores except for rounding."""
    found: dict[str, str] = {}
    rules = [name for name in table if name not in trained]
    for name in (name for name in table if name in trained):
        same = [rule for rule in rules if np.allclose(table[rule], table[name], rtol=TIE, atol=0.0, equal_nan=True)]
        found |= {name: same[0]} if same else {}
    return found


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
            _right(axes, three_digits(value), (1, height), (place, 0), axes.get_yaxis_transform(), va="center")
    for place, what in zip(NUMBERS, ("mean", "median"), strict=True):
        _right(axes, what, (1, 1), (place, 3), "axes fraction", color=MUTED)
    name_rows(axes, list(table.columns), below=0.6, above=0.6)


def _right(axes: Axes, text: str, at: tuple[float, float], points: tuple[float, float], of: Any, **look: Any) -> None:
    """Write small text that ends so many points from a place."""
    style: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "fontsize": "x-small"}
    axes.annotate(text, at, points, xycoords=of, **style, **look)


def _axis(axes: Axes, table: pd.DataFrame) -> None:
    """A logarithmic axis; where a window has a value of 0, linear below the smallest mean of a policy."""
    low, high = float(table.min().min()), float(table.max().max())
    if low > 0:
        axes.set_xscale("log")
        log_ticks(axes.xaxis, low, high)
    else:
        axes.set_xscale("symlog", linthresh=10 ** np.floor(np.log10(float(table.mean().min()))))
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter("{x:g}")


def _dot_label(scores: pd.DataFrame, scenarios: Sequence[str]) -> str:
    """What a dot is: windows of published protocols are named by their kind, for those that overlap judge nothing."""
    shown = select(scores, scenario=scenarios, split="test")["unit_kind"].unique()
    return "a " + " or ".join(sorted("test window" if kind == "window" else f"window ({kind})" for kind in shown))


def _keys(dot: str, windows: int, learned: bool) -> list[Any]:
    """Handles of the legend for panels of at most so many windows."""
    keys: list[Any] = [key(dot, linestyle="none", marker=".", color=MUTED, markersize=4)]
    if windows >= FEWEST_BOXED:
        label = "middle half; lines, {} to {} %".format(*WHISKERS)
        keys.append(Patch(facecolor=MUTED, alpha=0.35, label=label))
    if windows >= FEWEST_MARKED:
        keys += [key("median", color=INK, linewidth=1.3), key("mean", **MEAN_MARK)]
    if learned:
        keys.append(key("published means of learned policies", color=theme.colour(1), linewidth=0.8))
    return keys


def _ends(table: pd.DataFrame, metric: Metric, scale: units.Scaled, kinds: Mapping[str, str]) -> dict[str, Any]:
    """The best and worst policy by mean, the best by median, and the share of a few windows in the best mean."""
    means, medians = table.mean().to_dict(), table.median().to_dict()
    order = ranked(means, metric.better, kinds)
    best, worst = order[0], order[-1]
    by_median = (min if metric.better == "lower" else max)(order, key=lambda name: medians[name])
    heavy = min(HEAVIEST, len(table) - 1) if metric.better == "lower" else 0
    share = float(table[best].nlargest(heavy).sum() / table[best].sum()) if heavy else None
    ends = {
        "alike": means[best] == means[worst],
        "best": best,
        "mean": scale.of(means[best]),
        "share": share,
        "heavy": heavy,
    }
    ends |= {"worst": worst, "worst_mean": scale.of(means[worst])}
    return {**ends, "best_median": by_median, "median": scale.of(medians[by_median])}
