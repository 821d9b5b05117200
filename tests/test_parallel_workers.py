"""A worker of pytest-xdist gets whole files, and one worker gets all workflow tests: otherwise each worker would make
what a file or the workflow tests share.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

NOTING = """
import os, pytest
@pytest.mark.parametrize("number", range(6))
def test_notes_its_worker(number):
    with open("{name}", "a") as file:
        file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
"""


def test_files_and_the_workflow_tests_stay_with_one_worker_each(repository: Path, tmp_path: Path) -> None:
    shutil.copy(repository / "tests/conftest.py", tmp_path)
    (tmp_path / "workflow").mkdir()
    for name, noted in (("workflow/test_one", "flow"), ("workflow/test_two", "flow"), ("test_alone", "alone")):
        (tmp_path / f"{name}.py").write_text(NOTING.format(name=noted))
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    given["PYTHONPATH"] = f"{repository / 'tests'}:{repository / 'src'}"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider", "."]
    subprocess.run(command, cwd=tmp_path, env=given, check=True, capture_output=True)
    workers = {name: (tmp_path / name).read_text().split() for name in ("flow", "alone")}
    assert {name: len(noted) for name, noted in workers.items()} == {"flow": 12, "alone": 6}
    assert all(len(set(noted)) == 1 for noted in workers.values())
