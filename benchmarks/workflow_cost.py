"""What the jobs of the workflow took, by study and rule, from the benchmark files of a run: for docs/notebook/scale.md
and performance.md.

    snakemake --cores 2 all --config scale=small        # in a fresh copy, on an idle machine
    python benchmarks/workflow_cost.py results/small --cores 2 [--wall SECONDS] [--cpu SECONDS] [--out
        docs/results/workflow_cost.csv]

The row `all` also names the scale and the cores, and holds --wall and --cpu. `busy` is the share of the cores' time
that jobs ran, and `used` the share that they computed: CPU seconds over cores times the clock. Without --wall the clock
runs from the first job's start to the end of the last, which leaves out Snakemake's start. Snakemake looks at the CPU
time of a job now and then, so that the last seconds of each are missing, and does not count its own: what
`/usr/bin/time -v` tells of the whole run is --cpu, of which `used` is taken then.
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

from schedlab.config.files import write_text
from schedlab.stages.report import job_costs

OUT = Path(__file__).resolve().parent.parent / "docs/results/workflow_cost.csv"
COLUMNS = ("study", "rule", "jobs", "cpu_s", "wall_s", "longest_s", "max_rss_mib")
OF_ALL = ("scale", "cores", "cpu_of_all_s", "wall_of_all_s", "busy", "used")  # of the row `all` alone
Costs = dict[tuple[str, str], list[dict[str, float]]]  # (study, rule) -> its jobs' benchmarks


def main() -> None:
    """Write a row a study and rule, and the whole, and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, help="the results of a scale")
    parser.add_argument("--cores", type=int, required=True, help="cores that the run was given")
    parser.add_argument("--wall", type=float, help="seconds that it took")
    parser.add_argument("--cpu", type=float, help="CPU seconds that it took, Snakemake's own included")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    costs = job_costs(given.results)
    if not costs:
        parser.error(f"{given.results} holds no benchmark files")
    *rows, whole = rows_of(costs)
    wall = given.wall or clock(costs)
    slots = given.cores * wall
    busy, used = whole["wall_s"] / slots, (given.cpu or whole["cpu_s"]) / slots
    of_all = [
        given.results.resolve().name,
        given.cores,
        given.cpu or "",
        given.wall or "",
        f"{busy:.3f}",
        f"{used:.3f}",
    ]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*COLUMNS, *OF_ALL])
    for row in rows:
        table.writerow([*(_told(row[name]) for name in COLUMNS), *("" for _ in OF_ALL)])
    table.writerow([*(_told(whole[name]) for name in COLUMNS), *map(_told, of_all)])
    write_text(given.out, text.getvalue())
    print(
        f"{whole['jobs']} jobs, {whole['cpu_s']:.0f} CPU s in {wall:.0f} s on {given.cores} cores: busy {busy:.0%}, "
        f"used {used:.0%}"
    )


def rows_of(costs: Costs) -> list[dict[str, str | float]]:
    """Return a row a study and rule, those that cost most first, and one of all."""
    rows = [_row(study, rule, jobs) for (study, rule), jobs in costs.items()]
    rows.sort(key=lambda row: (-row["cpu_s"], row["study"], row["rule"]))
    return [*rows, _row("all", "", _jobs(costs))]


def _row(study: str, rule: str, jobs: list[dict[str, float]]) -> dict[str, str | float]:
    seconds, cpu, memory = ([one[key] for one in jobs] for key in ("s", "cpu_time", "max_rss"))
    sums = {"jobs": len(jobs), "cpu_s": sum(cpu), "wall_s": sum(seconds)}
    return {"study": study, "rule": rule, **sums, "longest_s": max(seconds), "max_rss_mib": max(memory)}


def clock(costs: Costs) -> float:
    """Return the seconds from the start of the first job to the end of the last."""
    jobs = _jobs(costs)
    return max(one["ended"] for one in jobs) - min(one["ended"] - one["s"] for one in jobs)


def _jobs(costs: Costs) -> list[dict[str, float]]:
    return [one for jobs in costs.values() for one in jobs]


def _told(value: str | float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
