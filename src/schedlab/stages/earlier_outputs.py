"""Reuses outputs of earlier code or configurations. If a job's part is again equal to an earlier one, for example after
a branch was switched, the outputs of that part are used and nothing is computed.

For each job, the outputs of the last PARTS frozen parts with which it ran are kept below FOLDER as hard links, so they
use no space until another part replaces them. If a job runs again with the part of its last run, it is computed,
because it was forced or its outputs were deleted. In a run with forced jobs (FORCED), every job is computed.

The CPU time with which reused outputs were made is kept, because `schedlab record` counts it (`report.job_costs`).
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
from schedlab.config.runtime.job_log import cost_file

FOLDER = Path(".schedlab/outputs")
FORCED = "SCHEDLAB_FORCED"  # the environment variable of a run with --forceall or --forcerun
PARTS = 4  # kept for each job: the last part, and those that may return
PATIENCE = 60.0  # s; several runs may share FOLDER, and creating links takes less time


def make_or_take(
    make: Callable[[], None], part: Path, outputs: Iterable[Path | str], log: Path | str, folder: Path = FOLDER
) -> None:
    """Make the outputs of a job, or use those that were made from the same part before the job's last run.

    part     frozen part, which determines the outputs
    outputs  files and folders that `make` writes
    log      log of the job
    """
    job = _Job([Path(output) for output in outputs], hashlib.sha256(part.read_bytes()).hexdigest()[:16], folder)
    seconds = None if os.environ.get(FORCED) else job.take()
    if seconds is None:
        make()
        job.keep(sum(os.times()[:4]))
        earlier_cost(log).unlink(missing_ok=True)
    else:
        print(f"nothing is computed: these outputs were made before ({seconds:.1f} CPU s), of the same code and values")
        job.keep(seconds)
        write_json(earlier_cost(log), {"cpu_time": seconds})


def earlier_cost(log: Path | str) -> Path:
    """Return the file with the CPU time of reused outputs, next to the cost of the job."""
    return cost_file(log).with_suffix(".json")


class _Job:
    """The kept outputs of one job: a folder for each part, and for each part the hashes of its files and the CPU
    seconds that they took. The last used part comes last.
    """

    def __init__(self, outputs: list[Path], part: str, folder: Path) -> None:
        self.outputs, self.part = outputs, part
        named = "\n".join(output.as_posix() for output in outputs)
        self.place = folder / hashlib.sha256(named.encode()).hexdigest()[:16]

    def _known(self) -> dict[str, Any]:
        try:
            return dict(read_json(self.place / "known.json", "the outputs that are kept of a job"))
        except (OSError, UserError, TypeError, ValueError):  # missing or damaged: no outputs are reused
            return {}

    def take(self) -> float | None:
        """Put the kept outputs of the part in place and return the CPU seconds that they took; None if there are none,
        or if they were changed.
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
                    os.utime(path)  # Snakemake requires that they are newer than the inputs
        return float(made["cpu_time"])

    def keep(self, seconds: float) -> None:
        """Keep the present outputs, and remove those of the part whose last use was earliest. If the file system has no
        hard links, nothing is kept.
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
    """Link a file, or all files of a folder, to another path, replacing what is there."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target, copy_function=os.link)
    else:
        target.unlink(missing_ok=True)
        os.link(source, target)


def _hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in files}
