"""Tables of an episode: a row for each job that ended, a row for each cluster step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from schedlab.studies.ramp.simulator.cluster import Cluster, RunningJob
from schedlab.studies.ramp.simulator.jobs import Job

if TYPE_CHECKING:
    import pandas as pd


def job_table(cluster: Cluster, decided: Mapping[int, tuple[int, int]]) -> pd.DataFrame:
    """Return a row for each job that was completed or blocked.

    decided  job index -> degree that was chosen, and number of valid degrees (0: the job could only be rejected)
    The column `cause` is the cause of blocking, empty for completed jobs.
    Columns: job, model, beta, cause, time (s, of the end), ops, deps, memory, dep_size (bytes), sequential_jct (s),
    action, choices. For placed jobs, including those that would have exceeded their limit, also duration,
    communication, computation (s, of all steps), degree, workers; for completed jobs also jct (s), speedup.
    """
    import pandas as pd

    rows = [
        _described(blocked.job, decided) | _placed(blocked.running) | {"cause": blocked.cause, "time": blocked.time}
        for blocked in cluster.record.blocked
    ]
    for done in cluster.record.completed:
        job = done.running.job
        ran = {"cause": "", "time": done.time, "jct": done.duration, "speedup": job.sequential_time / done.duration}
        rows.append(_described(job, decided) | _placed(done.running) | ran)
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
    "action": "float64",
    "choices": "float64",
    "duration": "float64",
    "communication": "float64",
    "computation": "float64",
    "jct": "float64",
    "speedup": "float64",
    "degree": "float64",
    "workers": "float64",
}


def _described(job: Job, decided: Mapping[int, tuple[int, int]]) -> dict[str, Any]:
    graph = job.graph
    action, choices = decided.get(job.index, (None, None))
    return {
        "job": job.index,
        "model": graph.name,
        "beta": job.beta,
        "ops": graph.num_ops,
        "deps": len(graph.edges),
        "memory": graph.total_memory,
        "dep_size": graph.total_dep_size,
        "sequential_jct": job.sequential_time,
        "action": action,
        "choices": choices,
    }


def _placed(running: RunningJob | None) -> dict[str, Any]:
    if running is None:
        return {}
    return {
        "duration": running.duration,
        "communication": running.communication,
        "computation": running.computation,
        "degree": running.plan.split.max_degree,
        "workers": running.timing.workers,
    }


def step_table(cluster: Cluster) -> pd.DataFrame:
    """Return a row for each step, columns as in statistics.step_statistics."""
    import pandas as pd

    table = pd.DataFrame(cluster.record.steps)
    return table[["step_counter", *(name for name in table if name != "step_counter")]]
