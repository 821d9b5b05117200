"""Logs of training jobs, with a row for each epoch or for each measured placement. Mistakes are reported before
anything is fitted.

See docs/reference/cloud_model.md.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError, nearest, shortened
from schedlab.config.readers import read_text
from schedlab.studies.cloud.model.log_units import GPU_USE, is_share, require_possible, stated_units

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

TRAINING = ("epoch", "batch_size", "gpu_count", "epoch_time", "throughput")
SPEED = ("local_bsz", "step_time", "sync_time")
COLUMNS = (
    *("timestamp", "epoch", "total_epochs", "model_name", "model_params", "model_layers", "dataset", "data_count"),
    *("data_size_mb", "data_dim", "batch_size", "device_type", "cpu_count", "gpu_count", "cpu_percent"),
    *("memory_used_gb", "memory_gb", "memory_private_gb", "train_loss", "train_accuracy", "test_loss"),
    *("test_accuracy", "epoch_time", "time_so_far", "throughput", "gpu_memory_used_gb", "cost_so_far", "gpu_kind"),
)
OPTIONAL = (
    *("total_epochs", "model_params", "model_layers", "data_count", "data_size_mb"),
    *("cpu_count", "memory_used_gb", "memory_private_gb", "memory_gb", "time_so_far", "cost_so_far"),
)
TABLE = "a CSV table with a header"
POSITIVE = (
    *("batch_size", "epoch_time", "throughput", "cpu_count"),
    *("local_bsz", "step_time", "num_nodes", "num_replicas"),
)
COUNTS = ("gpu_count", "cpu_count", "batch_size", "num_nodes", "num_replicas")
MOST = 1e15  # of any amount; above it, whole numbers are not exact
IDLE = 0.01  # utilisation below which GPUs are idle; it then says nothing about how long they wait for each other
STRAY = 0.05  # largest share of rows whose time in synchronisation may be as long as the whole step


def read_table(path: Path) -> pd.DataFrame:
    """Return a CSV file with a header, with all values in the default units of their columns (log_units); a header may
    state another unit.

    Raises UserError for a missing or invalid file, a repeated column and an unknown unit.
    """
    return parse_table(read_text(path, TABLE), path)


def parse_table(text: str, path: Path) -> pd.DataFrame:
    """Return the table of a CSV text; raises as `read_table`, naming `path`."""
    import pandas as pd

    header = text.partition("\n")[0].strip()
    headers = [name.strip() for name in header.split(",")]
    if not any(headers):
        raise UserError("is empty", where=str(path), expected="a header and rows")
    units = stated_units(headers, path)
    names = [units[name][0] if name in units else name for name in headers]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(
            f"the column '{twice[0]}' stands there twice", where=str(path), remedy="rename or remove one of them"
        )
    try:
        table = pd.read_csv(io.StringIO(text), skipinitialspace=True)
    except (pd.errors.ParserError, ValueError) as error:
        raise UserError(
            f"is no CSV table: {str(error).splitlines()[0]}", where=str(path), expected="a header and rows"
        ) from None
    if not len(table):
        raise UserError("has no rows", where=str(path), expected="rows below the header")
    table = require_numbers(table, units, path, optional=True)
    converted = {header: table[header] * factor for header, (_, factor) in units.items()}
    return table.assign(**converted).rename(columns={header: name for header, (name, _) in units.items()})


def require_columns(table: pd.DataFrame, names: Iterable[str], path: Path) -> None:
    """Raise UserError where the table lacks a column."""
    for name in names:
        if name not in table.columns:
            raise UserError(f"has no column '{name}'", where=str(path), remedy=meant_column(name, table.columns))


def meant_column(name: str, columns: Iterable[object]) -> str:
    """Return the column that was probably meant by the name of a missing one; never a column that has another meaning,
    as `epoch` for `epoch_time`.
    """
    names = [str(column) for column in columns]
    if near := nearest(name, [each for each in names if each not in {*COLUMNS, *SPEED}]):
        return f"its column '{near}' is near: call it '{name}'"
    return f"its columns: {shortened(names)}"


def require_numbers(table: pd.DataFrame, names: Iterable[str], path: Path, optional: bool = False) -> pd.DataFrame:
    """Return the table with these columns as numbers.

    Raises UserError, which names the row, for a cell that is empty (unless `optional`), not a number, above MOST, below
    0 (in POSITIVE columns also 0), or not a whole number (in COUNTS).
    """
    import numpy as np

    found = {}
    for name in names:
        values = found[name] = _numbers(table[name])
        bad = ~np.isfinite(values) | (values <= 0 if name in POSITIVE else values < 0) | (values > MOST)
        if name in COUNTS:
            bad |= values != np.round(values)
        bad = np.flatnonzero(bad & table[name].notna().to_numpy() if optional else bad)
        if len(bad):
            row = int(bad[0])
            least = "above 0" if name in POSITIVE else "of 0 or more"
            kind = "whole number" if name in COUNTS and np.isfinite(values[row]) and values[row] % 1 else "number"
            expected = f"a {kind} {least}, at most {MOST:g}{', or nothing' if optional else ''}"
            where = f"{path}: row {row + 2}, column {name}"  # as an editor counts: the header is row 1
            raise UserError(f"the value is {table[name].iloc[row]}", where=where, expected=expected)
    return table.assign(**{name: values for name, values in found.items() if table[name].dtype.kind not in "iuf"})


def _numbers(column: pd.Series) -> np.ndarray:
    """Return the values as floats, NaN for cells that are not numbers; text may hold integers beyond the range of
    floats.
    """
    import pandas as pd

    return pd.to_numeric(column if column.dtype.kind in "iuf" else column.astype(str), errors="coerce").to_numpy(float)


def read_training_log(path: Path) -> pd.DataFrame:
    """Return a training log with a row for each epoch, and with the number of its run, from 0 (column `run`).

    A new run begins where the epoch is not later than the first one of the present run, or where the epoch does not
    rise and the setting changes. Raises UserError for missing columns, cells that are not numbers, an epoch that occurs
    twice in a run, counts that are not whole numbers, and impossible values (log_units.require_possible).
    """
    return check_training_log(read_table(path), path)


def check_training_log(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return a training log with its column `run`; raises as `read_training_log`, naming `path`."""
    table = check_rows(table, path)
    require_possible(table, path)
    return table


def check_rows(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return a training log, or several in one table, with the column `run`. Unlike `check_training_log`, it accepts
    any utilisation and time.
    """
    require_columns(table, TRAINING, path)
    if table.empty:
        raise UserError("has no rows", where=str(path), expected="a row an epoch")
    table = require_numbers(table, TRAINING, path)
    table = require_numbers(
        table, [name for name in table.columns if name in OPTIONAL or is_share(name)], path, optional=True
    )
    if "gpu_kind" in table.columns:
        unnamed = ((table["gpu_count"] > 0) & table["gpu_kind"].isna()).to_numpy()
        if unnamed.any():
            where = f"{path}: row {int(unnamed.argmax()) + 2}, column gpu_kind"
            raise UserError("is empty", where=where, expected="the kind of the row's GPUs, as in all other rows")
        table = table.assign(gpu_kind=table["gpu_kind"].astype(object).fillna("").astype(str))
    return table.assign(run=_runs(table, path))


def require_kinds(kinds: pd.Series, where: str) -> None:
    """Raise UserError if some of several logs name the kind of their GPUs and others do not (NaN)."""
    if kinds.isna().any():
        what, remedy = "only some of the logs name the kind of their GPUs", "give each the column gpu_kind, or none"
        raise UserError(what, where=where, remedy=remedy)


def _runs(table: pd.DataFrame, path: Path) -> list[int]:
    """Return the number of each row's run. Raises UserError for an epoch that occurs twice in a run, and for a copied
    row.
    """
    settings = [
        name
        for name in ("model_name", "sample", "gpu_kind", "gpu_count", "cpu_count", "memory_gb", "batch_size")
        if name in table.columns
    ]
    numbers = table.groupby(settings, dropna=False, sort=False).ngroup().tolist()
    runs: list[int] = []
    seen: set[Any] = set()
    first = last = (0.0, -1)
    for row, here in enumerate(zip(table["epoch"].tolist(), numbers, strict=True)):
        anew = here[0] <= first[0] and here != last
        elsewhere = here[0] <= last[0] and here[1] != last[1] and here not in seen
        if not row or anew or elsewhere:
            runs.append(runs[-1] + 1 if row else 0)
            first, seen = here, set()
        elif here in seen:
            raise _twice(here[0], row, path)
        else:
            runs.append(runs[-1])
        seen.add(here)
        last = here
    counts = table.groupby(runs)["epoch"].transform("size")
    copied = table.duplicated() & (counts == 1) & (counts.max() > 1)
    if copied.any():
        row = int(copied.to_numpy().argmax())
        raise _twice(table["epoch"].iloc[row], row, path)
    return runs


def _twice(epoch: float, row: int, path: Path) -> UserError:
    what = f"epoch {epoch:g} stands there twice"
    return UserError(what, where=f"{path}: row {row + 2}", expected="one row an epoch", remedy="remove one of them")


def read_step_times(path: Path, gpus_per_node: int = 4) -> pd.DataFrame:
    """Return measured step times, with the columns model, nodes, gpus, batch (on each GPU), step_time and sync_time (s;
    NaN if it was not recorded), rows (number of rows of the file that each one stands for), and kind, if a training log
    names the kind of its GPUs (column `gpu_kind`).

    Two kinds of files are read:
      tables of placements  `placement` (digits: GPUs on each node) or `num_nodes` and `num_replicas`; `local_bsz`,
                            `step_time`, `sync_time`
      training logs         nodes are filled with `gpus_per_node` GPUs each; the time in synchronisation is derived from
                            the GPUs' utilisation; the first of several epochs of a run is left out, because it includes
                            the warm-up

    Raises UserError for invalid files, and for a time in synchronisation that is not shorter than the step; in a few
    rows (a share of at most STRAY), it counts as not recorded instead.
    """
    table = read_table(path)
    if "step_time" in table.columns:
        return of_placements(table, path)
    return of_training(read_training_log(path), gpus_per_node)


def of_placements(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return a table of placements as step times; results and errors as of `read_step_times`."""
    import numpy as np

    require_columns(table, SPEED, path)
    table = require_numbers(table, SPEED, path)
    if "placement" in table.columns:
        digits = [_placement(value, path, row) for row, value in enumerate(table["placement"])]
        nodes, gpus = [len(text) for text in digits], [sum(map(int, text)) for text in digits]
    else:
        require_columns(table, ("num_nodes", "num_replicas"), path)
        table = require_numbers(table, ("num_nodes", "num_replicas"), path)
        nodes, gpus = table["num_nodes"].astype(int), table["num_replicas"].astype(int)
        if (beyond := (gpus < nodes).to_numpy()).any():
            row = int(beyond.argmax())
            what = f"{gpus.iloc[row]} GPUs on {nodes.iloc[row]} nodes"
            raise UserError(what, where=f"{path}: row {row + 2}", expected="one GPU at least on each node")
    found = table[["step_time", "sync_time"]].assign(
        model="", nodes=nodes, gpus=gpus, batch=table["local_bsz"].astype(float), rows=1
    )
    stray = (found["sync_time"] >= found["step_time"]).to_numpy()
    if stray.mean() > STRAY:
        where = f"{path}: row {int(stray.argmax()) + 2}"
        raise UserError(
            "sync_time is not below step_time", where=where, expected="seconds, the part of a step in synchronisation"
        )
    found["sync_time"] = np.where(stray, np.nan, found["sync_time"])
    return found[["model", "nodes", "gpus", "batch", "step_time", "sync_time", "rows"]]


def _placement(value: object, path: Path, row: int) -> str:
    text = str(value).removesuffix(".0")
    if not (text.isascii() and text.isdigit()) or "0" in text:
        expected = "digits from 1 to 9, the GPUs on each node (44: two nodes of four)"
        raise UserError(f"the placement is {value!r}", where=f"{path}: row {row + 2}", expected=expected)
    return text


def warmed(log: pd.DataFrame) -> pd.DataFrame:
    """Return a training log without warm-up: without the first of several epochs of a run with the same allocation and
    batch.
    """
    setting = [name for name in ("run", "gpu_kind", "gpu_count", "cpu_count", "batch_size") if name in log.columns]
    epochs = log.groupby(setting, dropna=False)["epoch"]
    return log[(epochs.cumcount() > 0) | (epochs.transform("size") == 1)]


def placed(log: pd.DataFrame, gpus_per_node: int) -> pd.DataFrame:
    """Return the rows of a checked training log with the columns model, nodes, gpus, step_time (s) and, if it names the
    kind of its GPUs, kind.
    """
    gpus = log["gpu_count"].astype(int)
    found = log.drop(columns="kind", errors="ignore").rename(columns={"gpu_kind": "kind"})
    return found.assign(
        model=log["model_name"].astype(object).fillna("") if "model_name" in log.columns else "",
        nodes=(-(-gpus // gpus_per_node)).clip(lower=1),
        gpus=gpus,
        step_time=log["batch_size"] / log["throughput"],
    )


def of_training(log: pd.DataFrame, gpus_per_node: int) -> pd.DataFrame:
    """Return the step times of a checked training log, as `read_step_times` does; rows without GPUs are left out.

    For each number of GPUs and batch size, only the rows with the most cores count, if the log has cores: with fewer
    cores, the GPUs may have waited for data. Epochs with equal settings count by their median. A single GPU never
    synchronises, so its step is all computation.
    """
    rows = warmed(log[log["gpu_count"] > 0])
    if "cpu_count" in rows.columns:
        cores = rows["cpu_count"].fillna(0)
        setting = [name for name in ("model_name", "gpu_kind", "gpu_count", "batch_size") if name in rows.columns]
        rows = rows[cores == cores.groupby([rows[name] for name in setting], dropna=False).transform("max")]
    found = placed(rows, gpus_per_node)
    found = found.assign(batch=rows["batch_size"] / found["gpus"], use=_use_of_own(rows, found["gpus"].to_numpy()))
    one_job = [name for name in ("model", "kind") if name in found.columns]
    settings = found.groupby([*one_job, "nodes", "gpus", "batch"], sort=True)
    found = settings[["step_time", "use"]].median().assign(sync_time=float("nan"), rows=settings.size()).reset_index()
    for _, of_model in found.groupby(one_job):
        found.loc[of_model.index, "sync_time"] = of_model["step_time"] * (1.0 - _computing(of_model))
    return found.drop(columns="use")


def _computing(settings: pd.DataFrame) -> pd.Series:
    """Return the share of its time that a job computes on its GPUs: their utilisation relative to that of a single GPU
    with the same batch size. It is NaN if it is unknown, and if several GPUs show no less than one, because some probes
    count waiting for the others as use. It is also NaN if there is no single GPU and all utilisations are at most IDLE.
    """
    import numpy as np

    alone = settings[(settings["gpus"] == 1) & settings["use"].notna()]
    if not len(alone) and settings["use"].max() <= IDLE:
        return settings["use"] * np.nan
    most = np.interp(settings["batch"], alone["batch"], alone["use"]) if len(alone) else 1.0
    share = (settings["use"] / most).clip(upper=1.0)
    return share.where((share < 1.0) | (settings["gpus"] == 1))


def _use_of_own(rows: pd.DataFrame, gpus: np.ndarray) -> np.ndarray:
    """Return the mean utilisation of each row's allocated GPUs, as a fraction; NaN if it is unknown or all are 0."""
    import numpy as np

    columns = sorted(
        (name for name in rows.columns if str(name).startswith(GPU_USE)), key=lambda name: (len(name), name)
    )
    use = rows[columns].to_numpy(float)
    told = np.isfinite(use) & (np.arange(len(columns)) < gpus[:, None])
    total, count = np.where(told, use, 0.0).sum(axis=1), told.sum(axis=1)
    return np.where(total > 0, total / np.maximum(count, 1) / 100, np.nan)
