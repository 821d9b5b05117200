"""The scores of a finished schedule of jobs, and the queue and the used hosts over time; shared by the studies of job
scheduling.

A schedule is a table with a row for each job and at least these columns (times in s, NaN for a job that was rejected
and thus never started):

    submit, start, finish    when it was submitted, started and ended
    hosts_requested, hosts   hosts that it requested, and hosts that it received
    success                  whether it ran to its end, neither rejected nor killed

Definition of the bounded slowdown: D. G. Feitelson, "Metrics for parallel job scheduling and their convergence", JSSPP
2001.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from schedlab.config.contract import Metric

if TYPE_CHECKING:
    import pandas as pd

JOB_METRICS = (
    Metric("mean_bounded_slowdown", "-", "lower", headline=True, label="mean bounded slowdown"),
    Metric("mean_wait", "s", "lower", label="mean waiting time"),
    Metric("mean_turnaround", "s", "lower", label="mean turnaround time"),
    Metric("makespan", "s", "lower", label="makespan"),
    Metric("utilisation", "fraction", "higher", label="utilisation"),
    Metric("unsuccessful", "fraction", "lower", label="jobs rejected or killed"),
)


def bounded_slowdown(turnaround: np.ndarray, run: np.ndarray, threshold: float) -> np.ndarray:
    """Return max(1, turnaround / max(run, threshold)) of jobs, all in s: shorter runs count as the threshold."""
    found: np.ndarray = np.maximum(turnaround / np.maximum(run, threshold), 1.0)
    return found


def job_metrics(jobs: pd.DataFrame, hosts: int, threshold: float) -> dict[str, float]:
    """Return the metrics of JOB_METRICS by name; if no job ran, only `unsuccessful`.

    hosts      number of hosts of the platform
    threshold  threshold of the bounded slowdown, s: a job that ran shorter counts as one of this length

    Waiting time, turnaround time and slowdown are means over the jobs that ran. The makespan is the time from the first
    submission to the last end; utilisation is occupied host-seconds over `hosts` times the makespan (left out if that
    is 0).
    """
    metrics = {"unsuccessful": float(1.0 - jobs["success"].mean())}
    ran = jobs[jobs["start"].notna()]
    if ran.empty:
        return metrics
    run, turnaround = ran["finish"] - ran["start"], ran["finish"] - ran["submit"]
    makespan = float(ran["finish"].max() - jobs["submit"].min())
    metrics |= {
        "mean_bounded_slowdown": float(bounded_slowdown(turnaround, run, threshold).mean()),
        "mean_wait": float((ran["start"] - ran["submit"]).mean()),
        "mean_turnaround": float(turnaround.mean()),
        "makespan": makespan,
    }
    if makespan > 0:
        metrics["utilisation"] = float((run * ran["hosts"]).sum() / (hosts * makespan))
    return metrics


def load_over_time(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return the queue and the occupied hosts over time: columns time (s), waiting (jobs), waiting_hosts, busy_hosts.

    A row is valid from its time to that of the next row; there is one for each time of a submission, start or end.
    Rejected jobs are left out.
    """
    import pandas as pd

    ran = jobs[jobs["start"].notna()]
    one, asked, got = np.ones(len(ran)), ran["hosts_requested"].to_numpy(float), ran["hosts"].to_numpy(float)
    none = np.zeros(len(ran))
    steps = {
        "time": np.concatenate([ran["submit"], ran["start"], ran["finish"]]),
        "waiting": np.concatenate([one, -one, none]),
        "waiting_hosts": np.concatenate([asked, -asked, none]),
        "busy_hosts": np.concatenate([none, got, -got]),
    }
    changes = pd.DataFrame(steps).groupby("time", sort=True).sum()
    return changes.cumsum().astype("int64").reset_index()
