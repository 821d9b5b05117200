"""A test that needs a Slurm, a browser or a mount is skipped without them, and fails where nothing may be missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKIPPED = """import pytest


@pytest.mark.needs_system
@pytest.mark.skipif(True, reason="no Slurm here")
def test_on_slurm(): pass


@pytest.mark.skipif(True, reason="no GPU here")
def test_on_a_gpu(): pass
"""


@pytest.mark.parametrize(("required", "status"), [("", 0), ("1", 1)])
def test_a_skipped_test_fails_where_all_is_required(
    repository: Path, tmp_path: Path, required: str, status: int
) -> None:
    (tmp_path / "test_skipped.py").write_text(SKIPPED)
    settings = ["-c", str(repository / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *settings, "-p", "conftest", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(repository / "tests"), "SCHEDLAB_REQUIRED": required},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout
    assert ("1 skipped" if required else "2 skipped") in done.stdout
