"""Readers of the files that a launch (or HDeepRM, or any Batsim) wrote into a directory: tables, logs, JSON."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.readers import read_json
from schedlab.platforms.hierarchy import Hierarchy, read_hierarchy
from schedlab.studies.hetero.hdeeprm.launch_inputs import RESOURCES
from schedlab.studies.hetero.hdeeprm.launch_outputs import ACTION_NAMES, OVERUSE, PROBABILITIES
from schedlab.workloads.batsim_file import read_batsim

FIELDS = ("req_time", "size", "mem", "mem_bw")
STATISTICS = ("min", "max", "mean", "median", "p95", "p99")


def read_schedule(path: Path, columns: Sequence[str]) -> dict[str, float]:
    """Return the row of a `_schedule.csv` by column name. Raises UserError if the file cannot be read, has no row, or
    lacks a column or its number.
    """
    expected = "Batsim's out_schedule.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            row = next(csv.DictReader(file), None)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, error, expected) from None
    if row is None:
        raise UserError("has no row", where=str(path), expected=expected)
    missing = [name for name in columns if name not in row]
    if missing:
        remedy = "energy is counted where Batsim runs with -E" if "consumed_joules" in missing else ""
        raise UserError(f"has no column {', '.join(missing)}", where=str(path), expected=expected, remedy=remedy)
    return {name: _number(row[name], f"{path}: {name}") for name in columns}


def read_log(path: Path) -> list[float]:
    """Return the numbers of a log, one per line. Raises UserError with the line that holds no number."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error, "a log of a launch in this directory") from None
    if not lines:
        raise UserError("is empty", where=str(path), expected="a number for each episode")
    return [_number(line, f"{path}: line {number}") for number, line in enumerate(lines, 1)]


def read_preferences(folder: Path) -> tuple[list[str], list[list[float]]]:
    """Return the actions' names and the probabilities at the first decision of each episode. Raises UserError if the
    file is not a list of rows of numbers.
    """
    path = folder / PROBABILITIES
    rows = read_json(path, "the probabilities that a launch of a learning agent writes")
    listed = isinstance(rows, list) and all(isinstance(row, list) for row in rows)
    if not listed or not rows or not all(type(value) in (int, float) for row in rows for value in row):
        raise UserError("is no list of rows of numbers", where=str(path), expected="a row for each episode")
    width = len(rows[-1])
    rows = [row for row in rows if len(row) == width]  # without rows of earlier launches with other actions
    names: Any = None
    if (folder / ACTION_NAMES).is_file():
        found = read_json(folder / ACTION_NAMES, "the names of the actions")
        names = found.get("actions") if isinstance(found, dict) else None
    fits = isinstance(names, list) and len(names) == width
    return [str(name) for name in names] if fits else [f"action {number}" for number in range(width)], rows


def read_overuse(folder: Path) -> dict[str, Any]:
    """Return overutilizations.json: dates (s) of `core` and `mem`, `spans` (processor, start in s, duration in s), and
    the number of `processors`.

    HDeepRM may leave a span open by writing its start alone; it lasts until the end, and its duration is None. Raises
    UserError if the file has another form.
    """
    path = folder / OVERUSE
    values = read_json(path, "what a launch writes")
    try:
        procs = values["mem_bw"]["procs"]
        spans = [(int(number), *_span(span)) for number, entry in procs.items() for span in entry["values"]]
        dates = {key: [float(date) for date in values[key]] for key in ("core", "mem")}
        spans.sort(key=lambda span: span[:2])
        return {**dates, "spans": spans, "processors": int(values["mem_bw"]["nb_procs"])}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"is not of the form that a launch writes ({type(error).__name__}: {error})"
        raise UserError(what, where=str(path), expected="core, mem and mem_bw") from None


def read_resources(folder: Path) -> Hierarchy | None:
    """Return the platform of a launch; None if its file does not exist."""
    return read_hierarchy(folder / RESOURCES) if (folder / RESOURCES).is_file() else None


def run_jobstat(arguments: argparse.Namespace) -> int:
    """Print a statistic over the jobs of a workload file and return the exit status."""
    print(f"{job_statistic(arguments.workload, arguments.field, arguments.statistic):.12g}")
    return 0


def job_statistic(path: Path, field: str, statistic: str) -> float:
    """Return a statistic of a field over a workload's jobs: req_time (s), size (cores), mem (MB), mem_bw (GB/s).

    Raises UserError for an unknown field or statistic, a workload without jobs, and a job without such a number.
    """
    if field not in FIELDS:
        raise UserError(f"unknown field '{field}'", where="jobstat", remedy=did_you_mean(field, FIELDS))
    if statistic not in STATISTICS:
        raise UserError(f"unknown statistic '{statistic}'", where="jobstat", remedy=did_you_mean(statistic, STATISTICS))
    workload = read_batsim(path)
    if not workload.jobs:
        raise UserError("has no job", where=str(path), expected="at least one")
    values = []
    for job in workload.jobs:
        value = job["res"] if field == "size" else workload.profile_of(job).get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UserError(f"{field} is {value!r}", where=f"{path}: profile {job['profile']}", expected="a number")
        values.append(float(value))
    found: dict[str, np.ufunc | Any] = {"min": np.min, "max": np.max, "mean": np.mean, "median": np.median}
    return float(found[statistic](values) if statistic in found else np.percentile(values, int(statistic[1:])))


def _unreadable(path: Path, error: Exception, expected: str) -> UserError:
    return UserError(f"cannot be read: {getattr(error, 'strerror', None) or error}", where=str(path), expected=expected)


def _span(span: Any) -> tuple[float, float | None]:
    if isinstance(span, list):
        start, duration = span
        return float(start), float(duration)
    return float(span), None


def _number(text: str | None, where: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UserError(f"'{text}' is no number", where=where, expected="a number")
    return value
