"""Facts of scenarios, policies and units as columns of the tables."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from schedlab.config.files import write_table
from schedlab.evaluation import tables
from schedlab.evaluation.facts import Facts

FACTS = Facts(
    scenarios={"tight-2": {"load": 0.5, "workers": 32}, "loose": {"load": 1, "backfill": "easy", "warm": True}},
    policies={
        "big": {"recipe": "net", "trained_on": "tight-2", "learner.hidden": 64},
        "small": {"recipe": "net", "trained_on": "tight-2", "learner.hidden": 8},
    },
    rules={"loose": {"fixed-4": {"recipe": "fixed"}}},
)


def score(scenario: str, policy: str, **facts: object) -> dict[str, object]:
    text = {column.name: "x" for column in tables.SCORES.columns if column.type == "text"}
    numbers = {column.name: 1 for column in tables.SCORES.columns if column.type != "text"}
    return {**text, **numbers, "scenario": scenario, "policy": policy, **facts}


def test_types_are_those_of_all_values() -> None:
    types = {"load": "number", "workers": "integer", "backfill": "text", "warm": "flag", "learner.hidden": "integer"}
    assert FACTS.types == {"recipe": "text", "trained_on": "text", **types}
    assert next(iter(FACTS.types)) == "recipe"
    assert tables.fact_type([None]) == tables.fact_type([1, "a"]) == tables.fact_type([True, 1]) == "text"


def test_each_row_has_the_facts_of_its_scenario_and_policy() -> None:
    pairs = [("tight-2", "small"), ("loose", "fixed-4"), ("tight-2", "big"), ("tight-2", "fixed-4"), ("loose", "big")]
    table = tables.build(tables.SCORES, [score(*pair) for pair in pairs])
    joined = FACTS.joined(table)
    assert list(joined.columns) == FACTS.extend(tables.SCORES).names
    rows = joined.set_index(["scenario", "policy"])
    assert rows["recipe"].to_dict() == {
        ("tight-2", "small"): "net",
        ("tight-2", "big"): "net",
        ("tight-2", "fixed-4"): "fixed-4",
        ("loose", "fixed-4"): "fixed",
        ("loose", "big"): "net",
    }
    assert rows.loc[("tight-2", "small"), ["load", "workers", "learner.hidden"]].tolist() == [0.5, 32, 8]
    assert rows.loc[("loose", "fixed-4"), ["load", "backfill", "warm"]].tolist() == [1.0, "easy", True]
    assert rows.loc[("loose", "fixed-4"), ["workers", "learner.hidden"]].isna().all()
    pd.testing.assert_frame_equal(joined[table.columns], table)


def test_curves_have_the_facts_of_the_policy_and_of_the_scenario_where_one_is_named() -> None:
    curves = pd.DataFrame({"policy": ["big", "small"], "train_scenario": ["tight-2", ""]})
    joined = FACTS.joined(curves, "train_scenario")
    assert joined["trained_on"].tolist() == ["tight-2"] * 2
    assert joined["load"].isna().tolist() == [False, True]


def test_facts_outlive_a_file_and_are_null_where_a_file_lacks_them(tmp_path: Path) -> None:
    kind = tables.SCORES.with_facts({"preference": "text", "number": "integer"})
    tables.write(kind, tmp_path / "a.parquet", tables.build(kind, [score("a", "p", preference="5e-1:0.25", number=2)]))
    tables.write(tables.SCORES, tmp_path / "b.parquet", tables.build(tables.SCORES, [score("b", "p")]))
    found = tables.read_joined(tables.SCORES, [tmp_path / "b.parquet", tmp_path / "a.parquet"])
    assert found["preference"].fillna("").tolist() == ["5e-1:0.25", ""]
    assert found["number"].dtype == "Int64" and found["number"].isna().tolist() == [False, True]
    again = tables.read(tables.SCORES, tmp_path / "a.parquet")
    assert again.loc[0, ["preference", "number"]].tolist() == ["5e-1:0.25", 2]


def test_tables_of_several_scenarios_can_be_added_to_one_file(tmp_path: Path) -> None:
    with tables.writing(FACTS.extend(tables.SCORES), tmp_path / "t.parquet") as add:
        for scenario in ("loose", "tight-2"):
            add(FACTS.joined(tables.build(tables.SCORES, [score(scenario, "big")])))
    found = tables.read(tables.SCORES, tmp_path / "t.parquet")
    assert found["workers"].isna().tolist() == [True, False]
    assert found["backfill"].isna().tolist() == [False, True]
    write_table(tmp_path / "whole.parquet", found)


def test_a_fact_cannot_have_the_name_of_a_column() -> None:
    with pytest.raises(ValueError, match="block"):
        tables.SCORES.with_facts({"block": "text"})
    with pytest.raises(ValueError, match="block"):
        Facts({"a": {"block": "b"}}, {}, {}).extend(tables.SCORES)
