"""Short runs that were measured earlier: a run of the same script, data and machine is not repeated.

Each measured run leaves MEASUREMENT and its log in its folder. A later call for the same output folder takes such a run
in place of a new one if everything agrees that may change its speed: the words of the command, the content of the
files that it names and of all Python files next to the script, the names, sizes and times of the data, the allocation,
batch size, epochs, seed, prices and limits, the environment variables that a script receives, and the machine. Versions
of packages and modules in other folders are not compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.files import atomic_path, write_json
from schedlab.config.readers import read_json
from schedlab.studies.cloud.live.fence import available
from schedlab.studies.cloud.live.machine import gpu_kinds, memory_gb
from schedlab.studies.cloud.live.process import available_cpus
from schedlab.studies.cloud.live.run import PASSED, LiveRequest, LiveRun, run_script

MEASUREMENT, LOG = "measurement.json", "measurement.parquet"
DAMAGED = (UserError, OSError, KeyError, TypeError, ValueError)  # what reading a damaged file raises


class Measuring:
    """Runs a script like `run_script`, or returns an earlier run of the same.

    work    folder with a folder for each call, in which `runs/*` are the folders of runs
    again   repeat every run
    reused  the runs that were not repeated
    """

    def __init__(self, work: Path, again: bool = False) -> None:
        self._earlier = {} if again else _measured(work)
        self.reused: list[LiveRun] = []

    def __call__(self, request: LiveRequest, folder: Path) -> LiveRun:
        """Return the result of a request; a new run has `folder`, an earlier one has that of its own."""
        key = key_of(request)
        if key in self._earlier and (found := _read(request, self._earlier.pop(key))) is not None:
            self.reused.append(found)
            return found
        run = run_script(request, folder)
        if run.how == "done":
            with atomic_path(folder / LOG) as temporary:
                run.table.to_parquet(temporary, index=False)
            kept = run.checkpoint.name if run.checkpoint else None
            write_json(
                folder / MEASUREMENT,
                {"key": key, "seconds": run.seconds, "overhead": run.overhead, "checkpoint": kept},
            )
        return run


def key_of(request: LiveRequest) -> str:
    """Return a hash of what is compared."""
    named = [request.script, *(Path(word) for word in request.command)]
    first = next((path for path in reversed(named) if path.is_file() and path.suffix == ".py"), None)
    nearby = sorted(first.resolve().parent.glob("*.py")) if first else []
    values: dict[str, Any] = {
        "request": {**asdict(request), "prices": request.prices.model_dump()},
        "files": [(str(path), _content(path)) for path in (*named, *nearby) if path.is_file()],
        "data": list(_data(request.dataset_path)) if request.dataset_path else None,
        "machine": (_processor(), len(available_cpus()), memory_gb(), gpu_kinds()),
        "python": (sys.version, asdict(available()), {name: os.environ.get(name) for name in PASSED}),
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()


def _measured(work: Path) -> dict[str, Path]:
    """Return the folders of the measured runs of earlier calls by key; of equal ones the last."""
    found = {}
    for file in sorted(work.glob(f"*/runs/*/{MEASUREMENT}")):
        with suppress(*DAMAGED):  # measured again
            found[str(read_json(file, "a measurement")["key"])] = file.parent
    return found


def _read(request: LiveRequest, folder: Path) -> LiveRun | None:
    """Return a measured run; None if its files are damaged or gone."""
    import pandas as pd

    try:
        values = read_json(folder / MEASUREMENT, "a measurement")
        table = pd.read_parquet(folder / LOG)
        checkpoint = folder / str(values["checkpoint"]) if values["checkpoint"] else None
        if not len(table) or (checkpoint and not checkpoint.exists()):
            return None
        return LiveRun(request, "done", table, values["seconds"], values["overhead"], checkpoint, "", folder)
    except DAMAGED:
        return None


def _content(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _data(path: Path) -> Iterable[tuple[str, int, int]]:
    """Yield the path, size and time of each file of the data."""
    below = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    for file in [path] if path.is_file() else sorted(below):
        with suppress(OSError):
            state = file.stat()
            yield str(file), state.st_size, state.st_mtime_ns


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
