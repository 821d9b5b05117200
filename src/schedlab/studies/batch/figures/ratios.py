"""The figure of ratios: every policy over one on the same windows, robust against a few congested windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.errors import UserError
from schedlab.figures import helpers, theme
from schedlab.figures.theme import INK, MUTED, Style
from schedlab.studies.batch.figures.comparison import CONFIDENCE, METRIC, comparisons
from schedlab.studies.batch.figures.settings import RatiosSettings
from schedlab.studies.batch.figures.windows import label_rows, window_means

ROW_MM = 5.6
MEAN, GEOMETRIC = -0.2, 0.2  # of a row's height: the ratio of the means above, the geometric mean of the ratios below
FARTHEST = 8.0  # ratio at which a panel ends
SMALL: dict[str, Any] = {"textcoords": "offset points", "fontsize": "x-small"}


def draw_ratios(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a scenario, a row a policy from best to worst geometric mean, a dot a window (RatiosSettings)."""
    settings = helpers.settings_of(spec, RatiosSettings)
    names = list(spec.scenarios or sorted(tables.scenarios))
    looks = theme.styles_of(tables.scores)
    panels = {name: _compared(tables, spec, name, settings) for name in names}
    rows = max(len(panel.rows) for panel in panels.values())
    figure, lines = theme.new_grid(len(names), 2, row_mm=15 + ROW_MM * rows, around_mm=12, sharex=True)
    for axes, panel in zip(chain(*lines), panels.values(), strict=True):
        _panel(axes, panel, looks)
    for axes in lines[-1]:
        axes.set_xlabel("ratio of mean bounded slowdowns   \N{LEFTWARDS ARROW} better")
    helpers.legend_outside(figure, _keys(), columns=3)
    return Drawing(
        figure, f"{spec.caption} {' '.join(_caption_text(panel) for panel in panels.values())} {_explained(panels)}"
    )


@dataclass(frozen=True)
class _Panel:
    """One scenario: rows of comparison.py, means of windows by policy, and the baseline.

    same: the rule that has exactly the scores of a baseline that was chosen among rules; else the baseline
    """

    name: str
    baseline: str
    same: str
    rows: list[dict[str, Any]]
    means: pd.DataFrame
    learned: frozenset[str]

    @property
    def against(self) -> str:
        return self.baseline if self.same == self.baseline else f"{self.baseline} (which is {self.same})"


def _compared(tables: StudyTables, spec: FigureSpec, name: str, settings: RatiosSettings) -> _Panel:
    """Compare the figure's policies with the baseline; those of equal scores only where named, or alone."""
    means = window_means(tables.scores, name, METRIC)
    named = [pair.policy for pair in settings.against if pair.scenario == name and pair.policy in means]
    baseline = named[0] if named else _best_rule(tables.comparisons, name)
    here = tables.scores[tables.scores["scenario"] == name]
    equal = [policy for policy in means if policy != baseline and (means[policy] == means[baseline]).all()]
    rules, learned = (frozenset(here.loc[here["kind"] == kind, "policy"]) for kind in ("rule", "learned"))
    others = [policy for policy in means if policy not in (baseline, *equal)] or equal
    shown = [policy for policy in spec.policies if policy in means] if spec.policies else others
    rows = [row for policy in shown if policy != baseline for row in comparisons(here, policy, (baseline,))]
    if not rows:
        what, where = f"no policy is compared in {name}", f"figure {spec.name}: policies"
        raise UserError(what, where=where, expected=f"others than {baseline}")
    rows.sort(key=lambda row: (row["geometric_ratio"], row["policy"]))
    same = baseline if baseline in rules else next((policy for policy in equal if policy in rules), baseline)
    return _Panel(name, baseline, same, rows, means, learned)


def _best_rule(compared: pd.DataFrame, scenario: str) -> str:
    """The rule that is best on validation by mean; without validation windows, the study's named baseline."""
    rows = compared[(compared["scenario"] == scenario) & (compared["split"] == "test") & (compared["metric"] == METRIC)]
    for role in ("best_rule", "baseline"):
        if len(found := rows[rows["role"] == role]):
            return str(found["baseline"].iloc[0])
    remedy = "name one of its policies under params.against"
    raise UserError("nothing is compared", where=f"scenario {scenario}", remedy=remedy)


def _panel(axes: Axes, panel: _Panel, looks: Mapping[str, Style]) -> None:
    for height, row in enumerate(panel.rows):
        look = looks[row["policy"]]
        ratios = (panel.means[row["policy"]] / panel.means[panel.baseline]).dropna().to_numpy()
        rows = np.full(len(ratios), height)
        axes.plot(_shown(ratios), rows, "|", color=look.colour, markersize=5, alpha=0.45)
        for name, offset, marker in (("ratio", MEAN, "D"), ("geometric_ratio", GEOMETRIC, "o")):
            low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
            if low is not None:
                ends = _shown([low, high])
                axes.plot(ends, [height + offset] * 2, color=INK, linewidth=1.1, solid_capstyle="butt", zorder=3)
            fill = "white" if marker == "D" else look.colour
            mark: dict[str, Any] = {"markeredgecolor": INK, "markeredgewidth": 0.8, "markersize": 4, "zorder": 4}
            axes.plot([_shown(row[name])], [height + offset], marker, color=fill, **mark)
        won = "\N{EN DASH}" if row["win_rate"] is None else f"{100 * row['win_rate']:.0f} %"
        axes.annotate(won, (1, height), (3, 0), xycoords=axes.get_yaxis_transform(), va="center", **SMALL)
    axes.annotate("won", (1, 1), (3, 3), xycoords="axes fraction", color=MUTED, **SMALL)
    axes.axvline(1, color=INK, linewidth=0.8, zorder=1)
    axes.set_xscale("log", base=2)
    axes.set_xlim(0.92 / FARTHEST, FARTHEST / 0.92)
    axes.xaxis.set_major_formatter("{x:g}")
    label_rows(axes, [row["policy"] for row in panel.rows])
    axes.grid(True, axis="x")
    against = panel.same if panel.same == panel.baseline else f"{panel.same}, the chosen rule"
    axes.set_title(f"{panel.name.replace('_', ' ')}\nagainst {against}")  # one line would run into "won"


def _shown(ratios: Any) -> Any:
    """Ratios, those beyond a panel at its edge."""
    return np.clip(ratios, 1 / FARTHEST, FARTHEST)


def _keys() -> list[object]:
    edge: dict[str, Any] = {"linestyle": "none", "markeredgecolor": INK, "markersize": 4}
    return [
        Line2D([], [], marker="|", linestyle="none", color=MUTED, markersize=5, label="a test window"),
        Line2D([], [], marker="D", color="white", label="ratio of the means", **edge),
        Line2D([], [], marker="o", color=MUTED, label="geometric mean of the windows' ratios", **edge),
    ]


def _caption_text(panel: _Panel) -> str:
    """The first row and every learned policy in words, and who beats the baseline with the whole interval."""
    told = [f"{panel.name}, against {panel.against}: lowest is {_row_text(panel.rows[0])}"]
    told += [_row_text(row) for row in panel.rows[1:] if row["policy"] in panel.learned]
    for name, how in (("ratio", "by the ratio of the means"), ("geometric_ratio", "by the geometric mean")):
        sure = [row["policy"] for row in panel.rows if row.get(f"{name}_high", 1.0) < 1]
        told.append(f"below 1 with the whole interval {how}: {', '.join(sure) or 'none'}")
    return f"{'; '.join(told)}."


def _row_text(row: Mapping[str, Any]) -> str:
    differing = f"{row['windows_differing']} of {row['windows']} windows in which policies differ"
    won = "" if row["win_rate"] is None else f", won {100 * row['win_rate']:.0f} % of the {differing}"
    ratio, geometric = (_with_interval(row, name) for name in ("ratio", "geometric_ratio"))
    numbers = f"ratio of the means {ratio}, geometric mean {geometric}"
    if (effect := row["standardised_log_ratio"]) is not None:
        numbers += f", effect size {effect:.2f}"
    return f"{row['policy']}, {numbers}{won}"


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return f"{row[name]:.2f}" + ("" if low is None else f" [{low:.2f}, {high:.2f}]")


def _explained(panels: Mapping[str, _Panel]) -> str:
    rows = [row for panel in panels.values() for row in panel.rows]
    lines = f" Lines: {100 * CONFIDENCE:g} % intervals (bootstrap over windows, and over seeds from five on)."
    text = lines.strip() if any("ratio_low" in row for row in rows) else "Too few windows for intervals."
    text += " Effect size: mean over standard deviation of the windows' log ratios."
    beyond = any(
        (panel.means.div(panel.means[panel.baseline], axis=0) > FARTHEST).any().any() for panel in panels.values()
    )
    return text + (f" Ratios beyond {FARTHEST:g} stand at the edge." if beyond else "")
