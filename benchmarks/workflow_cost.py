"""What the jobs of the workflow took, by study and rule, from the benchmark files of a run: what docs/scale.md and performance.md tell.

    snakemake --cores 2 all --config scale=small        # in a fresh copy, on an idle machine
    python benchmarks/workflow_cost.py results/small --cores 2 [--wall SECONDS] [--cpu SECONDS] [--out docs/results/workflow_cost.csv]

`busy` is the share of the cores' time that jobs ran, and `used` the share that they computed: CPU seconds over cores times the clock.
Without --wall the clock runs from the first job's start to the end of the last, which leaves out Snakemake's start. Snakemake looks at the
CPU time of a job now and then, so that the last seconds of each are missing, and does not count its own: what `/usr/bin/time -v` tells of
the whole run is --cpu, of which `used` is taken then.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from schedlab.stages.report import job_costs

OUT = Path(__file__).resolve().parent.parent / "docs/results/workflow_cost.csv"
COLUMNS = ("study", "rule", "jobs", "cpu_s", "wall_s", "longest_s", "max_rss_mib")


def main() -> None:
    """Write a row a study and rule, and the whole, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the results of a scale")
    parser.add_argument("--cores", type=int, required=True, help="cores that the run was given")
    parser.add_argument("--wall", type=float, help="seconds that it took")
    parser.add_argument("--cpu", type=float, help="CPU seconds that it took, Snakemake's own included")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    rows = rows_of(given.results)
    if not rows:
        parser.error(f"{given.results} holds no benchmark files")
    wall = given.wall or clock(given.results)
    whole = rows[-1]
    slots = given.cores * wall
    busy, used = whole["wall_s"] / slots, (given.cpu or whole["cpu_s"]) / slots
    with given.out.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*COLUMNS, "busy", "used"])
        for row in rows:
            shares = [f"{share:.3f}" if row is whole else "" for share in (busy, used)]
            table.writerow([*(_told(row[name]) for name in COLUMNS), *shares])
    print(f"{whole['jobs']} jobs, {whole['cpu_s']:.0f} CPU s in {wall:.0f} s on {given.cores} cores: busy {busy:.0%}, used {used:.0%}")


def rows_of(results: Path) -> list[dict[str, str | float]]:
    """Return a row a study and rule, those that cost most first, and one of all; none where there is no benchmark."""
    rows = [_row(study, rule, costs) for (study, rule), costs in job_costs(results).items()]
    rows.sort(key=lambda row: (-row["cpu_s"], row["study"], row["rule"]))
    return [*rows, _row("all", "", [one for costs in job_costs(results).values() for one in costs])] if rows else []


def _row(study: str, rule: str, costs: list[dict[str, float]]) -> dict[str, str | float]:
    seconds, cpu, memory = ([one[key] for one in costs] for key in ("s", "cpu_time", "max_rss"))
    sums = {"jobs": len(costs), "cpu_s": sum(cpu), "wall_s": sum(seconds)}
    return {"study": study, "rule": rule, **sums, "longest_s": max(seconds), "max_rss_mib": max(memory)}


def clock(results: Path) -> float:
    """Return the seconds from the start of the first job to the end of the last."""
    costs = [one for each in job_costs(results).values() for one in each]
    return max(one["ended"] for one in costs) - min(one["ended"] - one["s"] for one in costs)


def _told(value: str | float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
