"""Outputs of earlier code or configurations. When a job's part is again an earlier one, for example after a branch was
switched, these outputs are used and nothing is computed.

For each job the outputs of the last PARTS frozen parts that it ran with lie below FOLDER, as further names of the same
files (hard links), so that they take no room before another part replaces them. A job that runs once more with the part
of its last run is computed: it was forced, or its outputs were deleted.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.files import file_hash, write_json
from schedlab.config.readers import read_json

FOLDER = Path(".schedlab/outputs")
PARTS = 4  # of each job: the last one, and those that it can come back to


def make_or_take(make: Callable[[], None], part: Path, outputs: Iterable[Path | str], folder: Path = FOLDER) -> None:
    """Make the outputs of a job, or use those that the same part gave before the job's last run.

    part     frozen part, which determines the outputs
    outputs  files and folders that `make` writes
    """
    job = _Job([Path(output) for output in outputs], hashlib.sha256(part.read_bytes()).hexdigest()[:16], folder)
    if job.take():
        print("nothing is computed: these outputs were made before, of the same code and configuration")
    else:
        make()
    job.keep()


class _Job:
    """What is kept of one job: a folder for each part, and the hashes of its files by part, the last part last."""

    def __init__(self, outputs: list[Path], part: str, folder: Path) -> None:
        self.outputs, self.part = outputs, part
        self.place = folder / hashlib.sha256(outputs[0].as_posix().encode()).hexdigest()[:16]
        try:
            self.known = dict(read_json(self.place / "known.json", "the outputs that are kept of a job"))
        except (OSError, UserError, TypeError, ValueError):  # none yet, or spoiled: nothing is taken
            self.known = {}

    def take(self) -> bool:
        """Put the kept outputs of the part in place; False where there are none, or they are not as they were made."""
        kept = self.place / self.part
        if self.part not in list(self.known)[:-1] or _hashes(kept) != self.known[self.part]:
            return False
        for number, output in enumerate(self.outputs):
            output.parent.mkdir(parents=True, exist_ok=True)
            _link(kept / str(number), output)
            for path in (output, *output.rglob("*")):
                os.utime(path)  # later than the inputs, as Snakemake asks
        return True

    def keep(self) -> None:
        """Keep the outputs that are in place, and forget those of the part that was used longest ago. Where the file
        system has no hard links, nothing is kept.
        """
        kept = self.place / self.part
        shutil.rmtree(kept, ignore_errors=True)
        try:
            kept.mkdir(parents=True)
            for number, output in enumerate(self.outputs):
                _link(output, kept / str(number))
        except OSError:
            shutil.rmtree(self.place, ignore_errors=True)
            return
        self.known = {part: files for part, files in self.known.items() if part != self.part}
        self.known[self.part] = _hashes(kept)
        for part in list(self.known)[:-PARTS]:
            shutil.rmtree(self.place / part, ignore_errors=True)
            del self.known[part]
        write_json(self.place / "known.json", list(self.known.items()))


def _link(source: Path, target: Path) -> None:
    """Make a file, or all files of a folder, known by another name in place of what was there."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, copy_function=os.link)
    else:
        target.unlink(missing_ok=True)
        os.link(source, target)


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in files}
