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
from schedlab.studies.batch.scenario import BatchScenario, require_order
from schedlab.workloads.clean import CleaningSettings, clean
from schedlab.workloads.swf import read_swf

if TYPE_CHECKING:
    from schedlab.config.contract import Unit
    from schedlab.studies.batch.problem import BatchProblem

log = logging.getLogger("schedlab.batch")


@dataclass(frozen=True)
class TraceWindow:
    """A window as a unit of a problem, the counts of its cleaning, and the jobs that run at its begin (None: cold)."""

    problem: BatchProblem
    unit: Unit
    cleaning: Mapping[str, Any]
    prefilled: int | None


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
        what = "%d of %d jobs stand below one submitted later; all are taken in the order %s"
        log.info(what, late, report.records, order)
    count = len(window(jobs, machine, start, arguments.jobs))
    names = ("batch", "prefill", start)
    before = prefill(jobs, machine, start, count, generator(arguments.seed, *names)) if arguments.warm_start else None
    values = {name: getattr(arguments, name) for name in ("backfill", "backfill_order", "kill", "warm_start")}
    file = {"file": str(Path(arguments.trace)), "cleaning": {"profile": arguments.cleaning}}
    values |= {"workload": {"name": "trace", "source": "swf", **file}, "windows": {"length": count, "starts": [start]}}
    scenario = validate(BatchScenario, {"name": "trace", "seed": arguments.seed, **values})
    problem = BatchProblem(scenario, cleaned, report.values().get("maxima"))
    unit = replace(problem.units("test")[0], seed=derive_seed(arguments.seed, *names))
    counts = {"profile": arguments.cleaning, **report.values(), "out_of_order": late}
    return TraceWindow(problem, unit, counts, None if before is None else len(before.start))
