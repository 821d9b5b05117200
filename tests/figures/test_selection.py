"""Policies of a figure by recipe, whatever scenarios and policies are called."""

from __future__ import annotations

import pandas as pd
import pytest

from schedlab.config.errors import UserError
from schedlab.figures.selection import by_recipe, policy_of

COLUMNS = ["scenario", "policy", "recipe", "trained_on"]
TABLE = pd.DataFrame(
    [
        ("tight-2", "net-tight-2", "net", "tight-2"),
        ("tight-2", "net-tight", "net", "tight"),
        ("tight-2", "wide", "sized", "tight-2"),
        ("tight-2", "narrow", "sized", "tight-2"),
        ("tight-2", "fixed-4", "fixed", ""),
        ("tight", "net-tight", "net", "tight"),
        ("tight", "both", "net-of-both", "tight > tight-2"),
        ("tight", "search", "rule", "tight"),
        ("tight", "rule", "rule", ""),
    ],
    columns=COLUMNS,
)


def test_a_policy_is_called_by_its_recipe_where_it_was_trained() -> None:
    rows = TABLE[["scenario", "policy"]].sample(frac=1, random_state=0)
    called = by_recipe(rows, TABLE)
    found = {tuple(pair): name for pair, name in zip(rows.to_numpy().tolist(), called["policy"], strict=True)}
    changed = {key: name for key, name in found.items() if key[1] != name}
    assert changed == {("tight-2", "net-tight-2"): "net", ("tight", "net-tight"): "net"}
    other = by_recipe(pd.DataFrame({"scenario": ["loose"], "policy": ["net-tight"]}), TABLE)
    assert other["policy"].tolist() == ["net-tight"]


def test_a_value_of_a_figure_names_a_policy_or_the_recipe_of_one() -> None:
    assert policy_of(TABLE, "net", "tight-2") == "net-tight-2"
    assert policy_of(TABLE, "net", "tight") == "net-tight"
    assert policy_of(TABLE, "net-tight", "tight-2") == "net-tight"
    assert policy_of(TABLE, "rule", "tight") == "rule"
    assert policy_of(TABLE, "fixed-4", "tight-2") == "fixed-4"
    assert policy_of(TABLE, "fixed", "tight-2") is None
    with pytest.raises(UserError) as raised:
        policy_of(TABLE, "sized", "tight-2")
    assert "narrow, wide" in raised.value.expected
