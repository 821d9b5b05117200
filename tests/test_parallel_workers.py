"""A worker of pytest-xdist gets whole files, and one worker gets all files that share a finished run: otherwise each
worker would make what they share. The longest groups begin first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NOTING = """
import os, pytest
@pytest.fixture
def finished_toy(): ...
@pytest.fixture
def another(): ...
@pytest.mark.parametrize("number", range(6))
def test_notes_its_worker({uses}, number):
    for name in ("{name}", "order"):
        with open(name, "a") as file:
            file.write(os.environ["PYTEST_XDIST_WORKER"] + " {name}\\n")
"""


@pytest.mark.slow
def test_files_and_those_of_a_finished_run_stay_with_one_worker_each_and_the_longest_begin(
    repository: Path, tmp_path: Path
) -> None:
    shutil.copy(repository / "tests/conftest.py", tmp_path)
    (tmp_path / "workflow").mkdir()
    flows = {f"workflow/test_{name}": "flow" for name in ("one", "two")}
    files = {"test_first": "first", "workflow/test_own": "own", **flows}
    for name, noted in files.items():
        uses = "finished_toy" if noted == "flow" else "another"
        (tmp_path / f"{name}.py").write_text(NOTING.format(name=noted, uses=uses))
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    given["PYTHONPATH"] = f"{repository / 'tests'}:{repository / 'src'}"
    kept = ("--dist", "loadgroup", "--no-loadscope-reorder", "-p", "no:cacheprovider")
    for workers in ("1", "2"):
        command = [sys.executable, "-m", "pytest", "-q", "-n", workers, *kept, "."]
        subprocess.run(command, cwd=tmp_path, env=given, check=True, capture_output=True)
        if workers == "1":
            order = [line.split()[1] for line in (tmp_path / "order").read_text().splitlines()]
            assert order == ["flow"] * 12 + ["own"] * 6 + ["first"] * 6
            for name in (*files.values(), "order"):
                (tmp_path / name).unlink(missing_ok=True)
    noted = {name: (tmp_path / name).read_text().split()[::2] for name in set(files.values())}
    assert {name: len(each) for name, each in noted.items()} == {"flow": 12, "own": 6, "first": 6}
    assert all(len(set(each)) == 1 for each in noted.values())
