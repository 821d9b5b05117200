"""`schedlab batch evaluate` and `schedlab batch compare`."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from schedlab.config.errors import UserError
from schedlab.config.files import write_text
from schedlab.evaluation import tables
from schedlab.studies.batch.commands.trace_window import read_window
from schedlab.studies.batch.figures.comparison import comparisons
from schedlab.studies.batch.learners.policy_files import named_policy
from schedlab.studies.batch.metrics import measures, usage
from schedlab.studies.batch.simulator.simulate import Schedule

log = logging.getLogger("schedlab.batch")


def evaluate(arguments: argparse.Namespace) -> int:
    """Print the measures of each policy on the window, and write what was asked for; return the exit status."""
    written = (
        ("--starts", "start times", arguments.starts, _write_starts),
        ("--usage", "the usage", arguments.usage, _write_usage),
    )
    for option, what, path, _ in written:
        if path and len(arguments.policy) > 1:
            what = f"{what} of {len(arguments.policy)} policies"
            raise UserError(what, where=option, expected="one policy (--policy)")
    document, schedules = evaluated(arguments)
    for _, _, path, write in written:
        if path:
            write(path, schedules[0])
            log.info("wrote %s", path)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def evaluated(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Schedule]]:
    """Return the document of `batch evaluate` and the schedule of each policy. Raises UserError.

    Measures of one policy stand in the document itself, those of several under `policies`, in the order of the names.
    """
    found = read_window(arguments)
    machine = found.problem.machine
    # All names first: a wrong one is reported before anything runs.
    policies = [named_policy(name, found.problem) for name in arguments.policy]
    schedules = [found.problem.run(policy, found.unit) for policy in policies]
    named = zip(arguments.policy, schedules, strict=True)
    scored = [{"policy": name, **measures(schedule, machine)} for name, schedule in named]
    document = {
        "trace": str(arguments.trace),
        "backfill": arguments.backfill,
        "backfill_order": arguments.backfill_order,
        "start": arguments.start,
        **(scored[0] if len(scored) == 1 else {"policies": scored}),
        "machine": {"nodes": machine.nodes, "processors": machine.processors},
        "kill": arguments.kill,
        "warm_start": {"jobs": found.prefilled, "seed": arguments.seed} if arguments.warm_start else None,
        "cleaning": dict(found.cleaning),
    }
    return document, schedules


def _write_starts(path: Path, schedule: Schedule) -> None:
    _write_rows(path, "job_id,start", schedule.jobs.job_id, map(_seconds, schedule.start))


def _write_usage(path: Path, schedule: Schedule) -> None:
    curve = usage(schedule)
    _write_rows(path, "time,procs", map(_seconds, curve["time"]), curve["procs"])


def _seconds(value: float) -> str:
    """Whole seconds without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))


def _write_rows(path: Path, header: str, first: Iterable[object], second: Iterable[object]) -> None:
    write_text(path, "\n".join([header, *(f"{one},{other}" for one, other in zip(first, second, strict=True))]) + "\n")


def compare(arguments: argparse.Namespace) -> int:
    """Print the ratios of the policy to its baselines as CSV; return the exit status."""
    scores = tables.join(tables.SCORES, [_scores(path) for path in arguments.scores])
    rows = list(comparisons(scores, arguments.policy, tuple(arguments.baseline), arguments.split))
    print(pd.DataFrame(rows).round(4).to_csv(index=False), end="")
    return 0


def _scores(path: Path) -> pd.DataFrame:
    """Return a table of scores. Raises UserError where there is none."""
    if not path.is_file():
        raise UserError("there is no such table", where=str(path), remedy="run snakemake first")
    try:
        return tables.read(tables.SCORES, path)
    except ValueError:
        expected = "results/SCALE/batch/scores.parquet, or a scenario's evaluation/rules.parquet or learned.parquet"
        raise UserError("is no table of scores", where=str(path), expected=expected) from None
