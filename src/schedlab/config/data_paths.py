"""Where data lies: below the folder that SCHEDLAB_DATA names, below resources/data of the working directory, or in the latter itself."""

from __future__ import annotations

import os
from pathlib import Path

DATA_VARIABLE = "SCHEDLAB_DATA"
LOCAL_DATA = Path("resources/data")


def find_data(name: Path | str) -> Path:
    """Return where a file or folder of data is, or where it should be put: absolute paths as they are."""
    path = Path(name)
    if path.is_absolute():
        return path
    shared = os.environ.get(DATA_VARIABLE)
    places = [Path(shared) / path] if shared else []
    return next((place for place in (*places, LOCAL_DATA / path, path) if place.exists()), LOCAL_DATA / path)
