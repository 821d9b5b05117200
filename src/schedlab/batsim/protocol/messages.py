"""The form of SIMULATION_BEGINS, the first message to the scheduler, and of the scheduler's replies.

A reply is `{"now": s, "events": [{"timestamp": s, "type": text, "data": {...}}, ...]}`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.profiles import used_profiles
from schedlab.batsim.files.workload import Workload
from schedlab.batsim.simulator.options import Options
from schedlab.platforms.platform import Host


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
        "allow_storage_sharing": options.storage_sharing,
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
        "zone_properties": host.point.zone.all_properties(),
    }


def _profiles_in_use(workload: Workload) -> dict[str, Any]:
    """Return the profiles that some job runs, directly, in a sequence or as the outcome of a message."""
    used: set[str] = set()
    for name in dict.fromkeys(job.profile.name for job in workload.jobs):
        if name not in used:
            used |= used_profiles(workload.profiles, name)
    return {name: profile.json for name, profile in workload.profiles.items() if name in used}


def checked_events(message: Any) -> tuple[float, list[dict[str, Any]]]:
    """Return the date and the events of a reply. Raises ProtocolError if its form or the order of its dates is
    wrong.
    """
    if not isinstance(message, dict) or not isinstance(events := message.get("events"), list):
        raise ProtocolError("the reply is no message", message, expected='{"now": ..., "events": [...]}')
    end = date_of(message.get("now"), message, "now")
    last = 0.0
    for event in events:
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise ProtocolError("is no event", event, expected='{"timestamp": ..., "type": ..., "data": {...}}')
        date = event.get("timestamp")
        if type(date) is not float or not last <= date <= end:
            date = date_of(date, event, "timestamp")
        if date > end:
            raise ProtocolError(
                f"timestamp {date} is later than the reply's now, {end}", event, expected="timestamp <= now"
            )
        if date < last:
            raise ProtocolError(
                f"timestamp {date} comes after {last}", event, expected="events in order of their dates"
            )
        last = date
        if not isinstance(event.get("data"), dict):
            raise ProtocolError("has no data", event, expected='an object "data", which may be empty')
    return end, events


def date_of(value: Any, event: Any, key: str) -> float:
    """Return a date in s. Raises ProtocolError for anything but a finite number."""
    if type(value) is float and -math.inf < value < math.inf:
        return value
    if isinstance(value, float | int) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    elif hasattr(value, "item"):  # a NumPy number
        return date_of(value.item(), event, key)
    raise ProtocolError(f"{key} is {value!r:.60}", event, expected="a date in s")
