"""Tests of schedlab.evaluation.promises: what two files of other bytes may differ in."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedlab.config.errors import UserError
from schedlab.config.files import write_table
from schedlab.evaluation.promises import EXACT, FITTED, LEARNED, PROMISES, disagreement, of_part, weakest
from schedlab.learning.checkpoints import write_checkpoint


def test_the_weakest_promise_counts():
    assert weakest([]) == EXACT
    assert weakest([EXACT, LEARNED, FITTED]) == LEARNED
    assert weakest([EXACT, FITTED]) == FITTED
    assert of_part("simulate_adaptation") == LEARNED
    assert of_part("make_trace") == of_part("a_part_of_a_study_of_ones_own") == EXACT


def test_every_prepare_rule_has_a_promise(repository):
    named = {part for promise in PROMISES.values() for part in promise.made_by}
    rules = [
        text for path in (repository / "workflow/rules/prepare").glob("*.smk") for text in path.read_text().splitlines()
    ]
    assert {line.split()[1].rstrip(":") for line in rules if line.startswith("rule ")} | {
        "simulate_adaptation",
        "learn",
    } == named


def tables(folder: Path, **columns: list) -> list[Path]:
    """Two tables: the first entries of the columns, and the second ones."""
    paths = [folder / name for name in ("one.parquet", "other.parquet")]
    for number, path in enumerate(paths):
        write_table(path, pd.DataFrame({name: values[number] for name, values in columns.items()}))
    return paths


@pytest.mark.parametrize(
    ("values", "kind", "told"),
    [
        (([1.0, 2.0], [1.0, 2.0 + 1e-9]), LEARNED, ""),
        (([1.0, 2.0], [1.0, 2.0 + 1e-9]), FITTED, ""),
        (([1.0, 2.0], [1.0, 2.0 + 1e-9]), EXACT, "other bytes"),
        (([1.0, 2.0], [1.0, 2.001]), LEARNED, ""),
        (([1.0, 2.0], [1.0, 2.001]), FITTED, "'value' differs by 5.0e-04 of its value, 1e-06 is allowed"),
        (([1.0, 2.0], [1.0, 2.2]), LEARNED, "'value' differs by 9.1e-02 of its value, 0.001 is allowed"),
        (([0.0, 2.0], [1e-7, 2.0]), LEARNED, ""),
        (([float("nan"), 2.0], [float("nan"), 2.0 + 1e-9]), LEARNED, ""),
        (([float("nan"), 2.0], [1.0, 2.0]), LEARNED, "'value' lacks other values"),
        (([1.0], [1.0, 2.0]), LEARNED, "'value' has 1 and 2 entries"),
        (([1, 2], [1, 3]), LEARNED, "'value' has other values"),
        ((["a"], ["b"]), LEARNED, "'value' has other values"),
    ],
)
def test_tables_are_compared_by_their_values(tmp_path, values, kind, told):
    assert disagreement(*tables(tmp_path, value=list(values)), kind) == told


def test_the_column_that_disagrees_most_is_named(tmp_path):
    paths = tables(tmp_path, near=[[1.0], [1.01]], far=[[1.0], [2.0]], same=[["x"], ["x"]])
    assert disagreement(*paths, LEARNED).startswith("'far' differs by 5.0e-01")


def test_other_columns_are_told(tmp_path):
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    write_table(one, pd.DataFrame({"a": [1.0]}))
    write_table(other, pd.DataFrame({"b": [1.0]}))
    assert "'a'" in disagreement(one, other, LEARNED)


def test_json_and_archives_are_compared_by_their_values(tmp_path):
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps({"model": [1.0, {"name": "x", "count": 3}]}))
    for model, told in (
        ([1.0 + 1e-9, {"name": "x", "count": 3}], ""),
        ([1.0, {"name": "x", "count": 4}], "'model[1].count'"),
    ):
        other.write_text(json.dumps({"model": model}))
        assert disagreement(one, other, FITTED).startswith(told) and bool(disagreement(one, other, FITTED)) == bool(
            told
        )
    one, other = tmp_path / "one.zip", tmp_path / "other.zip"
    write_checkpoint(one, {"kind": "k", "steps": 3}, {"weight": np.ones((2, 2))})
    write_checkpoint(other, {"kind": "k", "steps": 3}, {"weight": np.ones((2, 2)) + 1e-8})
    assert disagreement(one, other, LEARNED) == ""
    write_checkpoint(other, {"kind": "k", "steps": 4}, {"weight": np.ones((2, 2))})
    assert "'meta.json: steps'" in disagreement(one, other, LEARNED)
    write_checkpoint(other, {"kind": "k", "steps": 3}, {"weight": np.ones((4, 2))})
    assert all(words in disagreement(one, other, LEARNED) for words in ("'weight.npy'", "2 x 2", "4 x 2"))


def test_other_files_are_compared_by_their_bytes_and_damaged_ones_refused(tmp_path):
    for suffix in (".xml", ".npz"):
        (tmp_path / f"one{suffix}").write_text("a")
        (tmp_path / f"other{suffix}").write_text("b")
    assert disagreement(tmp_path / "one.xml", tmp_path / "other.xml", LEARNED) == "other bytes"
    with pytest.raises(UserError, match=r"one\.npz: cannot be read"):
        disagreement(tmp_path / "one.npz", tmp_path / "other.npz", LEARNED)


def test_json_that_is_nested_too_deeply_is_refused_by_its_name(tmp_path):
    for name, text in (("one", "[1.0]"), ("other", "[" * 100_000)):
        (tmp_path / f"{name}.json").write_text(text)
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("meta.json", text)
    for suffix in ("json", "zip"):
        with pytest.raises(UserError, match=rf"other\.{suffix}.*nested too deeply"):
            disagreement(tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}", LEARNED)
