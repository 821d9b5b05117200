"""Statistics of a cluster step and of an episode, under the names in the logs of the published system.

See docs/reference/ramp_model.md. Units are bytes, seconds and bytes/s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from schedlab.studies.ramp.simulator.jobs import Job

if TYPE_CHECKING:
    from schedlab.studies.ramp.simulator.cluster import RunningJob

INFO = ("compute", "dep", "flow", "cluster", "demand_compute", "demand_dep", "demand_total")
INFO_NAMES = tuple((f"{name}_info_processed", f"mean_{name}_throughput") for name in INFO)
EPISODE_MEANS = (
    "mean_compute_overhead_frac",
    "mean_communication_overhead_frac",
    "mean_num_jobs_running",
    "mean_num_mounted_workers",
    "mean_mounted_worker_utilisation_frac",
    "mean_cluster_worker_utilisation_frac",
)


class Rates(NamedTuple):
    """What a running job contributes to the statistics of a step: information per second, in the order of INFO; shares
    of time in computation and communication; utilisation; numbers of workers and channels.
    """

    information: tuple[float, ...]
    computation: float
    communication: float
    utilisation: float
    workers: int
    channels: int


@dataclass(frozen=True)
class BlockedJob:
    """A job that was blocked, with cause and time (s); `running`: how it would have run, if that was computed."""

    job: Job
    cause: str
    time: float
    running: RunningJob | None = None


@dataclass(frozen=True)
class CompletedJob:
    """A completed job with its time of completion (s)."""

    running: RunningJob
    time: float

    @property
    def duration(self) -> float:
        """Job completion time, s."""
        return self.time - self.running.started


@dataclass
class EpisodeRecord:
    """Events since the last reset, in order.

    load_rates  bytes/s of each arrival: its demand over the gap to the next arrival
    """

    steps: list[dict[str, Any]] = field(default_factory=list)
    completed: list[CompletedJob] = field(default_factory=list)
    blocked: list[BlockedJob] = field(default_factory=list)
    load_rates: list[float] = field(default_factory=list)

    @property
    def arrived(self) -> int:
        """Jobs that arrived."""
        return len(self.load_rates)


def step_statistics(running: Sequence[RunningJob], num_workers: int, start: float, tick: float) -> dict[str, Any]:
    """Return the statistics of the running jobs over a tick of `tick` s; the cluster adds counts such as arrivals."""
    info: tuple[float, ...] = (0,) * len(INFO)
    sums: tuple[float, ...] = (0,) * 5
    if running:
        information, *others = zip(*(job.rates for job in running), strict=True)
        info = tuple(sum(column) * tick for column in zip(*information, strict=True))
        sums = tuple(map(sum, others))
    computation, communication, busy = (value / len(running) if running else 0 for value in sums[:3])
    workers, channels = sums[3:]
    found: dict[str, Any] = {
        "step_start_time": start,
        "step_end_time": start + tick,
        "step_time": tick,
        "mean_num_jobs_running": float(len(running)),
        "mean_num_mounted_workers": float(workers),
        "mean_num_mounted_channels": float(channels),
        "mean_compute_overhead_frac": computation,
        "mean_communication_overhead_frac": communication,
        "mean_mounted_worker_utilisation_frac": busy,
        "mean_cluster_worker_utilisation_frac": busy * workers / num_workers,
    }
    for (total, rate), value in zip(INFO_NAMES, info, strict=True):
        found[total] = value
        found[rate] = _rate(value, tick)
    return found


def _rate(amount: float, time: float) -> float:
    return amount / time if amount and 0 < time < float("inf") else 0


def episode_statistics(record: EpisodeRecord, end: float) -> dict[str, Any]:
    """Return the statistics of all steps so far; `end`: the current time, s."""
    arrived = record.arrived
    found: dict[str, Any] = {
        "num_jobs_arrived": arrived,
        "num_jobs_completed": len(record.completed),
        "num_jobs_blocked": len(record.blocked),
        "episode_start_time": 0,
        "episode_end_time": end,
        "episode_time": end,
        "mean_load_rate": sum(record.load_rates) / arrived if arrived else 0.0,
        "blocking_rate": len(record.blocked) / arrived if arrived else 0.0,
        "acceptance_rate": len(record.completed) / arrived if arrived else 0.0,
    }
    for name in INFO:
        total = sum(step[f"{name}_info_processed"] for step in record.steps)
        found[f"{name}_info_processed"] = total
        found[f"mean_{name}_throughput"] = _rate(total, end)
    for name in EPISODE_MEANS:
        values = [step[name] for step in record.steps]
        found[name] = sum(values) / len(values) if values else 0.0
    if record.completed:
        found |= _columns([_completed(done) for done in record.completed])
    if record.blocked:
        found |= _columns([_blocked(blocked.job) for blocked in record.blocked])
    return found


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _completed(done: CompletedJob) -> dict[str, Any]:
    running, job = done.running, done.running.job
    split = running.plan.split
    return {
        "job_completion_time": done.duration,
        "job_completion_time_speedup": job.sequential_time / done.duration if done.duration else float("inf"),
        "job_communication_overhead_time": running.communication,
        "job_computation_overhead_time": running.computation,
        "jobs_completed_num_nodes": split.num_shards,
        "jobs_completed_num_edges": split.num_deps,
        "jobs_completed_total_operation_memory_cost": split.total_memory,
        "jobs_completed_total_dependency_size": split.total_dep_size,
        "jobs_completed_max_partitions_per_op": split.max_degree,
        **{f"jobs_completed_{name}": value for name, value in _description(job).items()},
        "jobs_completed_num_mounted_workers": running.timing.workers,
        "jobs_completed_num_mounted_channels": running.rates.channels,
        "jobs_completed_mean_mounted_worker_utilisation_frac": running.utilisation,
        **{f"jobs_completed_{name}": value for name, value in _demand(job).items()},
    }


def _blocked(job: Job) -> dict[str, Any]:
    return {
        "jobs_blocked_num_nodes": job.graph.num_ops,
        "jobs_blocked_num_edges": len(job.graph.edges),
        "jobs_blocked_total_operation_memory_cost": job.graph.total_memory,
        "jobs_blocked_total_dependency_size": job.graph.total_dep_size,
        **{f"jobs_blocked_{name}": value for name, value in _description(job).items()},
        **{f"jobs_blocked_{name}": value for name, value in _demand(job).items()},
    }


def _description(job: Job) -> dict[str, Any]:
    return {
        "job_sequential_completion_time": job.sequential_time,
        "max_acceptable_job_completion_time_frac": job.beta,
        "max_acceptable_job_completion_time": job.time_limit,
    }


def _demand(job: Job) -> dict[str, Any]:
    return {
        "original_demand_num_nodes": job.graph.num_ops,
        "original_demand_num_edges": len(job.graph.edges),
        "original_demand_total_operation_memory_cost": job.graph.total_memory,
        "original_demand_total_dependency_size": job.graph.total_dep_size,
    }
