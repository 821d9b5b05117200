"""What tests count is summed by kind; without a folder for it, nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from counts import summed


def test_counts_are_summed_by_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell_count) -> None:
    monkeypatch.delenv("SCHEDLAB_COUNTS", raising=False)
    tell_count("points survived", 1, of=1)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("SCHEDLAB_COUNTS", str(tmp_path))
    for survived in (1, 1, 0):
        tell_count("points survived", survived, of=1)
    tell_count("hashes compared", 1234)
    assert summed(tmp_path) == ["hashes compared: 1,234", "points survived: 2 of 3"]
