"""Small schedulers that the cases of Batsim's own tests ask for, on PyBatsim's low-level API.

python suite_schedulers.py ENDPOINT NAME OPTIONS runs one of them, or one that `load_scheduler` knows, at an endpoint.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from typing import Any
from unittest import mock

from batsim.batsim import Batsim, BatsimScheduler
from batsim.network import NetworkHandler
from procset import ProcSet

from schedlab.batsim.scheduler_loading import load_scheduler

SECONDS_OF_SILENCE = 30


class Filling(BatsimScheduler):
    """Starts every waiting job that fits on the lowest free hosts; `metadata` in its options sets that of each job."""

    def onSimulationBegins(self) -> None:
        self.waiting: list[Any] = []
        self.running: dict[str, Any] = {}
        self.free = ProcSet((0, self.bs.nb_compute_resources - 1))

    def onJobSubmission(self, job: Any) -> None:
        if "metadata" in self.options:
            self.bs.set_job_metadata(job.id, self.options["metadata"])
        self.waiting.append(job)

    def onJobCompletion(self, job: Any) -> None:
        del self.running[job.id]
        self.free |= job.allocation

    def onNoMoreEvents(self) -> None:
        if self.bs.running_simulation:
            self.decide()

    def onRequestedCall(self) -> None:
        """Nothing before `decide`."""

    def onJobsKilled(self, jobs: list[Any]) -> None:
        """Nothing: their completions come as well."""

    def decide(self) -> None:
        for job in list(self.waiting):
            if job.requested_resources > self.bs.nb_compute_resources:
                self.waiting.remove(job)
                self.bs.reject_jobs([job])
            elif job.requested_resources <= len(self.free):
                self.start(job, ProcSet(*itertools.islice(self.free, job.requested_resources)))

    def start(self, job: Any, hosts: ProcSet) -> None:
        job.allocation = hosts
        self.free -= hosts
        self.waiting.remove(job)
        self.running[job.id] = job
        self.bs.execute_job(job)


class Killer(Filling):
    """Kills each job `delay` seconds after its start, and asks for it `times` times."""

    def onSimulationBegins(self) -> None:
        super().onSimulationBegins()
        self.due: list[tuple[float, Any]] = []

    def start(self, job: Any, hosts: ProcSet) -> None:
        super().start(job, hosts)
        if self.options["delay"]:
            self.due.append((self.bs.time() + self.options["delay"], job))
            self.bs.wake_me_up_at(self.due[-1][0])
        else:
            self.kill([job])

    def decide(self) -> None:
        over = [job for date, job in self.due if date <= self.bs.time() + 1e-6]
        self.due = self.due[len(over) :]
        self.kill([job for job in over if job.id in self.running])
        super().decide()

    def kill(self, jobs: list[Any]) -> None:
        for _ in range(self.options["times"] if jobs else 0):
            self.bs.kill_jobs(jobs)


class KillerOnSubmission(Filling):
    """Kills what runs when a job is submitted."""

    def onJobSubmission(self, job: Any) -> None:
        alive = [running for running in self.running.values() if running.job_state != running.State.IN_KILLING]
        if alive:
            self.bs.kill_jobs(alive)
        super().onJobSubmission(job)


class Submitter(Filling):
    """Registers a delay job after each completion until there are `count`: each `longer` than the one before it, or all
    with one profile; `again` registers that each time.
    """

    def onSimulationBegins(self) -> None:
        super().onSimulationBegins()
        self.registered, self.finished = 0, False

    def onNoMoreJobsInWorkloads(self) -> None:
        self.finish_if_all()

    def onJobCompletion(self, job: Any) -> None:
        super().onJobCompletion(job)
        if self.registered < self.options["count"]:
            self.register()
        self.finish_if_all()

    def register(self) -> None:
        number = self.registered
        self.registered += 1
        delay = 10.0 + number if self.options["longer"] else 10.0
        name = f"delay{delay:g}"
        if self.options["again"] or name not in self.bs.profiles.get("dyn", {}):
            self.bs.register_profiles("dyn", {name: {"type": "delay", "delay": delay}})
        job = self.bs.register_job(f"dyn!{number}", 1, 50, name)
        if not self.bs.ack_of_dynamic_jobs:
            super().onJobSubmission(job)

    def finish_if_all(self) -> None:
        if self.registered == self.options["count"] and self.bs.no_more_static_jobs and not self.finished:
            self.finished = True
            self.bs.notify_registration_finished()


class EnergyWatcher(Filling):
    """Asks for the energy consumed whenever something happened, and checks that it never falls."""

    last, asked = 0.0, False

    def onReportEnergyConsumed(self, consumed_energy: float) -> None:
        assert consumed_energy >= self.last
        self.last = consumed_energy

    def onJobCompletion(self, job: Any) -> None:
        super().onJobCompletion(job)
        self.bs.request_consumed_energy()


class Sleeper(Filling):
    """Puts free hosts to sleep that have a sleep state, `after` seconds after they became free, and wakes as many as
    jobs want.
    """

    def onSimulationBegins(self) -> None:
        super().onSimulationBegins()
        machines = self.bs.machines["compute"]
        states = {machine["id"]: machine["properties"].get("sleep_pstates", "") for machine in machines}
        self.sleep_state = {host: text.split(":")[0].strip() for host, text in states.items() if text.strip()}
        self.asleep, self.waking, self.since = ProcSet(), ProcSet(), dict.fromkeys(states, 0.0)
        self.switches = 0

    def onJobCompletion(self, job: Any) -> None:
        super().onJobCompletion(job)
        self.rest(job.allocation)

    def onNoMoreJobsInWorkloads(self) -> None:
        self.rest(self.free)

    def rest(self, hosts: ProcSet) -> None:
        for host in hosts:
            self.since[host] = self.bs.time()
        if self.options["after"]:
            self.bs.wake_me_up_at(self.bs.time() + self.options["after"])

    def onMachinePStateChanged(self, nodeid: tuple[int, int], pstate: str) -> None:
        hosts = ProcSet(nodeid)
        self.switches -= 1
        if str(pstate) == "0":
            self.waking -= hosts
            self.free |= hosts
        else:
            self.asleep |= hosts

    def decide(self) -> None:
        super().decide()
        wanted = sum(job.requested_resources for job in self.waiting)
        if wanted:
            for host in list(itertools.islice(self.asleep, max(0, wanted - len(self.free) - len(self.waking)))):
                self.switch(host, "0")
                self.asleep -= ProcSet(host)
                self.waking |= ProcSet(host)
        else:
            for host in self.free & ProcSet(*self.sleep_state):
                if self.bs.time() >= self.since[host] + self.options["after"] - 1e-6:
                    self.switch(host, self.sleep_state[host])
                    self.free -= ProcSet(host)

    def switch(self, host: int, state: str) -> None:
        self.switches += 1
        self.bs.set_resource_state(ProcSet(host), state)


class Fraction(Filling):
    """Starts each job on a `share` of the hosts that it asks for; its executors take turns on them."""

    def start(self, job: Any, hosts: ProcSet) -> None:
        size = max(1, int(job.requested_resources * self.options["share"]))
        if job.profile_dict["type"] != "parallel_homogeneous_total":
            job.mapping = {str(executor): executor % size for executor in range(job.requested_resources)}
        super().start(job, ProcSet(*itertools.islice(hosts, size)))


class Seeing(Filling):
    """Fails unless the hosts have the properties of their zones."""

    def onSimulationBegins(self) -> None:
        super().onSimulationBegins()
        found = {machine["name"]: machine["zone_properties"] for machine in self.bs.machines["compute"]}
        assert found["host1"] == {"Foo": "bar", "bla": "bli"}, found["host1"]


OWN = {
    "filling": Filling, "killer": Killer, "killer on submission": KillerOnSubmission, "submitter": Submitter,
    "energy watcher": EnergyWatcher, "sleeper": Sleeper, "fraction": Fraction, "seeing": Seeing,
}  # fmt: skip


class Stopped(Exception):
    """Nobody speaks to the scheduler any more."""


def converse(
    endpoint: str, name: str, options: dict[str, Any], prefix: str | None = None, stop: threading.Event | None = None
) -> None:
    """Run a scheduler at a socket to the end of the simulation, as PyBatsim's launcher does; `stop` ends it before."""
    opened: list[NetworkHandler] = []

    class Handler(NetworkHandler):
        def bind(self) -> None:
            super().bind()
            opened.append(self)

        def recv_string(self, blocking: bool = False) -> str | None:
            end = time.monotonic() + SECONDS_OF_SILENCE
            while not self.connection.poll(50):
                if stop is not None and stop.is_set():
                    raise Stopped
                if not blocking and time.monotonic() > end:
                    return None
            return self.connection.recv_string()

    scheduler = OWN[name](options) if name in OWN else load_scheduler(name, options, prefix)
    try:
        with mock.patch("batsim.batsim.NetworkHandler", Handler):
            batsim = Batsim(scheduler, endpoint, None)
        batsim.start()
    finally:
        for handler in opened:
            handler.close()
            handler.context.destroy(linger=0)


if __name__ == "__main__":
    converse(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
