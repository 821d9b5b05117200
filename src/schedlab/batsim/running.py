"""Whole simulations in one call: from platform, workloads and a scheduler to output files and a summary, with either
back end.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from schedlab.batsim.backends.backend import Backend, recorded
from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed, run_pybatsim
from schedlab.batsim.backends.real_batsim import RealBatsim
from schedlab.batsim.backends.time_limit import TimeIsUp, TimeLimit
from schedlab.batsim.files.outputs import Outputs
from schedlab.batsim.files.workload import Workload, accepts_any_size, read_workload
from schedlab.batsim.scheduler_loading import OURS, load_scheduler, own_events
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.config.errors import UserError, counted
from schedlab.platforms.batsim_xml import read_platform

FULL_SPEED = (
    "write the platform for schedulers that set no pstates: schedlab platform generate ... --set pstates.managed=false"
)
log = logging.getLogger(__name__)
BackendKind = Literal["embedded", "batsim"]


@dataclass(frozen=True)
class Inputs:
    """The input files of a simulation and the place of its output files; workloads are named w0, w1, ... in their
    order.

    prefix           path prefix of the output files: PREFIX_jobs.csv, PREFIX_schedule.csv, ...
    machine_states   whether PREFIX_machine_states.csv is written
    trace            whether PREFIX_schedule.trace is written, too
    """

    platform: Path
    workloads: tuple[Path, ...]
    prefix: str
    options: Options = field(default_factory=Options)
    machine_states: bool = True
    trace: bool = False


@dataclass(frozen=True)
class Limits:
    """Limits on wall-clock time, in s; None: no limit.

    scheduler   time that the scheduler may take to load and to answer one message
    simulator   time that a real Batsim may take until its next message
    """

    scheduler: float | None = 60.0
    simulator: float | None = 60.0


@contextmanager
def open_backend(
    kind: BackendKind, inputs: Inputs, *, binary: str = "batsim", seconds: float | None = 60.0
) -> Iterator[Backend]:
    """Yield the embedded simulator or a real Batsim, ready for its first message; both write the same files.

    Raises UserError for inputs that cannot be read or of which no job fits the platform, and for a binary that is
    missing or uses another protocol.
    """
    if kind == "batsim":
        with RealBatsim(binary, inputs.platform, inputs.workloads, inputs.options, inputs.prefix, seconds) as backend:
            yield backend
    else:
        workloads = [read_workload(path, f"w{number}") for number, path in enumerate(inputs.workloads)]
        with Outputs(inputs.prefix, inputs.machine_states, inputs.trace) as outputs:
            simulation = Simulation(read_platform(inputs.platform), workloads, inputs.options, outputs)
            if not inputs.options.dynamic_jobs:
                _refuse_where_no_job_fits(workloads, len(simulation.machines.hosts))
            yield simulation


def _refuse_where_no_job_fits(workloads: list[Workload], hosts: int) -> None:
    first = next(((workload, workload.jobs[0]) for workload in workloads if workload.jobs), None)
    jobs = (job for workload in workloads for job in workload.jobs)
    if first is None or any(job.resources <= hosts or accepts_any_size(job.profile) for job in jobs):
        return
    workload, job = first
    raise UserError(
        f"every job asks for more than {counted(hosts, 'compute host')}: job '{job.id}' for {job.resources}",
        where=workload.path,
        expected="a job that the platform is large enough for",
    )


def simulate(
    inputs: Inputs,
    scheduler: str,
    scheduler_options: dict[str, Any] | None = None,
    *,
    backend: BackendKind = "embedded",
    binary: str = "batsim",
    messages: Path | str | None = None,
    limits: Limits | None = None,
    between: Callable[[Backend], Backend] | None = None,
) -> dict[str, float]:
    """Run a scheduler with a back end to the end, write the output files, and return the row of
    PREFIX_schedule.csv.

    scheduler   name or FILE.py[:CLASS], see load_scheduler
    messages    file for the conversation, see `recorded`
    between     wraps the back end in one that passes on and changes the messages between it and the scheduler, and that
                also sets the pstates; None: no wrapper

    Raises UserError for wrong inputs, and SchedulerFailed, ProtocolError, SimulationDeadlock or BatsimFailed if the
    simulation fails. Logs a warning if the result looks like a mistake, see `warn_of`.
    """
    limits = limits or Limits()
    with own_events(inputs.prefix) as events_prefix:
        made = load_in_time(limits.scheduler, scheduler, scheduler_options, events_prefix)
        with (
            open_backend(backend, inputs, binary=binary, seconds=limits.simulator) as opened,
            recorded(opened, messages) as conversation,
        ):
            if scheduler in OURS and between is None and (still := _still_hosts(opened)):
                raise UserError(
                    f"{still}, and {scheduler} sets no pstates", where=str(inputs.platform), remedy=FULL_SPEED
                )
            run_pybatsim(between(conversation) if between else conversation, made, message_limit=limits.scheduler)
    row = read_summary(inputs.prefix)
    warn_of(row, opened)
    return row


def warn_of(row: dict[str, float], backend: Backend) -> None:
    """Log a warning if the summary of a run looks like a mistake: hosts began in a pstate that computes next to nothing
    and no pstate was set, or no job succeeded.
    """
    if not row["nb_grouped_switches"] and (still := _still_hosts(backend)):
        log.warning("warning: %s, and the scheduler set no other: %s; %s", still, _successes(row), FULL_SPEED)
    elif row["nb_jobs"] and not row["nb_jobs_success"]:
        log.warning("warning: %s", _successes(row))


def _successes(row: dict[str, float]) -> str:
    failed = f"{row['nb_jobs_killed']:.0f} killed or failed, {row['nb_jobs_rejected']:.0f} rejected"
    return f"{row['nb_jobs_success']:.0f} of {row['nb_jobs']:.0f} jobs succeeded ({failed})"


def _still_hosts(backend: Backend) -> str:
    """Return a text with the number of hosts that begin in a pstate that computes next to nothing; empty if none does,
    or if the back end is a real Batsim, which does not report it.
    """
    still = getattr(backend, "still_hosts", 0)
    return f"{still} hosts begin in a pstate that computes next to nothing" if still else ""


def load_in_time(seconds: float | None, scheduler: str, options: dict[str, Any] | None, prefix: str) -> Any:
    """Return a scheduler object like `load_scheduler`. Raises SchedulerFailed if this takes longer than `seconds`."""

    def load() -> Any:
        limit.start()
        return load_scheduler(scheduler, options, prefix)

    with TimeLimit(seconds) as limit:
        try:
            return limit.call(load)
        except TimeIsUp:
            raise SchedulerFailed(f"the scheduler '{scheduler}' could not be loaded within {seconds:g} s") from None


def read_summary(prefix: str) -> dict[str, float]:
    """Return the numbers of PREFIX_schedule.csv by column, without Batsim's version."""
    with Path(f"{prefix}_schedule.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    return {name: float(value) for name, value in row.items() if name != "batsim_version"}
