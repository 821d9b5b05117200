"""One run of a user's training script on an allocation: a subprocess with its own environment, folder and limits, and
its log.

The script reads its allocation from environment variables (`script_environment`) or module-level settings (child.py).
For each epoch, it writes a row to the file that SCHEDLAB_LOG names, or to `log-*.csv` in its folder. See
docs/guide/cloud_live.md.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.studies.cloud.live import child as live_child
from schedlab.studies.cloud.live.fence import available, private_places, user_words
from schedlab.studies.cloud.live.log import GIVE_BATCH, completed, require_log_size
from schedlab.studies.cloud.live.machine import gpu_numbers, gpu_readings
from schedlab.studies.cloud.live.process import DISK_GB, How, Limits, ScriptFailed, available_cpus, run_limited
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig

if TYPE_CHECKING:
    import pandas as pd

PASSED = (
    *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH"),
    *("PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "TORCH_HOME", "OMP_WAIT_POLICY"),
)
# Threads that wait for each other give their core away: on cores that other work shares, spinning made the example 10
# to 20 times slower.
WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
BATCH_NAMES, EPOCH_NAMES = ("batch_size", "BATCH_SIZE"), ("epochs", "num_epochs", "EPOCHS", "NUM_EPOCHS")
BATCH_VARIABLE = "OPTIMIZER_BATCH_SIZE"
DATASET_NAMES = ("dataset_path", "data_path", "data_dir", "data_root", "DATASET_PATH", "DATA_PATH", "DATA_DIR")
GB = 1 << 30
MOST_MEMORY = 1e9  # GB; the bytes of more memory may exceed what a limit of the system can express
GPU_EVERY = 1.0  # s between two looks at the GPUs
IDLE_GPU = 10.0  # percent: below it more processes load data


@dataclass(frozen=True)
class LiveRequest:
    """What to train: `epochs` of a script on an allocation, continued from a checkpoint.

    command      words of a command that trains, with placeholders (`command_words`); empty: the script is run as Python
    batch        batch size (None: that of the script)
    first_epoch  number of epochs that are already done
    seconds      limit on the wall-clock time
    disk_gb      limit on the files in the folder of the run
    gpu_util     last known mean utilisation of the GPUs, percent (None: unknown)
    """

    script: Path
    allocation: Allocation
    epochs: int
    batch: int | None = None
    seed: int = 0
    prices: ResourceConfig = field(default_factory=ResourceConfig)
    dataset_path: Path | None = None
    first_epoch: int = 0
    total_epochs: int | None = None
    checkpoint: Path | None = None
    seconds: float = 3600.0
    disk_gb: float = DISK_GB
    gpu_util: float | None = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class LiveRun:
    """The result of a run. All requested epochs were trained only if `how` is "done".

    table       the completed log, with a row for each epoch (log.completed)
    checkpoint  the checkpoint that the script wrote (None: none)
    seconds     wall-clock time
    overhead    the part of it that belongs to no epoch, s
    """

    request: LiveRequest
    how: How
    table: pd.DataFrame
    seconds: float
    overhead: float
    checkpoint: Path | None
    output: str
    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        """The last row of the log, with the totals of the run."""
        return self.table.iloc[-1].to_dict()


def script_environment(request: LiveRequest, folder: Path) -> dict[str, str]:
    """Return the environment variables of a script: those of this process that Python needs, and its allocation. HOME
    is the folder of the run.
    """
    gpus, cpus, memory = request.allocation
    workers = min(8 if request.gpu_util is not None and request.gpu_util < IDLE_GPU else 4, cpus)
    # a command that is given the number of GPUs, such as torchrun, starts a process for each; they share the cores
    processes = max(1, gpus) if any("{gpus}" in word for word in request.command) else 1
    prices = request.prices
    given: dict[str, Any] = {
        **dict.fromkeys(THREADS, max(1, cpus // processes)),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # as nvidia-smi numbers them
        "CUDA_VISIBLE_DEVICES": ",".join(gpu_numbers()[:gpus]) if gpus else "",
        "HOME": folder,
        "TMPDIR": folder,
        "PYTHONDONTWRITEBYTECODE": 1,
        "PYTHONUNBUFFERED": 1,
        "OPTIMIZER_NUM_WORKERS": workers,
        "OPTIMIZER_PIN_MEMORY": "true",
        "OPTIMIZER_EPOCHS": request.epochs,
        "OPTIMIZER_FIRST_EPOCH": request.first_epoch,
        "OPTIMIZER_TOTAL_EPOCHS": request.total_epochs or request.first_epoch + request.epochs,
        "OPTIMIZER_RANDOM_SEED": request.seed,
        "OPTIMIZER_MEMORY_USED_GB": memory,
        "COST_PER_GPU_HOUR": prices.cost_per_gpu_hour,
        "COST_PER_CPU_HOUR": prices.cost_per_cpu_hour,
        "COST_PER_GB_HOUR": prices.cost_per_gb_hour,
        "SCHEDLAB_LOG": folder / "log.csv",
        "SCHEDLAB_CHECKPOINT_OUT": folder / "checkpoint",
    }
    if request.batch:
        given[BATCH_VARIABLE] = request.batch
    if request.checkpoint:
        given["SCHEDLAB_CHECKPOINT_IN"] = request.checkpoint.resolve()
    if request.dataset_path:
        given["OPTIMIZER_DATASET_PATH"] = request.dataset_path.resolve()
    passed = {name: os.environ[name] for name in PASSED if name in os.environ}
    return {**WAITING, **passed, **{name: str(value) for name, value in given.items()}}


def command_words(request: LiveRequest) -> list[str]:
    """Return the words of a request's command, with `{batch}`, `{epochs}`, `{gpus}` and `{cores}` replaced by their
    values.

    Raises UserError for `{batch}` if no batch size is given.
    """
    gpus, cores, _ = request.allocation
    values = {"{batch}": request.batch, "{epochs}": request.epochs, "{gpus}": gpus, "{cores}": cores}
    if request.batch is None and any("{batch}" in word for word in request.command):
        raise UserError("{batch} has no value", where="command", remedy=f"give {GIVE_BATCH}")
    words = list(request.command)
    for placeholder, value in values.items():
        words = [word.replace(placeholder, str(value)) for word in words]
    return words


def module_settings(request: LiveRequest) -> dict[str, Any]:
    """Return the values of module-level names of the script that are replaced. Without a batch size, that of the script
    stays.
    """
    values: dict[str, Any] = dict.fromkeys(EPOCH_NAMES, request.epochs)
    if request.batch:
        values |= dict.fromkeys(BATCH_NAMES, request.batch)
    if request.dataset_path:
        values |= dict.fromkeys(DATASET_NAMES, str(request.dataset_path.resolve()))
    return values


class Watch:
    """Counts the rows of a growing log and reads the state of the GPUs at intervals. It is called for each sample."""

    def __init__(self, folder: Path, gpus: int) -> None:
        self.folder, self.gpus, self.looked = folder, gpus, 0.0
        self.readings: list[tuple[int, dict[str, tuple[float, float]]]] = []
        self.log: Path | None = None
        self.read = self.lines = 0

    def __call__(self) -> int:
        with suppress(OSError):  # the script may just be moving it
            self._read_on(find_log(self.folder))
        rows = max(0, self.lines - 1)
        if self.gpus and time.monotonic() - self.looked > GPU_EVERY:
            self.looked = time.monotonic()
            self.readings.append((rows, dict(list(gpu_readings().items())[: self.gpus])))
        return rows

    def _read_on(self, log: Path | None) -> None:
        """Count the lines that were added to a log since the last call. A new or shortened log is read from its
        beginning.
        """
        size = require_log_size(log).stat().st_size if log else 0
        if log != self.log or size < self.read:
            self.log, self.read, self.lines = log, 0, 0
        if log and size > self.read:
            with log.open("rb") as file:
                file.seek(self.read)
                piece = file.read(size - self.read)
            self.read, self.lines = self.read + len(piece), self.lines + piece.count(b"\n")


def new_folder(parent: Path) -> Path:
    """Create and return the first folder `parent/NNN`, from 001 on, that does not exist."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        folder = parent / f"{number:03d}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("numbers do not end")


def find_log(folder: Path) -> Path | None:
    """Return the log of a run: `log.csv`, else the newest `log-*.csv` in its folder; None if there is none."""
    if (exact := folder / "log.csv").is_file():
        return exact
    others = filter(Path.is_file, folder.glob("log-*.csv"))
    return max(others, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)


def run_script(request: LiveRequest, folder: Path) -> LiveRun:
    """Run a script in a new folder. Raises ScriptFailed if it fails, or if it writes no log or an invalid one;
    FileExistsError if the folder exists.

    If a limit ends the run, it is returned with the epochs that were logged before.
    """
    request = _checked(request)
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=False)
    memory, disk = max(1, int(request.allocation.memory_gb * GB)), int(request.disk_gb * GB)
    limits = Limits(available_cpus()[: request.allocation.cpu_count], memory, request.seconds, disk)
    fence, spec = available(), folder / "run.json"
    values = {"cpus": limits.cpus, "memory_bytes": memory, "file_bytes": disk, "script": str(request.script)}
    values |= {"values": module_settings(request), "command": command_words(request)}
    if fence.namespaces:  # what child.py needs there: its folders in memory, and the words that give up its rights
        program = shutil.which(request.command[0]) if request.command else None
        files = [request.script, request.dataset_path or "", request.checkpoint or "", program or "", *request.command]
        needed = [folder, sys.executable, sys.prefix, live_child.__file__, *sys.path, *files]
        values |= {"private": private_places(memory, needed), "user_words": user_words()}
    else:
        values["parent"] = os.getpid()
    spec.write_text(json.dumps(values), encoding="utf-8")
    watch, command = Watch(folder, request.allocation.gpu_count), [sys.executable, live_child.__file__, str(spec)]
    ended = run_limited(command, folder, script_environment(request, folder), limits, watch, fence)
    (folder / "output.txt").write_text(ended.output, encoding="utf-8")
    if ended.how == "error":
        last = next((line.strip() for line in reversed(ended.output.splitlines()) if line.strip()), "no output")
        what = f"the script ended with status {ended.status}: {last[:300]}"
        remedy = f"its last output is in {folder / 'output.txt'}"
        if request.batch is None and BATCH_VARIABLE in last:
            remedy = f"give {GIVE_BATCH}; {remedy}"
        raise ScriptFailed(what, where=str(request.script), remedy=remedy)
    try:
        table = completed(request, ended, watch.readings, find_log(folder))
    except ScriptFailed:
        raise
    except UserError as error:  # the log is the script's work, not an input: its mistakes end this script alone
        raise ScriptFailed(error.what, where=error.where, expected=error.expected, remedy=error.remedy) from None
    if len(table):
        table.to_csv(folder / "epochs.csv", index=False)
    checkpoint = folder / "checkpoint"
    overhead = max(0.0, ended.seconds - float(table["epoch_time"].sum())) if len(table) else ended.seconds
    kept = checkpoint if checkpoint.exists() else None
    return LiveRun(request, ended.how, table, ended.seconds, overhead, kept, ended.output, folder)


def _checked(request: LiveRequest) -> LiveRequest:
    """Return the request with the absolute path of the script. Raises UserError for a request that cannot be run, and
    for an allocation that is invalid or more than this machine has.
    """
    script = request.script if request.command else request.script.resolve()
    gpus, cores, memory = request.allocation
    most_gpus, most_cores = len(gpu_numbers()) if gpus > 0 else 0, len(available_cpus())
    missing = not request.command and not script.is_file()
    lost = request.checkpoint is not None and not request.checkpoint.exists()
    for wrong, what, where, expected in (
        (missing, "there is no such file", str(request.script), "a training script in Python"),
        (lost, "there is no such checkpoint", str(request.checkpoint), ""),
        (not request.seconds > 0, f"{request.seconds:g} s", "live run: seconds", "a limit above 0"),
        (request.epochs < 1, f"{request.epochs} epochs", "live run", "1 or more"),
        (request.batch is not None and request.batch < 1, f"{request.batch}", "live run: batch", "1 or more samples"),
        (cores % 1 != 0, f"{cores} cores", "allocation", "a whole number of cores"),
        (gpus % 1 != 0, f"{gpus} GPUs", "allocation", "a whole number of GPUs"),
        (not 1 <= cores <= most_cores, f"{cores} cores", "allocation", f"1 to {most_cores}, as this process may use"),
        (not 0 < memory <= MOST_MEMORY, f"{memory:g} GB of memory", "allocation", f"at most {MOST_MEMORY:g} GB"),
        (not 0 <= gpus <= most_gpus, f"{gpus} GPUs", "allocation", f"0 to {most_gpus}, as are seen here"),
    ):
        if wrong:
            raise UserError(what, where=where, expected=expected)
    return replace(request, script=script, allocation=Allocation(int(gpus), int(cores), memory))
