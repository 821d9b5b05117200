"""Writes the tables and numbers of the documentation that come from runs, from docs/results/*.csv and the ledgers of
conf/claims/.

    python docs/generate/page_tables.py          # brings every page up to date
    python docs/generate/page_tables.py --check  # says which pages are not; status 1 where one is not

A table stands between two comments, `<!-- from docs/results/FILE: NAME -->` and `<!-- end of NAME -->`; NAME is a
key of TABLES. What a table says in addition to the numbers of runs (names, published values that are in no ledger)
is written here.

A number inside a sentence stands between two comments as well, and its comment says where it comes from: the file,
the row, the column and the format.

    <!-- value hetero/summary.csv; scenario=trio, policy=easy, metric=makespan, split=test; value; ,.0f -->5<!-- end -->
    <!-- value claims/ramp; id=blocking-pac-ml-a; published; .3f -->0.202<!-- end -->
    <!-- value interval_coverage.csv; law=skewness 6.2, seeds=5; max coverage; .0% -->96 %<!-- end -->

One row must match, unless the column has one of `min`, `max`, `mean`, `median`, `sum`, `count` before it.
Below a table of recorded results stands when they were recorded, and where the code or the configuration has changed
since, a line that says so (records.py). A test holds every page to what this program writes, that line left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import adaptation_tables
import batch_tables
import cloud_page_tables
import core_tables
import headline_tables
import hetero_tables
import interval_coverage
import pandas as pd
import ramp_tables
from records import Outdated, note, today, without_marks
from scale_tables import scale_limits, scale_machines, scale_measured, scale_slurm, scale_worked_out
from table_parts import REPOSITORY, one, page, percent
from tutorials import main as write_tutorials

from schedlab.config.files import write_text
from schedlab.evaluation.claims import read_claims

BLOCK = re.compile(r"(<!-- from (?P<source>\S+): (?P<name>\w+) -->\n).*?(<!-- end of (?P=name) -->)", flags=re.S)
VALUE = re.compile(r"(<!-- value (?P<place>[^>]*?) -->)[^<]*(<!-- end -->)")
AGGREGATES = ("min", "max", "mean", "median", "sum", "count")


def processes_threads(results: Path) -> str:
    """CPU time of learning by processes and threads."""
    rows = []
    for row in pd.read_csv(results / "processes_threads.csv").itertuples():
        each = 1e3 * row.cpu_seconds / row.decisions
        taken = [f"{row.cpu_seconds:.1f} s", f"{each:.2f} ms", f"{row.wall_seconds:.1f} s"]
        rows.append([f"{row.processes}", f"{row.threads}", f"{row.decisions:,}", *taken])
    return page(
        ["processes", "threads of each", "decisions learned from", "CPU time", "of a decision", "clock"], rows, "rrrrrr"
    )


def workflow_cost(results: Path) -> str:
    """Time and memory of the workflow's jobs by study and rule, and of all."""
    rows = []
    for row in pd.read_csv(results / "workflow_cost.csv").itertuples():
        name = f"`{row.rule}`" if isinstance(row.rule, str) else ""
        numbers = [
            f"{row.jobs}",
            f"{row.cpu_s:,.0f} s",
            f"{row.wall_s:,.0f} s",
            f"{row.longest_s:.0f} s",
            f"{row.max_rss_mib:,.0f} MiB",
        ]
        rows.append([row.study, name, *numbers])
    return page(["study", "rule", "jobs", "CPU time", "clock, all jobs", "longest", "most memory"], rows, "llrrrrr")


def workflow_whole(results: Path) -> str:
    """A sentence: how busy the workflow kept its cores, and what the whole run took where that was measured beside
    it.
    """
    whole = one(pd.read_csv(results / "workflow_cost.csv"), study="all")
    computed = "their own CPU time was" if pd.isna(whole["cpu_of_all_s"]) else "CPU time, Snakemake's own included, was"
    measured = {"cpu_of_all_s": "{:,.0f} CPU s", "wall_of_all_s": "{:,.0f} s by the clock"}
    taken = " and ".join(form.format(whole[name]) for name, form in measured.items() if pd.notna(whole[name]))
    text = f"Scale `{whole['scale']}` ran on {whole['cores']:.0f} cores" + (f" and took {taken}. " if taken else ". ")
    text += f"Jobs ran for {percent(whole['busy'])} of the cores' time, "
    return text + f"and {computed} {percent(whole['used'])} of it."


OWN = (processes_threads, workflow_cost, workflow_whole)
SCALE = (scale_limits, scale_machines, scale_measured, scale_worked_out, scale_slurm)
STUDIES = (
    adaptation_tables.TABLES,
    batch_tables.TABLES,
    cloud_page_tables.TABLES,
    core_tables.TABLES,
    headline_tables.TABLES,
    hetero_tables.TABLES,
    interval_coverage.TABLES,
    ramp_tables.TABLES,
)
TABLES: dict[str, Callable[[Path], str]] = {
    function.__name__: function for functions in (*STUDIES, SCALE, OWN) for function in functions
}


@cache
def _claims(study: str) -> pd.DataFrame:
    return pd.DataFrame([vars(claim) for claim in read_claims(REPOSITORY / "conf", study)[study].claims])


@cache
def _recorded(file: Path) -> pd.DataFrame:
    return pd.read_csv(file, low_memory=False)


def value(place: str, results: Path) -> str:
    """Return the number that a marker names, as `FILE; KEY=VALUE, KEY=VALUE; [AGGREGATE] COLUMN; FORMAT`.

    Raises ValueError where the marker does not name one number, and FileNotFoundError for an unknown file.
    """
    parts = [" ".join(part.split()) for part in place.split(";")]
    if len(parts) != 4:
        raise ValueError(f"value {place}: four parts are needed: the file; the row; the column; the format")
    file, row, column, form = parts
    rows = _claims(file.removeprefix("claims/")) if file.startswith("claims/") else _recorded(results / file)
    aggregate, _, name = column.rpartition(" ")
    keys = [condition.partition("=")[::2] for condition in row.split(", ") if condition]
    unknown = [key for key in [name, *(key for key, _ in keys)] if key not in rows]
    if unknown or (aggregate and aggregate not in AGGREGATES):
        raise ValueError(f"value {place}: {(unknown or [aggregate])[0]} is no column or aggregate")
    for key, wanted in keys:
        rows = rows[rows[key].map(str) == wanted]
    if rows.empty or (len(rows) > 1 and not aggregate):
        raise ValueError(f"value {place}: {len(rows)} rows have these values")
    number = rows[name].agg(aggregate) if aggregate else rows[name].item()
    return format(number, form).replace("%", " %")


def refreshed(text: str, results: Path = REPOSITORY / "docs/results", how: Outdated | None = None) -> str:
    """Return a page with every marked table and number written from the records. Raises KeyError for a name that is
    no table.

    how  says what of a record is not today's; None: no page says so
    """

    def block(match: re.Match[str]) -> str:
        table = TABLES[match["name"]](results)
        if not table.startswith("Not recorded yet"):
            table += note(match["source"], results, how)
        return f"{match[1]}{table.rstrip()}\n{match[4]}"

    text = VALUE.sub(lambda match: f"{match[1]}{value(match['place'], results)}{match[3]}", text)
    return BLOCK.sub(block, text)


def pages() -> list[Path]:
    """Return the pages that may hold tables."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def is_stale(text: str) -> bool:
    """Whether a page is not what the records make, whatever it says of the code of today."""
    return without_marks(refreshed(text)) != without_marks(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring the pages up to date, or say which are not."""
    parser = argparse.ArgumentParser(description="Make the tables of the documentation from docs/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 where a page is not up to date")
    check, stale, how = parser.parse_args(arguments).check, False, today()
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if check and is_stale(text):
            stale = True
            print(f"{path.relative_to(REPOSITORY)}: is not up to date")
        elif not check and (new := refreshed(text, how=how)) != text:
            print(f"{path.relative_to(REPOSITORY)}: brought up to date")
            write_text(path, new)
    if not check:
        write_tutorials(["first_look"])  # the tutorial that prints recorded results
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
