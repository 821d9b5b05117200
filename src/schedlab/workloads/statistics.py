"""Statistics of a trace: counts, oddities, distributions, and the arrivals of its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.workloads.trace import Trace, job_processors, offered_load

if TYPE_CHECKING:
    import pandas as pd

DAY, HOUR = 86400, 3600
QUANTILES = {"min": 0.0, "p10": 0.1, "median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def statistics(trace: Trace) -> dict[str, Any]:
    """Return the numbers that describe a trace, as plain values; None for a value that is not defined. Times in s,
    memory in KB.
    """
    import pandas as pd

    jobs = trace.jobs
    processors = job_processors(jobs)
    started = trace.starts_at
    by_hour, by_weekday = arrivals(trace)
    return {
        "source": trace.source,
        "computer": trace.header.get("computer"),
        "jobs": len(jobs),
        "nodes": trace.nodes,
        "processors": trace.processors,
        "starts_at": started.strftime("%Y-%m-%d %H:%M:%S") if started else None,
        "days": float(jobs["submit"].max() - jobs["submit"].min()) / DAY if len(jobs) else None,
        "users": int(jobs["user"].nunique()),
        "load": offered_load(trace),
        "oddities": oddities(trace),
        "run": _distribution(jobs["run"]),
        "time_requested": _distribution(jobs["time_requested"]),
        "processors_of_a_job": _distribution(pd.Series(processors)),
        "gap": _distribution(pd.Series(np.diff(np.sort(jobs["submit"].to_numpy())))),
        "mean_log_run": _mean(np.log(jobs["run"][jobs["run"] > 0])),
        "serial_fraction": _mean(processors[processors > 0] == 1),
        "power_of_two_fraction": _mean(is_power_of_two(processors[processors > 1])),
        "rank_correlation_size_run": _rank_correlation(processors, jobs["run"].to_numpy()),
        "arrivals_by_hour": by_hour.tolist(),
        "arrivals_by_weekday": None if by_weekday is None else by_weekday.tolist(),
    }


def oddities(trace: Trace) -> dict[str, int]:
    """Return oddity -> number of jobs, for oddities that users of a trace should know."""
    jobs = trace.jobs
    processors, size = job_processors(jobs), trace.processors
    return {
        "run_zero": int((jobs["run"] == 0).sum()),
        "run_negative": int((jobs["run"] < 0).sum()),
        "requested_time_missing": int((jobs["time_requested"] < 0).sum()),
        "run_longer_than_requested": int(
            ((jobs["run"] > jobs["time_requested"]) & (jobs["time_requested"] >= 0)).sum()
        ),
        "submit_out_of_order": int((np.diff(jobs["submit"].to_numpy()) < 0).sum()),
        "submit_negative": int((jobs["submit"] < 0).sum()),
        "no_processors": int((processors <= 0).sum()),
        "more_processors_than_the_machine": int((processors > size).sum()) if size else 0,
        "duplicate_job_id": int(jobs["job_id"].duplicated().sum()),
        "memory_missing": int((np.maximum(jobs["memory_requested"], jobs["memory_used"]) < 0).sum()),
    }


def arrivals(trace: Trace) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the numbers of jobs submitted in each hour of the day (24,) and on each weekday from Monday (7,); without
    a date, None for the weekdays.

    Hours are those of the machine's local time if the header gives it, else of days that begin at submit time 0.
    """
    started = trace.starts_at
    offset = 0 if started is None else started.hour * HOUR + started.minute * 60 + started.second
    seconds = trace.jobs["submit"].to_numpy() + offset
    hours = np.bincount((seconds // HOUR % 24).astype(int), minlength=24)
    if started is None:
        return hours, None
    return hours, np.bincount(((seconds // DAY + started.weekday()) % 7).astype(int), minlength=7)


def load_over_time(trace: Trace, bins: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Return edges (bins + 1,) in s and the offered load (bins,) of the work submitted in each bin, as a fraction of
    the machine.

    Raises UserError if the header does not give the size of the machine.
    """
    submit = trace.jobs["submit"].to_numpy()
    low, high = (submit.min(), submit.max()) if len(submit) else (0.0, 1.0)
    edges = np.linspace(low, max(high, low + 1.0), bins + 1)
    work = np.maximum(trace.jobs["run"].to_numpy(), 0) * np.maximum(job_processors(trace.jobs), 0)
    sums, _ = np.histogram(submit, bins=edges, weights=work)
    return edges, sums / (np.diff(edges) * trace.machine_size())


def is_power_of_two(counts: np.ndarray) -> np.ndarray:
    """Return for positive whole numbers (n,) whether each is a power of two."""
    counts = np.asarray(counts, dtype=np.int64)
    return (counts & (counts - 1)) == 0


def _distribution(values: pd.Series) -> dict[str, float] | None:
    known = values[values >= 0].to_numpy(dtype=float)
    if not len(known):
        return None
    found = {name: float(np.quantile(known, level)) for name, level in QUANTILES.items()}
    return {"jobs": len(known), "mean": float(known.mean()), **found}


def _mean(values: Any) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _rank_correlation(first: np.ndarray, second: np.ndarray) -> float | None:
    """Return Spearman's coefficient; ties have their mean rank."""
    import pandas as pd

    known = (first > 0) & (second >= 0)
    ranks = pd.Series(first[known]).rank(), pd.Series(second[known]).rank()
    if known.sum() < 2 or ranks[0].nunique() < 2 or ranks[1].nunique() < 2:
        return None
    return float(np.corrcoef(*ranks)[0, 1])
