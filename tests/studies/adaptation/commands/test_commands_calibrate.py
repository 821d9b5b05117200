"""`calibrate`, `rank` and `vocab` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from schedlab.cli.main import main
from schedlab.config.schema import validate
from schedlab.studies.adaptation.simulator import calibrate
from schedlab.studies.adaptation.simulator.timing import TimingSettings
from small_conf import write_conf

CALIBRATE = (
    "adaptation",
    "calibrate",
    "--model",
    "tiny8",
    "--data",
    "digits",
    "--epochs",
    "3",
    "--warm-up",
    "0",
    "--name",
    "here",
)


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small configuration folder in the working directory."""
    monkeypatch.chdir(tmp_path)
    return write_conf(tmp_path)


def test_calibrate_writes_a_timing_that_a_scenario_can_use(conf: Path, capsys: pytest.CaptureFixture) -> None:
    assert main([*CALIBRATE]) == 0
    told = json.loads(capsys.readouterr().out)
    timing = validate(TimingSettings, yaml.safe_load((conf / "gpu" / "here.yaml").read_text()))
    assert told["file"] == "conf/gpu/here.yaml"
    assert (timing.name, timing.models.keys(), timing.batch_size) == ("here", {"tiny8"}, 64)
    insertions = [entry["insertions"] for entry in told["measured"]]
    assert insertions == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [0, 2, 0], [0, 0, 2]]
    assert len(told["train"]["standard_errors"]) == 3
    for entry in told["measured"]:
        low, high = entry["quartiles"]["train_s"]
        assert low <= entry["train_s"] + 1e-6 and entry["train_s"] <= high + 1e-6
        by_formula = timing.models["tiny8"].train.seconds(entry["insertions"])
        assert entry["train_s"] - entry["residual"]["train_s"] == pytest.approx(by_formula, abs=2e-6)
        assert abs(entry["residual"]["train_s"]) <= told["largest_residual"]["train_s"] + 2e-6
    file = conf / "scenario/adaptation/tiny.yaml"
    file.write_text(file.read_text().replace("timing: priced", "timing: here"))
    assert main(["adaptation", "run", "--scenario", "tiny", "--sequence", "33"]) in (
        0,
        2,
    )  # as many epochs as this machine affords


@pytest.mark.parametrize(
    ("options", "place", "told"),
    [
        (("--name", "my machine"), "--name", "'my machine'"),
        (("--name", "../up"), "--name", "'../up'"),
        (("--name", "priced"), "conf/gpu/priced.yaml", "--force"),
        (("--name", "new", "--out", "taken.yaml"), "taken.yaml", "--force"),
        (("--name", "new", "--out", "taken.yaml/new.yaml"), "taken.yaml/new.yaml", "--out"),
        (("--name", "new", "--out", "conf", "--force"), "conf", "--out"),
    ],
)
def test_a_name_that_cannot_be_is_refused_before_anything_is_measured(
    conf: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    options: tuple[str, ...],
    place: str,
    told: str,
) -> None:
    monkeypatch.setattr(calibrate, "epoch_measure", lambda *_: pytest.fail("it measured"))
    Path("taken.yaml").write_text("mine\n")
    assert conf.is_dir() and main(["adaptation", "calibrate", "--model", "tiny8", "--data", "digits", *options]) == 2
    error = capsys.readouterr().err
    assert f"error: {place}: " in error and told in error
    assert ("--force" in error) == (told == "--force"), "of a file that is there, and of no other"
    assert Path("taken.yaml").read_text() == "mine\n"


def test_calibrate_s_mistakes(conf: Path, capsys: pytest.CaptureFixture) -> None:
    mine = conf / "gpu" / "here.yaml"
    mine.write_text("name: here\n")
    for arguments, told in (
        ((*CALIBRATE,), "there already"),
        ((*CALIBRATE, "--out", "other.yaml", "--device", "abacus"), "no device"),
        ((*CALIBRATE, "--out", "other.yaml", "--epochs", "2"), "--epochs"),
        ((*CALIBRATE, "--out", "other.yaml", "--model", "tiny9"), "did you mean 'tiny8'"),
        ((*CALIBRATE, "--out", "other.yaml", "--data", "digit"), "did you mean 'digits'"),
        ((*CALIBRATE, "--out", "other.yaml", "--model", "convnet2"), "takes images"),
    ):
        assert main([*arguments]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert told in captured.err
    assert mine.read_text() == "name: here\n"
    assert not Path("other.yaml").exists()


def test_rank_prints_one_document(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["adaptation", "rank", str(shared_data / "cases" / "adaptation" / "simulations.csv")]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)["simulation_early2"]
    assert (round(told["best"], 4), told["best_sequence"], told["none_rank"]) == (0.7391, "110", 60)
    assert captured.err == ""
    assert main(["adaptation", "rank", "none.csv"]) == 2


def test_vocab_is_printed_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["adaptation", "vocab"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0 (any other layer)"
    assert [line.split()[0] for line in lines] == [str(number) for number in range(len(lines))]
    assert main(["adaptation", "vocab", "--file", "none.json"]) == 2
