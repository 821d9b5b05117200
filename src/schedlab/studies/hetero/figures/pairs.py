"""The figure of the pairs: their scores as colours, and the ranks of other policies among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.evaluation import statistics
from schedlab.figures import theme, units
from schedlab.figures.drawing import after_the_first
from schedlab.figures.order import kinds_of, ranked
from schedlab.figures.panels.axes import BETTER, key, log_ticks
from schedlab.figures.panels.cells import heat_map
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, points_with_uncertainty
from schedlab.figures.selection import select
from schedlab.figures.theme import GRID, INK
from schedlab.studies.hetero.env.settings import ALL_PAIRS, PAIR_SEPARATOR
from schedlab.studies.hetero.figures import data
from schedlab.studies.hetero.figures.data import HEADLINE

FRAMES = ("-", (0, (2, 1.2)), (0, (0.8, 0.8)))  # around the cells of pairs that a rule chose
FRAME = "#d0021b"
ROW_MM = 4.6
SEED: dict[str, Any] = {"color": INK, "markersize": 6, "marker": "|", "linestyle": "none"}
CAPTION = (
    "Scenario {scenario}. Of {pairs} pairs the lowest on these test workloads is {first} ({first_value}), the highest "
    "{last} ({last_value}). Place of every other policy among the pairs: "
    "{places:{name}[ ({kind})][ chose {pair},] {value}, place {places}[{several} (by seed)]}. "
    "[Means are over {workloads} test workloads, for learned policies also over seeds; intervals are over workloads "
    "alone.] "
) + UNCERTAINTY


def draw_pairs(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw the pairs' test scores above, with a frame around a pair that a rule chose (their scores are equal). Below,
    draw all other policies with intervals over workloads, and a tick for each seed of a learned policy.
    """
    name = data.scenarios(tables, spec)[0]
    scores = select(tables.scores, scenario=name, split="test")
    samples = {
        str(policy): statistics.sample(own) for policy, own in select(scores, metric=HEADLINE.name).groupby("policy")
    }
    means = {policy: statistics.statistic_of(own, "mean") for policy, own in samples.items()}
    pairs = {pair: means[pair] for pair in ALL_PAIRS if pair in means}
    if not pairs:
        what = f"no pair has a score {HEADLINE.name} on {name}"
        raise UserError(what, where=f"figure {spec.name}: scenarios", expected="a scenario with pairs")
    order = ranked({n: means[n] for n in spec.policies or means if n in means and n not in pairs}, HEADLINE.better)
    chosen = {rule: pair for rule in order if (pair := same_scores(scores, rule, pairs))}
    seeds = {policy: _by_seed(samples[policy]) for policy in order}
    rows_mm, scale = ROW_MM * len(order), units.scaled(HEADLINE, max(pairs.values()))
    figure, (above, below) = theme.new_figure(2, 1, height_mm=82 + rows_mm, height_ratios=[46, 8 + rows_mm])
    _cells(above, table(pairs, scale.size), scale.label)
    frames = [_frame(above, pair, FRAMES[number % 3], rule) for number, (rule, pair) in enumerate(chosen.items())]
    for value in pairs.values():
        below.axvline(value / scale.size, color=GRID, linewidth=0.8, zorder=0)
    facts: dict[str, Any] = {"interval": "", "range": "", "workloads": None}
    if order:
        rows = units.divided(_over_workloads(samples, order, tables.statistics), scale.size)
        points_with_uncertainty(below, rows, order, theme.styles_of(tables.scores))
        keys = [*frames, key("a pair", color=GRID, linewidth=1.2)]
        keys += [key("a seed of a learned policy", **SEED)] if any(len(own) > 1 for own in seeds.values()) else []
        facts |= explain_uncertainty(figure, rows, tables.statistics.confidence, more=keys, over="workloads")
        facts["workloads"] = max(len(samples[policy].units) for policy in order)
    for height, own in enumerate(seeds.values()):
        if len(own) > 1:
            below.plot(np.array(own) / scale.size, [height] * len(own), markeredgewidth=0.7, zorder=4, **SEED)
    below.grid(False)
    below.set_xscale("log")
    values = [*pairs.values(), *(means[policy] for policy in order)]
    log_ticks(below.xaxis, min(values) / scale.size, max(values) / scale.size)
    below.set_xlabel(f"{scale.label}   {BETTER[HEADLINE.better]}")
    first, last = (ranked(pairs, HEADLINE.better)[end] for end in (0, -1))
    facts |= {"scenario": name, "pairs": len(pairs), "first": first, "first_value": scale.of(pairs[first])}
    facts |= {"last": last, "last_value": scale.of(pairs[last])}
    kinds = kinds_of(tables.scores)
    facts["places"] = {
        policy: {
            "kind": "" if kinds[policy] == "rule" else kinds[policy],
            "pair": chosen.get(policy),
            "value": scale.of(means[policy]),
            "places": [str(place_among(value, pairs)) for value in sorted(seeds[policy])],
            "several": len(seeds[policy]) > 1,
        }
        for policy in order
    }
    return Drawing(figure, CAPTION, facts, left_out=after_the_first(spec))


def same_scores(scores: pd.DataFrame, policy: str, pairs: Mapping[str, float]) -> str:
    """Return the pair whose scores equal those of a rule in every metric; empty if there is none."""
    columns = ["policy_seed", "unit", "metric"]
    own = select(scores, policy=policy, trained_on="").set_index(columns)["value"].sort_index()
    theirs = (select(scores, policy=pair).set_index(columns)["value"].sort_index() for pair in pairs)
    return next((pair for pair, values in zip(pairs, theirs, strict=True) if len(own) and own.equals(values)), "")


def place_among(value: float, pairs: Mapping[str, float]) -> int:
    """Return the place of a bounded slowdown among those of the pairs: 1 if none is lower."""
    return 1 + sum(other < value for other in pairs.values())


def table(pairs: Mapping[str, float], size: float) -> pd.DataFrame:
    """Return the scores, divided by `size`, of job policies (rows) and core policies (columns); both are sorted by
    their mean logarithm, lowest first.
    """
    parts = [(*pair.split(PAIR_SEPARATOR, 1), value / size) for pair, value in pairs.items()]
    grid = pd.DataFrame(parts, columns=["job", "core", "value"])
    grid = grid.pivot_table(index="job", columns="core", values="value")
    logs = np.log(grid)
    rows, columns = (logs.mean(axis=axis).sort_values(kind="stable").index for axis in (1, 0))
    return grid.loc[rows, columns].rename_axis(index=None, columns=None)


def _over_workloads(samples: Mapping[str, statistics.Sample], order: Sequence[str], settings: Any) -> pd.DataFrame:
    """Return rows of a summary whose intervals are over workloads alone, whatever the number of seeds."""
    rows = []
    for policy in order:
        found = statistics.estimate(
            statistics.averaged(samples[policy]), settings, generator(0, "bootstrap", "figure", policy)
        )
        rows.append({"policy": policy, **vars(found)})
    return pd.DataFrame(rows).astype({"ci_low": float, "ci_high": float})


def _by_seed(sample: statistics.Sample) -> list[float]:
    """Return the mean of each seed on the test workloads."""
    return [statistics.weighted_mean(*row) for row in zip(sample.values, sample.weights, strict=True)]


def _cells(axes: Axes, grid: pd.DataFrame, label: str) -> None:
    """Draw the pairs' scores in colours, on a logarithmic scale unless they are all equal."""
    low, high = float(grid.min().min()), float(grid.max().max())
    norm = LogNorm(low, high) if low < high else Normalize()
    heat_map(axes, grid, form="digits", label=label, colours="viridis_r", norm=norm)
    if low < high:
        log_ticks(axes.figure.axes[-1].yaxis, low, high)
    axes.set(xlabel="core policy", ylabel="job policy")


def _frame(axes: Axes, pair: str, dashes: Any, policy: str) -> Any:
    """Frame a pair's cell and return the legend's handle for the frame."""
    job, core = pair.split(PAIR_SEPARATOR, 1)
    ticks = (axes.get_xticklabels(), axes.get_yticklabels())
    columns, rows = ([label.get_text() for label in labels] for labels in ticks)
    look = {"linestyle": dashes, "linewidth": 1.8}
    corner = (columns.index(core) + 0.04, rows.index(job) + 0.06)
    axes.add_patch(Rectangle(corner, 0.92, 0.88, fill=False, edgecolor=FRAME, zorder=5, **look))
    return key(f"pair of {policy}", color=FRAME, **look)
