"""The common tables: their columns and types, and the functions that build, check, join, write and read them.

A table is a pandas frame whose columns, dtypes and order of rows are derived from its contents alone, so equal results
have equal bytes. The columns of its kind are followed by facts: columns for scenarios, policies and units that a study
and its configuration add (evaluation/facts.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from schedlab.config.files import read_table, table_writer, write_table

if TYPE_CHECKING:
    import pandas as pd

DETAIL_KEY = ("scenario", "policy", "policy_seed", "split", "unit")  # first columns of every detail table
ColumnType = Literal["text", "integer", "number", "flag"]
DTYPES = {"text": "str", "integer": "int64", "number": "float64", "flag": "bool"}
FACT_DTYPES = DTYPES | {"integer": "Int64", "flag": "boolean"}


@dataclass(frozen=True)
class Column:
    """A column. `optional` numbers, and facts, may be null; all other values must be present and finite."""

    name: str
    type: ColumnType
    optional: bool = False
    fact: bool = False


@dataclass(frozen=True)
class TableKind:
    """A kind of table: its columns in order, and the columns that identify and sort its rows. `by_facts`: facts also
    identify rows.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    by_facts: bool = False

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def with_facts(self, types: Mapping[str, ColumnType]) -> TableKind:
        """Return this kind with a column for each fact. Raises ValueError if a column already has the name."""
        if taken := sorted(set(types) & set(self.names)):
            raise ValueError(f"the table '{self.name}' has columns {', '.join(taken)}: facts need other names")
        facts = (Column(name, kind, fact=True) for name, kind in types.items())
        key = (*self.key, *types) if self.by_facts else self.key
        return replace(self, columns=(*self.columns, *facts), key=key)


def _columns(text: str) -> tuple[Column, ...]:
    """Read 'name:type' words; a type that ends in ? is optional, and without a type the column is text."""
    found = []
    for word in text.split():
        name, _, kind = word.partition(":")
        types: Any = kind.rstrip("?") or "text"
        found.append(Column(name, types, kind.endswith("?")))
    return tuple(found)


SCORES = TableKind(
    "scores",
    _columns(
        "scenario policy kind policy_seed:integer trained_on mode split unit_kind unit block unit_seed:integer metric"
        " value:number weight:number config_hash"
    ),
    ("scenario", "policy", "mode", "policy_seed", "split", "unit", "metric"),
)
CURVES = TableKind(
    "curves",
    _columns(
        "policy policy_seed:integer phase:integer train_scenario step:integer episode:integer update:integer split "
        "metric value:number decisions:integer episodes:integer trainings:integer"
    ),
    ("policy", "policy_seed", "phase", "train_scenario", "split", "metric", "step", "episode", "update"),
    by_facts=True,
)
SUMMARY = TableKind(
    "summary",
    _columns(
        "scenario policy kind metric unit value:number statistic ci_low:number? ci_high:number? seeds:integer "
        "units:integer"
        " blocks:integer range_low:number range_high:number range_over decisions:number? episodes:number?"
        " trainings:number? split mode trained_on config_hash"
    ),
    ("scenario", "policy", "mode", "split", "metric"),
)
COMPARISONS = TableKind(
    "comparisons",
    _columns(
        "scenario policy kind baseline role metric unit better difference:number statistic ci_low:number? "
        "ci_high:number?"
        " seeds:integer units:integer blocks:integer range_low:number range_high:number range_over relative:number?"
        " win_rate:number cliffs_delta:number standardised:number? split mode trained_on config_hash"
    ),
    ("scenario", "policy", "mode", "role", "split", "metric"),
)
HEADLINE = TableKind(
    "headline",
    _columns(
        "question scenario metric policy recipe group rival rival_chosen_on ratio:number? ci_low:number?"
        " ci_high:number? learning_seeds:integer units:integer blocks:integer share_won:number"
        " ratio_to_hindsight:number? ratio_to_bound:number? budget:number? rival_budget:number?"
        " budget_unit verdict config_hash code_hash"
    ),
    ("question", "scenario", "group"),
)


def build(kind: TableKind, rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the checked, sorted table of rows given as mappings. The ValueError for invalid rows states the
    mistake.
    """
    import pandas as pd

    rows = list(rows)
    for row in rows:
        if set(row) != set(kind.names):
            raise ValueError(f"a row of the table '{kind.name}' {_differences(kind, row)}")
    return check(kind, pd.DataFrame(rows, columns=kind.names))


def check(kind: TableKind, table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in its fixed form: columns in order, fixed dtypes, rows sorted by the key.

    Raises ValueError for missing or unknown columns, a value of the wrong type, a null, NaN or infinity where none is
    allowed, an empty key, a weight that is not above zero, and rows with the same key.
    """
    if set(table.columns) != set(kind.names):
        raise ValueError(f"the table '{kind.name}' {_differences(kind, table.columns)}")
    typed = table[kind.names].copy()
    for column in kind.columns:
        typed[column.name] = _typed(kind, column, table)
    if "weight" in kind.names and not (typed["weight"] > 0).all():
        raise ValueError(f"table '{kind.name}': a weight is not above zero: {_row(kind, typed, typed['weight'] <= 0)}")
    twice = typed.duplicated(list(kind.key))
    if twice.any():
        raise ValueError(f"table '{kind.name}': more than one row for {_row(kind, typed, twice)}")
    return typed.sort_values(list(kind.key), kind="stable").reset_index(drop=True)


def join(kind: TableKind, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return several tables of the same kind as one checked table; without tables, an empty one."""
    import pandas as pd

    filled = [table for table in tables if len(table)]
    return check(kind, pd.concat(filled, ignore_index=True)) if filled else build(kind, ())


def read_joined(kind: TableKind, paths: Sequence[Path | str]) -> pd.DataFrame:
    """Return one checked table of several files. The ValueError for a single invalid file names it.

    All files are checked together, which is much faster; only if that fails, they are checked one by one. The table has
    the facts of the kind and of all files; a fact that a file lacks is null there.
    """
    kind = kind.with_facts(facts_of_files(kind, paths))
    found = [_with_all_facts(kind, read_table(path)) for path in paths]
    try:
        if all(set(table.columns) == set(kind.names) for table in found):
            return join(kind, found)
    except ValueError:
        pass
    return join(kind, [read(kind, path) for path in paths])


def grouped(paths: Iterable[Path | str], column: str) -> dict[str, list[Path]]:
    """Return value of a column -> tables whose rows have this value, in the order of values; tables without rows are
    left out.

    Raises ValueError for a table that lacks the column or has several values in it.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    found: dict[str, list[Path]] = {}
    for path in map(Path, paths):
        with pq.ParquetFile(path) as file:
            if column not in file.schema_arrow.names:
                raise ValueError(f"{path}: lacks the column '{column}'")
            values = pc.unique(file.read([column]).column(0)).to_pylist()
        if len(values) > 1:
            raise ValueError(f"{path}: several values of '{column}': {values[0]}, {values[1]}")
        for value in values:
            found.setdefault(value, []).append(path)
    return dict(sorted(found.items()))


@contextmanager
def writing(kind: TableKind, path: Path | str) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Yield a function that adds checked tables to a file; the keys must increase from call to call."""
    with table_writer(path) as add:
        add(build(kind, ()))
        yield add


def write(kind: TableKind, path: Path | str, table: pd.DataFrame) -> None:
    """Check a table and write it as Parquet, atomically."""
    write_table(path, check(kind, table))


def read(kind: TableKind, path: Path | str) -> pd.DataFrame:
    """Read and check a table including its facts; a ValueError names the file."""
    try:
        kind = kind.with_facts(facts_of_files(kind, [path]))
        return check(kind, _with_all_facts(kind, read_table(path)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def facts_of_files(kind: TableKind, paths: Iterable[Path | str]) -> dict[str, ColumnType]:
    """Return fact -> type, sorted by name, for the columns of tables in files that are not columns of their kind."""
    import pyarrow.parquet as pq

    found: dict[str, list[Any]] = {}
    for field in (field for path in paths for field in pq.read_schema(path)):
        if field.name not in kind.names:
            example = {"bool": True, "int64": 1, "double": 0.5, "null": None}.get(str(field.type), "text")
            found.setdefault(field.name, []).append(example)
    return {name: fact_type(examples) for name, examples in sorted(found.items())}


def fact_type(values: Iterable[Any]) -> ColumnType:
    """Return the type of a fact with these values, ignoring None; `text` if the values have several types."""
    types = {type(value) for value in values if value is not None}
    if types == {bool}:
        return "flag"
    if types == {int}:
        return "integer"
    return "number" if types and types <= {int, float} else "text"


def fact_column(values: Sequence[Any], kind: ColumnType) -> pd.Series:
    """Return the column of a fact from its values; None is a missing value."""
    import pandas as pd

    text = [None if pd.isna(value) else str(value) for value in values] if kind == "text" else values
    return pd.Series(text, dtype=FACT_DTYPES[kind])


def _with_all_facts(kind: TableKind, table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**{column.name: None for column in kind.columns if column.fact and column.name not in table})


def _typed(kind: TableKind, column: Column, table: pd.DataFrame) -> pd.Series:
    import numpy as np
    import pandas as pd

    values = table[column.name]
    if column.fact:
        return fact_column(list(values), column.type).set_axis(table.index)
    where = f"table '{kind.name}', column '{column.name}'"
    if column.type == "text":
        wrong = ~values.map(lambda value: isinstance(value, str)).astype(bool)
        if wrong.any():
            raise ValueError(f"{where}: not a text: {_row(kind, table, wrong)}")
        return values.astype(DTYPES["text"])
    try:
        numbers = pd.to_numeric(values.astype("float64") if column.optional else values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None
    if column.type == "integer":
        if len(numbers) and not pd.api.types.is_integer_dtype(numbers.dtype):
            raise ValueError(f"{where}: not all are integers (dtype {numbers.dtype})")
        return numbers.astype(DTYPES["integer"])
    numbers = numbers.astype(DTYPES["number"])
    wrong = np.isinf(numbers) | (numbers.isna() & (not column.optional))
    if wrong.any():
        raise ValueError(f"{where}: {numbers[wrong].iloc[0]} is not allowed: {_row(kind, table, wrong)}")
    return numbers + 0.0  # turns -0.0 into 0.0, so that equal numbers have equal bytes


def _differences(kind: TableKind, columns: Iterable[str]) -> str:
    given, wanted = set(columns), set(kind.names)
    lacks = f"lacks {', '.join(sorted(wanted - given))}" if wanted - given else ""
    extra = f"has unknown {', '.join(sorted(given - wanted))}" if given - wanted else ""
    return " and ".join(text for text in (lacks, extra) if text)


def _row(kind: TableKind, table: pd.DataFrame, which: pd.Series) -> str:
    """Describe the first of the marked rows by its key."""
    first = table.loc[which.to_numpy()].iloc[0]
    return ", ".join(f"{name}={first[name]}" for name in kind.key)
