"""Numbers of recorded tables, named by table, row and column. Ledgers of claims name our values in this way."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.schema import Settings, setting
from schedlab.evaluation.recorded import read_rows

Row = Mapping[str, str]
AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {
    "mean": statistics.fmean,
    "min": min,
    "max": max,
    "median": statistics.median,
}


class CellSettings(Settings):
    """One number of a recorded table. A divisor (`over`) takes missing keys from the dividend. If both are in the same
    table, the columns of its `row` are added to those of the dividend.
    """

    table: str | None = setting(None, doc="table of a study, such as cloud/summary, or a file in docs/results")
    row: dict[str, str | float] = setting({}, doc="column -> value of the selected rows")
    column: str | None = setting(None, doc="column of the number")
    take: Literal["one", "mean", "min", "max", "median"] | None = setting(
        None, doc="how several rows become one number; default: exactly one row must match"
    )


class RecordedSettings(CellSettings):
    """A value computed from recorded tables: times * (number / over - less), averaged over `each`."""

    table: str = setting(doc="table of a study, such as cloud/summary, or a file in docs/results")
    column: str = setting(doc="column of the number")
    over: CellSettings | None = setting(None, doc="divisor")
    each: str | None = setting(None, doc="column over whose values the number is computed and then averaged")
    less: float = setting(0.0, doc="number subtracted from the result")
    times: float = setting(1.0, doc="factor on the result")


def recorded_value(asked: RecordedSettings, results: Path, where: str) -> float | str:
    """Return the requested value; a text if the cell contains text and no calculation is requested.

    results  docs/results
    where    file and key of the request, for errors. Raises UserError for a missing table, column or row, for several
             matching rows, and for a text where a number is needed.
    """
    over = asked.over and CellSettings(
        table=asked.over.table or asked.table,
        row=asked.row | asked.over.row if asked.over.table in (None, asked.table) else asked.over.row,
        column=asked.over.column or asked.column,
        take=asked.over.take or asked.take,
    )
    groups: Iterable[Mapping[str, str]] = [{}]
    if asked.each:
        values = {row[asked.each] for row in matching_rows(asked, results, where, {}, (asked.each,))}
        groups = [{asked.each: value} for value in sorted(values)]
    found = [_number(asked, over, results, where, group) for group in groups]
    text = found[0]
    if isinstance(text, str):
        return text
    mean = statistics.fmean(value for value in found if not isinstance(value, str))
    return asked.times * (mean - asked.less) if (asked.times, asked.less) != (1.0, 0.0) else mean


def _number(asked: RecordedSettings, over: CellSettings | None, results: Path, where: str, group: Row) -> float | str:
    value = _cell(asked, results, where, group)
    if isinstance(value, str):
        if over or asked.each or (asked.times, asked.less) != (1.0, 0.0):
            raise UserError(f"'{value}' is no number", where=f"{where}.column", expected="a column of numbers")
        return value
    if over is None:
        return value
    divisor = _cell(over, results, f"{where}.over", group)
    if isinstance(divisor, str) or divisor == 0.0:
        raise UserError(f"nothing can be divided by {divisor!r}", where=f"{where}.over", expected="a number but 0")
    return value / divisor


def _cell(asked: CellSettings, results: Path, where: str, group: Row) -> float | str:
    column = asked.column or ""
    rows = matching_rows(asked, results, where, group, (column,))
    if asked.take in (None, "one"):
        if len({row[column] for row in rows}) > 1:
            what = f"{len(rows)} rows of {asked.table} have these values"
            raise UserError(what, where=f"{where}.row", expected="one, or `take: mean`")
        try:
            return float(rows[0][column])
        except ValueError:
            return rows[0][column]
    try:
        return AGGREGATES[asked.take or ""]([float(row[column]) for row in rows])
    except ValueError as error:
        raise UserError(str(error), where=f"{where}.column", expected="a column of numbers") from None


def matching_rows(asked: CellSettings, results: Path, where: str, group: Row, columns: Sequence[str]) -> list[Row]:
    """Return the rows of a table that match a claim's cell and the group; at least one.

    columns  columns that will be read from them. Raises UserError for a missing table, column or row.
    """
    table = asked.table or ""
    try:
        rows = read_rows(results, table)
    except UserErrors:  # the record is broken, and the error names the place
        raise
    except UserError as error:
        raise UserError(error.what, where=f"{where}.table", expected=error.where, remedy=error.remedy) from None
    names = list(rows[0]) if rows else []
    for name in (*columns, *asked.row, *group):
        if name not in names:
            key = "column" if name in columns else "row"
            what = f"the table {table} has no column '{name}'"
            raise UserError(what, where=f"{where}.{key}", remedy=did_you_mean(name, names))
    wanted = asked.row | dict(group)
    found: Sequence[Row] = rows
    for name, value in wanted.items():
        if isinstance(value, str):
            found = [row for row in found if row[name] == value]
        else:
            found = [row for row in found if _is_number(row[name], value)]
    if not found:
        raise UserError(f"no row of {table} has these values", where=f"{where}.row", expected=str(wanted))
    return list(found)


def _is_number(text: str, value: float) -> bool:
    """Return whether a cell contains a number equal to `value`."""
    try:
        return float(text) == value
    except ValueError:
        return False
