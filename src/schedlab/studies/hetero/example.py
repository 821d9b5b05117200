"""The learning case of HDeepRM's thesis: two like jobs whose memory bandwidths do not go together on one processor.

Source: specification of the study hetero, section 8. Worked by hand: both jobs on the faster processor end at 6.3636 s,
both on the one of lower power at 7 s, one on each at 5.25 s.
"""

from __future__ import annotations

from schedlab.platforms.settings import PlatformSettings
from schedlab.studies.hetero.simulator.episode import Cluster, Jobs, make_cluster, make_jobs
from schedlab.workloads.batsim_file import BatsimWorkload, set_work

PLATFORM = "learning"
# the thesis' actions: the best ones are the second and the last
SELECTION = (
    "shortest-high_gflops",
    "shortest-high_mem_bw",
    "shortest-low_power",
    "first-high_gflops",
    "first-high_mem_bw",
)


def learning_workload(reference_speed: float) -> BatsimWorkload:
    """Return the two jobs; reference_speed: mean speed of the platform's cores, Gflop/s."""
    profile = {"type": "parallel_homogeneous", "com": 0, "req_time": 5, "mem": 8000, "mem_bw": 24}
    jobs = [{"id": number, "subtime": 0, "res": 1, "profile": "conflict"} for number in range(2)]
    return set_work(BatsimWorkload(4, jobs, {"conflict": profile}), reference_speed)


def learning_case() -> tuple[Cluster, Jobs]:
    """Return the platform of two processors and the two jobs."""
    cluster = make_cluster(PlatformSettings(name=PLATFORM, file=PLATFORM))
    return cluster, make_jobs(learning_workload(cluster.hierarchy.reference_speed))
