"""Outputs of earlier code or configurations. When a job's part is again an earlier one, for example after a branch was
switched, these outputs are used and nothing is computed.

For each job the outputs of the last PARTS frozen parts that it ran with lie below FOLDER, as further names of the same
files (hard links), so that they take no room before another part replaces them. A job that runs once more with the part
of its last run is computed: it was forced, or its outputs were deleted.

What a job took when its outputs were made stays known, as `schedlab record` counts it (`report.job_costs`).
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.files import file_hash, turn, write_json
from schedlab.config.readers import read_json

FOLDER = Path(".schedlab/outputs")
PARTS = 4  # of each job: the last one, and those that it can come back to
PATIENCE = 60.0  # s; several runs may share FOLDER, and links are made in less


def make_or_take(
    make: Callable[[], None], part: Path, outputs: Iterable[Path | str], log: Path | str, folder: Path = FOLDER
) -> None:
    """Make the outputs of a job, or use those that the same part gave before the job's last run.

    part     frozen part, which determines the outputs
    outputs  files and folders that `make` writes
    log      of the job; the benchmark has its name
    """
    job = _Job([Path(output) for output in outputs], hashlib.sha256(part.read_bytes()).hexdigest()[:16], folder)
    seconds = job.take()
    if seconds is None:
        make()
        job.keep(sum(os.times()[:4]))
        earlier_cost(log).unlink(missing_ok=True)
    else:
        print(f"nothing is computed: these outputs were made before ({seconds:.1f} CPU s), of the same code and values")
        job.keep(seconds)
        write_json(earlier_cost(log), {"cpu_time": seconds})


def earlier_cost(log: Path | str) -> Path:
    """Return the file that says what outputs took that were made before: it lies beside the benchmark of a job."""
    return Path(log).parent.with_name("benchmarks") / f"{Path(log).stem}.json"


class _Job:
    """What is kept of one job: a folder for each part, and by part the hashes of its files and the CPU seconds that
    they took, the last part last.
    """

    def __init__(self, outputs: list[Path], part: str, folder: Path) -> None:
        self.outputs, self.part = outputs, part
        named = "\n".join(output.as_posix() for output in outputs)
        self.place = folder / hashlib.sha256(named.encode()).hexdigest()[:16]

    def _known(self) -> dict[str, Any]:
        try:
            return dict(read_json(self.place / "known.json", "the outputs that are kept of a job"))
        except (OSError, UserError, TypeError, ValueError):  # none yet, or spoiled: nothing is taken
            return {}

    def take(self) -> float | None:
        """Put the kept outputs of the part in place and return the CPU seconds that they took; None where there are
        none, or they are not as they were made.
        """
        kept = self.place / self.part
        with turn(self.place / "lock", PATIENCE):
            made = dict(list(self._known().items())[:-1]).get(self.part)
            if not isinstance(made, dict) or made.get("files") != _hashes(kept):
                return None
            for number, output in enumerate(self.outputs):
                output.parent.mkdir(parents=True, exist_ok=True)
                _link(kept / str(number), output)
                for path in (output, *output.rglob("*")):
                    os.utime(path)  # later than the inputs, as Snakemake asks
        return float(made["cpu_time"])

    def keep(self, seconds: float) -> None:
        """Keep the outputs that are in place, and forget those of the part that was used longest ago. Where the file
        system has no hard links, nothing is kept.
        """
        kept = self.place / self.part
        with turn(self.place / "lock", PATIENCE):
            shutil.rmtree(kept, ignore_errors=True)
            try:
                kept.mkdir(parents=True)
                for number, output in enumerate(self.outputs):
                    _link(output, kept / str(number))
            except OSError:
                shutil.rmtree(self.place, ignore_errors=True)
                return
            known = {part: made for part, made in self._known().items() if part != self.part}
            known[self.part] = {"files": _hashes(kept), "cpu_time": round(seconds, 2)}
            for part in list(known)[:-PARTS]:
                shutil.rmtree(self.place / part, ignore_errors=True)
                del known[part]
            write_json(self.place / "known.json", list(known.items()))


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
