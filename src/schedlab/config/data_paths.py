"""Where files outside conf/ lie: other people's data, and resources of the checkout.

Data lies below the folder that SCHEDLAB_DATA names, below resources/data of the working directory, or in the latter
itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import schedlab

DATA_VARIABLE = "SCHEDLAB_DATA"
LOCAL_DATA = Path("resources/data")
CHECKOUT = Path(schedlab.__file__).parents[2]


def find_data(name: Path | str) -> Path:
    """Return where a file or folder of data is, or where it should be put: absolute paths as they are.

    Below the folder that SCHEDLAB_DATA names where that has it, else below resources/data of the working directory.
    """
    path = Path(name)
    if path.is_absolute():
        return path
    shared = os.environ.get(DATA_VARIABLE)
    places = [Path(shared) / path] if shared else []
    return next((place for place in (*places, LOCAL_DATA / path, path) if place.exists()), LOCAL_DATA / path)


def plain_or_gzip(file: Path) -> Path | None:
    """Return the file or, where it is not there, its compressed twin `<name>.gz`; None where neither is there."""
    return next((path for path in (file, file.with_name(f"{file.name}.gz")) if path.is_file()), None)


def missing_files(folder: Path, sets: Iterable[Iterable[str]]) -> list[str]:
    """Return what a folder lacks of the set of files that it is nearest to; nothing where one set is whole, or where
    there is none.
    """
    names = [list(files) for files in sets]
    lacking = [[name for name in files if plain_or_gzip(folder / name) is None] for files in names]
    return min(zip(lacking, names, strict=True), key=lambda pair: len(pair[0]) / len(pair[1]), default=([], []))[0]


def find_resource(name: Path | str) -> Path:
    """Return where a file or folder of a configuration is: resources/... of the checkout or installation, whatever the
    working directory.

    Absolute paths as they are; all else, and resources that we do not ship, from the working directory.
    """
    path = Path(name)
    if path.parts[:1] == ("resources",):
        places = (CHECKOUT / path, Path(sys.prefix, "share/schedlab", *path.parts[1:]))
        return next((place for place in places if place.exists()), path)
    return path
