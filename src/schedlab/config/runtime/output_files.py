"""Checks the output files of a command before its work begins."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from schedlab.config.errors import UserError

Files = Mapping[str, Path | str | None]  # argument or option -> its file; None: not given


def check_output_files(written: Files, read: Files | None = None) -> None:
    """Check the files of a command's results before any is written.

    Raises UserError if two of them are one file, or if one is a file that the command reads; IsADirectoryError for a
    folder.
    """
    taken = {Path(path).resolve(): name for name, path in (read or {}).items() if path and Path(path).exists()}
    for name, path in written.items():
        if not path:
            continue
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        place = Path(path).resolve()
        if place in taken:
            raise UserError(f"{path} is also the file of {taken[place]}", where=name, expected="a different file")
        taken[place] = name
