from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.config.files import write_table
from schedlab.studies.adaptation.example import example_table
from schedlab.studies.adaptation.simulator.table import (
    DecisionTree,
    read_simulations,
    simulation_table,
    view,
)


@given(st.integers(2, 5), st.integers(1, 4))
def test_sequences_are_lexicographic_and_prefixes_by_length(actions: int, decisions: int) -> None:
    tree = DecisionTree(actions, decisions)
    assert len(tree.sequences) == actions**decisions
    assert list(tree.sequences) == sorted(tree.sequences)
    assert len(tree.prefixes) == sum(actions**length for length in range(decisions))
    assert list(tree.prefixes) == sorted(tree.prefixes, key=lambda prefix: (len(prefix), prefix))
    for index, sequence in enumerate(tree.sequences):
        assert tree.index(sequence) == index
        assert tree.text(tree.choices[index]) == sequence
        assert [tree.prefixes[state] for state in tree.states[index]] == [sequence[:step] for step in range(decisions)]


@pytest.mark.parametrize("wrong", ["", "01", "0123", "014", "0x1"])
def test_a_text_that_is_no_sequence_is_refused(wrong: str) -> None:
    with pytest.raises(UserError, match=f"'{wrong}'"):
        DecisionTree(4, 3).index(wrong)


def test_the_dense_view_holds_every_row_in_its_place() -> None:
    table = example_table(60, replicates=2)
    seen = view(table.sample(frac=1, random_state=1), "validation_loss")
    assert seen.reward.shape == (2, 64) and seen.time_left.shape == (2, 21)
    for _, row in table.iterrows():
        unit, index = seen.units.index((row["job"], row["replicate"])), seen.tree.index(row["sequence"])
        assert seen.reward[unit, index] == -row["validation_loss"]
        assert seen.metrics["test_accuracy"][unit, index] == row["test_accuracy"]
    # Time left: that of the prefix padded with zeros, here after insertions behind block 0 at 15 and 20 s an epoch.
    prefixes = seen.tree.prefixes
    assert [seen.time_left[0, prefixes.index(p)] for p in ("", "0", "00", "3", "33")] == [180, 165, 145, 170, 160]


def test_an_accuracy_is_a_reward_as_it_stands() -> None:
    table = example_table(60, replicates=1)
    assert view(table, "validation_accuracy").reward[0, 5] == table["validation_accuracy"][5]


def test_equal_results_share_the_better_rank() -> None:
    seen = view(example_table(60, replicates=1), "validation_loss")
    assert seen.ranks(np.array([3.0, 5.0, 5.0, 1.0])).tolist() == [3, 1, 1, 4]


def damaged(table: pd.DataFrame, how: str) -> pd.DataFrame:
    match how:
        case "missing":
            return table.drop(table.index[[5, 70]])
        case "twice":
            return pd.concat([table, table.iloc[[3]]])
        case "nan":
            table.loc[7, "validation_loss"] = np.nan
        case "infinite time":
            table.loc[7, "time_left_2"] = np.inf
        case "text":
            table["validation_loss"] = "low"
        case "other sequence":
            table.loc[7, "sequence"] = "0"
        case "no metric":
            return table.drop(columns="validation_loss")
        case "no time":
            return table.drop(columns="time_left_3")
    return table


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("missing", "replicate 0.*'011'"),
        ("twice", "'003'"),
        ("nan", "validation_loss.*'013'"),
        ("infinite time", "time_left_2.*'013'"),
        ("text", "validation_loss.*'000'.*'low'"),
        ("other sequence", "'0'"),
        ("no metric", "'validation_loss'.*'validation_accuracy'"),
        ("no time", "'time_left_3'"),
    ],
)
def test_a_table_that_is_not_whole_is_refused_with_the_place(how: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        view(damaged(example_table(60, replicates=2), how), "validation_loss", tree=DecisionTree(4, 3))


def test_epochs_become_rows_with_the_means_of_the_last_window() -> None:
    epochs = pd.DataFrame(
        {
            "scenario": "s",
            "job": 0,
            "replicate": 1,
            "sequence": ["01"] * 4 + ["10"] * 3,
            "epoch": [6, 7, 8, 9, 6, 7, 8],
            "parameters": [10, 20, 20, 20, 15, 25, 25],
            "time_left": [50.0, 40, 29, 18, 50, 38, 25],
            "train_seconds": [8.0, 9, 9, 9, 10, 11, 11],
            "eval_seconds": 2.0,
            "test_loss": [np.nan, np.nan, 0.5, 0.3, np.nan, 0.9, 0.7],
            "test_accuracy": [np.nan, np.nan, 0.8, 0.9, np.nan, 0.6, 0.7],
        }
    ).sample(frac=1, random_state=0)
    table = simulation_table(epochs, DecisionTree(2, 2), window=2, model="m", timing="t").set_index("sequence")
    assert table.loc["01", ["time_left_1", "time_left_2", "epochs", "parameters", "seconds_charged"]].tolist() == [
        50,
        40,
        4,
        20,
        43,
    ]
    assert table.loc["01", "test_loss"] == pytest.approx(0.4)
    assert table.loc["10", "test_accuracy"] == pytest.approx(0.65)
    assert (table["model"] == "m").all() and (table["timing"] == "t").all()
    last = simulation_table(epochs, DecisionTree(2, 2), window=1).set_index("sequence")
    assert last.loc["10", "test_loss"] == pytest.approx(0.7)
    apart = simulation_table(epochs, DecisionTree(2, 2), every=2).set_index("sequence")
    assert apart.loc["01", "time_left_2"] == 29
    late = simulation_table(epochs, DecisionTree(2, 2), every=5).set_index("sequence")
    assert late.loc["10", "time_left_2"] == 25 - 13  # no epoch fitted any more: what is left behind the last


def test_our_tables_are_read_from_csv_and_parquet_alike(tmp_path: Path) -> None:
    table = example_table(60)
    table.to_csv(tmp_path / "t.csv", index=False)
    write_table(tmp_path / "t.parquet", table)
    one, other = read_simulations(tmp_path / "t.csv"), read_simulations(tmp_path / "t.parquet")
    assert one["sequence"].tolist() == other["sequence"].tolist() == table["sequence"].tolist()
    np.testing.assert_allclose(view(one, "test_loss").reward, view(other, "test_loss").reward, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("absent.csv", None),
        ("absent.parquet", None),
        ("bad.parquet", b"PAR1 no"),
        ("binary.csv", b"\xff\xfe\x00"),
        ("empty.csv", b""),
        ("other.csv", b"a,b\n1,2\n"),
    ],
)
def test_a_file_that_is_no_table_is_a_users_error(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=name):
        read_simulations(tmp_path / name)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [
        ("job", "1e", r"t\.csv: job: .*'1e'"),
        ("job", "true", r"t\.csv: job: .*'True'"),
        ("job", "inf", r"t\.csv: job: .*'inf'"),
        ("replicate", "0.5", r"t\.csv: replicate: .*'0\.5'"),
        ("replicate", "", r"t\.csv: replicate: .*'nan'"),
        ("replicate", "9" * 30, r"t\.csv: replicate: .*'9{30}'"),
        ("time_left_1", "30=", r"t\.csv: time_left_1: .*'30='"),
        ("test_loss", "-1e200", r"t\.csv: test_loss: .*'-1e\+200'"),
        ("test_loss", "[" * 200_000, r"t\.csv"),
    ],
    ids=["text", "truth", "infinite", "fraction", "missing", "large", "time", "far", "long"],
)
def test_what_is_no_number_is_named(tmp_path: Path, column: str, value: str, told: str) -> None:
    columns = {"job": "0", "replicate": "0", "sequence": "0", "time_left_1": "30", "test_loss": "0.5"}
    rows = [columns | {"sequence": sequence, column: value} for sequence in "01"]
    (tmp_path / "t.csv").write_text("\n".join([",".join(columns), *(",".join(row.values()) for row in rows)]))
    with pytest.raises(UserError, match=told):
        read_simulations(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ["01,30,0.5", "10,3"],
            r"cut\.csv: line 3",
        ),
        (["01,30,0.5,7"], r"cut\.csv: line 2"),
        (["01,30,0.5", "", "1"], r"cut\.csv: line 4"),
    ],
)
def test_a_line_that_is_cut_off_is_named(tmp_path: Path, lines: list[str], told: str) -> None:
    (tmp_path / "cut.csv").write_text("\n".join(["sequence,time_left_1,test_loss", *lines]))
    with pytest.raises(UserError, match=told):
        read_simulations(tmp_path / "cut.csv")
