"""The log of a live run: the rows that the script wrote, completed by measurements of its processes and by the cost of
the allocation.

The published example charges all cores of the host; here, the allocation is charged.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.studies.cloud.live.process import Ended, Sample, ScriptFailed
from schedlab.studies.cloud.model.logs import check_training_log, meant_column, read_table, require_numbers
from schedlab.studies.cloud.replay.sla import GPU_COLUMN

if TYPE_CHECKING:
    import pandas as pd

    from schedlab.studies.cloud.live.run import LiveRequest

log_of_runs = logging.getLogger(__name__)
LARGEST = 32 << 20  # bytes of a log
SECONDS = 3600.0  # of an hour
GIVE_BATCH = "a batch size: --batch_size, batch in the file of --config, or --batches of a sweep"
GPU_MEMORY = "gpu_memory_used_gb"  # largest memory that all GPUs of a run held at the same time during an epoch, GB
# Epochs may claim this factor of the wall-clock time and this many seconds more before their unit is doubted.
LONGER, SLACK = 1.2, 1.0
# (number of rows of the log so far, GPU readings at that time).
Readings = Sequence[tuple[int, dict[str, tuple[float, float]]]]


def completed(request: LiveRequest, ended: Ended, readings: Readings, log: Path | None) -> pd.DataFrame:
    """Return the log with all columns of logs.COLUMNS that can be derived. It has a row for each epoch; epochs are
    counted from `first_epoch`.

    If a limit ended the run, the log may be missing, and the table is then empty. Raises ScriptFailed if a script that
    ended by itself wrote no log or fewer epochs than requested, and for an invalid log.
    """
    import pandas as pd

    if log is not None:
        require_log_size(log)
    if log is None or (ended.how != "done" and log.read_bytes().count(b"\n") < 2):
        if ended.how != "done":
            return pd.DataFrame()
        expected = "a row an epoch in the file that SCHEDLAB_LOG names, or in log-*.csv in its working directory"
        raise ScriptFailed("the script wrote no log", where=str(request.script), expected=expected)
    table = read_table(log)
    if ended.how != "done":
        table = table.dropna(how="any") if len(table) > 1 else table  # the last row may be half written
    table = _with_times(table, log)
    claimed = float(table["epoch_time"].sum())
    if claimed > LONGER * ended.seconds + SLACK:
        what = f"the epochs claim {claimed:g} s, but the script ran for {ended.seconds:.3g} s"
        remedy = "state another unit in the header, as `epoch_time [ms]`"
        raise ScriptFailed(what, where=f"{log}: column epoch_time", expected="seconds", remedy=remedy)
    table = _completed(table, request, ended.samples, log)
    _add_gpus(table, readings, request.allocation.gpu_count)
    table = check_training_log(table, log).drop(columns="run")
    logged = len(table)
    if ended.how == "done" and logged != request.epochs:
        what = f"the script logged {logged} epoch{'s' * (logged > 1)} of {request.epochs} requested"
        if logged < request.epochs:
            expected = "as many rows as the module-level name epochs, or the variable OPTIMIZER_EPOCHS, says"
            raise ScriptFailed(what, where=str(request.script), expected=expected)
        log_of_runs.warning("%s: %s; short runs are as long as it makes them", request.script.name, what)
    return table


def require_log_size(log: Path) -> Path:
    """Return the log. Raises ScriptFailed if it is larger than LARGEST, which a row for each epoch cannot reach."""
    if (size := log.stat().st_size) > LARGEST:
        what, expected = f"the log has {size >> 20} MB", f"a row an epoch, at most {LARGEST >> 20} MB"
        raise ScriptFailed(what, where=str(log), expected=expected)
    return log


def _with_times(table: pd.DataFrame, log: Path) -> pd.DataFrame:
    """Return the table with `epoch_time` (s), derived from `time_so_far` if needed, and with throughput or numbers of
    samples.
    """
    if "epoch_time" not in table.columns and "time_so_far" in table.columns:
        require_numbers(table, ["time_so_far"], log)
        table = table.assign(epoch_time=table["time_so_far"].diff().fillna(table["time_so_far"]))
    _require_column(table, "epoch_time", log, "s an epoch; or time_so_far, s since the begin")
    require_numbers(table, ["epoch_time"], log)
    if "throughput" not in table.columns:
        _require_column(table, "data_count", log, "the samples of an epoch; or throughput, samples a second")
        require_numbers(table, ["data_count"], log)
        table = table.assign(throughput=table["data_count"] / table["epoch_time"])
    if "epoch" in table.columns:
        require_numbers(table, ["epoch"], log)
        if (again := table["epoch"].duplicated()).any():
            row = int(again.to_numpy().argmax())
            what = f"epoch {table['epoch'].iloc[row]:g} stands there twice"
            raise ScriptFailed(what, where=f"{log}: row {row + 2}", expected="one row an epoch")
    return table


def _require_column(table: pd.DataFrame, name: str, log: Path, expected: str) -> None:
    """Raise ScriptFailed if a column is missing. The message describes the column, and names one that is probably
    meant.
    """
    if name not in table.columns:
        what, remedy = f"has no column '{name}'", meant_column(name, table.columns)
        raise ScriptFailed(what, where=str(log), expected=expected, remedy=remedy)


def _completed(table: pd.DataFrame, request: LiveRequest, samples: Sequence[Sample], log: Path) -> pd.DataFrame:
    import numpy as np

    if request.batch is None:
        _require_column(table, "batch_size", log, f"one, or {GIVE_BATCH}")
    held = request.allocation
    time = table["epoch_time"].cumsum()
    measured = [_of_epoch(row, samples, held.cpu_count) for row in range(len(table))]
    lacking = {
        "model_name": request.script.stem,
        "dataset": "unknown",
        "device_type": "cuda" if held.gpu_count else "cpu",
        "batch_size": request.batch,
    }
    return table.assign(
        epoch=request.first_epoch + np.arange(1, len(table) + 1),
        total_epochs=request.total_epochs or request.first_epoch + max(request.epochs, len(table)),
        **held._asdict(),
        time_so_far=time,
        cost_so_far=time / SECONDS * request.prices.hourly_price(*held),
        cpu_percent=[cpu for cpu, _ in measured],
        memory_used_gb=[used for _, used in measured],
        memory_private_gb=max((sample.private_bytes for sample in samples), default=0) / (1 << 30),
        **{name: value for name, value in lacking.items() if name not in table.columns},
    )


def _of_epoch(row: int, samples: Sequence[Sample], cpus: int) -> tuple[float, float]:
    """Return the CPU utilisation (percent) and the largest resident memory (GB) during an epoch; if the epoch has fewer
    than two samples, during the whole run.
    """
    own = [sample for sample in samples if sample.progress == row]
    seen = own if len(own) >= 2 else list(samples)
    if len(seen) < 2:
        return 0.0, max((sample.memory_bytes for sample in seen), default=0) / (1 << 30)
    span = seen[-1].seconds - seen[0].seconds
    used = (seen[-1].cpu_seconds - seen[0].cpu_seconds) / span / cpus if span > 0 else 0.0
    return min(100.0, max(0.0, 100.0 * used)), max(sample.memory_bytes for sample in seen) / (1 << 30)


def _add_gpus(table: pd.DataFrame, readings: Readings, gpus: int) -> None:
    """Add the utilisation of each GPU and the memory of all GPUs, if the script did not report them, but readings
    exist.
    """
    if not gpus:
        return
    use_told, memory_told = any(str(name).startswith(GPU_COLUMN) for name in table.columns), GPU_MEMORY in table.columns
    for row, index in enumerate(table.index):
        seen = [found for rows, found in readings if rows == row] or [found for _, found in readings]
        for number in range(0 if use_told else gpus):
            values = [list(found.values())[number] for found in seen if len(found) > number]
            used = [use for use, _ in values if not math.isnan(use)]
            if used:
                table.loc[index, f"{GPU_COLUMN}{number}"] = sum(used) / len(used)
        held = [sum(memory for _, memory in found.values()) for found in seen if found]
        if not memory_told and (known := [memory for memory in held if not math.isnan(memory)]):
            table.loc[index, GPU_MEMORY] = max(known)
