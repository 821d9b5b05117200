"""`schedlab doctor`: a report on whatever machine it runs."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from schedlab.cli import doctor
from schedlab.cli.main import main
from small_conf import write_conf


def test_the_report_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
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
        "small/adaptation: 2 scenarios",
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
    assert "small: the configuration has mistakes; see `schedlab check`" in out
    assert "SCHEDLAB_DATA=nowhere is no folder" in out


def test_packages_and_programs_that_are_missing_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("numpy", "a-package-that-is-not"))
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    numpy, missing = doctor._packages()
    assert numpy == f"numpy {metadata.version('numpy')}"
    assert missing == "a-package-that-is-not is missing (run `make setup`)"
    assert all("not found" in line for line in doctor._programs())


def test_no_torch_is_a_finding(tmp_path: Path) -> None:
    code = "import sys\nsys.modules['torch'] = None\nfrom schedlab.cli.main import main\nsys.exit(main(['doctor']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "torch is missing; nothing can be said" in done.stdout
