"""The workloads of a scenario in one file: a zip of Batsim's workload files, one a replicate, without clocks and not compressed.

So equal workloads have equal bytes on every machine, and `unzip` gives files that `schedlab sim run` and Batsim read.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

from schedlab.config.archives import read_members
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
    member = f"{name}.json"
    remedy = "delete the file and run the job that makes it again"
    found = read_members(path, "an archive of workloads", remedy, lambda held: held == member)
    if member not in found:
        raise UserError(f"holds no workload '{name}'", where=str(path), remedy=remedy)
    path = Path(folder, member)
    path.write_bytes(found[member])
    return path
