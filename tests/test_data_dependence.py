"""A second run with the reference data leaves out what passed without it and looked at nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = {
    "test_alone.py": "def test_passes(): pass\n\ndef test_fails(): assert 0\n",
    "test_asks.py": (
        "import os\n\ndef test_passes(): pass\n\ndef test_asks(): assert not os.environ.get('SCHEDLAB_DATA')\n"
    ),
    "test_at_import.py": "import os\n\nHERE = 'SCHEDLAB_DATA' in os.environ\n\ndef test_passes(): pass\n",
    "test_fixture.py": (
        "import os, pytest\n\n@pytest.fixture(scope='session')\ndef data(): return os.environ.get('SCHEDLAB_DATA')\n\n"
        "def test_first(data): pass\n"
    ),
    "test_starts.py": "import subprocess\n\ndef test_starts(): subprocess.run(['true'])\n\ndef test_passes(): pass\n",
}


@pytest.mark.slow
def test_what_looked_at_data_or_started_a_process_runs_again(repository: Path, tmp_path: Path) -> None:
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "conftest.py").write_text(
        "from data_dependence import add_options as pytest_addoption, configure as pytest_configure\n"
    )
    given = {name: value for name, value in os.environ.items() if name != "SCHEDLAB_DATA"}
    given["PYTHONPATH"] = str(repository / "tests")

    def run(*words: str) -> str:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-v",
            "-n",
            "2",
            "--dist",
            "loadfile",
            "-p",
            "no:cacheprovider",
            *words,
        ]
        return subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True).stdout

    run("--note-passed=passed")
    assert (tmp_path / "passed").read_text().split() == ["test_alone.py::test_passes", "test_starts.py::test_passes"]
    again = run("--leave-out=passed")
    assert "test_fails" in again and "test_asks.py::test_passes" in again and "test_starts.py::test_passes" not in again
