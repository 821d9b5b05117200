"""What the scheduler is told first: SIMULATION_BEGINS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schedlab.batsim.files.profiles import used_profiles
from schedlab.batsim.files.workload import Workload
from schedlab.batsim.simulator.options import Options
from schedlab.platforms.batsim_xml import Host


def begin_data(
    options: Options,
    workloads: Sequence[Workload],
    compute_hosts: Sequence[Host],
    storage_hosts: Sequence[Host],
    sleeping: int,
) -> dict[str, Any]:
    """Return the data of SIMULATION_BEGINS; `sleeping` has a bit for each compute host that sleeps at first."""
    computing, storing = len(compute_hosts), len(storage_hosts)
    return {
        "nb_resources": computing + storing,
        "nb_compute_resources": computing,
        "nb_storage_resources": storing,
        "allow_compute_sharing": options.compute_sharing,
        "allow_storage_sharing": True,
        "config": {
            "redis-enabled": False,
            "redis-hostname": "127.0.0.1",
            "redis-port": 6379,
            "redis-prefix": "default",
            "profiles-forwarded-on-submission": options.forward_profiles,
            "dynamic-jobs-enabled": options.dynamic_jobs,
            "dynamic-jobs-acknowledged": options.acknowledge_dynamic_jobs,
            "profile-reuse-enabled": options.profile_reuse,
            "sched-config": options.scheduler_config,
            "forward-unknown-events": options.forward_unknown_events,
        },
        "compute_resources": [
            _resource(number, host, bool(sleeping >> number & 1)) for number, host in enumerate(compute_hosts)
        ],
        "storage_resources": [
            _resource(number, host, False) for number, host in enumerate(storage_hosts, start=computing)
        ],
        "workloads": {workload.name: workload.path for workload in workloads},
        "profiles": {workload.name: _profiles_in_use(workload) for workload in workloads},
    }


def _resource(number: int, host: Host, sleeping: bool) -> dict[str, Any]:
    return {
        "id": number,
        "name": host.name,
        "state": "sleeping" if sleeping else "idle",
        "properties": {"role": "", **host.properties},
        "zone_properties": dict(host.point.zone.properties),
    }


def _profiles_in_use(workload: Workload) -> dict[str, Any]:
    """Profiles that some job runs, directly, in a sequence or as the outcome of a message."""
    used: set[str] = set()
    for name in dict.fromkeys(job.profile.name for job in workload.jobs):
        if name not in used:
            used |= used_profiles(workload.profiles, name)
    return {name: profile.json for name, profile in workload.profiles.items() if name in used}
