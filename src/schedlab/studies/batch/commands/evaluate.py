"""`schedlab batch evaluate` on a window of a trace, and `schedlab batch compare`."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.files import check_output_files, write_text
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation import tables
from schedlab.studies.batch.commands.policies import named_policy
from schedlab.studies.batch.comparison import comparisons
from schedlab.studies.batch.jobs import Schedule, jobs_of, machine_of, out_of_order, prefill, window
from schedlab.studies.batch.metrics import measures, usage
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import NAMED_BACKFILLS, Backfill, BackfillOrder, BatchScenario, require_order
from schedlab.workloads.clean import CleaningReport, CleaningSettings, clean
from schedlab.workloads.swf import read_swf
from schedlab.workloads.trace import Trace

log = logging.getLogger("schedlab.batch")


@dataclass(frozen=True)
class TraceWindow:
    """A window as a unit of a problem, the counts of its cleaning, and the jobs that already run when it begins (None:
    an empty machine).
    """

    problem: BatchProblem
    unit: Unit
    cleaning: Mapping[str, Any]
    prefilled: int | None


def read_window(arguments: argparse.Namespace) -> TraceWindow:
    """Return the window that the options describe. Raises UserError."""
    backfill, backfill_order = backfilling(arguments)
    if arguments.seed < 0:
        raise UserError(f"seed {arguments.seed}", where="--seed", expected="a whole number from 0 on")
    cleaned, report, late = read_trace(arguments)
    machine, start = machine_of(cleaned), arguments.start
    jobs = jobs_of(cleaned, machine)
    count = len(window(jobs, machine, start, arguments.jobs))
    names = ("batch", "prefill", start)
    before = prefill(jobs, machine, start, count, generator(arguments.seed, *names)) if arguments.warm_start else None
    values: dict[str, Any] = {
        "backfill": backfill,
        "backfill_order": backfill_order,
        "dependencies": getattr(arguments, "dependencies", False),  # `latency` has no such option
        "kill": arguments.kill,
        "warm_start": arguments.warm_start,
    }
    file = {"file": str(Path(arguments.trace)), "cleaning": {"profile": arguments.cleaning}}
    values |= {"workload": {"name": "trace", "source": "swf", **file}, "windows": {"length": count, "starts": [start]}}
    scenario = validate(BatchScenario, {"name": "trace", "seed": arguments.seed, **values})
    problem = BatchProblem(scenario, cleaned, report.values().get("maxima"))
    unit = replace(problem.units("test")[0], seed=derive_seed(arguments.seed, *names))
    counts = {"profile": arguments.cleaning, **report.values(), "out_of_order": late}
    return TraceWindow(problem, unit, counts, None if before is None else len(before.start))


def read_trace(arguments: argparse.Namespace, **rules: str) -> tuple[Trace, CleaningReport, int]:
    """Return the trace of the options, what its cleaning counted, and how many jobs stood below one submitted later.
    `rules` override single rules of the cleaning profile. Raises UserError.
    """
    if arguments.processors is not None and not 0 < arguments.processors < 2**31:
        raise UserError(f"{arguments.processors} processors", where="--processors", expected="a whole number above 0")
    trace = read_swf(arguments.trace).with_processors(arguments.processors)
    trace.machine_size()  # report a missing size before the cleaning needs it
    cleaning = validate(CleaningSettings, {"profile": arguments.cleaning, **rules})
    cleaned, report = clean(trace, cleaning)
    if report.kept < report.records:
        why = ", ".join(f"{rule} {jobs}" for rule, action, jobs in report.rows() if action == "drop" and jobs)
        log.info("%d of %d jobs are left out by the cleaning (%s)", report.records - report.kept, report.records, why)
    late = out_of_order(trace)
    if late:
        order = {"submit": "of submission", "job_id": "of their numbers, as published"}[cleaning.action("order")]
        what = "%d of %d jobs stand below one submitted later; all are taken in the order %s"
        log.info(what, late, report.records, order)
    return cleaned, report, late


def backfilling(arguments: argparse.Namespace) -> tuple[Backfill, BackfillOrder]:
    """Return mode and order of backfilling. Raises UserError if they cannot be combined."""
    backfill, order = NAMED_BACKFILLS.get(arguments.backfill, (arguments.backfill, arguments.backfill_order))
    if arguments.backfill in NAMED_BACKFILLS and arguments.backfill_order not in ("default", order):
        what = f"'{arguments.backfill_order}' contradicts --backfill {arguments.backfill}"
        raise UserError(what, where="--backfill-order", remedy="leave it out, or give --backfill easy")
    require_order(backfill, order, "--backfill-order")
    return backfill, order


def evaluate(arguments: argparse.Namespace) -> int:
    """Print the measures of each policy on the window and write the requested files; return the exit status."""
    written = (
        ("--starts", "start times", arguments.starts, _write_starts),
        ("--usage", "the usage", arguments.usage, _write_usage),
    )
    for option, what, path, _ in written:
        if path and len(arguments.policy) > 1:
            what = f"{what} of {len(arguments.policy)} policies"
            raise UserError(what, where=option, expected="one policy (--policy)")
    check_output_files({option: path for option, _, path, _ in written}, {"--trace": arguments.trace})
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
        **({"dependencies": True} if found.problem.scenario.dependencies else {}),
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
    scores = _scores(arguments.scores)
    statistics = study_statistics(arguments.scores)
    rows = comparisons(scores, arguments.policy, tuple(arguments.baseline), arguments.split, statistics)
    table = pd.DataFrame(rows).assign(confidence=statistics.confidence)
    print(table.round(4).to_csv(index=False), end="")
    return 0


def study_statistics(paths: Iterable[Path]) -> StatisticsSettings:
    """Return the statistics settings for tables of scores, from the frozen summary part of their study; for tables
    elsewhere the defaults.
    """
    above = (folder / "config/summarise.yaml" for path in paths for folder in path.resolve().parents)
    part = next((path for path in above if path.is_file()), None)
    return StatisticsSettings() if part is None else validate(StatisticsSettings, read_part(part)["statistics"])


def _scores(paths: Sequence[Path]) -> pd.DataFrame:
    """Return the scores of tables, with their facts. Raises UserError for a file that holds none."""
    for path in paths:
        if not path.is_file():
            raise UserError("there is no such table", where=str(path), remedy="run snakemake first")
    try:
        return tables.read_joined(tables.SCORES, paths)
    except ValueError as error:
        expected = "results/SCALE/batch/scores.parquet, or a scenario's evaluation/rules.parquet or learned.parquet"
        where = next((path for path in paths if str(path) in str(error)), ", ".join(map(str, paths)))
        raise UserError("is no table of scores", where=str(where), expected=expected) from None
