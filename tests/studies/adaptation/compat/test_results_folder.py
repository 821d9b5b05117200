from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.studies.adaptation.compat.published_table import import_published
from schedlab.studies.adaptation.compat.results_folder import read_epochs, read_initial_trainings, read_simulations


@pytest.fixture
def results(shared_data: Path) -> Path:
    return shared_data / "cases/adaptation/published_results/results"


def test_trainings_become_the_published_record(results: Path, shared_data: Path) -> None:
    record = pd.read_csv(shared_data / "cases/adaptation/simulations.csv", dtype={"seq": str})
    expected = record[record["experiment"] == "simulation_late2"].reset_index(drop=True)
    found = read_simulations(results)
    assert list(found.columns) == list(expected.columns)
    for name in found:
        if found[name].dtype.kind in "if":
            tolerance = 0.0101 if name.startswith("timeleft") else 0.00101
            assert np.allclose(found[name], expected[name], rtol=0, atol=tolerance), name
        else:
            assert found[name].tolist() == expected[name].tolist(), name


def test_epochs_become_the_published_epochs(results: Path, shared_data: Path) -> None:
    for name, found in (
        ("simulation_epochs", read_epochs(results)),
        ("initial_training", read_initial_trainings(results)),
    ):
        record = pd.read_csv(shared_data / f"cases/adaptation/{name}.csv", dtype={"seq": str})
        expected = record[record["experiment"].isin(found["experiment"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, atol=0.00101, rtol=0)


def test_the_command_writes_what_published_scenarios_read(
    results: Path, shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cases/adaptation"
    assert main(["adaptation", "import-results", str(results), "--out", str(out)]) == 0
    written = import_published(out / "simulations.csv", "simulation_late2")
    record = import_published(shared_data / "cases/adaptation/simulations.csv", "simulation_late2")
    exact = ["sequence", "test_accuracy", "parameters", "epochs"]
    pd.testing.assert_frame_equal(written[exact], record[exact])
    assert len(pd.read_csv(out / "simulation_epochs.csv")) == record["epochs"].sum()
    assert len(pd.read_csv(out / "initial_training.csv")) == 29
    before = (out / "simulations.csv").read_bytes()
    assert main(["adaptation", "import-results", str(results), "--out", str(out)]) == 2
    assert main(["adaptation", "import-results", str(results), "--out", str(out), "--force"]) == 0
    assert (out / "simulations.csv").read_bytes() == before
    capsys.readouterr()


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("training07.epoch.test_acc", "0,14.8,0.58\n", "training07 has"),
        ("training07.epoch.test_acc", "0,14.8\n", "line 1"),
        ("training07.epoch.test_acc", "0,soon,0.58\n", "line 1"),
        ("training07.epoch.action", "1,2.1,0\n", "line 1"),
        ("training07.log", "", "training07.log"),
        ("training07.log", None, "training07.log"),
        ("config.toml", "[runner", "config.toml"),
    ],
)
def test_damaged_files_are_named(results: Path, tmp_path: Path, file: str, text: str | None, named: str) -> None:
    copy = tmp_path / "results"
    shutil.copytree(results / "simulation_late2", copy / "simulation_late2")
    (copy / "simulation_late2" / file).chmod(0o644)
    (copy / "simulation_late2").chmod(0o755)
    (copy / "simulation_late2" / file).unlink()
    if text is not None:
        (copy / "simulation_late2" / file).write_text(text)
    with pytest.raises(UserError, match=named):
        read_simulations(copy)


def test_a_folder_without_runs_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no published run"):
        read_simulations(tmp_path)
