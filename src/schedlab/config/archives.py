"""Reading zip archives that somebody wrote: every way in which one can be damaged is told in one sentence, and memory is bounded."""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.json_files import MAX_BYTES


def read_members(path: Path | str, what: str, remedy: str, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, bytes]:
    """Return the members of a zip archive by name, those that are `wanted`; `what` and `remedy` as messages say them.

    Raises UserError for a missing or damaged file, a name that stands there twice, and members that unpack to more than 1 GiB and more
    than the file itself holds.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if wanted(info.filename)]
            twice = [name for name, count in Counter(info.filename for info in infos).items() if count > 1]
            if twice:
                raise ValueError(f"it holds '{twice[0]}' twice")
            size = sum(info.file_size for info in infos)
            if size > max(MAX_BYTES, path.stat().st_size):
                raise ValueError(f"it unpacks to {size} bytes")
            return {info.filename: archive.read(info) for info in infos}
    except FileNotFoundError:
        raise UserError("there is no such file", where=str(path), expected=what, remedy=remedy) from None
    except Exception as error:  # zipfile and its four ways of packing raise some twelve kinds for what is damaged, encrypted or unknown
        raise UserError(f"cannot be read: {error}", where=str(path), expected=what, remedy=remedy) from None


def read_array(data: bytes) -> np.ndarray:
    """Return the array in the bytes of a .npy file, without pickles. Raises ValueError for whatever is wrong with them."""
    try:
        return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # NumPy reads the header as Python: tokenize.TokenError, MemoryError for impossible shapes, and others
        raise ValueError(f"no array: {error}") from None
