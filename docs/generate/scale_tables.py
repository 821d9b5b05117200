"""The tables of docs/notebook/scale.md, from docs/results/scale.json: what was measured, and what follows for the sizes
of the page.

The memory of small runs, on which what grows stands, is that of core_starts.csv (Snakemake) and workflow_cost.csv
(jobs).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import performance_page
from table_parts import page, percent

SCENARIOS, SEEDS, JOBS, SERVERS = 10_000, 20, 10_000_000, 4_096
# MB that the smallest Slurm job asks for (a job alone, the default of conf/scale/small.yaml and full.yaml); of the dry
# run of all: what a
# login node may have
LIMITS = {"one_job": 1_500, "dry_run": 4_000, "trace_made": 1_500, "trace_easy": 1_500}


def scale_measured(results: Path) -> str:
    """What was measured, and how it grows."""
    return "\n".join(performance_page.growth_table(_record(results)["growth"]))


def scale_machines(results: Path) -> str:
    """Sentences: where what grows was measured, as far as that was kept."""
    grown = _record(results)["growth"]
    told: dict[str, list[str]] = {}
    for one in grown.values():
        if "machine" in one:
            told.setdefault(performance_page.machine_line(one), []).append(f"*{one['what']}*")
    lines = [f"{', '.join(names)}: on {line}" for line, names in told.items()]
    rest = ["The machines of the other measurements were not recorded."]
    return "\n".join(lines + rest * any("machine" not in one for one in grown.values()))


def scale_worked_out(results: Path) -> str:
    """What was measured at its largest, and what that comes to at the page's sizes; memory is above that of a small
    run.
    """
    grown, files = _grown(results)
    scenarios = f"{SCENARIOS:,} scenarios x {SEEDS} seeds"
    wanted = [
        (scenarios, "dry_run", SCENARIOS * (SEEDS + 2)),
        (scenarios, "one_job", SCENARIOS),
        (scenarios, "summarise", SCENARIOS * (SEEDS + 3)),
        (f"{JOBS:,} jobs of a log", "trace_made", JOBS),
        (f"{JOBS:,} jobs of a log", "trace_fcfs", JOBS),
        (f"{JOBS:,} jobs of a log", "trace_easy", JOBS),
        (f"{JOBS:,} jobs of a log", "batsim_workload", JOBS),
        (f"RAMP of {SERVERS:,} servers", "ramp_blocks", SERVERS),
        (f"RAMP of {SERVERS:,} servers", "ramp_episode", SERVERS),
    ]
    rows = []
    for of, name, size in wanted:
        one = grown[name]
        largest = f"{one['points'][-1]['size']:,.0f} {one['label']}"
        told = [_time(at(one, size, "seconds")), _megabytes(at(one, size, "memory_mb"))]
        rows.append([of, one["what"], largest, f"{size:,.0f}", *told])
    left = {kind: files[kind] for kind in ("learn", "evaluate")}
    counts = {"learn": SCENARIOS * SEEDS, "evaluate": 2 * SCENARIOS}
    many = (
        sum(counts[kind] * one["files"] for kind, one in left.items()) + 5 * SCENARIOS * files["frozen part"]["files"]
    )
    size = sum(counts[kind] * one["bytes"] for kind, one in left.items()) / 1e9
    small = ", ".join(
        f"{one['files']:g} files and {one['bytes'] / 1e3:,.0f} kB of a job of `{kind}`" for kind, one in left.items()
    )
    rows.append(
        [scenarios, "files below `results/`", small, f"{many / 1e6:.1f} million", "", f"{size:,.0f} GB on disk"]
    )
    return page(["of", "what", "measured up to", "estimated for", "time", "memory"], rows, "llrrrr")


def scale_limits(results: Path) -> str:
    """The size at which each part needs the memory of LIMITS, on top of that of a small run, which is told beside
    it.
    """
    grown, _ = _grown(results)
    starts = pd.read_csv(results / "core_starts.csv")
    rules = pd.read_csv(results / "workflow_cost.csv").set_index(["study", "rule"])["max_rss_mib"] * 2**20 / 1e6
    base = {"one_job": starts["memory_mb"].min(), "dry_run": starts["memory_mb"].min()}
    base |= {"trace_made": rules["batch", "make_trace"], "trace_easy": rules["batch", "evaluate"]}
    rows = []
    for name, limit in LIMITS.items():
        one = grown[name]
        size = reached(one, "memory_mb", limit - base[name])
        rows.append(
            [one["what"], f"{limit / 1e3:g} GB", f"{float(f'{size:.2g}'):,.0f} {one['label']}", f"{base[name]:.0f} MB"]
        )
    return page(["part", "memory", "reached with", "a small run"], rows, "lrrr")


def scale_slurm(results: Path) -> str:
    """A partition of 100 GPUs, simulated."""
    rows = []
    for one in _record(results)["slurm"]:
        cells = [
            f"{one['scenarios']:,}",
            f"{one['learn_s']:g} s",
            f"{one['learn_together']}",
            f"{one['slurm_jobs']:,}",
            f"{one['start_s']:g} s",
        ]
        cells += [f"{one['least_hours']:,.1f} h", f"{one['hours']:,.1f} h", percent(one["busy"])]
        rows.append([*cells, one["held_up_by"], f"{one['hours_without']:,.1f} h"])
    names = [
        "scenarios",
        "a learning job",
        "learning jobs in a Slurm job",
        "Slurm jobs",
        "two starts of Snakemake",
        "work / 100 GPUs",
        "whole run",
    ]
    return page([*names, "GPUs at work", "what to mend first", "whole run without it"], rows, "rrrrrrrrlr")


def at(one: dict[str, Any], size: float, key: str) -> float:
    """Return what a quantity comes to at a size: on the straight line through its two largest points; a measured
    point is itself.
    """
    (x, y), (larger, value) = ((point["size"], point[key]) for point in one["points"][-2:])
    return value + (value - y) / (larger - x) * (size - larger)


def reached(one: dict[str, Any], key: str, limit: float) -> float:
    """Return the size at which the straight line through the two largest points comes to a limit."""
    (x, y), (larger, value) = ((point["size"], point[key]) for point in one["points"][-2:])
    return larger + (limit - value) * (larger - x) / (value - y)


def _time(seconds: float) -> str:
    if seconds < 100:
        return performance_page.text_of(seconds, "s")
    return f"{seconds / 60:,.0f} min" if seconds < 6000 else f"{seconds / 3600:,.1f} h"


def _megabytes(value: float) -> str:
    return f"{value / 1e3:.1f} GB" if value >= 1e3 else f"{value:,.0f} MB"


def _grown(results: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What grows, dry runs of docs/results/benchmarks.json among it, and the files that jobs leave."""
    record = _record(results)
    dry_runs = json.loads((results / "benchmarks.json").read_text(encoding="utf-8"))["growth"]["scenarios"]
    points = [
        {**point, "size": 7 * point["size"]} for point in dry_runs["points"]
    ]  # five jobs of learning and two of scoring
    dry_run = {"label": "jobs of the workflow", "what": "dry run of the whole workflow, warm cache", "points": points}
    return {**record["growth"], "dry_run": dry_run}, record["files"]


def _record(results: Path) -> dict[str, Any]:
    return json.loads((results / "scale.json").read_text(encoding="utf-8"))
