"""The workloads of a scenario in one file: a zip of Batsim's workload files, one a replicate, without clocks and not compressed.

So equal workloads have equal bytes on every machine, and `unzip` gives files that `schedlab sim run` and Batsim read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold


def write_workloads(path: Path | str, texts: Mapping[str, str]) -> None:
    """Write the texts of workload files by the replicates' names, atomically."""
    with atomic_path(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(texts):
            member = zipfile.ZipInfo(f"{name}.json", _EPOCH)
            member.external_attr = 0o644 << 16
            archive.writestr(member, texts[name])


def extract_workload(path: Path | str, name: str, folder: Path | str) -> Path:
    """Write the workload file of a replicate into a folder and return its path. Raises UserError for a file that holds none such."""
    try:
        with zipfile.ZipFile(path) as archive:
            return Path(archive.extract(f"{name}.json", folder))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise UserError(
            f"holds no workload '{name}': {error}", where=str(path), remedy="delete the file and run the job that makes it again"
        ) from None
