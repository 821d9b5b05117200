"""The simulation table, with the outcome of every sequence of growth decisions, and one scenario of it as arrays."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import read_table

if TYPE_CHECKING:
    import pandas as pd

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # one digit for each action, in the order of the actions
UNIT = ("job", "replicate")
METRICS = ("train_loss", "train_accuracy", "validation_loss", "validation_accuracy", "test_loss", "test_accuracy")
NUMBERS = (*UNIT, *METRICS, "epochs", "parameters", "start", "total_time", "seconds_charged", "test_accuracy_last3")
NUMBERED = ("time_left_", "slope_")  # one column for each decision
LARGEST = 1e100  # largest absolute value in a table: squares of values are summed
LARGEST_WHOLE = 2.0**53  # a float represents every whole number up to this one exactly


@dataclass(frozen=True)
class DecisionTree:
    """All sequences of `decisions` actions. There are `actions` actions; the last one does nothing.

    Sequences are in lexicographic order. Prefixes (the states in which a decision is taken) are ordered by length, then
    lexicographically; the first one is empty.
    """

    actions: int
    decisions: int

    def __post_init__(self) -> None:
        if not 2 <= self.actions <= len(DIGITS) or self.decisions < 1:
            what = f"{self.actions} actions, {self.decisions} decisions"
            raise UserError(what, expected=f"2 to {len(DIGITS)} actions and at least 1 decision")

    @cached_property
    def sequences(self) -> tuple[str, ...]:
        """The actions ** decisions sequences, a digit for each decision."""
        return tuple("".join(digits) for digits in product(DIGITS[: self.actions], repeat=self.decisions))

    @cached_property
    def prefixes(self) -> tuple[str, ...]:
        """The 1 + actions + ... + actions ** (decisions - 1) states."""
        lengths = range(self.decisions)
        return tuple("".join(digits) for length in lengths for digits in product(DIGITS[: self.actions], repeat=length))

    @cached_property
    def choices(self) -> np.ndarray:
        """Action of each decision of each sequence: (sequences, decisions) integers."""
        return np.array([[DIGITS.index(digit) for digit in sequence] for sequence in self.sequences])

    @cached_property
    def states(self) -> np.ndarray:
        """Index of the prefix in which each decision of each sequence is taken: (sequences, decisions) integers."""
        position = {prefix: index for index, prefix in enumerate(self.prefixes)}
        return np.array([[position[sequence[:step]] for step in range(self.decisions)] for sequence in self.sequences])

    @property
    def nothing(self) -> str:
        """The sequence without any growth."""
        return DIGITS[self.actions - 1] * self.decisions

    def index(self, sequence: str) -> int:
        """Return the position of a sequence. Raises UserError if it is not in this tree."""
        valid = DIGITS[: self.actions]
        if len(sequence) != self.decisions or any(digit not in valid for digit in sequence):
            what = f"'{sequence}' is no sequence here"
            raise UserError(what, expected=f"{self.decisions} digits from 0 to {valid[-1]}")
        return int(np.dot([valid.index(digit) for digit in sequence], self.actions ** np.arange(self.decisions)[::-1]))

    def text(self, actions: Sequence[int]) -> str:
        """Return the digits of a sequence of actions."""
        return "".join(DIGITS[action] for action in actions)


@dataclass(frozen=True)
class TableView:
    """One scenario's table as arrays; a unit is one replicate of one job.

    units      (job, replicate) of each unit
    reward     (units, sequences)  larger is better
    time_left  (units, prefixes)   seconds of the budget that remain when the decision is taken
    metrics    name -> (units, sequences)
    slope      (units, prefixes)   increase of the validation accuracy per epoch; None: not in the table
    """

    scenario: str
    tree: DecisionTree
    units: tuple[tuple[int, int], ...]
    reward: np.ndarray
    time_left: np.ndarray
    metrics: Mapping[str, np.ndarray] = field(default_factory=dict)
    slope: np.ndarray | None = None

    def ranks(self, values: np.ndarray) -> np.ndarray:
        """Return each value's rank among those of the last axis: 1 for the largest, equal values share the smallest."""
        return 1 + (values[..., None, :] > values[..., :, None]).sum(-1)

    def subset(self, rows: Sequence[int]) -> TableView:
        """Return the view restricted to some units."""
        keep = np.asarray(rows, dtype=int)
        metrics = {name: values[keep] for name, values in self.metrics.items()}
        units = tuple(self.units[row] for row in keep)
        slope = None if self.slope is None else self.slope[keep]
        return TableView(self.scenario, self.tree, units, self.reward[keep], self.time_left[keep], metrics, slope)


def tree_of(table: pd.DataFrame, where: str = "table") -> DecisionTree:
    """Return the tree of the sequences in the column `sequence`.

    Raises UserError if their lengths differ, or if a character is no digit of an action.
    """
    lengths = set(table["sequence"].str.len())
    found = table["sequence"].nunique()
    if len(lengths) != 1 or not found:
        raise UserError(f"sequences of {sorted(lengths)} digits", where=f"{where}: sequence", expected="one length")
    decisions = int(lengths.pop())
    actions = max(DIGITS.find(digit) for sequence in set(table["sequence"]) for digit in sequence) + 1
    if min(DIGITS.find(digit) for sequence in set(table["sequence"]) for digit in sequence) < 0:
        what = "a sequence holds something that is no action"
        raise UserError(what, where=f"{where}: sequence", expected="digits of actions")
    return DecisionTree(max(actions, 2), decisions)


def view(
    table: pd.DataFrame, metric: str, where: str = "table", tree: DecisionTree | None = None, timed: bool = True
) -> TableView:
    """Return one scenario's rows as arrays. The reward is `metric`, or its negative if that is a loss.

    tree: the expected tree; None: that of the sequences in the table. timed: the table must contain the time left at
    each decision; without `timed`, a missing time is NaN. Raises UserError for missing columns, missing or duplicate
    sequences, values that are not finite, and sequences that are not in the tree.
    """
    import pandas as pd

    need_columns(table, ("sequence", metric), where)
    tree = tree or tree_of(table, where)
    times = [f"time_left_{decision + 1}" for decision in range(tree.decisions)]
    if timed:
        need_columns(table, times, where)
    missing = {name: 0 for name in UNIT if name not in table} | {name: math.nan for name in times if name not in table}
    table = table.assign(**missing)
    units = sorted(
        {(int(job), int(replicate)) for job, replicate in zip(table["job"], table["replicate"], strict=True)}
    )
    _check_complete(table, tree, units, where)
    whole = pd.MultiIndex.from_tuples([(*unit, sequence) for unit in units for sequence in tree.sequences])
    ordered = table.set_index([*UNIT, "sequence"]).loc[whole]
    _check_finite(ordered, (metric, *times) if timed else (metric,), where)
    shape = (len(units), len(tree.sequences))
    metrics = {name: ordered[name].to_numpy(dtype=float).reshape(shape) for name in METRICS if name in ordered}
    values = ordered[metric].to_numpy(dtype=float).reshape(shape)
    scenario = str(table["scenario"].iloc[0]) if "scenario" in table else "-"
    return TableView(
        scenario=scenario,
        tree=tree,
        units=tuple(units),
        reward=-values if metric.endswith("loss") else values,
        time_left=_at_prefixes(ordered, "time_left", tree, len(units)),
        metrics=metrics,
        slope=_at_prefixes(ordered, "slope", tree, len(units)) if f"slope_{tree.decisions}" in ordered else None,
    )


def _at_prefixes(ordered: pd.DataFrame, name: str, tree: DecisionTree, units: int) -> np.ndarray:
    """Return the values of the columns name_1 ... name_D at each prefix: (units, prefixes).

    The values at a prefix are those of the sequence that continues it with action 0.
    """
    columns = np.stack([ordered[f"{name}_{step + 1}"].to_numpy(dtype=float) for step in range(tree.decisions)], axis=1)
    columns = columns.reshape(units, len(tree.sequences), tree.decisions)
    rows = [tree.index(prefix.ljust(tree.decisions, "0")) for prefix in tree.prefixes]
    return columns[:, rows, [len(prefix) for prefix in tree.prefixes]]


def need_columns(table: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    """Raise UserError if a table lacks a column."""
    for column in columns:
        if column not in table:
            what = f"column '{column}' is missing"
            raise UserError(what, where=where, remedy=did_you_mean(column, map(str, table.columns)))


def _check_complete(table: pd.DataFrame, tree: DecisionTree, units: Sequence[tuple[int, int]], where: str) -> None:
    wanted = set(tree.sequences)
    for unit in units:
        rows = table[(table["job"] == unit[0]) & (table["replicate"] == unit[1])]["sequence"]
        place = f"{where}, job {unit[0]}, replicate {unit[1]}"
        if strange := sorted(set(rows) - wanted):
            what = f"'{strange[0]}' is no sequence of {tree.decisions} out of {tree.actions} actions"
            raise UserError(what, where=place)
        if missing := sorted(wanted - set(rows)):
            raise UserError(
                f"{len(missing)} of {len(wanted)} sequences are missing, the first '{missing[0]}'",
                where=place,
                expected=f"every sequence once, {len(wanted)} rows",
                remedy="let the simulation finish, or take the whole file",
            )
        if len(rows) != len(wanted):
            twice = rows[rows.duplicated()].iloc[0]
            expected = "every sequence once"
            remedy = "select one experiment or scenario"
            raise UserError(f"sequence '{twice}' stands there twice", where=place, expected=expected, remedy=remedy)


def _check_finite(table: pd.DataFrame, columns: Sequence[str], where: str) -> None:
    import pandas as pd

    for column in columns:
        values = pd.to_numeric(table[column], errors="coerce").to_numpy(dtype=float)
        if not np.isfinite(values).all():
            first = int(np.flatnonzero(~np.isfinite(values))[0])
            what = f"sequence '{table.index[first][-1]}' has no finite value but '{table[column].iloc[first]}'"
            raise UserError(what, where=f"{where}: {column}", expected="a number in every row")


def simulation_table(
    epochs: pd.DataFrame, tree: DecisionTree, window: int = 1, every: int = 1, **constants: str
) -> pd.DataFrame:
    """Return the simulation table of a table of epochs, with a row for each scenario, job, replicate and sequence.

    epochs     one row for each epoch from the adaptation point on: scenario, job, replicate, sequence, epoch,
               parameters, time_left (s, before the epoch), train_seconds, eval_seconds and the metrics, NaN if an epoch
               was not evaluated; slope and slope_after if they were recorded, from which slope_1 ... slope_D at the
               decisions are taken
    window     metrics are means over the last `window` evaluated epochs
    every      decisions are `every` epochs apart
    constants  further columns, such as model, data and timing
    """
    import pandas as pd

    rows = []
    for key, run in epochs.groupby(["scenario", *UNIT, "sequence"], sort=True):
        run = run.sort_values("epoch")
        seconds = run["train_seconds"] + run["eval_seconds"]
        row = dict(zip(("scenario", *UNIT, "sequence"), key, strict=True))
        left = [*run["time_left"], float(run["time_left"].iloc[-1] - seconds.iloc[-1])]
        row |= {f"time_left_{step + 1}": left[min(step * every, len(left) - 1)] for step in range(tree.decisions)}
        if "slope" in run:
            slopes = [*run["slope"], float(run["slope_after"].iloc[-1])]
            row |= {f"slope_{step + 1}": slopes[min(step * every, len(slopes) - 1)] for step in range(tree.decisions)}
        row |= {"epochs": len(run), "parameters": int(run["parameters"].iloc[-1])}
        row["seconds_charged"] = float(seconds.sum())
        names = [name for name in METRICS if name in run]
        evaluated = run.dropna(subset=[name for name in names if not name.startswith("train")], how="all")
        row |= {name: float(evaluated[name].astype(float).tail(window).mean()) for name in names}
        rows.append(row)
    table = pd.DataFrame(rows)
    for position, (name, value) in enumerate(constants.items()):
        table.insert(1 + position, name, value)
    return table


def read_simulations(path: Path | str) -> pd.DataFrame:
    """Return a simulation table from a CSV or Parquet file. Raises UserError if it is unreadable or invalid."""
    return named_sequences(read_rows(Path(path)), path)


def named_sequences(table: pd.DataFrame, path: Path | str) -> pd.DataFrame:
    """Return a table with sequences as text and numeric columns as numbers. Raises UserError for other values."""
    need_columns(table, ("sequence",), str(path))
    columns = [str(name) for name in table if name in NUMBERS or str(name).startswith(NUMBERED)]
    table = with_numbers(table, columns, path)
    return table.assign(sequence=table["sequence"].astype(str).str.strip())


def read_rows(path: Path) -> pd.DataFrame:
    """Return the rows of a CSV or Parquet file without checking their values. Raises UserError if the file is
    unreadable or has no rows.
    """
    table = _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path)
    if table.empty:
        expected = "a row for each sequence"
        raise UserError("the table has no rows", where=str(path), expected=expected, remedy="take the whole file")
    return table


def _unreadable(path: Path, error: Exception, expected: str) -> UserError:
    return UserError(f"the table cannot be read: {str(error).splitlines()[0]}", where=str(path), expected=expected)


def _read_csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    texts = {"seq": str, "sequence": str}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = _check_fields(path, file)
            file.seek(0)
            return pd.read_csv(file, header=0, names=header or None, dtype=texts, skipinitialspace=True)
    except OSError as error:
        expected = "a CSV or Parquet file"
        what = f"the table cannot be read: {error.strerror}"
        raise UserError(what, where=str(path), expected=expected) from None
    except (ValueError, csv.Error) as error:  # pandas' parsing errors are ValueErrors
        raise _unreadable(path, error, "comma-separated values") from None


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
        raise _unreadable(path, error, "a Parquet table") from None


def with_numbers(table: pd.DataFrame, columns: Sequence[str], path: Path | str) -> pd.DataFrame:
    """Return a table with numbers in some columns. Raises UserError for text, truth values and very large numbers
    there.
    """
    for name in columns:
        column, whole = table[name], name in UNIT
        plain = column.dtype.kind in "iuf"
        numbers = column.to_numpy(dtype=float) if plain else np.array([_number(value) for value in column])
        odd = np.abs(numbers) > (LARGEST_WHOLE if whole else LARGEST)
        if whole:
            odd |= ~np.isfinite(numbers) | (numbers != np.floor(numbers))
        else:
            odd |= np.isnan(numbers) & column.notna().to_numpy()
        if odd.any():
            expected = "whole numbers" if whole else f"numbers up to {LARGEST:g}"
            raise UserError(f"holds '{column[odd].iloc[0]}'", where=f"{path}: {name}", expected=expected)
        if not plain:
            table = table.assign(**{name: numbers})
    return table


def _number(value: object) -> float:
    """Return a value as a number; NaN if it is no number."""
    try:
        return math.nan if isinstance(value, bool | np.bool_) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _check_fields(path: Path, file: TextIO) -> list[str]:
    """Return the names of the columns.

    Raises UserError for a line with too few or too many fields, which pandas would fill with missing values or report
    in another form.
    """
    lines = csv.reader(file, skipinitialspace=True)
    header = [name.strip() for name in next(lines, [])]
    for line in lines:
        if line and len(line) != len(header):
            what = f"the line has {len(line)} field{'' if len(line) == 1 else 's'}"
            expected = f"{len(header)}, as the first line names"
            remedy = "take the whole file; this one may be cut off"
            raise UserError(what, where=f"{path}: line {lines.line_num}", expected=expected, remedy=remedy)
    return header
