"""Makes a workload from its settings: the trace of the batch study, or the Batsim files of the hetero study."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.data_paths import find_data
from schedlab.config.errors import UserError
from schedlab.config.files import write_json
from schedlab.config.seeds import generator
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.workloads.batsim_file import BatsimWorkload, read_batsim
from schedlab.workloads.clean import Cleaner, CleaningReport, CleaningSettings
from schedlab.workloads.estimates import estimates
from schedlab.workloads.lublin import lublin
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.statistics import statistics
from schedlab.workloads.swf import JobColumns, read_blocks, read_header, write_swf
from schedlab.workloads.to_batsim import to_batsim
from schedlab.workloads.trace import Trace
from schedlab.workloads.trim import TrimSettings, scale_load, trim, within


def read_log(
    path: Path | str, cleaning: CleaningSettings, piece: TrimSettings | None = None
) -> tuple[Trace, CleaningReport]:
    """Return the cleaned trace in a file, or a piece of it, and the report on the cleaning of all its jobs. Raises
    UserError.

    The result is that of `read_swf`, `clean` and `trim`, with less memory: dropped jobs, and those of users and times
    outside of the piece, are freed with their block. For a piece that consists of the first jobs, at most twice as many
    jobs are kept in memory. All jobs are needed for a piece chosen by its load, and for submit times counted from the
    first job of the log (cleaning's `shift`). The header is read first, because its facts about the machine hold for
    all jobs, wherever they stand in the file.
    """
    cleaner = Cleaner(read_header(path), cleaning)
    early = TrimSettings() if piece is None or cleaning.shift else piece
    most = math.inf if early.count is None or early.load is not None else early.first + early.count
    held = JobColumns()
    held.add(
        cleaner.clean(held.frame())
    )  # so that a missing size of the machine is also reported for a file without jobs
    for jobs in read_blocks(path):
        held.add(within(cleaner.clean(jobs), early))
        if held.count > 2 * most:
            first = cleaner.ordered(held.frame()).iloc[: int(most)]
            held = JobColumns()
            held.add(first)
    trace, report = cleaner.finish(held.frame())
    return (trace if piece is None else trim(trace, piece, report.kept)), report


def make_trace(settings: WorkloadSettings) -> tuple[Trace, dict[str, Any]]:
    """Return the trace of a workload and the report of how it was made, as plain values. Raises UserError."""
    report: dict[str, Any] = {"source": settings.source}
    if settings.source == "lublin":
        trace = lublin(settings.lublin, settings.seed)
        trace = trace if settings.trim is None else trim(trace, settings.trim)
    elif settings.source == "swf":
        trace, cleaning = read_log(find_data(settings.file), settings.cleaning, settings.trim)
        report |= {"file": settings.file, "cleaning": cleaning.values()}
    else:
        raise UserError(
            "a workload file of Batsim is no trace", where=f"workload {settings.name}: source", expected="lublin or swf"
        )
    if settings.load is not None:
        trace = scale_load(trace, settings.load)
    if settings.estimates is not None:
        rng = generator(settings.seed, "workload", "estimate")
        asked = np.full(len(trace.jobs), -1.0)
        if settings.estimates.model != "none":
            asked = estimates(trace.jobs["run"].to_numpy(), settings.estimates, rng)
        trace = trace.with_jobs(
            trace.jobs.assign(time_requested=asked), f"requested times drawn: {settings.estimates.model}"
        )
    return trace, report | {"statistics": {**statistics(trace), "source": settings.name}}


def make_batsim(settings: WorkloadSettings, hierarchy: Hierarchy) -> tuple[BatsimWorkload, dict[str, Any]]:
    """Return the Batsim workload for a platform and the report of how it was made, as plain values. Raises UserError.

    A workload file of Batsim is used unchanged. The Lublin-Feitelson model has only allocated processors, which count
    as requested here.
    """
    if settings.source == "batsim":
        workload = read_batsim(find_data(settings.file))
        return workload, {"source": "batsim", "file": settings.file, "jobs": len(workload.jobs)}
    trace, report = make_trace(settings)
    if settings.source == "lublin":
        trace = trace.with_jobs(trace.jobs.assign(procs_requested=trace.jobs["procs_allocated"]))
    workload, conversion = to_batsim(trace, hierarchy, settings.batsim, settings.seed)
    return workload, report | {"conversion": conversion.values()}


def write_trace(settings: WorkloadSettings, trace: Path | str, report: Path | str) -> None:
    """Write the trace of a workload (SWF, gzip if the name ends in .gz) and the report of how it was made (JSON).
    Raises UserError.
    """
    made, done = make_trace(settings)
    write_swf(trace, made)
    write_json(report, done)
