"""What tests count is summed by kind; without a folder for it, nothing is written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import counts
from counts import EXPECTED, not_run, summed


def test_counts_are_summed_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell_count) -> None:
    monkeypatch.delenv("SCHEDLAB_COUNTS", raising=False)
    tell_count("points survived", 1, of=1)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("SCHEDLAB_COUNTS", str(tmp_path))
    for survived in (1, 1, 0):
        tell_count("points survived", survived, of=1)
    tell_count("hashes compared", 1234)
    assert summed(tmp_path) == ["hashes compared: 1,234", "points survived: 2 of 3"]


def test_what_was_not_run_is_told() -> None:
    counted = [f"{what}: 1 of 1" for what in EXPECTED[1:]]
    assert not_run(counted) == [f"{EXPECTED[0]}: NOT RUN; the tests say why they were skipped"]
    assert not_run([*counted, f"{EXPECTED[0]}: 30,154"]) == []


@pytest.mark.parametrize(("arguments", "status"), [((), 0), (("--all",), 1)])
def test_what_was_not_run_fails_where_all_is_asked_for(tmp_path: Path, arguments: tuple[str, ...], status: int) -> None:
    done = subprocess.run([sys.executable, counts.__file__, tmp_path, *arguments], capture_output=True, text=True)
    assert done.returncode == status and done.stdout.count("NOT RUN") == len(EXPECTED)


def test_the_expected_kinds_are_those_that_tests_count(repository: Path) -> None:
    source = "".join(path.read_text() for path in sorted((repository / "tests").rglob("test_*.py")) if path.name != "test_counts.py")
    assert set(re.findall(r'tell_count\("([^"]+)"', source)) == set(EXPECTED)
