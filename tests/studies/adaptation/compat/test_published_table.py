from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.config.errors import UserError
from schedlab.studies.adaptation.compat.published_table import PUBLISHED, import_published, read_own_or_published
from schedlab.studies.adaptation.simulator.ranking import ranking
from schedlab.studies.adaptation.simulator.table import view


def test_what_is_no_number_in_the_published_record_is_named(tmp_path: Path) -> None:
    values = dict.fromkeys((*PUBLISHED, "train_epoch_s_mean", "eval_s_mean", "timeleft1_s"), "1") | {"seq": "3"}
    for column, value, told in (
        ("eval_s_mean", "soon", "eval_s_mean: .*'soon'"),
        ("experiment", "7", "'one'.*7"),
        ("model", "7", ""),
    ):
        changed = values | {column: value}
        (tmp_path / "t.csv").write_text(",".join(changed) + "\n" + ",".join(changed.values()))
        if told:
            with pytest.raises(UserError, match=told):
                import_published(tmp_path / "t.csv", "one")
        else:
            assert import_published(tmp_path / "t.csv")[column].tolist() == [value]


def test_the_published_record_cut_off_anywhere_is_told(shared_data: Path, tmp_path: Path) -> None:
    text = (shared_data / "cases/adaptation/simulations.csv").read_text()
    whole = text.splitlines(keepends=True)
    for cut, told in (
        (len("".join(whole[:30])) + 20, "line 31"),
        (len("".join(whole[:30])), "35 of 64"),
    ):
        (tmp_path / "cut.csv").write_text(text[:cut])
        with pytest.raises(UserError, match=told):
            ranking(read_own_or_published(tmp_path / "cut.csv"), where="cut.csv")


def test_the_published_record_becomes_our_table(shared_data: Path) -> None:
    csv = shared_data / "cases/adaptation/simulations.csv"
    table = import_published(csv, "simulation_early2")
    row = table.set_index("sequence").loc["001"]
    assert (row["time_left_1"], row["time_left_2"], row["time_left_3"]) == (329.98, 318.16, 306.04)
    assert row[["model", "data", "total_time", "start", "test_accuracy"]].tolist() == [
        "convnet2",
        "cifar10",
        400,
        70,
        0.7262,
    ]
    assert row["parameters"] == 10602 + 3 * 9312
    seen = view(table, "test_accuracy")
    assert seen.time_left[0, 0] == 328.88  # that of 000, though other sequences began up to a second earlier
    assert len(import_published(csv)) == 640
    with pytest.raises(UserError, match="'simulation_early2'"):
        import_published(csv, "simulation_early")
