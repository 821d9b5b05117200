"""Folders of runs: a new one each time, so that nothing of a user's is overwritten."""

from __future__ import annotations

import itertools
from pathlib import Path


def new_folder(parent: Path) -> Path:
    """Make and return the folder `parent/NNN` of the lowest number, from 001 on, that is not there yet."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        folder = parent / f"{number:03d}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("numbers do not end")
