"""Limits of queues, partitions and memory as sums over running jobs, each of which must stay below a bound.

A job over the limit of its queue or partition is held: others pass it until jobs of that queue or partition end, as in
Slurm without `assoc_limit_stop` (https://slurm.schedmd.com/slurm.conf.html). For nodes, reserved nodes and memory a job
waits instead: without backfilling it blocks the others, and with EASY it has a reservation.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.batch.constraints.settings import LimitSettings
from schedlab.studies.batch.jobs import Jobs, Machine

KB_A_GB = 1e6
LIMITED_BACKFILLS = ("none", "easy")
COLUMNS = {"queue": 15, "partition": 16, "memory": 10}


class Limits(NamedTuple):
    """The sums that limit a window of n jobs and k of a prefill, the first of them that of the nodes.

    amount (sums, n + k) int64   what each job adds to a sum while it runs
    most (sums,) int64           the largest value of each sum
    holds (sums,) bool           whether a job over the limit is held; else it waits
    """

    amount: np.ndarray
    most: np.ndarray
    holds: np.ndarray


def limits_of(jobs: Jobs, before: Jobs, machine: Machine, backfill: str) -> Limits | None:
    """Return the limits of a machine for a window and what runs before it; None: it has none.

    Raises UserError for a mode of backfilling that has no limits, and for a job that no empty machine could start.
    """
    if machine.limits is None:
        return None
    require_limited(backfill, "limits")
    settings = machine.limits
    sums: list[tuple[str, np.ndarray, int, bool]] = []
    parts = {name: np.concatenate([getattr(jobs, name), getattr(before, name)]) for name in _READ}
    nodes = parts["nodes"]
    for column in ("queue", "partition"):
        for number, most in getattr(settings, column).items():
            inside = parts[column] == number
            sums.append((f"{column}.{number}", nodes * inside, most * machine.nodes // machine.processors, True))
        for number, most in getattr(settings, f"{column}_jobs").items():
            sums.append((f"{column}_jobs.{number}", 1 * (parts[column] == number), most, True))
    for count in range(1, len(settings.reserved) + 1):
        for own in combinations(settings.reserved, count):
            kept = sum(-(-settings.reserved[number] * machine.nodes // machine.processors) for number in own)
            sums.append(("reserved", nodes * ~np.isin(parts["partition"], own), machine.nodes - kept, False))
    if settings.memory is not None:
        asked = np.ceil(np.maximum(parts["memory"], 0.0) * parts["procs"]).astype(np.int64)
        sums.append(("memory", asked, int(settings.memory * KB_A_GB), False))
    for key, amount, most, _ in sums:
        _require_startable(jobs, amount[: len(jobs)], most, f"limits.{key}")
    sums.insert(0, ("nodes", nodes, machine.nodes, False))
    _, amounts, bounds, holds = zip(*sums, strict=True)
    return Limits(np.array(amounts, dtype=np.int64), np.array(bounds, dtype=np.int64), np.array(holds))


_READ = ("queue", "partition", "nodes", "procs", "memory")


def _require_startable(jobs: Jobs, amount: np.ndarray, most: int, where: str) -> None:
    over = np.flatnonzero((amount > most) & (amount > 0))
    if len(over):
        what = f"job {jobs.job_id[over[0]]} ({jobs.procs[over[0]]} processors) could never start"
        what += f" (and {len(over) - 1} more)" if len(over) > 1 else ""
        remedy = "raise the limit, or leave such jobs out"
        raise UserError(what, where=where, expected="a limit that leaves room for each job", remedy=remedy)


def require_limited(backfill: str, where: str) -> None:
    """Raise UserError for a mode of backfilling that knows nothing of limits."""
    if backfill not in LIMITED_BACKFILLS:
        what = f"the backfilling '{backfill}' knows nothing of limits"
        raise UserError(what, where=where, expected=f"no limits, or backfill {' or '.join(LIMITED_BACKFILLS)}")


def require_limits(settings: LimitSettings, jobs: Jobs, machine: Machine) -> None:
    """Raise UserError for limits of queues and partitions that a trace does not have, of memory that no job of it
    requests, and for more reserved processors than there are.
    """
    keys = ("queue", "queue_jobs", "partition", "partition_jobs", "reserved")
    for key in keys:
        require_numbers(getattr(settings, key), jobs, "queue" if "queue" in key else "partition", f"limits.{key}")
    if settings.memory is not None and not (jobs.memory > 0).any():
        what = f"no job of {machine.source} requests memory (column {COLUMNS['memory']})"
        raise UserError(what, where="limits.memory", expected="null, or a trace with requested memory")
    if (reserved := sum(settings.reserved.values())) > machine.processors:
        what = f"{reserved} reserved processors of {machine.processors}"
        raise UserError(what, where="limits.reserved", expected=f"at most {machine.processors} in all")


def require_numbers(named: Iterable[int], jobs: Jobs, column: str, where: str) -> None:
    """Raise UserError for numbers of queues or partitions (`column`) that no job has."""
    found = np.unique(getattr(jobs, column))
    found = found[found >= 0]
    for number in named:
        if not len(found):
            what = f"no job of the trace has a {column} (column {COLUMNS[column]})"
            raise UserError(what, where=where, expected=f"a trace with {column}s, or no such setting")
        if number not in found:
            some = ", ".join(map(str, found[:20])) + (", ..." if len(found) > 20 else "")
            raise UserError(f"no job has the {column} {number}", where=f"{where}.{number}", expected=f"one of {some}")
