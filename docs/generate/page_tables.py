"""Writes the tables and numbers of the documentation that come from runs, from docs/results/*.csv and the ledgers of
conf/claims/.

    python docs/generate/page_tables.py          # brings every page up to date
    python docs/generate/page_tables.py --check  # says which pages are not; status 1 where one is not

A table stands between two comments, `<!-- from docs/results/FILE: NAME -->` and `<!-- end of NAME -->`; NAME is a
key of TABLES. What a table says in addition to the numbers of runs (names, published values that are in no ledger)
is written here.

A number inside a sentence stands between two comments as well, and its comment says where it comes from: the file,
the row, the column and the format.

    <!-- value batch_rollouts.csv; trace=hpc2n, against=chosen by mean; ratio; .2f -->0.87<!-- end -->
    <!-- value claims/ramp; id=blocking-pac-ml-a; published; .3f -->0.202<!-- end -->
    <!-- value hetero_contended.csv; policy=reinforce-contended; max ratio_to_chosen_pair; .0% -->93 %<!-- end -->

One row must match, unless the column has one of `min`, `max`, `mean`, `median`, `sum`, `count` before it.
A test holds every page to what this program writes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import adaptation_tables
import batch_tables
import cloud_page_tables
import core_tables
import errata_tables
import hetero_tables
import pandas as pd
import ramp_tables
from scale_tables import scale_limits, scale_machines, scale_measured, scale_slurm, scale_worked_out
from table_parts import REPOSITORY, between, one, page, percent, seeds_of, share

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
    told = (
        f"Scale `{whole['scale']}` on {whole['cores']:.0f} cores: jobs ran for {percent(whole['busy'])} of the "
        "cores' time, "
    )
    told += f"and {computed} {percent(whole['used'])} of it"
    measured = {"cpu_of_all_s": "{:,.0f} CPU s", "wall_of_all_s": "{:,.0f} s by the clock"}
    taken = " and ".join(form.format(whole[name]) for name, form in measured.items() if pd.notna(whole[name]))
    return told + (f"; the whole run took {taken}." if taken else ".")


def headlines(results: Path) -> str:
    """What each study found in its largest recorded run, beside what was published."""
    ledgers = {
        name: {claim.id: claim for claim in ledger.claims} for name, ledger in read_claims(REPOSITORY / "conf").items()
    }
    accuracy = ledgers["adaptation"]["best-learned"]
    mean = re.search(r"mean is 0(\.\d+)", accuracy.note)
    hetero = pd.read_csv(results / "hetero_contended.csv")
    ratios = hetero.loc[hetero["policy"] == "reinforce-contended", "ratio_to_chosen_pair"]
    batch = pd.read_csv(results / "batch_rollouts.csv")
    chosen = [
        one(batch, learner="rollout", trace=x, backfill="none", against="chosen by mean") for x in ("hpc2n", "sdsc")
    ]
    ramp = pd.read_csv(results / "ramp_learning.csv", dtype={"by_seed": str})
    learned = one(ramp, scenario="published_a", policy="afterstate")
    seeds = " ".join(map(share, seeds_of(learned["by_seed"])))
    fixed = ramp[(ramp["scenario"] == "published_a") & ramp["policy"].str.startswith("fixed-")]["blocking_rate"].min()
    time = ledgers["cloud"]["time-reduction"]
    less = cloud_page_tables.less_than_start(results, "time")
    rows = [
        [
            "`adaptation`",
            "mean accuracy over five scenarios, best learned policy in reference mode",
            f"{share(accuracy.ours_reference, 4)} (chosen by this number among 18 runs, as published; their mean is "
            f"{mean[1]})",
            f"{share(accuracy.published, 4)}",
        ],
        [
            "`hetero`",
            "`contended`: bounded slowdown of REINFORCE over that of the pair chosen on validation",
            f"{ratios.mean():.2f} (seeds {ratios.min():.2f} to {ratios.max():.2f})",
            "no numbers",
        ],
        [
            "`batch`",
            "bounded slowdown of rollouts over that of the rule chosen on validation: HPC2N; SDSC-SP2",
            f"{'; '.join(map(between, chosen))} (five seeds)",
            "on its own windows alone",
        ],
        [
            "`ramp`",
            "blocking rate of learned values, published setting, beta A, PipeDream's graphs (best fixed degree "
            f"{share(fixed)})",
            f"{share(learned['blocking_rate'])} (seeds {seeds})",
            share(ledgers["ramp"]["blocking-pac-ml-a"].published),
        ],
        [
            "`cloud`",
            time.quantity,
            f"{time.ours_repaired:g} (seeds {less.min():.1f} to {less.max():.1f})",
            f"{time.published:g}",
        ],
    ]
    return page(["study", "quantity", "here", "published"], rows)


OWN = (processes_threads, workflow_cost, workflow_whole, headlines)
SCALE = (scale_limits, scale_machines, scale_measured, scale_worked_out, scale_slurm)
STUDIES = (
    adaptation_tables.TABLES,
    batch_tables.TABLES,
    cloud_page_tables.TABLES,
    core_tables.TABLES,
    errata_tables.TABLES,
    hetero_tables.TABLES,
    ramp_tables.TABLES,
)
TABLES: dict[str, Callable[[Path], str]] = {
    function.__name__: function for functions in (*STUDIES, SCALE, OWN) for function in functions
}


def value(place: str, results: Path) -> str:
    """Return the number that a marker names, as `FILE; KEY=VALUE, KEY=VALUE; [AGGREGATE] COLUMN; FORMAT`.

    Raises ValueError where the marker does not name one number, and FileNotFoundError for an unknown file.
    """
    parts = [" ".join(part.split()) for part in place.split(";")]
    if len(parts) != 4:
        raise ValueError(f"value {place}: four parts are needed: the file; the row; the column; the format")
    file, row, column, form = parts
    if file.startswith("claims/"):
        study = file.removeprefix("claims/")
        rows = pd.DataFrame([vars(claim) for claim in read_claims(REPOSITORY / "conf", study)[study].claims])
    else:
        rows = pd.read_csv(results / file)
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


def refreshed(text: str, results: Path = REPOSITORY / "docs/results") -> str:
    """Return a page with every marked table and number written from the records. Raises KeyError for a name that is
    no table.
    """
    text = VALUE.sub(lambda match: f"{match[1]}{value(match['place'], results)}{match[3]}", text)
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match['name']](results)}\n{match[4]}", text)


def pages() -> list[Path]:
    """Return the pages that may hold tables."""
    return [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Bring the pages up to date, or say which are not."""
    parser = argparse.ArgumentParser(description="Make the tables of the documentation anew from docs/results.")
    parser.add_argument("--check", action="store_true", help="change nothing; status 1 where a page is not up to date")
    check = parser.parse_args(arguments).check
    stale = [
        (path, new)
        for path in pages()
        if (new := refreshed(path.read_text(encoding="utf-8"))) != path.read_text(encoding="utf-8")
    ]
    for path, new in stale:
        print(f"{path.relative_to(REPOSITORY)}: {'is not up to date' if check else 'brought up to date'}")
        if not check:
            write_text(path, new)
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
