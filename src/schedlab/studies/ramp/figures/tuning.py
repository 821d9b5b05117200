"""The figure of a recorded search for a learner's settings: blocking rate of each configuration at each rung."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.figures import theme
from schedlab.figures.drawing import settings_of
from schedlab.figures.panels.axes import legend_outside
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.theme import MUTED
from schedlab.studies.ramp.figures.settings import TuningSettings

COLUMNS = ["configuration", "rung", "step", "blocked"]


def draw_tuning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """One panel per rung, one line per configuration: share of blocked validation decisions. Settings: TuningSettings.

    Raises UserError where the record has other columns.
    """
    del tables
    settings = settings_of(spec, TuningSettings)
    rows = pd.read_csv(find_resource(settings.record), dtype={"configuration": str})
    if list(rows.columns) != COLUMNS:
        raise UserError(f"columns {', '.join(rows.columns)}", where=settings.record, expected=", ".join(COLUMNS))
    runs, rules = rows[rows["rung"].notna()], rows[rows["rung"].isna()].set_index("configuration")["blocked"]
    rungs = sorted(runs["rung"].unique())
    order = list(dict.fromkeys(name for rung in reversed(rungs) for name in _from_least(runs[runs["rung"] == rung])))

    def panel(axes: Axes, mine: pd.DataFrame) -> None:
        for number, name in reversed(list(enumerate(order))):
            curve = mine[mine["configuration"] == name]
            look: dict[str, Any] = {"color": MUTED, "alpha": 0.5}
            if number < settings.named:
                look = {"color": theme.colour(number), "label": name, "zorder": 3}
            if len(curve):
                axes.plot(curve["step"] / 1000, curve["blocked"], marker="o", markersize=2.5, **look)
        for number, (rule, value) in enumerate(rules.items()):
            dashes = theme.DASHES[1 + number % (len(theme.DASHES) - 1)]
            look = {"color": theme.RULE_GREYS[number % len(theme.RULE_GREYS)], "linestyle": dashes}
            axes.axhline(value, linewidth=1.0, label=rule, **look)
        axes.set_ylim(0, settings.most)

    of_rung = [(rung, runs[runs["rung"] == rung]) for rung in rungs]
    groups = [(f"rung {int(n)}: {mine['configuration'].nunique()} configurations", mine) for n, mine in of_rung]
    grid = Grid(4, 60, 14, "thousand decisions", "blocked share of decisions", subplots={"sharey": True})
    figure, _ = facets(groups, panel, grid, keys=())
    handles = [handle for axes in figure.axes for handle in axes.get_legend_handles_labels()[0]]
    legend_outside(figure, sorted(handles, key=lambda handle: str(handle.get_label())), columns=6)
    last = runs[(runs["rung"] == rungs[-1]) & (runs["configuration"] == order[0])]
    facts = {"configuration": order[0], "blocked": last["blocked"].min(), "rules": rules.to_dict()}
    caption = "Lowest in the last rung: configuration {configuration}, with {blocked:.3f} in its lowest validation"
    return Drawing(figure, f"{caption}; {{rules:{{name}} {{value:.3f}}}}.", facts)


def _from_least(rows: pd.DataFrame) -> list[str]:
    """Return the configurations in ascending order of their lowest blocking rate."""
    least = rows.groupby("configuration")["blocked"].min().reset_index()
    return least.sort_values(["blocked", "configuration"])["configuration"].tolist()
