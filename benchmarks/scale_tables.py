"""The tables of docs/scale.md, of docs/results/scale.json: what was measured, and what it comes to at the sizes that the page speaks of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import performance_page

SCENARIOS, SEEDS, JOBS, SERVERS = 10_000, 20, 10_000_000, 4_096
LIMITS = (("one_job", 1_500), ("dry_run", 4_000), ("trace_made", 1_500), ("trace_easy", 1_500))  # MB
BASE_MB = 170  # of Snakemake, or of a job that has imported what it needs


def scale_measured(results: Path) -> str:
    """What was measured, and how it grows."""
    return "\n".join(performance_page.growth_table(_record(results)["growth"]))


def scale_worked_out(results: Path) -> str:
    """What was measured at its largest, and what that comes to at the page's sizes; memory is above that of a small run."""
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
    lines = ["| of | what | measured up to | comes to | time | memory |", "|---|---|---:|---:|---:|---:|"]
    for of, name, size in wanted:
        one = grown[name]
        largest = f"{one['points'][-1]['size']:,.0f} {one['label']}"
        told = f"{_time(at(one, size, 'seconds'))} | {_megabytes(at(one, size, 'memory_mb'))}"
        lines.append(f"| {of} | {one['what']} | {largest} | {size:,.0f} | {told} |")
    left = {kind: files[kind] for kind in ("learn", "evaluate")}
    counts = {"learn": SCENARIOS * SEEDS, "evaluate": 2 * SCENARIOS}
    many = sum(counts[kind] * one["files"] for kind, one in left.items()) + 5 * SCENARIOS * files["frozen part"]["files"]
    size = sum(counts[kind] * one["bytes"] for kind, one in left.items()) / 1e9
    small = ", ".join(f"{one['files']:g} files and {one['bytes'] / 1e3:,.0f} kB of a job of `{kind}`" for kind, one in left.items())
    lines.append(f"| {scenarios} | files below `results/` | {small} | {many / 1e6:.1f} million | | {size:,.0f} GB on disk |")
    return "\n".join(lines)


def scale_limits(results: Path) -> str:
    """The size at which each part needs the memory that a job asks for (conf/scale/paper.yaml and small.yaml)."""
    grown, _ = _grown(results)
    lines = ["| part | memory | reached with | a small run, in which imports are most |", "|---|---:|---:|---:|"]
    for name, limit in LIMITS:
        one = grown[name]
        size = reached(one, "memory_mb", limit - BASE_MB)
        lines.append(f"| {one['what']} | {limit / 1e3:g} GB | {float(f'{size:.2g}'):,.0f} {one['label']} | {BASE_MB} MB |")
    return "\n".join(lines)


def scale_slurm(results: Path) -> str:
    """A partition of 100 GPUs, simulated."""
    names = ["scenarios", "a learning job", "learning jobs in a Slurm job", "Slurm jobs", "start of each", "work alone", "in all"]
    lines = [f"| {' | '.join([*names, 'GPUs at work', 'what to mend first', 'in all without it'])} |"]
    lines.append("|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|")
    for one in _record(results)["slurm"]:
        cells = [
            f"{one['scenarios']:,}",
            f"{one['learn_s']:g} s",
            f"{one['learn_together']}",
            f"{one['slurm_jobs']:,}",
            f"{one['start_s']:g} s",
        ]
        cells += [f"{one['least_hours']:,.1f} h", f"{one['hours']:,.1f} h", f"{one['busy']:.0%}".replace("%", " %")]
        cells += [one["held_up_by"], f"{one['hours_without']:,.1f} h"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def at(one: dict[str, Any], size: float, key: str) -> float:
    """Return what a quantity comes to at a size: on the straight line through its two largest points; a measured point is itself."""
    (x, y), (larger, value) = ((point["size"], point[key]) for point in one["points"][-2:])
    return value if size == larger else value + (value - y) / (larger - x) * (size - larger)


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
    points = [{**point, "size": 7 * point["size"]} for point in dry_runs["points"]]  # five jobs of learning and two of scoring
    dry_run = {"label": "jobs of the workflow", "what": "dry run of all with its cache", "points": points}
    return {**record["growth"], "dry_run": dry_run}, record["files"]


def _record(results: Path) -> dict[str, Any]:
    return json.loads((results / "scale.json").read_text(encoding="utf-8"))
