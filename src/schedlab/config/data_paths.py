"""Where files outside conf/ lie: other people's data, and resources of the checkout."""

from __future__ import annotations

import os
import sys
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
    if shared and (Path(shared) / path).exists():
        return Path(shared) / path
    return LOCAL_DATA / path


def find_resource(name: Path | str) -> Path:
    """Return where a file is that a configuration names: resources/... of the checkout or installation, whatever the working directory.

    Absolute paths as they are; all else, and resources that we do not ship, from the working directory.
    """
    path = Path(name)
    if path.parts[:1] == ("resources",):
        places = (CHECKOUT / path, Path(sys.prefix, "share/schedlab", *path.parts[1:]))
        return next((place for place in places if place.is_file()), path)
    return path
