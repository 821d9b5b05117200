"""The figure of a recorded search for a learner's values: how often each configuration blocked, from rung to rung."""

from __future__ import annotations

from typing import Any

import pandas as pd

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError
from schedlab.figures import helpers, theme
from schedlab.figures.theme import MUTED
from schedlab.studies.ramp.figures.settings import TuningSettings

COLUMNS = ["configuration", "rung", "step", "blocked"]


def draw_tuning(tables: StudyTables, spec: FigureSpec) -> Drawing:
    """A panel a rung, a line a configuration: share of validation decisions that block. Settings: TuningSettings.

    Raises UserError where the record has other columns.
    """
    del tables
    settings = helpers.settings_of(spec, TuningSettings)
    rows = pd.read_csv(find_resource(settings.record), dtype={"configuration": str})
    if list(rows.columns) != COLUMNS:
        raise UserError(f"columns {', '.join(rows.columns)}", where=settings.record, expected=", ".join(COLUMNS))
    runs, rules = rows[rows["rung"].notna()], rows[rows["rung"].isna()]
    rungs = sorted(runs["rung"].unique())
    order = [name for rung in reversed(rungs) for name in _from_least(runs[runs["rung"] == rung])]
    order = list(dict.fromkeys(order))  # the best of the last rung first
    figure, lines = theme.new_grid(len(rungs), 4, row_mm=60, around_mm=14, sharey=True)
    for axes, rung in zip([axes for line in lines for axes in line], rungs, strict=True):
        mine = runs[runs["rung"] == rung]
        for name in reversed([name for name in order if name in set(mine["configuration"])]):
            curve = mine[mine["configuration"] == name]
            named = order.index(name) < settings.named
            look: dict[str, Any] = {"color": MUTED, "alpha": 0.5}
            if named:
                look = {"color": theme.colour(order.index(name)), "label": name, "zorder": 3}
            axes.plot(curve["step"] / 1000, curve["blocked"], marker="o", markersize=2.5, **look)
        for number, (rule, value) in enumerate(zip(rules["configuration"], rules["blocked"], strict=True)):
            grey = theme.RULE_GREYS[number % len(theme.RULE_GREYS)]
            axes.axhline(
                value,
                color=grey,
                linewidth=1.0,
                linestyle=theme.DASHES[1 + number % (len(theme.DASHES) - 1)],
                label=rule,
            )
        axes.set_title(f"rung {int(rung)}: {mine['configuration'].nunique()} configurations")
        axes.set_ylim(0, settings.most)
    lines[0][0].set_ylabel("blocked share of decisions")
    for line in lines:
        helpers.shared_xlabel(line, "thousand decisions")
    helpers.legend_outside(figure, _once(lines), columns=6)
    best, last = order[0], runs[runs["rung"] == rungs[-1]]
    least = last.loc[last["configuration"] == best, "blocked"].min()
    told = ", ".join(
        f"{rule} {value:.3f}" for rule, value in zip(rules["configuration"], rules["blocked"], strict=True)
    )
    return Drawing(
        figure, f"{spec.caption} Best at last: configuration {best}, {least:.3f} at its best validation; {told}."
    )


def _from_least(rows: pd.DataFrame) -> list[str]:
    """Configurations by the least that they blocked."""
    least = rows.groupby("configuration")["blocked"].min().reset_index()
    return least.sort_values(["blocked", "configuration"])["configuration"].tolist()


def _once(lines: list[list[Any]]) -> list[object]:
    """A handle for each label, of configurations in their order and then of rules."""
    found: dict[str, object] = {}
    for axes in [axes for line in lines for axes in line][::-1]:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            found.setdefault(label, handle)
    return [found[label] for label in sorted(found)]
