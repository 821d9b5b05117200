"""The decisions of the scheduler, and the rules of Batsim's protocol that they must obey."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.profiles import Composed, Delay, Receive, Send, UsageTrace
from schedlab.batsim.files.workload import accepts_any_size
from schedlab.batsim.protocol.messages import date_of
from schedlab.batsim.resource_set import ResourceSet, from_mask, parse_resources
from schedlab.batsim.simulator.agenda import Turn
from schedlab.batsim.simulator.live_job import FINAL_STATES, REJECTED, RUNNING, SUBMITTED, SUCCESS, LiveJob
from schedlab.config.errors import did_you_mean

if TYPE_CHECKING:
    from schedlab.batsim.simulator.simulation import Simulation

_log = logging.getLogger(__name__)
MOST_CALLS = 100_000  # largest number of a scheduler's requested calls that are still to come


class Decisions:
    """Carries out the scheduler's events, one at a time, at the simulation's current date."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._handlers: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
            "EXECUTE_JOB": self._execute,
            "REJECT_JOB": self._reject,
            "KILL_JOB": self._kill,
            "CALL_ME_LATER": self._call_me_later,
            "SET_RESOURCE_STATE": self._set_resource_state,
            "QUERY": self._query,
            "REGISTER_PROFILE": self._register_profile,
            "REGISTER_JOB": self._register_job,
            "NOTIFY": self._notify,
            "SET_JOB_METADATA": self._set_metadata,
            "CHANGE_JOB_STATE": self._change_state,
            "TO_JOB_MSG": self._message_to_job,
        }

    def carry_out(self, event: dict[str, Any]) -> None:
        """Carry out one event. Raises ProtocolError if it breaks a rule."""
        handler = self._handlers.get(event["type"])
        if handler is None:
            raise ProtocolError(
                f"type {event['type']!r:.60} is unknown", event, remedy=did_you_mean(event["type"], self._handlers)
            )
        handler(event["data"], event)

    def _execute(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        simulation = self._simulation
        job = simulation.registry.submitted(data.get("job_id"), event)
        alloc = self._resources(
            data.get("alloc"), event, simulation.nb_resources, "alloc", may_be_empty=job.job.resources == 0
        )
        mapping = data.get("mapping")
        if mapping is not None:
            job.executors = self._mapped(job, alloc, mapping, event)
        elif alloc.size != job.job.resources and not accepts_any_size(job.job.profile):
            raise ProtocolError(
                f"{alloc.size} resources for job '{job.job.id}'", event, expected=f"{job.job.resources}, as it requests"
            )
        refusal = simulation.machines.refusal(alloc)
        if refusal:
            raise ProtocolError(f"job '{job.job.id}' cannot start: {refusal}", event, expected="hosts that are idle")
        if data.get("storage_mapping") is not None:
            job.storage = self._storage_mapping(data["storage_mapping"], event)
        if data.get("additional_io_job") is not None:
            self._add_io(job, data["additional_io_job"], event)
        simulation.execution.start(job, alloc)

    def _mapped(self, job: LiveJob, alloc: ResourceSet, mapping: Any, event: dict[str, Any]) -> list[int]:
        """Return the host of each executor by a mapping {executor: index in the allocation}."""
        hosts = list(alloc)
        try:
            indices = {int(executor): int(index) for executor, index in mapping.items()}
        except (AttributeError, TypeError, ValueError):
            raise ProtocolError(
                "mapping is none", event, expected='{"executor": index in the allocation, ...}'
            ) from None
        if sorted(indices) != list(range(job.job.resources)) or not all(
            0 <= index < len(hosts) for index in indices.values()
        ):
            raise ProtocolError(
                f"mapping does not fit job '{job.job.id}'",
                event,
                expected=f"executors 0 to {job.job.resources - 1}, indices 0 to {len(hosts) - 1}",
            )
        return [hosts[indices[executor]] for executor in range(job.job.resources)]

    def _storage_mapping(self, mapping: Any, event: dict[str, Any]) -> dict[str, int]:
        first, count = len(self._simulation.machines.hosts), self._simulation.nb_resources
        valid = isinstance(mapping, dict) and all(
            isinstance(number, int) and not isinstance(number, bool) and first <= number < count
            for number in mapping.values()
        )
        if not valid:
            raise ProtocolError(
                "storage_mapping is none", event, expected=f"{{label: storage resource from {first} to {count - 1}}}"
            )
        return dict(mapping)

    def _add_io(self, job: LiveJob, extra: Any, event: dict[str, Any]) -> None:
        """Note the traffic that the scheduler adds to a job's parallel tasks: one profile is added to each of them, a
        sequence part by part.
        """
        if not isinstance(extra, dict):
            raise ProtocolError(
                "additional_io_job is no object",
                event,
                expected='{"alloc": ..., "profile_name": ..., "profile": {...}}',
            )
        registry, name = self._simulation.registry, extra.get("profile_name")
        if extra.get("profile") is not None and isinstance(name, str):
            workload, _, short = name.partition("!") if "!" in name else (job.job.id.partition("!")[0], "", name)
            registry.register_profile(workload, short, extra["profile"], event)
        profile = registry.any_profile(name, job, event)
        hosts = list(
            self._resources(extra.get("alloc"), event, self._simulation.nb_resources, "alloc of additional_io_job")
        )
        own = job.job.profile
        parts = profile.parts if isinstance(profile, Composed) else (profile,)
        if isinstance(profile, Composed) and not (isinstance(own, Composed) and len(own.parts) == len(parts)):
            raise ProtocolError(
                f"sequence '{profile.name}' does not fit job '{job.job.id}'",
                event,
                expected="as many parts as the job's",
            )
        for part in parts:
            if isinstance(part, Composed | Delay | Send | Receive | UsageTrace) or part.width not in (None, len(hosts)):
                raise ProtocolError(
                    f"profile '{part.name}' is no parallel task on {len(hosts)} resources",
                    event,
                    expected="one that is",
                )
        job.extra_profile = (profile, hosts)

    def _reject(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        self._drop(self._simulation.registry.submitted(data.get("job_id"), event))

    def _drop(self, job: LiveJob) -> None:
        simulation = self._simulation
        job.state = REJECTED
        simulation.records.job_rejected(job)
        simulation.registry.forget(job)
        simulation.registry.unfinished -= 1

    def _kill(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        simulation = self._simulation
        identifiers = data.get("job_ids")
        if not isinstance(identifiers, list):
            raise ProtocolError("job_ids is no list", event, expected='{"job_ids": ["w0!1", ...]}')
        doomed: list[LiveJob] = []
        for identifier in identifiers:
            job = simulation.registry.live_or_ended(identifier, event)
            if job is None:
                _log.warning("KILL_JOB: job '%s' has ended already", identifier)
            elif job.state == SUBMITTED:
                raise ProtocolError(f"job '{identifier}' does not run", event, expected="a job that runs or has ended")
            elif not job.kill_requested:
                job.kill_requested = True
                doomed.append(job)
        progress = {job.job.id: simulation.execution.kill(job) for job in doomed}
        simulation.announce_kill(progress)

    def _call_me_later(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        simulation = self._simulation
        date = date_of(data.get("timestamp"), event, "timestamp of the call")
        if date <= simulation.agenda.now:
            raise ProtocolError(
                f"asks for a call at {date}, not after now, {simulation.agenda.now}", event, expected="a later date"
            )
        if simulation.pending_timers >= MOST_CALLS:
            raise ProtocolError("asks for one call too many", event, expected=f"at most {MOST_CALLS} calls to come")
        simulation.pending_timers += 1
        simulation.agenda.at(date, Turn.TIMER, simulation.timer_over)

    def _set_resource_state(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        simulation = self._simulation
        if simulation.power is None:
            raise ProtocolError(
                "changes a pstate", event, expected="a simulation with energy", remedy="start it with --energy"
            )
        hosts = self._resources(data.get("resources"), event, len(simulation.machines.hosts), "resources")
        text = str(data.get("state")).strip()
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ProtocolError(
                f"state is {data.get('state')!r:.60}", event, expected="the number of a pstate, as a text"
            )
        refusal = simulation.power.refusal(hosts, int(text))
        if refusal:
            raise ProtocolError(refusal, event, expected="a pstate that the hosts can go to now")
        simulation.power.request(hosts, int(text))
        if "share" in data:
            simulation.power.slow_down(hosts, self._share(data["share"], event))

    @staticmethod
    def _share(value: Any, event: dict[str, Any]) -> float:
        """Return the share of full speed that an event gives to hosts; Batsim has no such key."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise ProtocolError(f"share is {value!r:.60}", event, expected="a share of full speed, above 0, at most 1")
        return float(value)

    def _query(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        simulation = self._simulation
        requests = data.get("requests")
        if not isinstance(requests, dict) or list(requests) != ["consumed_energy"]:
            raise ProtocolError("asks for something unknown", event, expected='{"requests": {"consumed_energy": {}}}')
        if simulation.meter is None:
            raise ProtocolError(
                "asks for energy", event, expected="a simulation with energy", remedy="start it with --energy"
            )
        simulation.tell(
            "ANSWER", {"consumed_energy": simulation.rounded(simulation.meter.total(simulation.agenda.now))}
        )

    def _register_profile(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        self._check_registration(event)
        self._simulation.registry.register_profile(
            data.get("workload_name"), data.get("profile_name"), data.get("profile"), event
        )

    def _register_job(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        self._check_registration(event)
        simulation = self._simulation
        job = simulation.registry.register_job(data.get("job_id"), data.get("job"), event)
        live = simulation.registry.submit(job, simulation.agenda.now)
        simulation.records.job_submitted()
        if simulation.options.acknowledge_dynamic_jobs:
            simulation.acknowledge(live)

    def _check_dynamic_jobs(self, event: dict[str, Any]) -> None:
        if not self._simulation.options.dynamic_jobs:
            raise ProtocolError(
                "registers something",
                event,
                expected="a simulation with dynamic jobs",
                remedy="start it with --dynamic-jobs (the command batsim: --enable-dynamic-jobs)",
            )

    def _check_registration(self, event: dict[str, Any]) -> None:
        self._check_dynamic_jobs(event)
        if self._simulation.registration_finished:
            raise ProtocolError("comes after registration_finished", event, expected="continue_registration before it")

    def _notify(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        kinds = {"registration_finished": True, "continue_registration": False}
        kind = data.get("type")
        if not isinstance(kind, str) or kind not in kinds:
            raise ProtocolError(f"notifies of {kind!r:.60}", event, expected=" or ".join(kinds))
        if kind == "continue_registration":
            self._check_dynamic_jobs(event)
        self._simulation.registration_finished = kinds[kind]

    def _set_metadata(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        job = self._simulation.registry.live_or_ended(data.get("job_id"), event)
        if not isinstance(data.get("metadata"), str):
            raise ProtocolError("metadata is no text", event, expected="a text")
        if job is None:
            _log.warning("SET_JOB_METADATA: job '%s' has ended already", data.get("job_id"))
        else:
            job.metadata = data["metadata"]

    def _change_state(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        """Change SUBMITTED to RUNNING or REJECTED, or RUNNING to COMPLETED_*, for a job that the scheduler itself
        runs.
        """
        simulation = self._simulation
        job = simulation.registry.live(data.get("job_id"), event)
        state = data.get("job_state")
        if job.state == SUBMITTED and state == RUNNING:
            simulation.execution.occupy(job, from_mask(0))
        elif job.state == SUBMITTED and state == REJECTED:
            self._drop(job)
        elif job.state == RUNNING and state in FINAL_STATES:
            simulation.execution.end_quietly(job, state, 0 if state == SUCCESS else -1)
            simulation.registry.forget(job)
            simulation.registry.unfinished -= 1
        else:
            expected = f"RUNNING or {REJECTED}" if job.state == SUBMITTED else "one of " + ", ".join(FINAL_STATES)
            raise ProtocolError(f"takes job '{job.job.id}' from {job.state} to {state!r:.60}", event, expected=expected)

    def _message_to_job(self, data: dict[str, Any], event: dict[str, Any]) -> None:
        job = self._simulation.registry.live_or_ended(data.get("job_id"), event)
        if "msg" not in data:
            raise ProtocolError("has no msg", event, expected="a text")
        if job is None:
            _log.warning("TO_JOB_MSG: job '%s' has ended already", data.get("job_id"))
        else:
            self._simulation.execution.deliver(
                job, data["msg"] if isinstance(data["msg"], str) else json.dumps(data["msg"])
            )

    def _resources(
        self, text: Any, event: dict[str, Any], limit: int, key: str, *, may_be_empty: bool = False
    ) -> ResourceSet:
        if not isinstance(text, str):
            raise ProtocolError(f"{key} is {text!r:.60}", event, expected='intervals of resources such as "0-3 5"')
        try:
            hosts = parse_resources(text, limit)
        except ValueError as error:
            raise ProtocolError(f"{key}: {error}", event, expected='intervals of resources such as "0-3 5"') from None
        if not hosts.size and not may_be_empty:
            raise ProtocolError(f"{key} is empty", event, expected='intervals of resources such as "0-3 5"')
        return hosts
