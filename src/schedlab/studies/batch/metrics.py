"""Measures of a schedule: waits, slowdowns, utilisation, and their distribution over users and kinds of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.contract import Metric
from schedlab.evaluation.job_metrics import bounded_slowdown
from schedlab.studies.batch.jobs import SHORT, Machine, Schedule

if TYPE_CHECKING:
    import pandas as pd


METRICS = (
    Metric("avg_bsld", "-", "lower", headline=True, label="mean bounded slowdown"),
    Metric("log_bsld", "-", "lower", label="mean logarithm of the bounded slowdown"),
    Metric("median_bsld", "-", "lower", label="median bounded slowdown"),
    Metric("p90_bsld", "-", "lower", label="90th percentile of the bounded slowdown"),
    Metric("p99_bsld", "-", "lower", label="99th percentile of the bounded slowdown"),
    Metric("max_bsld", "-", "lower", label="largest bounded slowdown"),
    Metric("avg_wait", "s", "lower", label="mean wait"),
    Metric("max_wait", "s", "lower", label="longest wait"),
    Metric("avg_turnaround", "s", "lower", label="mean turnaround"),
    Metric("util_to_last_start", "-", "higher", label="utilisation up to the last start"),
    Metric("util_makespan", "-", "higher", label="utilisation"),
    Metric("user_bsld_max", "-", "lower", label="mean bounded slowdown of the worst-off user"),
    Metric("jain_users", "-", "higher", label="fairness over users"),
)

RUN_CLASSES = {
    "run_under_1min": (0, 60),
    "run_under_1h": (60, 3600),
    "run_under_1d": (3600, 86400),
    "run_longer": (86400, np.inf),
}
SIZE_CLASSES = {"procs_1": (0, 1), "procs_2_to_8": (1, 8), "procs_9_to_64": (8, 64), "procs_over_64": (64, np.inf)}


def job_table(schedule: Schedule) -> pd.DataFrame:
    """Return one row a job: job_id, user, procs, run, start, wait, turnaround (s), bsld, slowdown."""
    import pandas as pd

    jobs = schedule.jobs
    wait = schedule.start - jobs.submit
    turnaround = wait + jobs.run
    return pd.DataFrame(
        {
            "job_id": jobs.job_id,
            "user": jobs.user,
            "procs": jobs.procs,
            "run": jobs.run,
            "start": schedule.start,
            "wait": wait,
            "turnaround": turnaround,
            "bsld": bounded_slowdown(turnaround, jobs.run, SHORT),
            "slowdown": turnaround / jobs.run,
        }
    )


def measures(schedule: Schedule, machine: Machine) -> dict[str, Any]:
    """Return all measures by name: averages over the jobs; s, or none for ratios, None where there is no denominator.

    util_to_last_start ends at the last start, as published; util_makespan at the last end; both count processors as
    requested.
    """
    table = job_table(schedule)
    first, last_start = float(schedule.jobs.submit[0]), float(table["start"].max())
    end = float((table["start"] + table["run"]).max())
    work = float((table["run"] * table["procs"]).sum())
    found: dict[str, Any] = {
        "jobs": len(table),
        "avg_bsld": float(table["bsld"].mean()),
        "avg_wait": float(table["wait"].mean()),
        "max_wait": float(table["wait"].max()),
        "avg_turnaround": float(table["turnaround"].mean()),
        "avg_slowdown": float(table["slowdown"].mean()),
        "util_to_last_start": _ratio(work, (last_start - first) * machine.processors),
        "util_makespan": _ratio(work, (end - first) * machine.processors),
        "first_submit": first,
        "last_start": last_start,
        "makespan_end": end,
    }
    for name in ("bsld", "wait"):
        quantiles = np.percentile(table[name], [50, 90, 99])
        labels = ("median", "p90", "p99")
        found |= {f"{label}_{name}": float(value) for label, value in zip(labels, quantiles, strict=True)}
        found[f"max_{name}"] = float(table[name].max())
    return found | _fairness(table) | {"bsld_by_class": _by_class(table)}


def usage(schedule: Schedule) -> pd.DataFrame:
    """Return the resource usage curve: time (s), procs busy from then on."""
    import pandas as pd

    jobs = schedule.jobs
    times = np.concatenate([schedule.start, schedule.start + jobs.run])
    changes = pd.Series(np.concatenate([jobs.procs, -jobs.procs])).groupby(times).sum()
    return pd.DataFrame({"time": changes.index.to_numpy(float), "procs": changes.cumsum().to_numpy()})


def user_bsld(table: pd.DataFrame) -> pd.Series:
    """Return the mean bounded slowdown of each user; -1 counts as one user."""
    return table.groupby("user")["bsld"].mean()


def jain(values: np.ndarray) -> float:
    """Return Jain's index of fairness of positive values, 1 / n to 1 (all equal)."""
    values = np.asarray(values, dtype=float)
    return float(values.sum() ** 2 / (len(values) * (values**2).sum()))


def _fairness(table: pd.DataFrame) -> dict[str, Any]:
    users = user_bsld(table)
    found = {f"user_bsld_{name}": float(getattr(users, name)()) for name in ("mean", "max", "min")}
    return {"users": len(users), **found, "jain_users": jain(users.to_numpy())}


def _by_class(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """{class: jobs and mean bounded slowdown}; run times from the lower bound on, sizes above it."""
    found = {}
    for name, (low, high) in RUN_CLASSES.items():
        found[name] = table.loc[(table["run"] >= low) & (table["run"] < high), "bsld"]
    for name, (low, high) in SIZE_CLASSES.items():
        found[name] = table.loc[(table["procs"] > low) & (table["procs"] <= high), "bsld"]
    means = {name: float(values.mean()) if len(values) else None for name, values in found.items()}
    return {name: {"jobs": len(values), "avg_bsld": means[name]} for name, values in found.items()}


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None
