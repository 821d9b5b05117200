"""Small simulations for tests: platforms and workloads in a line, and a scheduler that is a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from schedlab.batsim.files.workload import Workload, parse_workload
from schedlab.batsim.simulator.live_job import LiveJob
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.platforms.batsim_xml import parse_platform
from schedlab.platforms.platform import Platform

Message = dict[str, Any]
Decide = Callable[[Message], list[Message]]


def platform(
    hosts: int = 4, inside: str = "", speed: str = "1Gf", attributes: str = "", routing: str = "Vivaldi", more: str = ""
) -> Platform:
    """Hosts h00, h01, ... with properties `inside`, a master, and whatever `more` adds to the zone."""
    lines = "".join(f'<host id="h{number:02d}" speed="{speed}" {attributes}>{inside}</host>' for number in range(hosts))
    text = (
        f'<platform version="4.1"><zone id="z" routing="{routing}"><host id="master_host" '
        f'speed="1Gf"/>{lines}{more}</zone></platform>'
    )
    return parse_platform(text, "platform.xml")


def workload(
    jobs: Sequence[Mapping[str, Any]], profiles: Mapping[str, Any], name: str = "w0", nb_res: int = 4
) -> Workload:
    """Jobs with ids 0, 1, ..., submitted at 0 on one host unless said otherwise."""
    entries = [{"id": number, "subtime": 0, "res": 1, **job} for number, job in enumerate(jobs)]
    return parse_workload(json.dumps({"nb_res": nb_res, "jobs": entries, "profiles": profiles}), name, f"{name}.json")


def event(message: Message, kind: str, data: Message) -> Message:
    """One decision at the message's date."""
    return {"timestamp": message["now"], "type": kind, "data": data}


def execute(message: Message, job: str, alloc: str, **more: Any) -> Message:
    """Start a job."""
    return event(message, "EXECUTE_JOB", {"job_id": job, "alloc": alloc, **more})


def starting(
    allocations: Mapping[str, str], more: Mapping[float, Sequence[tuple[str, Message]]] | None = None
) -> Decide:
    """A scheduler that starts each job on its hosts when it is submitted, and does `more` at dates (by timers)."""
    waiting = sorted((more or {}).items())

    def decide(message: Message) -> list[Message]:
        events = []
        for said in message["events"]:
            if said["type"] == "SIMULATION_BEGINS":
                events += [event(message, "CALL_ME_LATER", {"timestamp": date}) for date, _ in waiting if date > 0]
            elif said["type"] == "JOB_SUBMITTED" and said["data"]["job_id"] in allocations:
                events.append(execute(message, said["data"]["job_id"], allocations[said["data"]["job_id"]]))
        while waiting and waiting[0][0] <= message["now"]:
            events += [event(message, kind, data) for kind, data in waiting.pop(0)[1]]
        return events

    return decide


class Run:
    """A simulation run to its end: `messages` said, `jobs` ended in order, by identifier."""

    def __init__(self, simulation: Simulation, decide: Decide) -> None:
        self.simulation, self.messages, self.jobs = simulation, [], {}
        simulation.records.job_listener = self._ended
        while (message := simulation.next_message()) is not None:
            self.messages.append(json.loads(json.dumps(message)))
            simulation.answer({"now": message["now"], "events": decide(message)})

    def _ended(self, job: LiveJob) -> None:
        self.jobs[job.job.id] = job

    def times(self) -> dict[str, tuple[float, float]]:
        """Start and finish of each job that ran."""
        return {name: (job.start, job.finish) for name, job in self.jobs.items() if job.state != "REJECTED"}

    def events(self, kind: str) -> list[tuple[float, Message]]:
        """(date, data) of every event of a type."""
        return [
            (said["timestamp"], said["data"])
            for message in self.messages
            for said in message["events"]
            if said["type"] == kind
        ]


def run(
    decide: Decide,
    jobs: Sequence[Mapping[str, Any]],
    profiles: Mapping[str, Any],
    place: Platform | None = None,
    **options: Any,
) -> Run:
    """Run one workload on a platform (four hosts of 1 Gf unless given)."""
    return Run(Simulation(place or platform(), [workload(jobs, profiles)], Options(**options)), decide)
