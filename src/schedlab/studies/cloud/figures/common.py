"""What the figures of the study look up in its tables: scores and episodes of a scenario by policy and preference."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from schedlab.config.contract import Drawing, FigureSpec, StudyTables
from schedlab.figures import theme
from schedlab.figures.theme import MUTED

if TYPE_CHECKING:
    import pandas as pd

PREFERENCES = ("balanced", "cost", "time", "resource")


def learned_name(policy: str, scenario: str) -> str:
    """Return the name of a learned policy on a scenario."""
    return f"{policy}-{scenario.replace('_', '-')}"


def preference_colour(preference: str, place: int) -> str:
    """Return the colour of a preference: fixed for one with a name, else by its place among those shown."""
    return theme.colour(PREFERENCES.index(preference) if preference in PREFERENCES else len(PREFERENCES) + 1 + place)


def preference_scores(tables: StudyTables, scenario: str, policy: str, metric: str) -> pd.DataFrame:
    """Return a metric on test units: a row a seed, a column a preference."""
    rows = tables.scores
    rows = rows[
        (rows["scenario"] == scenario)
        & (rows["policy"] == policy)
        & (rows["metric"] == metric)
        & (rows["split"] == "test")
    ]
    rows = rows.assign(preference=rows["unit"].str.rsplit("-", n=2).str[0])
    return rows.pivot_table(index="policy_seed", columns="preference", values="value", aggfunc="mean")


def left_out(tables: StudyTables, spec: FigureSpec, shown: Container[str], learned: str, *rules: str) -> dict[str, str]:
    """Return each scenario that a figure leaves out with the policies it needs that have no scores there."""
    scored = tables.scores.groupby("scenario")["policy"].unique()
    found = {}
    for name in spec.scenarios:
        if name not in shown:
            lacking = [policy for policy in (learned_name(learned, name), *rules) if policy not in scored.get(name, ())]
            found[name] = f"no {' nor '.join(lacking) or 'such episode'}"
    return found


def episode(tables: StudyTables, table: str, scenario: str, policy: str, preference: str) -> pd.DataFrame:
    """Return the rows of a detail table of one test episode, that of the first seed, by step."""
    rows = tables.details.get(table)
    if rows is None or not len(rows):
        return rows
    rows = rows[(rows["scenario"] == scenario) & (rows["policy"] == policy) & (rows["split"] == "test")]
    rows = rows[rows["unit"] == f"{preference}-test-00"]
    return rows[rows["policy_seed"] == rows["policy_seed"].min()].sort_values("step")


def nothing(spec: FigureSpec, why: str) -> Drawing:
    """Return a drawing that says why there is nothing to draw."""
    figure, axes = theme.new_figure(height_mm=20)
    axes.axis("off")
    axes.text(0.5, 0.5, why, ha="center", va="center", color=MUTED)
    return Drawing(figure, f"{spec.caption} {why[:1].upper()}{why[1:]}.")
