"""What a figure shows of the tables: policies by recipe and by what they were trained on, never by parts of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import pandas as pd


def select(table: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Return the rows whose columns hold the value given, or one of several."""
    for column, value in wanted.items():
        several = not isinstance(value, str) and hasattr(value, "__iter__")
        table = table[table[column].isin(list(value)) if several else table[column] == value]
    return table


def policy_of(table: pd.DataFrame, name: str, scenario: str) -> str | None:
    """Return the policy of a scenario that a figure's value names: by its own name, or by its recipe if it was trained
    on that scenario; None where there is none. table: scores or a summary.

    Raises UserError where several policies of the recipe were trained on the scenario.
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
    """Return rows with policies that were trained on the scenario of their row called by their recipe, so that panels
    share names; where that would be the name of several, they keep theirs. table: scores or a summary.
    """
    known = table[["scenario", "policy", "recipe", "trained_on"]].drop_duplicates()
    called = known["recipe"].where(known["trained_on"] == known["scenario"], known["policy"])
    several = known.assign(policy=called).duplicated(["scenario", "policy"], keep=False)
    names = dict(
        zip(zip(known["scenario"], known["policy"], strict=True), called.where(~several, known["policy"]), strict=True)
    )
    pairs = zip(rows["scenario"], rows["policy"], strict=True)
    return rows.assign(policy=[names.get(pair, pair[1]) for pair in pairs])
