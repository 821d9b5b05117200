"""The recorded schedules on our own traces (tests/data/batch, described in its README at the source)."""

from __future__ import annotations

import csv
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from schedlab.studies.batch.jobs import Jobs, Machine, jobs_of, machine_of, window
from schedlab.studies.batch.metrics import measures
from schedlab.studies.batch.simulator.simulate import simulate
from schedlab.workloads.clean import CleaningSettings, clean
from schedlab.workloads.swf import read_swf

DATA = Path(__file__).resolve().parents[1] / "data" / "batch"
TRACES = ("lab-128", "lab-256-tight", "lab-64x4", "lab-bursts")
MEASURES = (
    "avg_bsld",
    "avg_wait",
    "max_wait",
    "avg_turnaround",
    "util_to_last_start",
    "util_makespan",
    "first_submit",
    "last_start",
)
MEASURES += ("makespan_end", "users", "user_bsld_max", "user_bsld_mean")


@cache
def load(path: Path) -> tuple[Jobs, Machine]:
    """The jobs of a trace as the published simulators clean it, and its machine."""
    trace, _ = clean(read_swf(path), CleaningSettings(profile="rlscheduler"))
    machine = machine_of(trace)
    return jobs_of(trace, machine), machine


@cache
def window_measures(
    path: Path, rule: str, backfill: str, starts: tuple[int, ...], length: int = 1024
) -> list[dict[str, Any]]:
    """The measures of windows of a trace under a rule, cleaned as the published simulators do; made once a session."""
    jobs, machine = load(path)
    chosen = [window(jobs, machine, start, length) for start in starts]
    return [measures(simulate(each, machine, rule, backfill), machine) for each in chosen]


def own(trace: str) -> tuple[Jobs, Machine]:
    """One of our own traces."""
    return load(DATA / f"{trace}.swf.gz")


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table of recorded measures."""
    with path.open() as file:
        return list(csv.DictReader(file))


@cache
def packed(path: Path) -> Any:
    """The value in a gzipped JSON file."""
    return json.loads(gzip.decompress(path.read_bytes()))
