"""Metrics and detail tables of a run, the same for schedulers, pairs and learned policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from schedlab.batsim.files.results import read_energy, read_jobs
from schedlab.batsim.running import read_summary
from schedlab.batsim.simulator.live_job import KILLED
from schedlab.config.contract import Metric, Outcome
from schedlab.evaluation.job_metrics import JOB_METRICS, job_metrics, load_over_time
from schedlab.studies.hetero.scenario import ENERGY_METRICS
from schedlab.studies.hetero.simulator.decisions import DecisionSystem
from schedlab.studies.hetero.simulator.failures import ATTEMPT

if TYPE_CHECKING:
    import pandas as pd

METRICS = (
    *JOB_METRICS,
    *ENERGY_METRICS,
    Metric("oversubscription", "fraction", "lower", label="cores' time under over-subscribed memory bandwidth"),
    Metric("infeasible", "jobs", "lower", label="jobs that the platform can never run"),
    Metric("lost", "fraction", "lower", label="cores' time lost to failures of nodes"),
)
DETAILS = {
    "jobs": "when and where each job ran",
    "load": "waiting jobs and busy hosts over time",
    "energy": "energy consumed so far over time",
    "overuse": "spans in which a processor's memory bandwidth was over-subscribed",
    "refusals": "when the next job did not start, and whether cores or memory were lacking",
    "decisions": "each decision of a policy that chooses: when, what, how many jobs waited, its reward",
}


def outcome(prefix: str, threshold: float, energy: bool, system: DecisionSystem | None) -> Outcome:
    """Return the scores and details of a run. If nodes fail, a job has several attempts: it waits from its first
    submission to its last start, its run time is that of its last attempt, and utilisation counts all attempts.

    prefix     path prefix of Batsim's output files
    threshold  lower bound on run times in the bounded slowdown, s
    energy     whether the run simulated energy
    system     decision system of the run; None if the run had none
    """
    attempts, totals = read_jobs(prefix), read_summary(prefix)
    hosts = int(totals["nb_computing_machines"])
    fails = system is not None and system.failures is not None
    jobs = whole_jobs(attempts) if fails else attempts
    scores, details = job_metrics(jobs, hosts, threshold), {"jobs": attempts, "load": load_over_time(attempts)}
    if fails and scores.get("makespan", 0.0) > 0:
        used = ((attempts["finish"] - attempts["start"]) * attempts["hosts"]).fillna(0.0) / (hosts * scores["makespan"])
        scores["utilisation"], scores["lost"] = float(used.sum()), float(used[attempts["state"] == KILLED].sum())
    if energy:
        details["energy"] = read_energy(prefix)
        if "makespan" in scores:
            scores["energy"] = totals["consumed_joules"]
            scores["energy_delay_product"] = totals["consumed_joules"] * scores["makespan"]
    if system is not None:
        spans = details["overuse"] = overuse_spans(system)
        details["refusals"] = refusals(system)
        scores["infeasible"] = float(system.rejected)
        if scores.get("makespan", 0.0) > 0:
            size = system.model.size[spans["processor"].to_numpy(np.int64)]
            scores["oversubscription"] = float((spans["duration"] * size).sum() / (hosts * scores["makespan"]))
    return Outcome(scores, details=details)


def whole_jobs(attempts: pd.DataFrame) -> pd.DataFrame:
    """Return the last attempt of each job in the table of `read_jobs`, with the first date of submission."""
    names = attempts["job"].str.partition(ATTEMPT)[0]
    last = attempts.groupby(names, sort=False).tail(1).copy()
    last["submit"] = last.index.map(names).map(attempts.groupby(names)["submit"].min())
    return last.assign(job=names).sort_values("submit", kind="stable", ignore_index=True)


def overuse_spans(system: DecisionSystem) -> pd.DataFrame:
    """Return the spans of over-subscribed bandwidth: columns processor, start and duration (s), sorted."""
    import pandas as pd

    spans = [(number, *span) for number, found in sorted(system.model.overuse.bandwidth.items()) for span in found]
    table = pd.DataFrame(spans, columns=["processor", "start", "duration"])
    return table.astype({"processor": "int64", "start": "float64", "duration": "float64"})


def refusals(system: DecisionSystem) -> pd.DataFrame:
    """Return the times at which the next job could not start: columns time (s) and lacking (`cores`, `memory`, or
    `power` where it is capped), sorted by time.
    """
    import pandas as pd

    overuse = system.model.overuse
    rows = [(date, "cores") for date in overuse.core] + [(date, "memory") for date in overuse.memory]
    rows += [(date, "power") for date in overuse.power]
    table = pd.DataFrame(sorted(rows), columns=["time", "lacking"])
    return table.astype({"time": "float64", "lacking": "str"})


def decisions_table(system: DecisionSystem, names: Sequence[str]) -> pd.DataFrame:
    """Return the decisions of a run: columns time (s), action (by name), waiting (jobs), reward."""
    import pandas as pd

    history = system.history
    columns = {"time": history.times, "action": [names[action] for action in history.actions]}
    return pd.DataFrame(columns | {"waiting": history.waiting, "reward": history.rewards})
