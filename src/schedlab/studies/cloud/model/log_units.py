"""Units of training logs and of measured step times: what cannot be is refused, what only may be wrong is warned of.

A unit is told by what else the log says: samples, throughput and time of an epoch belong together, as do times of
epochs and the time so far, and what a step takes longer on other GPUs with the time in synchronisation. Utilisations
have no such partner: values up to 1 are shares of 1, or the percent of a device that idles. Time, cost and memory of a
  run that was measured here are told by us, and not judged.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
OWN = "memory_private_gb"  # column that nobody else's logs have
GPU_USE = "gpu_utilization_"  # column of a GPU's utilisation, before its number
AGREE = 0.05  # relative difference of samples / epoch_time from throughput that rounding and a cut last batch explain
FAR = 10.0  # factor between what belongs together that no validation, and no epoch that was cut, explains
FALLS = 0.25  # share of rows where a cost may fall: counted anew, after a resumption
MANY = 0.05  # share of rows above which such a factor is no accident
PAUSE, START = (
    30.0,
    180.0,
)  # between two rows there may be so many times the epoch and so many seconds more: starts, validation
PAUSED = 0.25  # share of rows whose pause may be longer
# factor of what a step takes longer elsewhere over the time in synchronisation there that no load of the data explains
LONGER = 100.0
SPREAD = 0.03  # of the step times, at least, for that to be told
WHOLE = 100.5  # percent; what is beyond 100 to there is rounding
USED = 1.0  # percent; what is used is busier, unless it waits
IDLE = 0.1  # percent; what idles shows less
BUSY = 0.5  # cores that a training keeps busy at least, unless it waits


def is_share(name: object) -> bool:
    """Tell whether a column is a utilisation in percent."""
    return str(name).startswith(GPU_USE) or name == "cpu_percent"


def require_units(table: pd.DataFrame, path: Path) -> None:
    """Raise UserError for values of a checked training log that cannot be in their columns' units."""
    table = table.reset_index(drop=True)
    _require_throughput(table, path)
    if OWN not in table.columns:
        if "time_so_far" in table.columns:
            _require_time_so_far(table, path)
        _require_cost(table, path)
        _require_memory(table, path)
    for name in filter(is_share, table.columns):
        values = table[name].dropna()
        if len(values) and not values.between(0, WHOLE).all():
            raise UserError(
                f"the largest value is {values.max():g}", where=f"{path}: column {name}", expected="percent, 0 to 100"
            )


def judge_result(table: pd.DataFrame, path: Path) -> None:
    """As `require_units`, but units of a finished run that was measured here are only warned of."""
    try:
        require_units(table, path)
    except UserError as error:
        if OWN not in table.columns:
            raise
        log.warning("%s", error)


def _samples(table: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Samples of each epoch that the log tells (NaN: none), and those samples over time that its throughput should be.

    Without samples, those of the model's other epochs stand for them.
    """
    made = table["throughput"] * table["epoch_time"]
    data = [name for name in ("model_name", "dataset") if name in table.columns]
    usual = (
        made.groupby([table[name] for name in data], dropna=False).transform("median")
        if data
        else made * 0 + made.median()
    )
    told = table["data_count"] if "data_count" in table.columns else usual * float("nan")
    return told, told.fillna(usual) / table["epoch_time"]


def _require_throughput(table: pd.DataFrame, path: Path) -> None:
    told, expected = _samples(table)
    factor = expected / table["throughput"]
    far = (factor > FAR) | (factor * FAR < 1)
    if far.mean() <= MANY:
        return
    row = int(far.to_numpy().argmax())
    of, remedy = "the samples of the other epochs", "epoch_time is in seconds, throughput in samples a second"
    if told.notna().iloc[row]:
        of, remedy = "data_count", f"{remedy}, data_count the samples of an epoch"
    what = f"throughput {table['throughput'].iloc[row]:g}, but {of} / epoch_time is {expected.iloc[row]:g}"
    raise UserError(what, where=f"{path}: row {row + 2}", expected="the same", remedy=remedy)


def _warn_of_throughput(table: pd.DataFrame, path: Path) -> None:
    told, expected = _samples(table)
    off = (expected / table["throughput"] - 1).abs()[told.notna()]
    if len(off) and (off > AGREE).all():
        row = int(off.index[0])
        what = f"throughput {table['throughput'].iloc[row]:g}, but data_count / epoch_time is {expected.iloc[row]:g}"
        may = (
            "validation in epoch_time, a data_count of more or less than is trained on, the samples of one GPU of "
            "several"
        )
        log.warning("%s: row %d: %s; it may be %s; a fit goes by throughput", path, row + 2, what, may)


def _falls(table: pd.DataFrame) -> pd.Series:
    """Tell in which rows the cost falls within a run, where the time is not counted anew."""
    if "cost_so_far" not in table.columns:
        return table["epoch"] < table["epoch"]
    falls = (table["cost_so_far"].diff() < 0) & table["run"].diff().eq(0)
    return falls & ~(table["time_so_far"].diff() < 0) if "time_so_far" in table.columns else falls


def _fall(table: pd.DataFrame, row: int) -> str:
    before, after = table["cost_so_far"].iloc[row - 1 : row + 1]
    return f"it falls from {before:g} to {after:g} on the way"


def _require_cost(table: pd.DataFrame, path: Path) -> None:
    falls = _falls(table)
    if falls.mean() > FALLS:
        row = int(falls.to_numpy().argmax())
        expected = "what the run has cost so far"
        raise UserError(_fall(table, row), where=f"{path}: row {row + 2}, column cost_so_far", expected=expected)


def _warn_of_cost(table: pd.DataFrame, path: Path) -> None:
    falls = _falls(table)
    if falls.any():
        row = int(falls.to_numpy().argmax())
        log.warning("%s: row %d, column cost_so_far: %s; it is taken as it is", path, row + 2, _fall(table, row))


def _overuse(table: pd.DataFrame) -> pd.Series:
    """The memory used over the memory held; NaN where either is not told, or nothing is held."""
    if not {"memory_used_gb", "memory_gb"} <= set(table.columns):
        return table["epoch"] * float("nan")
    return table["memory_used_gb"] / table["memory_gb"].where(table["memory_gb"] > 0)


def _use(table: pd.DataFrame, row: int) -> str:
    return f"{table['memory_used_gb'].iloc[row]:g} is used, but {table['memory_gb'].iloc[row]:g} are held"


def _require_memory(table: pd.DataFrame, path: Path) -> None:
    far = _overuse(table) > FAR
    if far.mean() > MANY:
        row = int(far.to_numpy().argmax())
        raise UserError(_use(table, row), where=f"{path}: row {row + 2}, column memory_used_gb", expected="both in GB")


def _warn_of_memory(table: pd.DataFrame, path: Path) -> None:
    more = _overuse(table) > 1 + AGREE
    if more.any():
        row = int(more.to_numpy().argmax())
        told = f"{_use(table, row)}; expected both in GB"
        log.warning(
            "%s: row %d, column memory_used_gb: %s; it may be percent, or the use of the whole machine",
            path,
            row + 2,
            told,
        )


def _require_time_so_far(table: pd.DataFrame, path: Path) -> None:
    """A run's time between epochs is at least the later epoch's time; where it falls, counting restarted."""
    passed = table["time_so_far"].diff().where(table["run"].diff().eq(0) & table["epoch"].diff().eq(1))
    passed = passed[passed >= 0]
    took = table.loc[passed.index, "epoch_time"]
    rounding = 1.0 if (table["time_so_far"].dropna() % 1 == 0).all() else 0.0
    less = passed.sum() + rounding < took.sum() / FAR
    if less or (passed > PAUSE * took + START).mean() > PAUSED:
        what = f"time_so_far rises by {passed.median():.3g} a row, but an epoch takes {took.median():.3g}"
        remedy = "mend the unit, or leave the column out, which a fit does not need"
        raise UserError(what, where=f"{path}: column time_so_far", expected="both in seconds", remedy=remedy)


def require_step_units(rows: pd.DataFrame, path: Path) -> None:
    """Raise UserError where step_time and sync_time of rows of `logs.read_step_times` are not in one unit.

    With one batch on a GPU, a step takes longer elsewhere by as much as synchronisation does (recorded ones: .7 to 1.1
    of it).
    """
    batches = rows.groupby("batch")
    step, sync = ((rows[name] - batches[name].transform("median")).abs().sum() for name in ("step_time", "sync_time"))
    if step > SPREAD * rows["step_time"].sum() and 0 < sync < step / LONGER:
        what = f"step_time differs between placements by {step / sync:.0f} times as much as sync_time"
        raise UserError(what, where=f"{path}: column step_time", expected="both in seconds")


def warn_of_units(table: pd.DataFrame, path: Path) -> None:
    """Warn of values of a checked training log that are probably in another unit than their column's."""
    table = table.reset_index(drop=True)
    _warn_of_throughput(table, path)
    if OWN not in table.columns:
        _warn_of_cost(table, path)
        _warn_of_memory(table, path)
    warn_of_shares(table, path)


def warn_of_shares(table: pd.DataFrame, path: Path) -> None:
    """Warn of utilisations of a checked training log that are shares of 1, or those of devices that do next to nothing.

    Nothing in the log tells these two apart, so that it is no reason to refuse it.
    """
    table = table.reset_index(drop=True)
    gpus = table[[name for name in table.columns if str(name).startswith(GPU_USE)]].stack()
    cores = table["cpu_percent"].dropna() if "cpu_percent" in table.columns else table["epoch"][:0]
    if "cpu_count" in table.columns:  # a busy core is less than a percent of very many
        busy = cores * table["cpu_count"].reindex(cores.index).fillna(0) / 100
        cores = cores if (busy < BUSY).mean() > 0.5 else cores[:0]
    for values, where in ((gpus, f"columns {GPU_USE}<i>"), (cores, "column cpu_percent")):
        values = values[values > 0]
        if len(values) and values.max() <= USED and values.median() > IDLE and (values % 1 > 0).any():
            told = f"the largest value is {values.max():g}; expected percent, 0 to 100"
            log.warning(
                "%s: %s: %s; either they idle, or these are shares of 1, to be multiplied by 100", path, where, told
            )
