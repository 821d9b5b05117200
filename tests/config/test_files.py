"""Atomic writes, and what a killed writer leaves behind."""

from __future__ import annotations

from pathlib import Path

from schedlab.config.files import atomic_path, remove_leftovers


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
