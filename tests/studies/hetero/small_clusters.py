"""The learning case and other small clusters and workloads."""

from __future__ import annotations

from typing import Any

from schedlab.platforms.settings import PlatformSettings
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.episode import Cluster, Episode, make_cluster, make_jobs
from schedlab.studies.hetero.simulator.physics import Physics, PhysicsSettings
from schedlab.workloads.batsim_file import BatsimWorkload


def workload(jobs: list[dict[str, Any]], nb_res: int = 4) -> BatsimWorkload:
    """Jobs of one core and 5 s at 4.2 Gflop/s, submitted at 0, unless changed (mem in MB, bw in GB/s)."""
    listed, profiles = [], {}
    for number, given in enumerate(jobs):
        job = {"subtime": 0, "res": 1, "time": 5, "mem": 8000, "bw": 24} | given
        flops = 4.2e9 * job["time"]
        listed.append({"id": number, "subtime": job["subtime"], "res": job["res"], "profile": str(number)})
        profiles[str(number)] = {
            "type": "parallel_homogeneous",
            "com": 0,
            "cpu": job.get("cpu", flops),
            "req_time": job["time"],
            "req_ops": flops,
            "mem": job["mem"],
            "mem_bw": job["bw"],
        }
    return BatsimWorkload(nb_res, listed, profiles)


def cluster(name: str = "learning", **settings: Any) -> Cluster:
    """A shipped platform."""
    return make_cluster(PlatformSettings(name=name, file=name, **settings))


def episode(
    jobs: list[dict[str, Any]],
    where: Cluster | None = None,
    seed: int = 0,
    physics: dict[str, Any] | None = None,
    **settings: Any,
) -> Episode:
    """An episode of hand-made jobs on the learning platform."""
    where, decisions = where or cluster(), DecisionSettings(**settings)
    beyond = Physics(PhysicsSettings(**(physics or {})), seed)
    return Episode(where, make_jobs(workload(jobs, where.hierarchy.cores)), decisions, seed, physics=beyond)
