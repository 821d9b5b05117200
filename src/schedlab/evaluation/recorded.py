"""Recorded results: docs/results/<study>/ contains the tables of a finished run as CSV, and record.json, which states
the code, configuration and packages that made them.

`schedlab record` writes them (evaluation/recording.py). Pages, the README and the ledgers of claims read them through
this module, as well as the older tables docs/results/*.csv, which have no record.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.files import file_hash
from schedlab.config.readers import read_json
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.settings import ALL

RECORD = "record.json"
TABLES = ("summary", "comparisons", "headline", "curves")
BUDGETS = ("budget", "rival_budget")
NUMBERS = ("ratio", "ci_low", "ci_high", "share_won", "ratio_to_hindsight", "ratio_to_bound", *BUDGETS)  # of headline
EXPECTED = "a record as `schedlab record` writes it"
AGAIN = "restore the folder, or delete it and record the study again: schedlab record SCALE STUDY"


class Made(Settings):
    """The code, configuration and packages that made some results."""

    config_hash: str = setting(doc="hash of the frozen configuration")
    code_hash: str = setting(doc="hash of the code that read the configuration, and of the packages it uses")


class StudyRecord(Made):
    """The record of one study's tables."""

    form: int = setting(1, doc="version of this file's format", ge=1, le=1)
    study: str = setting(doc="name of the study")
    scale: str = setting(doc="scale of the run")
    run: str = setting(doc="name of the run: the scale, with the variant if there is one")
    options: str = setting(doc="options of --config")
    results_version: int = setting(doc="version of the study's results")
    scenarios: dict[str, Made] = setting(doc="scenario -> hashes of the configuration and code behind its scores")
    packages: dict[str, str] = setting(doc="versions of the packages that affect numbers")
    python: str = setting(doc="version of Python")
    instructions: dict[str, str] = setting(
        {}, doc="environment variables that restricted the processor instructions of libraries"
    )
    commit: str | None = setting(None, doc="commit of the code; null: not under version control")
    uncommitted: tuple[str, ...] = setting((), doc="files that differ from the commit")
    date: str = setting(doc="day of recording, in UTC")
    machine: dict[str, int | str | None] = setting(
        doc="processor, cores and operating system of the machine that summarised the run"
    )
    cpu_seconds: dict[str, float] = setting(doc="workflow rule -> CPU time of its jobs")
    tables: dict[str, str] = setting(doc="file -> SHA-256")


def read_study_record(folder: Path) -> StudyRecord:
    """Read the record in a folder. Raises UserError(s) if it is missing or broken, or if a table differs from the
    recorded one.
    """
    path = folder / RECORD
    if not path.is_file():
        raise UserError("there is no record", where=str(path), expected=EXPECTED, remedy=AGAIN)
    values = read_json(path, EXPECTED)
    if not isinstance(values, dict) or "form" not in values:
        raise UserError("is no record of a study", where=str(path), expected=EXPECTED, remedy=AGAIN)
    try:
        record = validate(StudyRecord, values, lambda keys: f"{path}: {'.'.join(map(str, keys))}")
    except UserErrors as several:
        raise UserErrors(
            UserError(error.what, where=error.where, expected=error.expected, remedy=error.remedy or AGAIN)
            for error in several.errors
        ) from None
    for name, digest in record.tables.items():
        if not (folder / name).is_file() or file_hash(folder / name) != digest:
            what = "is not the table that was recorded" if (folder / name).is_file() else "is missing"
            raise UserError(what, where=str(folder / name), expected=f"SHA-256 {digest}", remedy=AGAIN)
    return record


def read_records(results: Path) -> dict[str, StudyRecord]:
    """Return name of the folder -> record for all studies recorded in docs/results. Raises UserError(s), also for two
    records of one run of a study.
    """
    found: dict[str, StudyRecord] = {}
    places: dict[tuple[str, str], Path] = {}
    for path in sorted(results.glob(f"*/{RECORD}")):
        record = read_study_record(path.parent)
        key = (record.study, record.options)
        if other := places.get(key):
            what = f"it records the study '{record.study}' ({record.options}), and so does {other}"
            raise UserError(
                what, where=str(path), expected="one record of a run", remedy="delete one of the two folders"
            )
        places[key] = path
        found[path.parent.name] = record
    return found


def table_path(results: Path, name: str) -> Path:
    """Return the file of a recorded table: 'cloud/summary' of a study's record, or an older 'batch_rewards.csv'. Raises
    UserError if it does not exist.
    """
    path = results / (name if name.endswith(".csv") else f"{name}.csv")
    if not path.is_file():
        known = [*(f"{file.parent.name}/{file.stem}" for file in results.glob("*/*.csv"))]
        known += [file.name for file in results.glob("*.csv")]
        raise UserError(f"there is no recorded table '{name}'", where=str(path), remedy=did_you_mean(name, known))
    return path


def read_rows(results: Path, name: str) -> tuple[Mapping[str, str], ...]:
    """Return the rows of a recorded table as texts by column; a missing value is empty. Raises UserError(s), also if a
    study's table differs from the recorded one.
    """
    path = table_path(results, name)
    return _rows(path, path.stat().st_mtime_ns, not name.endswith(".csv"))


@lru_cache(maxsize=64)
def _rows(path: Path, changed_ns: int, of_study: bool) -> tuple[Mapping[str, str], ...]:
    del changed_ns
    if of_study:
        read_study_record(path.parent)
    with path.open(encoding="utf-8", newline="") as lines:
        return tuple(csv.DictReader(lines))


def recorded_headline(results: Path, study: str) -> list[dict[str, Any]]:
    """Return the rows of a study's recorded headline, with numbers as floats (None: missing); empty if no headline is
    recorded. Raises UserError(s).
    """
    if not (results / study / "headline.csv").is_file():
        return []
    rows = read_rows(results, f"{study}/headline")
    return [{**row, **{name: float(row[name]) if row[name] else None for name in NUMBERS}} for row in rows]


def recorded_answers(results: Path, study: str) -> list[dict[str, Any]]:
    """Return the rows of a study's recorded headline that compare the policy with the best of all rivals. For a
    question with several scenarios, only the row of their mean is returned.
    """
    rows = [row for row in recorded_headline(results, study) if row["group"] == ALL]
    scenarios = {row["question"]: 0 for row in rows}
    for row in rows:
        scenarios[row["question"]] = max(scenarios[row["question"]], row["scenario"].count("+"))
    return [row for row in rows if row["scenario"].count("+") == scenarios[row["question"]]]


def outdated(record: StudyRecord, today: StudyRecord | None) -> str:
    """Return what has changed since a record was made: 'code', 'configuration', 'code and configuration', or ''.

    today  the record that a run of the same scale would have now (recording.planned_made); None: the study no longer
           exists. Only scenarios that can run on this machine are compared.
    """
    if today is None:
        return "configuration"
    both = [(made, today.scenarios[name]) for name, made in record.scenarios.items() if name in today.scenarios]
    if record.scenarios.keys() == today.scenarios.keys():
        both.append((record, today))
    gone = record.results_version != today.results_version
    configuration = gone or any(made.config_hash != now.config_hash for made, now in both)
    code = any(made.code_hash != now.code_hash for made, now in both)
    return " and ".join([*["code"] * code, *["configuration"] * configuration])
