"""One window of a trace of one's own, for the commands that run policies on it."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.batch.jobs import jobs_of, machine_of, out_of_order, prefill, window
from schedlab.studies.batch.problem import BatchProblem
from schedlab.studies.batch.scenario import BACKFILL_ORDERS, BACKFILLS, BatchScenario
from schedlab.studies.batch.simulator.simulate import require_order
from schedlab.workloads.clean import CleaningSettings, clean
from schedlab.workloads.swf import read_swf

if TYPE_CHECKING:
    from schedlab.config.contract import Unit
    from schedlab.studies.batch.problem import BatchProblem

log = logging.getLogger("schedlab.batch")


@dataclass(frozen=True)
class TraceWindow:
    """A window as a unit of a problem. cleaning: counts of the cleaning; prefilled: jobs that run at its begin, None:
    not asked for.
    """

    problem: BatchProblem
    unit: Unit
    cleaning: Mapping[str, Any]
    prefilled: int | None


def add_window_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which window of which trace is simulated, and how."""
    parser.add_argument(
        "--trace", required=True, metavar="FILE", help="trace in the Standard Workload Format, plain or gzip"
    )
    parser.add_argument("--backfill", default="none", choices=BACKFILLS, help="none (default): the chosen job blocks")
    parser.add_argument(
        "--backfill-order",
        default="default",
        choices=BACKFILL_ORDERS,
        help="which jobs are looked at first when they are backfilled (legacy, easy)",
    )
    parser.add_argument(
        "--start", type=int, default=0, metavar="S", help="first job, counted from 0 after the cleaning (default: 0)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="jobs from there on (default: all)")
    parser.add_argument(
        "--cleaning",
        default="default",
        choices=("default", "rlscheduler"),
        help="default, or what published numbers use",
    )
    parser.add_argument(
        "--processors", type=int, metavar="P", help="size of the machine where the header lacks it or is wrong"
    )
    parser.add_argument("--kill", action="store_true", help="end jobs at their requested time")
    parser.add_argument("--warm-start", action="store_true", help="the machine already runs the jobs before the window")
    parser.add_argument(
        "--seed", type=int, default=0, help="what a warm start draws: how many jobs at most, since when (default: 0)"
    )


def read_window(arguments: argparse.Namespace) -> TraceWindow:
    """Return the window that the options describe. Raises UserError."""
    require_order(arguments.backfill, arguments.backfill_order, "--backfill-order")
    if arguments.processors is not None and not 0 < arguments.processors < 2**31:
        raise UserError(f"{arguments.processors} processors", where="--processors", expected="a whole number above 0")
    if arguments.seed < 0:
        raise UserError(f"seed {arguments.seed}", where="--seed", expected="a whole number from 0 on")
    trace = read_swf(arguments.trace).with_processors(arguments.processors)
    trace.machine_size()  # told before the cleaning asks for it
    cleaning = CleaningSettings(profile=arguments.cleaning)
    cleaned, report = clean(trace, cleaning)
    if report.kept < report.records:
        why = ", ".join(f"{rule} {jobs}" for rule, action, jobs in report.rows() if action == "drop" and jobs)
        log.info("%d of %d jobs are left out by the cleaning (%s)", report.records - report.kept, report.records, why)
    machine, start = machine_of(cleaned), arguments.start
    jobs, late = jobs_of(cleaned, machine), out_of_order(trace)
    if late:
        order = {"submit": "of submission", "job_id": "of their numbers, as published"}[cleaning.action("order")]
        log.info(
            "%d of %d jobs stand below one submitted later; all are taken in the order %s", late, report.records, order
        )
    count = len(window(jobs, machine, start, arguments.jobs))
    names = ("batch", "prefill", start)
    before = prefill(jobs, machine, start, count, generator(arguments.seed, *names)) if arguments.warm_start else None
    values = {name: getattr(arguments, name) for name in ("backfill", "backfill_order", "kill", "warm_start")}
    workload = {
        "name": "trace",
        "source": "swf",
        "file": str(Path(arguments.trace)),
        "cleaning": {"profile": arguments.cleaning},
    }
    windows = {"length": count, "starts": [start]}
    scenario = validate(
        BatchScenario, {"name": "trace", "seed": arguments.seed, "workload": workload, "windows": windows, **values}
    )
    problem = BatchProblem(scenario, cleaned, report.values().get("maxima"))
    unit = replace(problem.units("test")[0], seed=derive_seed(arguments.seed, *names))
    counts = {"profile": arguments.cleaning, **report.values(), "out_of_order": late}
    return TraceWindow(problem, unit, counts, None if before is None else len(before.start))
