from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from schedlab.config.errors import UserError
from schedlab.config.files import write_table
from schedlab.studies.adaptation.commands.listing import print_ranking
from schedlab.studies.adaptation.example import example_table
from schedlab.studies.adaptation.simulator.ranking import ranking

# Best, its sequence, mean, worst, no adaptation and its rank, by the published system's authors (four digits).
PUBLISHED = {
    "simulation_early2": (0.7391, "110", 0.6895, 0.5954, 0.6221, 60),
    "simulation_early_middle2": (0.7388, "111", 0.6814, 0.5982, 0.6046, 62),
    "simulation_middle2": (0.7348, "010", 0.6690, 0.5681, 0.6045, 60),
    "simulation_middle_late2": (0.7016, "011", 0.6482, 0.5631, 0.5775, 62),
    "simulation_late2": (0.6827, "011", 0.6189, 0.5148, 0.5912, 50),
    "simulation_early3_v2": (0.4190, "310", 0.3627, 0.3024, 0.3079, 63),
    "simulation_early_middle3_v2": (0.4215, "000", 0.3906, 0.3391, 0.3607, 59),
    "simulation_middle3_v2": (0.4092, "202", 0.3429, 0.3043, 0.3249, 52),
    "simulation_middle_late3_v2": (0.4098, "030", 0.3777, 0.3114, 0.3585, 54),
    "simulation_late3_v2": (0.3707, "002", 0.3178, 0.2200, 0.2950, 62),
}


def run_rank(table: Path, metric: str = "test_accuracy") -> None:
    assert print_ranking(argparse.Namespace(table=str(table), metric=metric)) == 0


def test_the_command_prints_the_published_ranking(shared_data: Path, capsys: pytest.CaptureFixture) -> None:
    run_rank(shared_data / "cases/adaptation/simulations.csv")
    found = json.loads(capsys.readouterr().out)
    assert set(found) == set(PUBLISHED)
    for experiment, (best, sequence, mean, worst, none, rank) in PUBLISHED.items():
        row = found[experiment]
        assert (row["best"], row["best_sequence"], round(row["mean"], 4), row["worst"]) == (
            best,
            sequence,
            mean,
            worst,
        ), experiment
        assert (row["none"], row["none_rank"], row["sequences"], row["units"]) == (none, rank, 64, 1), experiment
        assert 0.008 < row["noise"] < 0.026


def test_a_loss_is_best_where_it_is_least_and_replicates_tell_the_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    table = example_table(60, replicates=6, noise=0.004)
    write_table(tmp_path / "t.parquet", table)
    run_rank(tmp_path / "t.parquet", "validation_loss")
    row = json.loads(capsys.readouterr().out)["example-60"]
    mean = table.groupby("sequence")["validation_loss"].mean()
    assert (row["best"], row["best_sequence"]) == (pytest.approx(mean.min()), mean.idxmin())
    assert (row["worst"], row["worst_sequence"]) == (pytest.approx(mean.max()), mean.idxmax())
    assert row["none_rank"] == 1 + (mean < mean["333"]).sum()
    assert row["noise"] == pytest.approx(0.004, rel=0.2)
    assert row["reliability"] > 0.9


def test_wrong_tables_and_metrics_are_told(tmp_path: Path) -> None:
    table = example_table(60)
    with pytest.raises(UserError, match="'accuracy'"):
        ranking(table, "accuracy")
    with pytest.raises(UserError, match="example-60"):
        ranking(table.iloc[:-1])
    with pytest.raises(UserError, match="nowhere"):
        run_rank(tmp_path / "nowhere.csv")


def record(lines: list[str], header: str = "experiment,seq,test_acc_final") -> str:
    return "\n".join([header, *lines]) + "\n"


def rows_of(digits: str) -> list[str]:
    """A record of two decisions; the sequence with the highest digits is best."""
    return [f"e,{one}{two},0.{5 + int(one)}{int(two)}" for one in digits for two in digits]


def ranked(file: Path, text: str, capsys: pytest.CaptureFixture) -> dict:
    file.write_text(text)
    run_rank(file)
    return json.loads(capsys.readouterr().out)


def test_a_record_needs_no_more_than_experiment_sequence_and_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    found = ranked(tmp_path / "t.csv", record(rows_of("0123")), capsys)["e"]
    assert (found["best_sequence"], found["none_sequence"], found["none_rank"], found["worst_sequence"]) == (
        "33",
        "33",
        1,
        "00",
    )


@pytest.mark.parametrize(
    ("header", "between"),
    [
        ('"experiment","seq","test_acc_final"', ","),
        ("experiment, seq, test_acc_final", ", "),
        ("\ufeffexperiment,seq ,test_acc_final", ","),
        ('"experiment", "seq", "test_acc_final"', ", "),
    ],
)
def test_quotes_spaces_and_marks_in_a_record_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture, header: str, between: str
) -> None:
    plain = ranked(tmp_path / "plain.csv", record(rows_of("0123")), capsys)
    assert (
        ranked(tmp_path / "other.csv", record([line.replace(",", between) for line in rows_of("0123")], header), capsys)
        == plain
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (record([]), r"t\.csv"),
        (record([], "sequence,test_accuracy"), r"t\.csv"),
        (record(rows_of("012")), r"t\.csv, e: seq"),
        (
            record(rows_of("0123"), "experiment,seq,test_acc"),
            "'test_acc_final'.*'test_acc'",
        ),
        (record(rows_of("0123")[:-1]), "'33'"),
        (record([*rows_of("0123")[:-1], "e,33,none"]), "test_acc_final.*'none'"),
        (record([*rows_of("0123")[:-1], "e,33,"]), "test_accuracy"),
    ],
)
def test_a_record_that_cannot_be_ranked_is_told_with_its_file(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(UserError, match=told) as caught:
        run_rank(tmp_path / "t.csv")
    assert "t.csv" in str(caught.value)
