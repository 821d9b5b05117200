"""Tests that share a finished run share a worker of pytest-xdist: a pytest that does not tell it the groups makes each
run twice.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

GROUPED = """
import os, pytest
pytestmark = pytest.mark.xdist_group("shared run")
@pytest.mark.parametrize("number", range(4))
def test_of_the_group(number):
    open("workers", "a").write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_a_group_of_two_files_stays_with_one_worker(tmp_path: Path) -> None:
    for name in ("test_one.py", "test_other.py"):
        (tmp_path / name).write_text(GROUPED)
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "-p",
        "no:cacheprovider",
        str(tmp_path),
    ]
    subprocess.run(command, cwd=tmp_path, env=own, check=True, capture_output=True)
    workers = (tmp_path / "workers").read_text().split()
    assert len(workers) == 8 and len(set(workers)) == 1
