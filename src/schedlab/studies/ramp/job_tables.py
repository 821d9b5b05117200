"""Tables of an episode: a row for each job that ended, a row for each cluster step."""

from __future__ import annotations

from typing import Any

import pandas as pd

from schedlab.studies.ramp.cluster import Cluster
from schedlab.studies.ramp.jobs import Job


def job_table(cluster: Cluster) -> pd.DataFrame:
    """Return a row for each job that ended: what it was, what became of it (cause empty: completed), and how it ran.

    Columns: job, model, beta, cause, time (s, of the end), ops, deps, memory, dep_size (bytes), sequential_jct (s), and for completed
    jobs jct (s), speedup, degree, workers, else missing.
    """
    rows = [_described(blocked.job) | {"cause": blocked.cause, "time": blocked.time} for blocked in cluster.record.blocked]
    for done in cluster.record.completed:
        running = done.running
        rows.append(
            _described(running.job)
            | {
                "cause": "",
                "time": done.time,
                "jct": done.duration,
                "speedup": running.job.sequential_time / done.duration,
                "degree": running.plan.split.max_degree,
                "workers": running.timing.workers,
            }
        )
    table = pd.DataFrame(rows, columns=[*JOB_COLUMNS])
    return table.astype(JOB_COLUMNS).sort_values("job", ignore_index=True)


JOB_COLUMNS = {
    "job": "int64",
    "model": "str",
    "beta": "float64",
    "cause": "str",
    "time": "float64",
    "ops": "int64",
    "deps": "int64",
    "memory": "float64",
    "dep_size": "float64",
    "sequential_jct": "float64",
    "jct": "float64",
    "speedup": "float64",
    "degree": "float64",
    "workers": "float64",
}


def _described(job: Job) -> dict[str, Any]:
    graph = job.graph
    return {
        "job": job.index,
        "model": graph.name,
        "beta": job.beta,
        "ops": graph.num_ops,
        "deps": len(graph.edges),
        "memory": graph.total_memory,
        "dep_size": graph.total_dep_size,
        "sequential_jct": job.sequential_time,
    }


def step_table(cluster: Cluster) -> pd.DataFrame:
    """Return a row for each step, columns as in statistics.step_statistics; what may be several values is the first of them."""
    rows = [{name: value[0] if isinstance(value, list) else value for name, value in step.items()} for step in cluster.record.steps]
    table = pd.DataFrame(rows)
    return table[["step_counter", *(name for name in table if name != "step_counter")]]
