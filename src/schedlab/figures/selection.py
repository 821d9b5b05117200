"""The part of the tables that a figure shows: by recipe and training scenario, never by parts of policies' names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def select(table: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Return the rows in which each named column has the given value, or one of several."""
    for column, value in wanted.items():
        several = not isinstance(value, str) and hasattr(value, "__iter__")
        table = table[table[column].isin(list(value)) if several else table[column] == value]
    return table


def policy_of(table: pd.DataFrame, name: str, scenario: str) -> str | None:
    """Return the policy of a scenario with a name, which is the policy's own or that of its recipe; by recipe, it must
    have been trained on that scenario. None if there is none. table: scores or a summary.

    Raises UserError if several policies of the recipe were trained on the scenario.
    """
    here = table[table["scenario"] == scenario]
    if name in here["policy"].to_numpy():
        return name
    found = sorted(here.loc[(here["recipe"] == name) & (here["trained_on"] == scenario), "policy"].unique())
    if len(found) > 1:
        what = f"scenario '{scenario}' compares several policies of the recipe '{name}'"
        raise UserError(what, expected=f"one of {', '.join(found)}")
    return found[0] if found else None


def by_recipe(rows: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Rename each policy to its recipe in rows of scenarios on which it was trained, so that panels share names.
    Policies keep their names if two would get the same one. table: scores or a summary.
    """
    known = table[["scenario", "policy", "recipe", "trained_on"]].drop_duplicates()
    called = known["recipe"].where(known["trained_on"] == known["scenario"], known["policy"])
    several = known.assign(policy=called).duplicated(["scenario", "policy"], keep=False)
    names = dict(
        zip(zip(known["scenario"], known["policy"], strict=True), called.where(~several, known["policy"]), strict=True)
    )
    pairs = zip(rows["scenario"], rows["policy"], strict=True)
    return rows.assign(policy=[names.get(pair, pair[1]) for pair in pairs])
