"""Logs of training jobs: a row an epoch, or a row for each measured placement. What is wrong in them is told before anything is fitted.

Source: specification of the study cloud, A5 (training logs) and B1 (measured step times).
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError, nearest, shortened
from schedlab.config.json_files import read_text

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

TRAINING = ("epoch", "batch_size", "gpu_count", "epoch_time", "throughput")
SPEED = ("local_bsz", "step_time", "sync_time")
COLUMNS = (
    *("timestamp", "epoch", "total_epochs", "model_name", "model_params", "model_layers", "dataset", "data_count", "data_size_mb"),
    *("data_dim", "batch_size", "device_type", "cpu_count", "gpu_count", "cpu_percent", "memory_used_gb", "memory_gb"),
    "memory_private_gb",
    *("train_loss", "train_accuracy", "test_loss", "test_accuracy", "epoch_time", "time_so_far", "throughput", "gpu_memory_used_gb"),
    "cost_so_far",
)
OPTIONAL = (
    *("total_epochs", "model_params", "model_layers", "data_count", "data_size_mb"),
    *("cpu_count", "memory_used_gb", "memory_private_gb", "memory_gb", "time_so_far", "cost_so_far"),
)
TABLE = "a CSV table with a header"
GPU_USE = "gpu_utilization_"  # column of a GPU's utilisation, before its number
POSITIVE = ("batch_size", "epoch_time", "throughput", "local_bsz", "step_time")
MOST = 1e15  # of any amount; above it, whole numbers are not exact
AGREE = 0.05  # relative difference of samples / epoch_time from throughput that rounding and a cut last batch explain
STRAY = 0.05  # most of a table's rows that may tell no less in synchronisation than the whole step took
WHOLE = 100.5  # percent; what is beyond 100 to there is rounding
USED = 0.1  # percent; a GPU in use is busier, so that values from here to 1 are shares of 1


def read_table(path: Path) -> pd.DataFrame:
    """Return a CSV file with a header. Raises UserError for a missing, empty or unreadable file and for a column given twice."""
    return parse_table(read_text(path, TABLE), path)


def parse_table(text: str, path: Path) -> pd.DataFrame:
    """Return the table of a CSV text; raises as `read_table`, naming `path`."""
    import pandas as pd

    header = text.partition("\n")[0].strip()
    names = [name.strip() for name in header.split(",")]
    if not header or all(not name for name in names):
        raise UserError("is empty", where=str(path), expected="a header and rows")
    if twice := [name for name in names if names.count(name) > 1]:
        raise UserError(f"the column '{twice[0]}' stands there twice", where=str(path), remedy="rename or remove one of them")
    try:
        table = pd.read_csv(io.StringIO(text), skipinitialspace=True)
    except (pd.errors.ParserError, ValueError) as error:
        raise UserError(f"is no CSV table: {str(error).splitlines()[0]}", where=str(path), expected="a header and rows") from None
    if not len(table):
        raise UserError("has no rows", where=str(path), expected="rows below the header")
    return table


def require_columns(table: pd.DataFrame, names: Iterable[str], path: Path) -> None:
    """Raise UserError where the table lacks a column."""
    for name in names:
        if name not in table.columns:
            raise UserError(f"has no column '{name}'", where=str(path), remedy=meant_column(name, table.columns))


def meant_column(name: str, columns: Iterable[object]) -> str:
    """Return which column was probably meant by a missing one: none that has a meaning of its own, as `epoch` beside `epoch_time`."""
    names = [str(column) for column in columns]
    if near := nearest(name, [each for each in names if each not in {*COLUMNS, *SPEED}]):
        return f"did you mean '{near}'?"
    return f"its columns: {shortened(names)}"


def require_numbers(table: pd.DataFrame, names: Iterable[str], path: Path, optional: bool = False) -> pd.DataFrame:
    """Return the table with these columns as numbers.

    Raises UserError where a cell is empty (not if optional), no number, above MOST, or below (for POSITIVE: not above) 0; its row is named.
    """
    import numpy as np

    found = {}
    for name in names:
        values = found[name] = _numbers(table[name])
        bad = ~np.isfinite(values) | (values <= 0 if name in POSITIVE else values < 0) | (values > MOST)
        bad = np.flatnonzero(bad & table[name].notna().to_numpy() if optional else bad)
        if len(bad):
            row = int(bad[0])
            least = "above 0" if name in POSITIVE else "of 0 or more"
            expected = f"a number {least}, at most {MOST:g}{', or nothing' if optional else ''}"
            where = f"{path}: row {row + 2}, column {name}"  # as an editor counts, the header being row 1
            raise UserError(f"the value is {table[name].iloc[row]}", where=where, expected=expected)
    return table.assign(**{name: values for name, values in found.items() if table[name].dtype.kind not in "iuf"})


def _numbers(column: pd.Series) -> np.ndarray:
    """The values as floats, NaN for what is no number; a column of text may hold whole numbers that no float can stand for."""
    import pandas as pd

    return pd.to_numeric(column if column.dtype.kind in "iuf" else column.astype(str), errors="coerce").to_numpy(float)


def _is_share(name: object) -> bool:
    """Tell whether a column is a utilisation in percent."""
    return str(name).startswith(GPU_USE) or name == "cpu_percent"


def read_training_log(path: Path) -> pd.DataFrame:
    """Return a training log, a row an epoch; an epoch number that does not rise begins another run (column `run`, from 0).

    Raises UserError for missing columns, cells that are no numbers, an epoch that stands there twice in a row, and units that cannot be:
    a throughput that is not samples per second, utilisations that are not percent.
    """
    return check_training_log(read_table(path), path)


def check_training_log(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """Return a training log with its column `run`; raises as `read_training_log`, naming `path`."""
    require_columns(table, TRAINING, path)
    if table.empty:
        raise UserError("has no rows", where=str(path), expected="a row an epoch")
    table = require_numbers(table, TRAINING, path)
    table = require_numbers(table, [name for name in table.columns if name in OPTIONAL or _is_share(name)], path, optional=True)
    again = table["epoch"].diff().eq(0) & _same_setting(table)
    if again.any():
        row = int(again.to_numpy().argmax())
        what = f"epoch {table['epoch'].iloc[row]:g} stands there twice"
        raise UserError(what, where=f"{path}: row {row + 2}", expected="one row an epoch", remedy="remove one of them")
    _require_units(table, path)
    return table.assign(run=(table["epoch"].diff().fillna(1) <= 0).cumsum())


def _same_setting(table: pd.DataFrame) -> pd.Series:
    settings = [name for name in ("model_name", "sample", "gpu_count", "cpu_count", "memory_gb", "batch_size") if name in table.columns]
    return table[settings].eq(table[settings].shift()).all(axis=1)


def _require_units(table: pd.DataFrame, path: Path) -> None:
    import numpy as np

    if "data_count" in table.columns:
        expected = table["data_count"] / table["epoch_time"]
        off = (expected / table["throughput"] - 1).abs()
        if (off > AGREE).all():
            row = int(off.to_numpy().argmin())
            what = f"throughput {table['throughput'].iloc[row]:g}, but data_count / epoch_time is {expected.iloc[row]:g}"
            remedy = "epoch_time is in seconds, throughput in samples a second"
            raise UserError(what, where=f"{path}: row {row + 2}", expected="the same", remedy=remedy)
    for name in filter(_is_share, table.columns):
        values = table[name].dropna()
        if len(values) and not values.between(0, WHOLE).all():
            raise UserError(f"the largest value is {values.max():g}", where=f"{path}: column {name}", expected="percent, 0 to 100")
    use = table[[name for name in table.columns if str(name).startswith(GPU_USE)]].to_numpy(float)
    use = use[use > 0]
    if len(use) and use.max() <= 1 and np.median(use) > USED and (use % 1 > 0).any():
        where, remedy = f"{path}: columns {GPU_USE}<i>", "multiply them by 100, if they are shares of 1"
        raise UserError(f"the largest value is {use.max():g}", where=where, expected="percent, 0 to 100", remedy=remedy)


def read_step_times(path: Path, gpus_per_node: int = 4) -> pd.DataFrame:
    """Return measured step times: columns model, nodes, gpus, batch (a GPU), step_time and sync_time (s; NaN where not recorded).

    Reads tables of placements (`placement`, digits = GPUs on each node, or `num_nodes`, `num_replicas`; `local_bsz`, `step_time`,
    `sync_time`) and training logs, whose first epoch of each run is left out where there are more, since it warms up; there, nodes are
    filled with `gpus_per_node`, and the time in synchronisation is what the GPUs' utilisation leaves. Raises UserError, also for a
    time in synchronisation that is no part of the step; that of single rows (STRAY) counts as not recorded.
    """
    import numpy as np

    table = read_table(path)
    if "step_time" not in table.columns:
        return of_training(read_training_log(path), gpus_per_node)
    require_columns(table, SPEED, path)
    table = require_numbers(table, SPEED, path)
    if "placement" in table.columns:
        digits = [_placement(value, path, row) for row, value in enumerate(table["placement"])]
        nodes, gpus = [len(text) for text in digits], [sum(map(int, text)) for text in digits]
    else:
        require_columns(table, ("num_nodes", "num_replicas"), path)
        table = require_numbers(table, ("num_nodes", "num_replicas"), path)
        nodes, gpus = table["num_nodes"].astype(int), table["num_replicas"].astype(int)
    found = table[["step_time", "sync_time"]].assign(model="", nodes=nodes, gpus=gpus, batch=table["local_bsz"].astype(float))
    stray = (found["sync_time"] >= found["step_time"]).to_numpy()
    if stray.mean() > STRAY:
        where = f"{path}: row {int(stray.argmax()) + 2}"
        raise UserError("sync_time is not below step_time", where=where, expected="seconds, the part of a step in synchronisation")
    found["sync_time"] = np.where(stray, np.nan, found["sync_time"])
    return found[["model", "nodes", "gpus", "batch", "step_time", "sync_time"]]


def _placement(value: object, path: Path, row: int) -> str:
    text = str(value).removesuffix(".0")
    if not (text.isascii() and text.isdigit()) or "0" in text:
        expected = "digits from 1 to 9, the GPUs on each node (44: two nodes of four)"
        raise UserError(f"the placement is {value!r}", where=f"{path}: row {row + 2}", expected=expected)
    return text


def warmed(log: pd.DataFrame) -> pd.DataFrame:
    """Return a training log without the first epoch of each run on an allocation and batch that has more there: it warms up."""
    setting = [name for name in ("run", "gpu_count", "cpu_count", "batch_size") if name in log.columns]
    epochs = log.groupby(setting, dropna=False)["epoch"]
    return log[(epochs.cumcount() > 0) | (epochs.transform("size") == 1)]


def of_training(log: pd.DataFrame, gpus_per_node: int) -> pd.DataFrame:
    """Return the step times of a checked training log, as `read_step_times` gives them; rows without GPUs have none.

    Of each number of GPUs and batch the rows with the most cores count, if the log tells them: with fewer, the GPUs may have waited.
    Of epochs that agree in these, the median counts. A GPU alone never synchronises: what it shows is what computing shows.
    """
    rows = warmed(log[log["gpu_count"] > 0])
    if "cpu_count" in rows.columns:
        cores = rows["cpu_count"].fillna(0)
        setting = [name for name in ("model_name", "gpu_count", "batch_size") if name in rows.columns]
        rows = rows[cores == cores.groupby([rows[name] for name in setting], dropna=False).transform("max")]
    gpus = rows["gpu_count"].astype(int)
    found = rows.assign(
        model=rows["model_name"].astype(object).fillna("") if "model_name" in rows.columns else "",
        nodes=-(-gpus // gpus_per_node),
        gpus=gpus,
        batch=rows["batch_size"] / gpus,
        step_time=rows["batch_size"] / rows["throughput"],
        use=_use_of_own(rows, gpus.to_numpy()),
    )
    found = found.groupby(["model", "nodes", "gpus", "batch"], sort=True, as_index=False)[["step_time", "use"]].median()
    found["sync_time"] = float("nan")
    for _, of_model in found.groupby("model"):
        found.loc[of_model.index, "sync_time"] = of_model["step_time"] * (1.0 - _computing(of_model))
    return found.drop(columns="use")


def _computing(settings: pd.DataFrame) -> pd.Series:
    """The share of its time that a job computes on its GPUs: their use as a share of what one GPU alone shows with as large a batch.

    NaN where it is not told, or several GPUs show no less: probes that count waiting for the others as use do not tell it.
    """
    import numpy as np

    alone = settings[(settings["gpus"] == 1) & settings["use"].notna()]
    most = np.interp(settings["batch"], alone["batch"], alone["use"]) if len(alone) else 1.0
    share = (settings["use"] / most).clip(upper=1.0)
    return share.where((share < 1.0) | (settings["gpus"] == 1))


def _use_of_own(rows: pd.DataFrame, gpus: np.ndarray) -> np.ndarray:
    """The mean utilisation of the GPUs that each row's job holds, the first ones, as a share; NaN where none is told, or nothing but 0."""
    import numpy as np

    columns = sorted((name for name in rows.columns if str(name).startswith(GPU_USE)), key=lambda name: (len(name), name))
    use = rows[columns].to_numpy(float)
    told = np.isfinite(use) & (np.arange(len(columns)) < gpus[:, None])
    total, count = np.where(told, use, 0.0).sum(axis=1), told.sum(axis=1)
    return np.where(total > 0, total / np.maximum(count, 1) / 100, np.nan)
