"""The figure of the pairs: their scores in colours, and where other policies stand among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import helpers, theme, units
from schedlab.figures.theme import GRID, INK
from schedlab.studies.hetero.env.settings import ALL_PAIRS, PAIR_SEPARATOR
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import PairsSettings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

COLOURS = "viridis_r"
VALUES = ("value", "ci_low", "ci_high", "range_low", "range_high")
FRAMES = ("-", (0, (2, 1.2)), (0, (0.8, 0.8)))  # around the cells of pairs that were found by trying
ROW_MM = 4.6


def draw_pairs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Above, the pairs' test scores, framed where a rule chose the pair (equal scores); below, all other policies."""
    from matplotlib.colors import LogNorm, Normalize

    settings = helpers.settings_of(spec, PairsSettings)
    name, metric = data.scenarios(tables, spec)[0], data.BY_NAME[settings.metric]
    means = data.split_means(tables.summary, metric.name, name)
    pairs = {pair: means[pair] for pair in ALL_PAIRS if pair in means}
    if not pairs:
        what = f"no pair has a score {metric.name} on {name}"
        raise UserError(what, where=f"figure {spec.name}: scenarios", expected="a scenario with pairs")
    shown = [policy for policy in spec.policies or sorted(means) if policy in means and policy not in pairs]
    rules = {rule: same_scores(tables.scores, name, rule, pairs) for rule in settings.found if rule in shown}
    chosen = {rule: pair for rule, pair in rules.items() if pair}
    order = sorted(shown, key=lambda policy: means[policy] if metric.better == "lower" else -means[policy])
    rows_mm = ROW_MM * len(order)
    figure, (above, below) = theme.new_figure(2, 1, height_mm=82 + rows_mm, height_ratios=[46, 8 + rows_mm])
    low, high = min(pairs.values()), max(pairs.values())
    scale = units.scaled(metric, high)
    norm = LogNorm(low / scale.size, high / scale.size) if 0 < low < high else Normalize()
    helpers.heat_map(above, table(pairs, scale.size), form="{:.3g}", label=scale.label, colours=COLOURS, norm=norm)
    if isinstance(norm, LogNorm):
        _plain_ticks(figure.axes[-1].yaxis)
    above.set(xlabel="core policy", ylabel="job policy")
    frames = [_frame(above, chosen[rule], FRAMES[number % len(FRAMES)], rule) for number, rule in enumerate(chosen)]
    rows = tables.summary[(tables.summary["scenario"] == name) & (tables.summary["split"] == "test")]
    rows = rows[(rows["metric"] == metric.name) & rows["policy"].isin(order)]
    rows = rows.assign(**{column: rows[column] / scale.size for column in VALUES})
    _strip(below, rows, order, theme.styles_of(tables.scores), [value / scale.size for value in pairs.values()])
    seeds = _seeds(tables.scores, name, metric)
    for height, policy in enumerate(order):
        if len(seeds[policy]) > 1:
            look = {"color": INK, "markersize": 6, "markeredgewidth": 0.7, "zorder": 4}
            below.plot(seeds[policy] / scale.size, [height] * len(seeds[policy]), "|", **look)
    arrow = "\N{LEFTWARDS ARROW}" if metric.better == "lower" else "\N{RIGHTWARDS ARROW}"
    below.set_xlabel(f"{scale.label}   {arrow} better")
    keys = [*frames, *_keys(any(len(values) > 1 for values in seeds[order]))]
    explained = helpers.explain_uncertainty(figure, rows, more=keys) if order else ""
    told = _caption(pairs, chosen, order, means, seeds, metric, scale)
    counted = f"Means over {rows['units'].max()} test workloads. " if len(rows) else ""
    caption = f"{spec.caption} Scenario {name}. {told} {counted}{explained}"
    return Drawing(figure, caption, left_out=helpers.after_the_first(spec))


def same_scores(scores: pd.DataFrame, scenario: str, policy: str, pairs: Mapping[str, float]) -> str:
    """Return the pair whose test scores equal those of a rule in every metric; empty where there is none."""
    rows = scores[(scores["scenario"] == scenario) & (scores["split"] == "test")]
    key = ["policy_seed", "unit", "metric"]
    own = rows[(rows["policy"] == policy) & (rows["kind"] == "rule")].set_index(key)["value"].sort_index()
    if own.empty:
        return ""
    for pair in pairs:
        theirs = rows[rows["policy"] == pair].set_index(key)["value"].sort_index()
        if own.equals(theirs):
            return pair
    return ""


def place_among(value: float, pairs: Mapping[str, float], metric: Metric) -> int:
    """Return the place that a value has among the pairs: 1 where none is better."""
    return 1 + sum(other < value if metric.better == "lower" else other > value for other in pairs.values())


def table(pairs: Mapping[str, float], size: float) -> pd.DataFrame:
    """Return job policies (rows) by core policies (columns), each from the best mean to the worst one."""
    import pandas as pd

    parts = [(*pair.split(PAIR_SEPARATOR, 1), value / size) for pair, value in pairs.items()]
    grid = pd.DataFrame(parts, columns=["job", "core", "value"])
    grid = grid.pivot_table(index="job", columns="core", values="value")
    logs = np.log(grid.where(grid > 0))
    rows, columns = (logs.mean(axis=axis).sort_values(kind="stable").index for axis in (1, 0))
    return grid.loc[rows, columns].rename_axis(index=None, columns=None)


def _frame(axes: Axes, pair: str, dashes: Any, policy: str) -> Any:
    """Frame a pair's cell; returns the handle that explains it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    job, core = pair.split(PAIR_SEPARATOR, 1)
    ticks = (axes.get_xticklabels(), axes.get_yticklabels())
    columns, rows = ([label.get_text() for label in labels] for labels in ticks)
    look = {"linestyle": dashes, "linewidth": 1.8}
    corner = (columns.index(core) + 0.04, rows.index(job) + 0.06)
    axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor="#d0021b", zorder=5, **look))
    return Line2D([], [], color="#d0021b", label=f"pair of {policy}", **look)


def _plain_ticks(axis: Axis) -> None:
    """Write the ticks of a logarithmic axis as plain numbers, few of them."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 4, 5, 7)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _strip(
    axes: Axes, rows: pd.DataFrame, order: Sequence[str], styles: Mapping[str, theme.Style], pairs: Sequence[float]
) -> None:
    for value in pairs:
        axes.axvline(value, color=GRID, linewidth=0.8, zorder=0)
    helpers.points_with_uncertainty(axes, rows, order, styles)
    axes.grid(False)
    if min(*pairs, *rows["value"]) <= 0:
        helpers.short_ticks(axes, 6)
        return
    axes.set_xscale("log")
    _plain_ticks(axes.xaxis)


def _seeds(scores: pd.DataFrame, scenario: str, metric: Metric) -> pd.Series:
    """Policy -> mean of each of its seeds on the test workloads, weighted as the summary's."""
    rows = scores[(scores["scenario"] == scenario) & (scores["split"] == "test") & (scores["metric"] == metric.name)]
    sums = rows.assign(part=rows["value"] * rows["weight"]).groupby(["policy", "policy_seed"])[["part", "weight"]].sum()
    return (sums["part"] / sums["weight"]).groupby("policy").apply(lambda values: values.to_numpy())


def _keys(seeds: bool) -> list[Any]:
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], color=GRID, linewidth=1.2, label="a pair")]
    if seeds:
        look: dict[str, Any] = {"color": INK, "marker": "|", "linestyle": "none", "markersize": 6}
        keys.append(Line2D([], [], label="a seed of a learned policy", **look))
    return keys


def _caption(
    pairs: Mapping[str, float],
    chosen: Mapping[str, str],
    order: Sequence[str],
    means: Mapping[str, float],
    seeds: pd.Series,
    metric: Metric,
    scale: units.Scaled,
) -> str:
    """The best and the last pair, and the place of every other policy among them (by seed if learned)."""
    ranked = sorted(pairs, key=lambda pair: place_among(pairs[pair], pairs, metric))
    first, last = (f"{pair} ({scale.text(pairs[pair])})" for pair in (ranked[0], ranked[-1]))
    told = []
    for policy in order:
        values = seeds[policy]
        places = ", ".join(str(place_among(value, pairs, metric)) for value in sorted(values))
        what = f" chose {chosen[policy]}," if policy in chosen else ""
        by_seed = " (by seed)" if len(values) > 1 else ""
        told.append(f"{policy}{what} {scale.text(means[policy])}, place {places}{by_seed}")
    best = f"Best of {len(pairs)} pairs {first}, last {last}."
    return f"{best} Where each would stand among them: {'; '.join(told)}."
