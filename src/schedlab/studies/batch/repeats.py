"""Drawn workloads whose users submit a job again and again, some of which fail at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from schedlab.config.schema import Settings, setting
from schedlab.config.seeds import generator
from schedlab.workloads.prepare import make_trace
from schedlab.workloads.settings import WorkloadSettings
from schedlab.workloads.statistics import statistics
from schedlab.workloads.trace import Trace
from schedlab.workloads.trim import scale_load

SPREAD = 0.5  # standard deviation of ln of the factor between run times of repeated jobs
FAILS_WITHIN = 60.0  # s


class RepeatSettings(Settings):
    """Jobs of drawn users that repeat earlier ones."""

    share: float = setting(
        0.8,
        doc="probability that a job repeats the size and request of its user's last job and runs about as long",
        ge=0,
        lt=1,
    )
    failures: float = setting(0.0, doc="probability that a job fails within a minute, whatever its request", ge=0, lt=1)


def repeated_trace(workload: WorkloadSettings, repeats: RepeatSettings) -> tuple[Trace, dict[str, Any]]:
    """Return the trace of a workload in which users repeat their jobs, scaled to `workload.load` after that, and how it
    was made. Raises UserError.
    """
    trace, report = make_trace(workload.model_copy(update={"load": None}))
    trace = replace(trace, jobs=_repeated(trace.jobs, repeats, generator(workload.seed, "batch", "repeats")))
    trace = trace if workload.load is None else scale_load(trace, workload.load)
    found = {"repeats": repeats.model_dump(mode="json"), "statistics": {**statistics(trace), "source": workload.name}}
    return trace, report | found


def _repeated(jobs: Any, repeats: RepeatSettings, rng: np.random.Generator) -> Any:
    """The table of jobs with sizes, run times and requests of repeated jobs. Such a job runs as long as the first of
    its row, times a lognormal factor, at most as long as requested.
    """
    user, run, asked = (jobs[name].to_numpy() for name in ("user", "run", "time_requested"))
    count = len(jobs)
    again, factor = rng.random(count) < repeats.share, np.exp(rng.normal(0.0, SPREAD, count))
    fails, short = rng.random(count) < repeats.failures, np.ceil(rng.uniform(0.0, FAILS_WITHIN, count))
    first, last = np.arange(count), np.full(int(user.max()) + 1, -1)
    for job in range(count):
        if again[job] and last[user[job]] >= 0:
            first[job] = last[user[job]]
        last[user[job]] = first[job]
    most = np.where(asked > 0, asked, np.inf)[first]
    ran = np.where(first == np.arange(count), run, np.clip(np.floor(run[first] * factor), 1.0, most))
    size = jobs["procs_allocated"].to_numpy()[first]
    return jobs.assign(
        procs_allocated=size, run=np.where(fails, np.minimum(short, ran), ran), time_requested=asked[first]
    )
