"""Tests of schedlab.evaluation.tables."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.evaluation import tables

SCORE = {
    "scenario": "s",
    "policy": "p",
    "kind": "rule",
    "policy_seed": 0,
    "trained_on": "",
    "mode": "default",
    "split": "test",
    "unit_kind": "window",
    "unit": "w0",
    "block": "b0",
    "unit_seed": 1,
    "metric": "m",
    "value": 1.5,
    "weight": 1.0,
    "config_hash": "abc",
}
SUMMARY = {
    "scenario": "s",
    "policy": "p",
    "kind": "rule",
    "metric": "m",
    "unit": "s",
    "value": 1.0,
    "statistic": "mean",
    "ci_low": None,
    "ci_high": None,
    "seeds": 1,
    "units": 3,
    "blocks": 3,
    "range_low": 0.0,
    "range_high": 2.0,
    "range_over": "blocks",
    "decisions": None,
    "episodes": None,
    "trainings": None,
    "split": "test",
    "mode": "default",
    "trained_on": "",
    "config_hash": "abc",
}


def test_the_documentation_explains_every_column(repository):
    page = (repository / "docs/reference/tables.md").read_text()
    explained = set(
        re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in page.splitlines() if line.startswith("| `")))
    )
    assert explained == {
        name
        for kind in (tables.SCORES, tables.CURVES, tables.SUMMARY, tables.COMPARISONS, tables.HEADLINE)
        for name in kind.names
    }


def test_the_columns_that_users_rely_on_come_first() -> None:
    expected = [
        "scenario",
        "policy",
        "kind",
        "metric",
        "unit",
        "value",
        "statistic",
        "ci_low",
        "ci_high",
        "seeds",
        "units",
    ]
    assert tables.SUMMARY.names[: len(expected)] == expected
    assert tables.SCORES.names == list(SCORE)
    curves = [
        "policy",
        "policy_seed",
        "phase",
        "train_scenario",
        "step",
        "episode",
        "update",
        "split",
        "metric",
        "value",
        "decisions",
        "episodes",
        "trainings",
    ]
    assert tables.CURVES.names == curves


@given(st.permutations([{**SCORE, "unit": f"w{i}", "value": float(i % 3)} for i in range(5)]))
def test_order_of_rows_does_not_matter(rows: list[dict]) -> None:
    table = tables.build(tables.SCORES, rows)
    assert list(table["unit"]) == ["w0", "w1", "w2", "w3", "w4"]
    assert [str(dtype) for dtype in table.dtypes] == [tables.DTYPES[column.type] for column in tables.SCORES.columns]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"value": float("nan")}, "column 'value': nan is not allowed.*policy=p.*unit=w0"),
        ({"value": float("inf")}, "column 'value': inf"),
        ({"value": "much"}, "column 'value'"),
        ({"weight": 0.0}, "weight is not above zero"),
        ({"policy_seed": 0.5}, "column 'policy_seed': not all are integers"),
        ({"policy": None}, "column 'policy': not a text"),
        ({"block": 3}, "column 'block': not a text"),
        ({"extra": 1}, "has unknown extra"),
    ],
)
def test_wrong_rows_are_refused(change: dict, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        tables.build(tables.SCORES, [{**SCORE, **change}])


def test_points_of_a_curve_may_differ_in_a_fact_alone() -> None:
    kind = tables.CURVES.with_facts({"action": "text"})
    point = {column.name: "" if column.type == "text" else 0 for column in kind.columns}
    found = tables.build(kind, [point | {"action": action} for action in ("up", None, "down")])
    assert found["action"].tolist()[:2] == ["down", "up"] and found["action"].isna().tolist() == [False, False, True]
    for same in ("up", None):
        with pytest.raises(ValueError, match="more than one row"):
            tables.build(kind, [point | {"action": same}] * 2)


def test_missing_columns_and_double_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="lacks weight"):
        tables.build(tables.SCORES, [{key: value for key, value in SCORE.items() if key != "weight"}])
    with pytest.raises(ValueError, match=r"more than one row for .*unit=w0"):
        tables.build(tables.SCORES, [SCORE, {**SCORE, "value": 2.0}])


def test_intervals_may_be_null_and_values_may_not(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    tables.write(tables.SUMMARY, tmp_path / "t.parquet", tables.build(tables.SUMMARY, [SUMMARY]))
    assert pq.read_table(tmp_path / "t.parquet")["ci_low"].null_count == 1
    assert np.isnan(tables.read(tables.SUMMARY, tmp_path / "t.parquet")["ci_low"].iloc[0])
    with pytest.raises(ValueError, match="range_low"):
        tables.build(tables.SUMMARY, [{**SUMMARY, "range_low": None}])


def test_equal_tables_have_equal_bytes(tmp_path: Path) -> None:
    rows = [{**SCORE, "unit": f"w{i}", "value": 0.0} for i in range(4)]
    zeros = [{**row, "value": -0.0} for row in reversed(rows)]
    tables.write(tables.SCORES, tmp_path / "a.parquet", tables.build(tables.SCORES, rows))
    tables.write(tables.SCORES, tmp_path / "b.parquet", tables.build(tables.SCORES, zeros))
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_join_skips_empty_tables_and_reads_name_the_file(tmp_path: Path) -> None:
    one = tables.build(tables.SCORES, [SCORE])
    joined = tables.join(tables.SCORES, [tables.build(tables.SCORES, []), one])
    pd.testing.assert_frame_equal(joined, one)
    empty = tables.join(tables.SCORES, [])
    assert list(empty.columns) == tables.SCORES.names
    assert list(empty.dtypes) == list(one.dtypes)
    one.drop(columns="weight").to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(ValueError, match=r"bad\.parquet: .*lacks weight"):
        tables.read(tables.SCORES, tmp_path / "bad.parquet")
