"""What a page says below a table: when and with what it was recorded, and whether that is what the code makes today."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from contextlib import chdir
from functools import cache
from pathlib import Path

from claim_tables import code_of
from table_parts import REPOSITORY

from schedlab.config import experiment
from schedlab.config.runtime.freeze import parts_of_tables
from schedlab.config.runtime.options import overrides_of
from schedlab.evaluation.recorded import RECORD, StudyRecord, outdated, read_records, read_study_record
from schedlab.evaluation.recording import planned_made
from schedlab.stages.studies import find_study

HASHED_SINCE = "2026-11-24"  # the first day on which a table was recorded by the workflow
UNDATED = "launch|prediction_errors|physics|objectives"  # of single commands, recorded at any time
OF_SCRIPTS = re.compile(rf"docs/results/(adaptation|batch|cloud|hetero|ramp)_(?!.*({UNDATED})).*\.csv")
OF_CLAIMS = re.compile(r"conf/claims/(\w+)\.yaml")
MARK = re.compile(r"\n\n\*Recorded with earlier [^\n]*\*")
Outdated = Callable[[StudyRecord], str]  # what of a record is not today's


def note(source: str, results: Path, how: Outdated | None = None) -> str:
    """Return the lines below a table that is made of a file; none for what records no results of a study.

    source  as its block names it: docs/results/...
    how     says what is not today's; None: nothing is said of it
    """
    if OF_SCRIPTS.fullmatch(source):
        return f"\n\n*Recorded before {HASHED_SINCE}, without hashes of configuration and code.*\n"
    if source == "docs/results":  # of all studies, whose rows say themselves when they were recorded
        return "\n" + "".join(_mark(record, how) for record in read_records(results).values())
    if ledger := OF_CLAIMS.fullmatch(source):
        return _mark_of_claims(ledger[1], results) if how else ""
    folder = results.joinpath(*Path(source).parent.parts[2:])
    if folder == results or not (folder / RECORD).is_file():
        return ""
    record = read_study_record(folder)
    commit = f", commit {record.commit[:12]}" if record.commit else ""
    changed = f" and {len(record.uncommitted)} changed files" if record.uncommitted else ""
    return f"\n\n*Recorded at scale {record.run} on {record.date}{commit}{changed}.*\n" + _mark(record, how)


def _mark(record: StudyRecord, how: Outdated | None) -> str:
    what = how(record) if how else ""
    return f"\n*Recorded with earlier {what} than today's: {record.study} ({record.date}).*\n" if what else ""


def _mark_of_claims(study: str, results: Path) -> str:
    """What is said below claims of which a program computed some with other code than today's."""
    with (results / f"{study}_claims.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    dates = sorted({row["date"] for row in rows if row["code"] != code_of(study)})
    what = f"claims of {study} that a program computes ({', '.join(dates)})"
    return f"\n\n*Recorded with earlier code than today's: {what}.*\n" if dates else ""


def without_marks(text: str) -> str:
    """Return a page without what depends on the code of today, which a test of the page does not compare."""
    return MARK.sub("", text)


def today() -> Outdated:
    """Return what compares a record with a run that would be planned now; composes each scale once."""

    @cache
    def plan(options: str, scale: str) -> experiment.Experiment:
        given = dict(re.findall(r"(variant|set)=('[^']*'|\S+)", options))
        values = {key: value.strip("'") for key, value in given.items()}
        cached = None if values else Path(f".schedlab/records-{scale}.json")
        overrides, variant = overrides_of(values, Path("conf")), values.get("variant", "")
        return experiment.load("conf", scale, find_study, cached, overrides=overrides, variant=variant)

    def how(record: StudyRecord) -> str:
        with chdir(REPOSITORY):
            loaded = plan(record.options, record.scale)
            if record.study not in loaded.studies or not loaded.studies[record.study].scenarios:
                return outdated(record, None)
            planned = planned_made(parts_of_tables(loaded, record.study), record.study)
        return outdated(record, record.model_copy(update=planned))

    return how
