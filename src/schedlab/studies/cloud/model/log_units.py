"""Units of the columns of training logs and of measured step times.

Each column has one unit; a header such as `epoch_time [ms]` states another, and the values are converted. Units are
never guessed. Impossible values are refused: a utilisation above 100 %, or a time that decreases within a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

GPU_USE = "gpu_utilization_"  # column of a GPU's utilisation, before its number
MOST_USE = 100.5  # percent; values between 100 and this are rounding errors
STATED = re.compile(r"(?P<name>\S+)\s*\[(?P<unit>[^\[\]]*)\]")
# Unit -> factor on a value in this unit; the first unit is the default of a column. 1 GB is 2^30 bytes.
TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
RATE = {"samples/s": 1.0, "samples/min": 1 / 60, "samples/h": 1 / 3600}
MEMORY = {"GB": 1.0, "MB": 2.0**-10, "kB": 2.0**-20, "B": 2.0**-30}
SIZE = {"MB": 1.0, "GB": 2.0**10, "kB": 2.0**-10, "B": 2.0**-20}
MONEY = {"$": 1.0, "cent": 0.01}
USE = {"%": 1.0, "share": 100.0}
UNITS = {
    **dict.fromkeys(("epoch_time", "time_so_far", "step_time", "sync_time"), TIME),
    "throughput": RATE,
    **dict.fromkeys(("memory_used_gb", "memory_gb", "memory_private_gb", "gpu_memory_used_gb"), MEMORY),
    "data_size_mb": SIZE,
    "cost_so_far": MONEY,
    "cpu_percent": USE,
}


def is_share(name: object) -> bool:
    """Return whether a column is a utilisation, in percent."""
    return str(name).startswith(GPU_USE) or name == "cpu_percent"


def units_of(name: str) -> dict[str, float] | None:
    """Return unit -> factor to the column's default unit, which is the first; None for a column without a unit."""
    return USE if is_share(name) else UNITS.get(name)


def stated_units(headers: Iterable[str], path: Path) -> dict[str, tuple[str, float]]:
    """Return header -> name of the column and factor, for headers `NAME [UNIT]` of columns that have a unit.

    Raises UserError for a unit that the column cannot have.
    """
    found = {}
    for header in headers:
        stated = STATED.fullmatch(str(header))
        units = units_of(stated["name"]) if stated else None
        if stated is None or units is None:
            continue
        if stated["unit"] not in units:
            what = f"the unit '{stated['unit']}' is unknown"
            raise UserError(what, where=f"{path}: column {header}", expected=f"one of {', '.join(units)}")
        found[header] = stated["name"], units[stated["unit"]]
    return found


def require_possible(table: pd.DataFrame, path: Path) -> None:
    """Raise UserError for a utilisation above 100 %, and for a time that decreases within a run (column `run`) of a
    training log.
    """
    for name in filter(is_share, table.columns):
        over = (table[name] > MOST_USE).to_numpy()
        if over.any():
            row = int(over.argmax())
            what, where = f"the value is {table[name].iloc[row]:g}", f"{path}: row {row + 2}, column {name}"
            raise UserError(what, where=where, expected="percent, 0 to 100", remedy=_other_unit(name))
    if "time_so_far" in table.columns:
        times = table["time_so_far"]
        falls = (times < times.groupby(table["run"]).cummax()).to_numpy()
        if falls.any():
            row = int(falls.argmax())
            where = f"{path}: row {row + 2}, column time_so_far"
            expected = "seconds since the run's begin, which never fall"
            remedy = "count the epochs of another run from 1, or leave the column out, which a fit does not need"
            raise UserError(f"it falls to {times.iloc[row]:g}", where=where, expected=expected, remedy=remedy)


def _other_unit(name: str) -> str:
    return f"state another unit in the header: '{name} [UNIT]', UNIT one of {', '.join(units_of(name) or ())}"
