"""Atomic writes, and what a killed writer leaves behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from schedlab.config.errors import DISK_TROUBLE, UserError
from schedlab.config.files import atomic_path, check_writable, remove_leftovers


def test_only_the_temporary_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    kept = [tmp_path / name for name in (".hidden", ".gitkeep", "a.pdf", ".a.pdf", "deep/.config.yaml", ".abcdefgh")]
    for path in kept:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    left = []
    for name in ("regret.pdf", "INDEX.md", "noted", "deep/policy.v1.zip"):
        with atomic_path(tmp_path / name) as temporary:
            left.append(Path(f"{temporary}"))
    for path in left:
        path.touch()  # as if the process had been killed before the last step
    remove_leftovers(tmp_path)
    assert not [path for path in left if path.exists()]
    assert all(path.exists() for path in kept)


def test_the_temporary_file_of_a_living_writer_stays(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "a.json") as temporary:
        temporary.write_text("{}")
        remove_leftovers(tmp_path)
        assert temporary.exists()
    assert (tmp_path / "a.json").read_text() == "{}"
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_in_which_nothing_can_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "results/small/toy"
    deep.mkdir(parents=True)
    check_writable(tmp_path / "results", tmp_path / "absent")
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != deep and access(path, mode)
    )  # root may write everywhere
    with pytest.raises(UserError) as told:
        check_writable(tmp_path / "results", tmp_path / "absent")
    assert (told.value.where, told.value.what) == (str(deep), DISK_TROUBLE[errno.EACCES][0])
