"""A simulator of delay jobs in a few lines, for what schedulers must do whatever the simulator: one date at a time, one
message a date.
"""

from __future__ import annotations

import heapq
from typing import Any

from schedlab.batsim.errors import SimulationDeadlock

CONFIG = {
    "profiles-forwarded-on-submission": False,
    "dynamic-jobs-enabled": False,
    "dynamic-jobs-acknowledged": False,
    "forward-unknown-events": False,
}


class TinySimulator:
    """Jobs as (submission, hosts, walltime, runtime) in s; `starts` and `allocations` tell what the scheduler did, by
    job index.

    machine_events: (date, 'event_machine_unavailable' | 'event_machine_available', resources)
    """

    def __init__(
        self, hosts: int, jobs: list[tuple[float, int, float, float]], machine_events: list[tuple] = ()
    ) -> None:
        self.hosts, self.jobs = hosts, jobs
        self.starts: dict[int, float] = {}
        self.ends: dict[int, float] = {}
        self.allocations: dict[int, set[int]] = {}
        self.rejected: set[int] = set()
        self._busy: set[int] = set()
        self._unavailable: set[int] = set()
        self._agenda: list[tuple] = []
        for index, job in enumerate(jobs):
            self._plan(job[0], 1, "submit", index)
        for date, kind, resources in machine_events:
            self._plan(date, 0, kind, resources)
        self._plan(-1.0, 0, "begin", None)
        self._over = False
        self.now = 0.0

    def _plan(self, date: float, rank: int, kind: str, what: Any) -> None:
        heapq.heappush(self._agenda, (date, rank, len(self._agenda) + len(self.starts) * 1000, kind, what))

    def next_message(self) -> dict[str, Any] | None:
        if self._over:
            return None
        if not self._agenda:
            waiting = set(range(len(self.jobs))) - set(self.ends) - self.rejected
            if waiting:
                raise SimulationDeadlock(f"waiting: {sorted(waiting)}", tuple(f"w0!{n}" for n in sorted(waiting)))
            self._over = True
            return self._message([("SIMULATION_ENDS", {})])
        date = self._agenda[0][0]
        self.now = max(date, 0.0)
        events = []
        while self._agenda and self._agenda[0][0] == date:
            _, _, _, kind, what = heapq.heappop(self._agenda)
            events.append(getattr(self, f"_{kind}")(what))
        return self._message(events)

    def _message(self, events: list[tuple[str, dict]]) -> dict[str, Any]:
        return {
            "now": self.now,
            "events": [{"timestamp": self.now, "type": kind, "data": data} for kind, data in events],
        }

    def _begin(self, _none: None) -> tuple[str, dict]:
        resources = [
            {"id": n, "name": f"h{n:05}", "state": "idle", "properties": {}, "zone_properties": {}}
            for n in range(self.hosts)
        ]
        data = {"nb_resources": self.hosts, "nb_compute_resources": self.hosts, "nb_storage_resources": 0}
        data |= {
            "allow_compute_sharing": False,
            "allow_storage_sharing": True,
            "config": dict(CONFIG),
            "compute_resources": resources,
        }
        data |= {
            "storage_resources": [],
            "workloads": {"w0": "/w.json"},
            "profiles": {"w0": {"p": {"type": "delay", "delay": 1}}},
        }
        return "SIMULATION_BEGINS", data

    def _submit(self, index: int) -> tuple[str, dict]:
        submission, hosts, walltime, _ = self.jobs[index]
        job = {"id": f"w0!{index}", "subtime": submission, "res": hosts, "profile": "p"} | (
            {"walltime": walltime} if walltime else {}
        )
        return "JOB_SUBMITTED", {"job_id": job["id"], "job": job}

    def _complete(self, index: int) -> tuple[str, dict]:
        self.ends[index] = self.now
        self._busy -= self.allocations[index]
        return "JOB_COMPLETED", {
            "job_id": f"w0!{index}",
            "job_state": "COMPLETED_SUCCESSFULLY",
            "return_code": 0,
            "alloc": "",
        }

    def _event_machine_unavailable(self, resources: str) -> tuple[str, dict]:
        self._unavailable |= ids(resources)
        return "NOTIFY", {"type": "event_machine_unavailable", "resources": resources}

    def _event_machine_available(self, resources: str) -> tuple[str, dict]:
        self._unavailable -= ids(resources)
        return "NOTIFY", {"type": "event_machine_available", "resources": resources}

    def answer(self, message: dict[str, Any]) -> None:
        for event in message["events"]:
            index = int(event["data"]["job_id"].removeprefix("w0!"))
            if event["type"] == "REJECT_JOB":
                self.rejected.add(index)
                continue
            assert event["type"] == "EXECUTE_JOB"
            assert index not in self.starts
            allocation = ids(event["data"]["alloc"])
            _, hosts, walltime, runtime = self.jobs[index]
            assert len(allocation) == hosts, "as many hosts as asked for"
            assert allocation <= set(range(self.hosts)), "hosts of the platform"
            assert not allocation & (self._busy | self._unavailable), "hosts that are idle and available"
            self.starts[index], self.allocations[index] = self.now, allocation
            self._busy |= allocation
            self._plan(self.now + min(runtime, walltime or runtime), 2, "complete", index)


def ids(resources: str) -> set[int]:
    """Return the ids of a resource set such as '0-3 5'."""
    return {n for part in resources.split() for n in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}
