"""`schedlab new study`: the directory that it writes is right, and what it refuses leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from schedlab.cli.main import main


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def module(folder: Path, *words: str) -> str:
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_written_study_passes_the_check_and_its_own_tests(place: Path) -> None:
    assert main(["new", "study", "ordering", "some where"]) == 0
    folder = place / "some where"
    assert "scenario ordering/rough: 3 rules, 1 policy" in module(folder, "schedlab.cli.main", "check")
    assert "3 passed" in module(folder, "pytest", "-p", "no:cacheprovider")
    written = [path for path in folder.rglob("*") if path.is_file()]
    assert not [path for path in written if "my_study" in path.name or b"my_study" in path.read_bytes()]


def test_the_directory_is_called_like_the_study_where_none_is_named(place: Path) -> None:
    assert main(["new", "study", "ordering"]) == 0
    assert (place / "ordering/conf/study/ordering.yaml").is_file() and (place / "ordering/ordering/study.py").is_file()


@pytest.mark.parametrize(
    "name",
    [
        "2nd",
        "a-b",
        "Ordering",
        "class",
        "",
        "ramp",
        "check",
        "new",
        "learn",
        "draw_1/2",
        "all",
        "policies",
        "numpy",
        "json",
        "test",
        "conf",
        "plots",
        "profiles",
        "resources",
        "results",
        "workflow",
        "null",
        "on",
    ],
)
def test_a_name_that_cannot_be_one_is_refused(place: Path, capsys: pytest.CaptureFixture, name: str) -> None:
    assert main(["new", "study", name, "x"]) == 2
    assert capsys.readouterr().err.startswith("error: NAME: ") and not list(place.iterdir())


def test_a_directory_that_holds_anything_is_refused(place: Path, capsys: pytest.CaptureFixture) -> None:
    (place / "full").mkdir()
    (place / "full/notes.txt").touch()
    assert main(["new", "study", "ordering", "full"]) == 2
    assert capsys.readouterr().err.startswith("error: full: ")
    assert [path.name for path in (place / "full").iterdir()] == ["notes.txt"]


def test_a_file_in_the_place_of_the_directory_is_refused(place: Path, capsys: pytest.CaptureFixture) -> None:
    (place / "taken").touch()
    assert main(["new", "study", "ordering", "taken"]) == 2
    assert main(["new", "study", "ordering", "taken/below"]) == 2
    assert all(line.startswith("error: taken") for line in capsys.readouterr().err.splitlines())


def test_a_directory_that_may_not_be_made_is_an_error_without_traceback(
    place: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert main(["new", "study", "ordering"]) == 2
    assert "Permission denied" in capsys.readouterr().err and not list(place.iterdir())
