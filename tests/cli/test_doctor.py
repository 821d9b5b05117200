"""`schedlab doctor`: a report on whatever machine it runs."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from schedlab.cli import doctor
from schedlab.cli.main import main
from schedlab.config import records
from small_conf import write_conf


def test_the_report_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    write_conf(tmp_path)
    (tmp_path / "data" / "pictures").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCHEDLAB_DATA", "data")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert main(["doctor"]) == 0
    captured = capsys.readouterr()
    titles = [line for line in captured.out.splitlines() if not line.startswith(" ")]
    assert titles == ["machine", "packages", "gpu", "programs", "data", "pipeline"]
    for told in (
        "python 3.",
        "cores",
        "memory",
        "torch ",
        "asked for: none",
        "there: none",
        "data: pictures",
        "small/adaptation: 2 scenarios can run",
    ):
        assert told in captured.out
    assert "sbatch" in captured.out
    assert captured.err == ""


def test_the_report_of_an_empty_folder_and_of_a_wrong_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    assert main(["doctor"]) == 0
    assert "no configuration folder" in capsys.readouterr().out
    conf = write_conf(tmp_path)
    (conf / "scenario/adaptation/tiny.yaml").write_text("nonsense: 1\n")
    monkeypatch.setenv("SCHEDLAB_DATA", "nowhere")
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "the configuration has mistakes; see `schedlab check`" in out
    assert "SCHEDLAB_DATA=nowhere is no folder" in out


def test_scenarios_that_lack_the_same_data_are_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """Each scenario is composed once, whatever the number of scales, and no policy at all."""
    conf = write_conf(tmp_path)
    for name, scales in (("pictures", "[paper]"), ("more_pictures", "[full, paper]")):
        text = (
            (conf / "scenario/adaptation/tiny.yaml")
            .read_text()
            .replace("name: tiny", f"name: {name}\nscales: {scales}")
        )
        text = (
            text.replace("/model: tiny8", "/model: convnet2")
            .replace("/data: digits", "/data: cifar10")
            .replace("data: {train", "#")
        )
        (conf / f"scenario/adaptation/{name}.yaml").write_text(text)
    made: list[str] = []
    whole = records.scenario_record
    monkeypatch.setattr(
        records, "scenario_record", lambda composed, name, study: made.append(name) or whole(composed, name, study)
    )
    monkeypatch.setattr(records, "policy_record", lambda *_: pytest.fail("a policy was composed"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sorted(made) == ["more_pictures", "pictures", "tiny", "tiny_late"]
    assert [line for line in lines if "/adaptation: " in line] == [
        "  smoke/adaptation: 2 scenarios can run",
        "  small/adaptation: 2 scenarios can run",
        "  full/adaptation: 2 scenarios can run, 1 cannot",
        "  paper/adaptation: 2 scenarios can run, 2 cannot",
    ]
    (told,) = (line for line in lines if "cifar10" in line)
    assert told.startswith("  2 scenarios cannot run without the data set cifar10 at resources/data/cifar10 (")
    assert told.endswith("): adaptation/more_pictures, adaptation/pictures")
    assert any("SCHEDLAB_DATA is not set" in line and line.endswith("look in resources/data/") for line in lines)


def test_packages_and_programs_that_are_missing_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "a-package-that-is-not"))
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    numpy, missing = doctor._packages()
    assert numpy == f"numpy {metadata.version('numpy')}"
    assert "a-package-that-is-not" in missing and "make setup" in missing
    assert all("not found" in line for line in doctor._programs())


def test_no_torch_is_a_finding(tmp_path: Path) -> None:
    code = "import sys\nsys.modules['torch'] = None\nfrom schedlab.cli.main import main\nsys.exit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "torch is missing; nothing can be said" in done.stdout
