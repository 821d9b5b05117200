"""The resource model between the simulator and a scheduler without knowledge of it, so that memory, bandwidth and
pstates have the same effects as for pairs.

The scheduler decides when a job starts; a core policy or the scheduler chooses the cores. A start whose memory is not
free is delayed and delays the starts behind it, as with pairs; the scheduler takes such a job for running. Jobs that
the platform can never run are rejected before the scheduler receives them. If a node fails, the scheduler receives the
ends of the jobs on it, their next attempts as new jobs, and a notice that as many hosts are unavailable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from schedlab.batsim.backends.backend import Backend
from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.results import intervals as pairs_of
from schedlab.config.errors import UserError
from schedlab.config.seeds import generator
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES
from schedlab.studies.hetero.simulator.decisions import (
    DecisionSystem,
    failure_events,
    intervals,
    protocol_event,
    pstate_events,
)
from schedlab.studies.hetero.simulator.resources import KB_PER_MB, JobRequest

OWN_CHOICE = "own"  # the scheduler chooses the cores itself
Event = dict[str, Any]


class ManagedCores:
    """A back end for a scheduler that wraps another back end; cores: a core policy, or OWN_CHOICE.

    Raises UserError for a scheduler that sets pstates itself or chooses cores of nodes without the memory of the job.
    """

    def __init__(self, backend: Backend, system: DecisionSystem, cores: str, seed: int) -> None:
        self.system, self._backend = system, backend
        self._choose = None if cores == OWN_CHOICE else ALL_CORE_POLICIES[cores]
        self._rng = generator(seed, "hetero", "cores of a scheduler's jobs")
        self._waiting: list[tuple[JobRequest, Event]] = []  # starts that are not carried out yet
        self._named: dict[str, str] = {}  # job -> the hosts that the scheduler thinks it runs on
        self._withdrawn: dict[int, list[int]] = {}  # failed node -> the hosts that are withdrawn from the scheduler

    def next_message(self) -> dict[str, Any] | None:
        """Continue to the next message with an event for the scheduler, and return it."""
        while (message := self._backend.next_message()) is not None:
            self.system.take(message)
            heard = [event for event in message["events"] if self._concerns(event)]
            heard += self._capacity_events(message["now"])
            if heard or not message["events"]:
                return {**message, "events": heard}
            self.answer({"now": message["now"], "events": []})
        return None

    def answer(self, message: dict[str, Any]) -> None:
        """Carry out the scheduler's orders as far as resources allow, and set pstates."""
        now = message["now"]
        passed = [event for event in message["events"] if not self._keep(event)]
        starts = self._start()
        self.system.refresh()
        orders = self.system.orders()
        for job, hosts in orders.start:
            starts[job]["data"]["alloc"] = intervals(hosts)
        passed += starts.values()
        passed += [protocol_event(now, "REJECT_JOB", job_id=job) for job in orders.reject]
        passed = failure_events(orders, now) + passed
        passed.sort(key=lambda event: event["timestamp"])
        self._backend.answer({**message, "events": passed + pstate_events(orders, now)})

    def _concerns(self, event: Event) -> bool:
        """Return whether an event is passed to the scheduler; at a job's end, give it the hosts that it chose."""
        kind, data, failures = event["type"], event["data"], self.system.failures
        if failures is not None and kind == "SIMULATION_BEGINS":  # jobs are registered here, not by the scheduler
            data["config"] |= {"dynamic-jobs-enabled": False, "dynamic-jobs-acknowledged": False}
        if failures is not None and kind == "REQUESTED_CALL" and failures.called:
            failures.called = False
            return False
        if kind == "JOB_COMPLETED" and data["job_id"] in self._named:
            data["alloc"] = self._named.pop(data["job_id"])
        refused = kind == "JOB_SUBMITTED" and self.system.queue.named(data["job_id"]) is None
        return kind != "RESOURCE_STATE_CHANGED" and not refused

    def _capacity_events(self, now: float) -> list[Event]:
        """Return the notices by which the scheduler learns of failed and repaired nodes."""
        events = []
        for node, works in self.system.failures.changes if self.system.failures is not None else []:
            if not works:
                self._withdrawn[node] = self._hosts_to_withdraw(node)
            hosts = self._withdrawn.pop(node) if works else self._withdrawn[node]
            kind = "event_machine_available" if works else "event_machine_unavailable"
            events.append(protocol_event(now, "NOTIFY", type=kind, resources=intervals(hosts)))
        return events

    def _hosts_to_withdraw(self, node: int) -> list[int]:
        """Return as many hosts as a failed node has, ascending: its own if the scheduler chooses cores, else hosts that
        the scheduler takes for free, then those of jobs that the failure ends.
        """
        model = self.system.model
        cores = model.cores_of(np.array(model.processors_of[node]))
        if self._choose is None:
            return self.system.hosts_of_cores(cores)
        gone = {host for hosts in self._withdrawn.values() for host in hosts}
        held = dict[int, int]()
        for job, alloc in [*self._named.items(), *((job.id, event["data"]["alloc"]) for job, event in self._waiting)]:
            ends = job in self._named and job not in model.running
            held.update(dict.fromkeys(_hosts(alloc), 1 if ends else 2))
        left = sorted(set(range(model.hierarchy.cores)) - gone, key=lambda host: (held.get(host, 0), -host))
        return sorted(left[: len(cores)])

    def _keep(self, event: Event) -> bool:
        """Process an event of the scheduler; return whether it is a start, which this class carries out itself."""
        kind, data = event["type"], event["data"]
        if kind == "SET_RESOURCE_STATE":
            expected = "none: they follow from what runs, so that bandwidth counts alike for all"
            raise UserError("the scheduler sets pstates", where="platform.pstates.managed", expected=expected)
        job = self.system.queue.named(data["job_id"]) if kind in ("EXECUTE_JOB", "REJECT_JOB") else None
        if job is None:
            return False
        if kind == "REJECT_JOB":
            self.system.forget(job)
            return False
        if any(other is job for other, _ in self._waiting):
            raise ProtocolError("a job is started twice", event, expected="each job once")
        self._waiting.append((job, event))
        return True

    def _start(self) -> dict[str, Event]:
        """Start jobs in the scheduler's order until one lacks a resource; return the events of the starts by job."""
        started: dict[str, Event] = {}
        while self._waiting:
            job, event = self._waiting[0]
            cores, lacking = self._cores_for(job, event["data"])
            if lacking:
                getattr(self.system.model.overuse, lacking).append(self.system.model.now)
                break
            del self._waiting[0]
            self._named[job.id] = event["data"]["alloc"]
            self.system.start(job, cores)
            started[job.id] = {**event, "timestamp": max(event["timestamp"], self.system.model.now)}
        return started

    def _cores_for(self, job: JobRequest, data: Mapping[str, Any]) -> tuple[list[int], str]:
        """Return the cores that a job gets, and the resource that it lacks now ('' if none)."""
        model = self.system.model
        if self._choose is not None:
            return model.place(job, self._choose, self._rng)
        cores = self.system.cores_of_hosts(_hosts(data["alloc"]))
        wanted = Counter(model.node_of[model.processor_of[core]] for core in cores)
        for node, count in wanted.items():
            if count * job.memory > model.memory[node]:
                what = f"job {job.id} needs {job.memory / KB_PER_MB:g} MB on each of {count} cores of node {node}"
                expected = f"at most {model.memory[node] / KB_PER_MB:g} MB"
                raise UserError(what, where="the scheduler's choice of cores", expected=expected)
        if model.down[cores].any():
            return cores, "core"
        room = all(count * job.memory <= model.free_memory[node] for node, count in wanted.items())
        return cores, "memory" if not room else "" if model.power_suffices(cores) else "power"


def _hosts(text: str) -> list[int]:
    """Return the numbers in a set of hosts in Batsim's notation."""
    return [host for first, last in pairs_of(text) for host in range(first, last + 1)]
