"""The figure of ratios: every policy over one of them on the same windows, robust against a few congested ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures.captions import number_text
from schedlab.figures.order import APART, ranked, trained
from schedlab.figures.panels.axes import BETTER, key, name_rows
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.selection import select
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.batch.comparison import METRIC, comparisons
from schedlab.studies.batch.figures.windows import row_styles, same_as_rules, window_means

ROW_MM = 5.6
MEAN, GEOMETRIC = -0.2, 0.2  # of a row's height: the ratio of the means above, the geometric mean of the ratios below
FARTHEST = 8.0  # ratio at which a panel ends
ENDS = 1 / FARTHEST, FARTHEST
WINDOW: dict[str, Any] = {"markersize": 5, "alpha": 0.45, "markeredgewidth": 1}
SMALL: dict[str, Any] = {"textcoords": "offset points", "fontsize": "x-small"}
ROW = (
    "{policy} (ratio of the means {ratio:.2f}[, {ratio_low:.2f} to {ratio_high:.2f}]; geometric mean "
    "{geometric_ratio:.2f}[, {geometric_ratio_low:.2f} to {geometric_ratio_high:.2f}]"
    "[; effect size {standardised_log_ratio:.2f}]"
    "[; won {win_rate:.0%} of the {windows_differing} of {windows} windows in which policies differ])"
)
CAPTION = (
    "{panels:{scenario} against {against}: lowest is {first:"
    + ROW
    + "}[, of the trained policies {trained:"
    + ROW
    + "}]; "
    "whole interval below 1: {by_ratio} (ratio of the means), {by_geometric} (geometric mean)}. "
    "[Trained policies that act exactly as an untrained one: {same:{policy} as {rule} in {scenario}}.] "
    "[Lines: {level} intervals (bootstrap over windows, and over seeds from five on).][{few}Too few windows for "
    "intervals.] Effect size: mean over standard deviation of the windows' log ratios. "
    "[Ratios beyond {farthest:g} are drawn at the edge.]"
)


def draw_ratios(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """Draw a panel for each scenario, a row for each policy by its geometric mean, and a dash for each window."""
    names = list(spec.scenarios or sorted(tables.scenarios))
    looks = row_styles(tables.scores)
    compared = [_compared(tables, spec, name) for name in names]
    row_mm = 15 + ROW_MM * max(len(panel.rows) for panel in compared)
    edge: dict[str, Any] = {"linestyle": "none", "markeredgecolor": INK, "markersize": 4}
    keys = [
        key("a test window (triangle: beyond the panel)", marker="|", linestyle="none", color=MUTED, markersize=5),
        key("ratio of the means", marker="D", color="white", **edge),
        key("geometric mean of the windows' ratios", marker="o", color=MUTED, **edge),
    ]
    grid = Grid(2, row_mm, 12, f"ratio of slowdowns   {BETTER['lower']}", lines="x", subplots={"sharex": True})
    groups = [(f"{panel.name.replace('_', ' ')}\nagainst {panel.baseline}", panel) for panel in compared]
    figure, _ = facets(groups, lambda axes, panel: _panel(axes, panel, looks), grid, keys=keys, columns=3)
    given = any("ratio_low" in row for panel in compared for row in panel.rows)
    beyond = any((panel.ratios() > FARTHEST).any().any() for panel in compared)
    facts = {
        "panels": [panel.facts() for panel in compared],
        "level": f"{100 * tables.statistics.confidence:g} %" if given else "",
        "few": not given,
        "farthest": FARTHEST if beyond else None,
        "same": [
            {"scenario": panel.name, "policy": policy, "rule": rule}
            for panel in compared
            for policy, rule in panel.same.items()
        ],
    }
    return Drawing(figure, CAPTION, facts)


@dataclass(frozen=True)
class _Panel:
    """One scenario: rows of comparison.py, means of windows by policy, and the baseline.

    trained  policies that were trained, of any kind
    apart    informed policies, oracles and bounds: drawn, but never called the lowest
    same     trained policy -> the untrained one that has exactly its scores
    """

    name: str
    baseline: str
    rows: list[dict[str, Any]]
    means: pd.DataFrame
    trained: frozenset[str]
    apart: frozenset[str]
    same: Mapping[str, str]

    def ratios(self) -> pd.DataFrame:
        """Return the windows' ratios to the baseline: a row a window, a column a policy."""
        return self.means.div(self.means[self.baseline], axis=0)

    def facts(self) -> dict[str, Any]:
        """Return the first row and every learned policy, and who beats the baseline with the whole interval."""
        bare = dict.fromkeys(("ratio_low", "ratio_high", "geometric_ratio_low", "geometric_ratio_high"))
        rows = [bare | row for row in self.rows]
        first, *others = [row for row in rows if row["policy"] not in self.apart] or rows
        sure = {
            name: [row["policy"] for row in self.rows if row.get(f"{name}_high", 1.0) < 1] or ["none"]
            for name in ("ratio", "geometric_ratio")
        }
        return {
            "scenario": self.name,
            "against": self.baseline,
            "first": [first],
            "trained": [row for row in others if row["policy"] in self.trained],
            "by_ratio": sure["ratio"],
            "by_geometric": sure["geometric_ratio"],
        }


def _compared(tables: StudyTables, spec: FigureSpec, name: str) -> _Panel:
    """Compare the figure's policies with the baseline; those of equal scores only where named, or alone."""
    means = window_means(tables.scores, name, METRIC)
    fitted = trained(tables.scores)
    baseline = _chosen(tables, name, fitted)
    here = tables.scores[tables.scores["scenario"] == name]
    equal = [policy for policy in means if policy != baseline and (means[policy] == means[baseline]).all()]
    others = [policy for policy in means if policy not in (baseline, *equal)] or equal
    shown = [policy for policy in spec.policies if policy in means] if spec.policies else others
    pairs = [(policy, (baseline,)) for policy in shown if policy != baseline]
    rows = [row for pair in pairs for row in comparisons(here, *pair, statistics=tables.statistics)]
    if not rows:
        what, where = f"no policy is compared in {name}", f"figure {spec.name}: policies"
        raise UserError(what, where=where, expected=f"others than {baseline}")
    rows.sort(key=lambda row: (row["geometric_ratio"], row["policy"]))
    apart = frozenset(here.loc[here["kind"].isin(APART), "policy"])
    return _Panel(name, baseline, rows, means, fitted, apart, same_as_rules(means, fitted))


def _chosen(tables: StudyTables, scenario: str, fitted: Collection[str]) -> str:
    """The untrained policy of the best mean on validation; without validation windows, the study's named baseline."""
    scores, compared = tables.scores, tables.comparisons
    here = select(scores, scenario=scenario, metric=METRIC, split="validation")
    untrained = here[~here["policy"].isin(fitted) & ~here["kind"].isin(APART)]
    if len(untrained):
        return ranked(untrained.groupby("policy")["value"].mean().to_dict(), "lower")[0]
    if len(named := select(compared, scenario=scenario, metric=METRIC, role="baseline")["baseline"]):
        return str(named.iloc[0])
    raise UserError("nothing is compared", where=f"scenario {scenario}", expected="rules or policies beside each other")


def _panel(axes: Axes, panel: _Panel, looks: Mapping[str, Style]) -> None:
    ratios = panel.ratios()
    for height, row in enumerate(panel.rows):
        own = ratios[row["policy"]].dropna().to_numpy()
        look = looks[panel.same.get(row["policy"], row["policy"])]
        for inside, marker in ((own < 1 / FARTHEST, "<"), (own > FARTHEST, ">"), (np.clip(own, *ENDS) == own, "|")):
            axes.plot(_shown(own[inside]), np.full(inside.sum(), height), marker, color=look.colour, **WINDOW)
        for name, offset, marker in (("ratio", MEAN, "D"), ("geometric_ratio", GEOMETRIC, "o")):
            if row.get(f"{name}_low") is not None:
                ends = _shown([row[f"{name}_low"], row[f"{name}_high"]])
                axes.plot(ends, [height + offset] * 2, color=INK, linewidth=1.1, solid_capstyle="butt", zorder=3)
            fill = "white" if marker == "D" else look.colour
            mark: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.8, "markersize": 4, "zorder": 4}
            axes.plot([_shown(row[name])], [height + offset], marker, color=fill, **mark)
        won = "\N{EN DASH}" if row["win_rate"] is None else number_text(row["win_rate"], "{:.0%}")
        axes.annotate(won, (1, height), (3, 0), xycoords=axes.get_yaxis_transform(), va="center", **SMALL)
    axes.annotate("won", (1, 1), (3, 3), xycoords="axes fraction", color=MUTED, **SMALL)
    axes.axvline(1, color=INK, linewidth=0.8, zorder=1)
    axes.set_xscale("log", base=2)
    axes.set_xlim(0.92 / FARTHEST, FARTHEST / 0.92)
    axes.xaxis.set_major_formatter("{x:g}")
    called = {policy: f"{policy} = {rule}" for policy, rule in panel.same.items()}
    name_rows(axes, [called.get(row["policy"], row["policy"]) for row in panel.rows], below=0.6, above=0.6)


def _shown(ratios: Any) -> Any:
    """Ratios, those beyond a panel at its edge."""
    return np.clip(ratios, *ENDS)
