"""Outputs of earlier parts are taken by who goes back to them, and only so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedlab.stages import earlier_outputs
from schedlab.stages.earlier_outputs import PARTS, make_or_take


@pytest.fixture
def job(tmp_path: Path) -> Callable[[str], bool]:
    """Run a job with a part of a text; tells whether it was computed. Its outputs hold the text."""
    part, file, folder = tmp_path / "part.yaml", tmp_path / "made/table", tmp_path / "made/details"

    def run(text: str) -> bool:
        computed = []

        def make() -> None:
            computed.append(text)
            folder.mkdir(parents=True, exist_ok=True)
            for path in (file, folder / "rows"):
                path.unlink(missing_ok=True)
                path.write_text(text)

        part.write_text(text)
        make_or_take(make, part, [file, folder], tmp_path / "kept")
        assert file.read_text() == (folder / "rows").read_text() == text
        return bool(computed)

    return run


def test_who_goes_back_takes_what_was_made_and_who_asks_once_more_computes(job, tmp_path: Path) -> None:
    assert job("one") and job("other")
    before = (tmp_path / "part.yaml").stat().st_mtime_ns
    assert not job("one") and (tmp_path / "made/table").stat().st_mtime_ns >= before
    assert not job("other") and not job("one")
    assert job("one"), "forced, or its outputs were deleted"
    assert job("one") and not job("other")


def test_as_many_parts_are_kept_as_are_said(job, tmp_path: Path) -> None:
    names = [str(number) for number in range(PARTS + 2)]
    assert all(job(name) for name in names)
    assert len(list(tmp_path.glob("kept/*/*/0"))) == PARTS
    assert not job(names[-2]) and not job(names[2]) and job(names[1])


def test_outputs_that_were_changed_since_are_not_taken(job, tmp_path: Path) -> None:
    assert job("one")
    (tmp_path / "made/table").write_text("mine")  # the kept file is the same one
    assert job("other") and job("one")
    (next(tmp_path.glob("kept/*")) / "known.json").write_text("{")
    assert job("other")


def test_a_job_that_fails_keeps_nothing_and_the_last_part_stays_the_last(job, tmp_path: Path, monkeypatch) -> None:
    assert job("one") and job("other")
    part = tmp_path / "part.yaml"
    part.write_text("third")
    with pytest.raises(OSError, match="full"):
        make_or_take(lambda: (_ for _ in ()).throw(OSError("full")), part, [tmp_path / "made/table"], tmp_path / "kept")
    assert not job("one") and not job("other")
    monkeypatch.setattr(earlier_outputs.os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links")))
    assert job("fourth") and job("one"), "where there are no links nothing is kept"
