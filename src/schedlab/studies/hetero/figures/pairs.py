"""The figure of the pairs: their scores in colours, and where other policies stand among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle

from schedlab.config.contract import Drawing, FigureSpec, Metric, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import theme, units
from schedlab.figures.drawing import after_the_first, settings_of
from schedlab.figures.order import ranked
from schedlab.figures.panels.axes import BETTER, key, log_ticks, short_ticks
from schedlab.figures.panels.cells import heat_map
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, points_with_uncertainty
from schedlab.figures.theme import GRID, INK
from schedlab.studies.hetero.env.settings import ALL_PAIRS, PAIR_SEPARATOR
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.settings import PairsSettings

FRAMES = ("-", (0, (2, 1.2)), (0, (0.8, 0.8)))  # around the cells of pairs that were found by trying
FRAME = "#d0021b"
ROW_MM = 4.6
CAPTION = (
    "Scenario {scenario}. Best of {pairs} pairs {first} ({first_value}), last {last} ({last_value}). "
    "Where each would stand among them: "
    "{places:{name}[ chose {pair},] {value}, place {places}[{several} (by seed)]}. "
    "[Means over {workloads} test workloads.] "
) + UNCERTAINTY


def draw_pairs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Above, the pairs' test scores, framed where a rule chose the pair (equal scores); below, all other policies."""
    settings = settings_of(spec, PairsSettings)
    name, metric = data.scenarios(tables, spec)[0], data.BY_NAME[settings.metric]
    means = data.split_means(tables.summary, metric.name, name)
    pairs = {pair: means[pair] for pair in ALL_PAIRS if pair in means}
    if not pairs:
        what = f"no pair has a score {metric.name} on {name}"
        raise UserError(what, where=f"figure {spec.name}: scenarios", expected="a scenario with pairs")
    shown = {policy: means[policy] for policy in spec.policies or means if policy in means and policy not in pairs}
    order = ranked(shown, metric.better)
    rules = {rule: same_scores(tables.scores, name, rule, pairs) for rule in settings.searches if rule in shown}
    chosen = {rule: pair for rule, pair in rules.items() if pair}
    rows_mm, scale = ROW_MM * len(order), units.scaled(metric, max(pairs.values()))
    figure, (above, below) = theme.new_figure(2, 1, height_mm=82 + rows_mm, height_ratios=[46, 8 + rows_mm])
    _cells(above, table(pairs, scale.size), scale.label)
    frames = [_frame(above, chosen[rule], FRAMES[number % len(FRAMES)], rule) for number, rule in enumerate(chosen)]
    rows = tables.summary[(tables.summary["scenario"] == name) & (tables.summary["split"] == "test")]
    rows = rows[(rows["metric"] == metric.name) & rows["policy"].isin(order)]
    seeds = _seeds(tables.scores, name, metric)
    for value in pairs.values():
        below.axvline(value / scale.size, color=GRID, linewidth=0.8, zorder=0)
    points_with_uncertainty(below, rows, order, theme.styles_of(tables.scores), size=scale.size)
    look: dict[str, Any] = {"color": INK, "markersize": 6}
    for height, policy in enumerate(order):
        if len(seeds[policy]) > 1:
            places = seeds[policy] / scale.size
            below.plot(places, [height] * len(places), "|", markeredgewidth=0.7, zorder=4, **look)
    _axis(below, [*pairs.values(), *rows["value"]], scale.size)
    below.set_xlabel(f"{scale.label}   {BETTER[metric.better]}")
    keys = [*frames, key("a pair", color=GRID, linewidth=1.2)]
    if any(len(values) > 1 for values in seeds[order]):
        keys.append(key("a seed of a learned policy", marker="|", linestyle="none", **look))
    facts: dict[str, Any] = {"interval": "", "range": ""}
    if order:
        facts = explain_uncertainty(figure, rows, tables.statistics.confidence, more=keys)
    pairs_in_order = ranked(pairs, metric.better)
    first, last = pairs_in_order[0], pairs_in_order[-1]
    places = {policy: _place(policy, means, seeds[policy], pairs, chosen, metric, scale) for policy in order}
    facts |= {"first": first, "first_value": scale.of(pairs[first]), "last": last}
    facts |= {"last_value": scale.of(pairs[last]), "scenario": name, "pairs": len(pairs), "places": places}
    facts["workloads"] = int(rows["units"].max()) if len(rows) else None
    return Drawing(figure, CAPTION, facts, left_out=after_the_first(spec))


def same_scores(scores: pd.DataFrame, scenario: str, policy: str, pairs: Mapping[str, float]) -> str:
    """Return the pair whose test scores equal those of a rule in every metric; empty where there is none."""
    rows = scores[(scores["scenario"] == scenario) & (scores["split"] == "test")]
    columns = ["policy_seed", "unit", "metric"]
    own = rows[(rows["policy"] == policy) & (rows["trained_on"] == "")].set_index(columns)["value"].sort_index()
    theirs = (rows[rows["policy"] == pair].set_index(columns)["value"].sort_index() for pair in pairs)
    return next((pair for pair, values in zip(pairs, theirs, strict=True) if len(own) and own.equals(values)), "")


def place_among(value: float, pairs: Mapping[str, float], metric: Metric) -> int:
    """Return the place that a value has among the pairs: 1 where none is better."""
    return 1 + sum(other < value if metric.better == "lower" else other > value for other in pairs.values())


def table(pairs: Mapping[str, float], size: float) -> pd.DataFrame:
    """Return job policies (rows) by core policies (columns), each from the best mean to the worst one."""
    parts = [(*pair.split(PAIR_SEPARATOR, 1), value / size) for pair, value in pairs.items()]
    grid = pd.DataFrame(parts, columns=["job", "core", "value"])
    grid = grid.pivot_table(index="job", columns="core", values="value")
    logs = np.log(grid.where(grid > 0))
    rows, columns = (logs.mean(axis=axis).sort_values(kind="stable").index for axis in (1, 0))
    return grid.loc[rows, columns].rename_axis(index=None, columns=None)


def _cells(axes: Axes, grid: pd.DataFrame, label: str) -> None:
    """The pairs' scores in colours, on a logarithmic scale where it can hold them."""
    low, high = float(grid.min().min()), float(grid.max().max())
    norm = LogNorm(low, high) if 0 < low < high else Normalize()
    heat_map(axes, grid, form="{:.3g}", label=label, colours="viridis_r", norm=norm)
    if isinstance(norm, LogNorm):
        log_ticks(axes.figure.axes[-1].yaxis, low, high)
    axes.set(xlabel="core policy", ylabel="job policy")


def _frame(axes: Axes, pair: str, dashes: Any, policy: str) -> Any:
    """Frame a pair's cell; returns the handle that explains it."""
    job, core = pair.split(PAIR_SEPARATOR, 1)
    ticks = (axes.get_xticklabels(), axes.get_yticklabels())
    columns, rows = ([label.get_text() for label in labels] for labels in ticks)
    look = {"linestyle": dashes, "linewidth": 1.8}
    corner = (columns.index(core) + 0.04, rows.index(job) + 0.06)
    axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=FRAME, zorder=5, **look))
    return key(f"pair of {policy}", color=FRAME, **look)


def _axis(axes: Axes, values: Sequence[float], size: float) -> None:
    axes.grid(False)
    if min(values) <= 0:
        short_ticks(axes, 6)
        return
    axes.set_xscale("log")
    log_ticks(axes.xaxis, min(values) / size, max(values) / size)


def _seeds(scores: pd.DataFrame, scenario: str, metric: Metric) -> pd.Series:
    """Policy -> mean of each of its seeds on the test workloads, weighted as the summary's."""
    rows = scores[(scores["scenario"] == scenario) & (scores["split"] == "test") & (scores["metric"] == metric.name)]
    sums = rows.assign(part=rows["value"] * rows["weight"]).groupby(["policy", "policy_seed"])[["part", "weight"]].sum()
    return (sums["part"] / sums["weight"]).groupby("policy").apply(lambda values: values.to_numpy())


def _place(
    policy: str,
    means: Mapping[str, float],
    seeds: Sequence[float],
    pairs: Mapping[str, float],
    chosen: Mapping[str, str],
    metric: Metric,
    scale: units.Scaled,
) -> dict[str, Any]:
    """A policy's mean and its places among the pairs, one for each seed."""
    places = [str(place_among(value, pairs, metric)) for value in sorted(seeds)]
    several = len(places) > 1
    return {"pair": chosen.get(policy), "value": scale.of(means[policy]), "places": places, "several": several}
