"""The embedded simulator: an event-driven Batsim that uses Batsim's protocol in plain dictionaries.

As in Batsim, actors (submitters, timers, running jobs, the scheduler's reply) post to one mailbox. The server receives
one message after the other and sends a message to the scheduler whenever the scheduler is ready and the mailbox is
empty. An actor posts its next message only after its last one was received; this decides which events share a message.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from schedlab.batsim.errors import ProtocolError, SimulationDeadlock
from schedlab.batsim.files.outputs import Outputs
from schedlab.batsim.files.profiles import computes
from schedlab.batsim.files.workload import MACHINE_EVENTS, ExternalEvent, Job, Workload, read_events
from schedlab.batsim.protocol.decisions import Decisions
from schedlab.batsim.protocol.messages import begin_data, checked_events
from schedlab.batsim.resource_set import ResourceSet, from_mask
from schedlab.batsim.simulator.agenda import Agenda, Mailbox, Source, Turn
from schedlab.batsim.simulator.energy import EnergyMeter
from schedlab.batsim.simulator.execution import Execution
from schedlab.batsim.simulator.live_job import RUNNING, SUBMITTED, LiveJob
from schedlab.batsim.simulator.machines import Machines
from schedlab.batsim.simulator.network import Network
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.power import PowerStates
from schedlab.batsim.simulator.records import Records
from schedlab.batsim.simulator.registry import Registry
from schedlab.batsim.simulator.task_building import TaskBuilder
from schedlab.batsim.simulator.tasks import TaskPool
from schedlab.config.errors import UserError
from schedlab.platforms.platform import Host, Platform

MOST_IDLE_CALLS = 1_000_000  # requested calls in a row without a decision, after which a deadlock is assumed


class Simulation:
    """A run, by calls of `next_message` and `answer` in turn until `next_message` returns None.

    `records.job_listener`, if set, is called with each job that ends. `still_hosts` is the number of hosts that begin
    in a pstate that computes next to nothing; 0 if no job computes.
    Raises UserError for a platform, workloads and options that do not fit each other.
    """

    def __init__(
        self, platform: Platform, workloads: Sequence[Workload], options: Options, outputs: Outputs | None = None
    ) -> None:
        names = [workload.name for workload in workloads]
        if len(set(names)) != len(names):
            raise UserError(
                f"two workloads have the same name: {', '.join(names)}", where="workloads", expected="each name once"
            )
        platform = platform.with_roles(options.roles)
        compute_hosts = _first_hosts(platform.compute_hosts(options.master_host), workloads, options)
        storage_hosts = platform.storage_hosts(options.master_host)
        self.options = options
        self._hosts, self._master = [*compute_hosts, *storage_hosts], platform.master(options.master_host)
        self.nb_resources = len(self._hosts)
        events = [
            read_events(path, len(compute_hosts), options.forward_unknown_events) for path in options.events_files
        ]

        self.agenda = Agenda()
        self._mailbox = Mailbox(self.agenda)
        self.machines = Machines(compute_hosts, options.compute_sharing, options.energy)
        if not options.storage_sharing:
            self.machines.forbid_sharing(from_mask((1 << self.nb_resources) - 1))
        self.still_hosts = self.machines.still() if any(computes(workload.profiles) for workload in workloads) else 0
        self.meter = EnergyMeter(compute_hosts) if options.energy else None
        self.registry = Registry(workloads, options.dynamic_jobs and not options.profile_reuse)
        self._network = Network(platform, self._hosts, options.network == "ignore")
        storage = {host.name: number for number, host in enumerate(self._hosts) if number >= len(compute_hosts)}
        self._tasks = pool = TaskPool(
            self._hosts, platform.channels, options.compute_sharing or bool(storage), changing_speeds=options.energy
        )
        self.records = Records(self.agenda, self.machines, self.meter, outputs)
        tasks = TaskBuilder(self._network, [host.name for host in self._hosts], storage)
        self.execution = Execution(self.agenda, self.machines, self.meter, pool, tasks, self.records)
        self.execution.finished = self._job_finished
        self.execution.said = self._job_said
        self.execution.profile_named = self.registry.profile_named
        self.power: PowerStates | None = None
        if self.meter is not None:
            self.power = PowerStates(self.agenda, self.machines, self.meter, self.execution, self.records)
            self.power.done = self._pstate_reached
        self._decisions = Decisions(self)

        self.pending_timers = self._idle_calls = 0
        self.registration_finished = not options.dynamic_jobs
        self._sources = self._static_sources(workloads, events)
        self._submitting = len(workloads)
        self._events_pending = len(events)
        self._scheduler_ready, self._awaiting_answer = True, False
        self._ended = self._over = False
        self.rounded = rounded if options.round_to_microseconds else float  # numbers as messages have them
        self._stamp = 0.0  # the date as it is written in messages
        self._outgoing: list[dict[str, Any]] = []
        self._reply: tuple[float, list[dict[str, Any]]] = (0.0, [])
        self._reply_index = 0
        self._reply_is_new = False
        self.tell(
            "SIMULATION_BEGINS",
            self._fresh(begin_data(options, workloads, compute_hosts, storage_hosts, self.machines.asleep)),
        )

    def next_message(self) -> dict[str, Any] | None:
        """Continue to the scheduler's next message `{"now": s, "events": [...]}`; return None after the answer to
        SIMULATION_ENDS.

        Raises SimulationDeadlock if jobs wait and nothing can happen any more, and ProtocolError if a decision breaks a
        rule.
        """
        if self._awaiting_answer:
            raise ProtocolError("the last message was not answered", expected="one answer for each message")
        if self._over:
            return None
        if self._reply_is_new:
            self._carry_out_reply()
        mailbox, agenda, message = self._mailbox, self.agenda, None
        posts, stale_tasks = mailbox.posts, self._tasks.stale
        if self._scheduler_ready and not posts:
            message = self._due_message()
        while message is None:
            received = mailbox.receive() if posts else None
            if received is not None:
                if self._scheduler_ready and not posts:
                    message = self._due_message()
                if received[2] is not None:
                    received[2]()  # the sender's next step
            else:
                if stale_tasks:
                    self.execution.settle()
                if not agenda.run_date():
                    raise self._deadlock("nothing can happen any more")
                self._stamp = self.rounded(agenda.now)
        return message

    def answer(self, message: dict[str, Any]) -> None:
        """Receive the scheduler's reply `{"now": s, "events": [...]}`; its decisions are carried out at their
        dates.

        Raises ProtocolError for a reply of the wrong form.
        """
        if not self._awaiting_answer:
            raise ProtocolError("no message waits for an answer", message, expected="one answer for each message")
        self._reply, self._reply_index = checked_events(message), 0
        self._awaiting_answer = False
        if self._ended:
            self._over = True
            self.records.commit()
            return
        if self._mailbox.posts:
            self._go_on_with_reply()
        elif self._reply[1] or self._reply[0] > self.agenda.now:
            self._reply_is_new = True
        else:
            self._scheduler_ready = True  # a shortcut for the most frequent answer: no decision
        for source in self._sources:
            source.go_on()
        self._sources = []

    def schedule(self) -> dict[str, float]:
        """Return the numbers of `_schedule.csv` so far, by column."""
        return self.records.totals()

    def write_outputs(self) -> None:
        """Write the output files of the jobs that ran so far, for a simulation that is not continued."""
        self.records.commit()

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Add an event to the next message."""
        self._outgoing.append({"timestamp": self._stamp, "type": kind, "data": data})

    def _fresh(self, value: Any) -> Any:
        """Return a copy that the scheduler may keep and change, with numbers rounded as in messages."""
        try:
            return _copy(value, self.options.round_to_microseconds)
        except RecursionError:  # json's compiled code handles deeper nesting
            return json.loads(json.dumps(value), parse_float=lambda digits: self.rounded(float(digits)))

    def timer_over(self, _: Any) -> None:
        """Post the call of a CALL_ME_LATER that is due."""
        self._mailbox.post(self._call)

    def announce_kill(self, progress: dict[str, dict[str, Any]]) -> None:
        """Announce killed jobs, after their completions."""
        self._mailbox.post(self._tell_killed, progress)

    def acknowledge(self, job: LiveJob) -> None:
        """Announce a dynamic job."""
        self._mailbox.post(self._tell_submitted, job)

    def _due_message(self) -> dict[str, Any] | None:
        """Return the next message to a scheduler that is ready, once all events of this date are collected; None if
        there is nothing to say.
        """
        if not self._outgoing:
            if self._submitting or not self._nothing_left():
                return None
            self._ended = True
            self.tell("SIMULATION_ENDS", {})
        message = {"now": self._stamp, "events": self._outgoing}
        self._outgoing = []
        self._scheduler_ready, self._awaiting_answer = False, True
        return message

    def _nothing_left(self) -> bool:
        return (
            not self._events_pending
            and not self.registry.unfinished
            and not self.pending_timers
            and (self.power is None or not self.power.pending)
            and self.registration_finished
        )

    def _carry_out_reply(self) -> None:
        """Carry out the reply to the last message at once as far as this has the same effect as to post it: until a
        later date, or until something else is posted.
        """
        self._reply_is_new = False
        (end, events), now, posts = self._reply, self.agenda.now, self._mailbox.posts
        for index, event in enumerate(events):
            if (posts and index) or event["timestamp"] > now:
                self._go_on_with_reply()
                return
            self._reply_index = index + 1
            if event["type"] not in ("CALL_ME_LATER", "QUERY"):
                self._idle_calls = 0
            self._decisions.carry_out(event)
        if posts or end > now:
            self._go_on_with_reply()
        else:
            self._scheduler_ready = True

    def _go_on_with_reply(self) -> None:
        """Post the next decision of the reply at its date; after the last one, post at the reply's date that the
        scheduler is ready again.
        """
        end, events = self._reply
        if self._reply_index < len(events):
            event = events[self._reply_index]
            self._reply_index += 1
            if event["type"] not in ("CALL_ME_LATER", "QUERY"):
                self._idle_calls = 0
            date = float(event["timestamp"])
            post: tuple[Any, Any, Any] = (
                self._decisions.carry_out,
                event,
                self._go_on_with_reply,
            )
        else:
            date, post = end, (self._ready, None, None)
        if date > self.agenda.now:
            self.agenda.at(date, Turn.SCHEDULER, lambda post: self._mailbox.post(*post), post)
        else:
            self._mailbox.post(*post)

    def _ready(self, _: Any) -> None:
        self._scheduler_ready = True

    def _static_sources(self, workloads: Sequence[Workload], events: list[list[ExternalEvent]]) -> list[Source]:
        agenda, mailbox = self.agenda, self._mailbox
        sources = [
            Source(
                workload.jobs,
                attrgetter("submission"),
                agenda,
                Turn.SUBMISSION,
                mailbox,
                self._submit,
                self._submitter_done,
            )
            for workload in workloads
        ]
        for listed in events:
            sources.append(
                Source(
                    listed,
                    attrgetter("timestamp"),
                    agenda,
                    Turn.EXTERNAL_EVENT,
                    mailbox,
                    self._occur,
                    self._events_done,
                )
            )
        return sources

    def _submit(self, jobs: list[Job]) -> None:
        for job in jobs:
            self._tell_submitted(self.registry.submit(job, job.submission))
            self.records.job_submitted()

    def _submitter_done(self, _: Any) -> None:
        self._submitting -= 1
        if not self._submitting:
            self.tell("NOTIFY", {"type": "no_more_static_job_to_submit"})

    def _occur(self, events: list[ExternalEvent]) -> None:
        for event in events:
            if event.kind in MACHINE_EVENTS:
                change = (
                    self.machines.make_unavailable
                    if event.kind == "machine_unavailable"
                    else self.machines.make_available
                )
                change(event.resources, self.agenda.now)
                self.tell("NOTIFY", {"type": f"event_{event.kind}", "resources": str(event.resources)})
            else:
                self.tell("NOTIFY", self._fresh(event.json))

    def _events_done(self, _: Any) -> None:
        self._events_pending -= 1
        if not self._events_pending:
            self.tell("NOTIFY", {"type": "no_more_external_event_to_occur"})

    def _call(self, _: Any) -> None:
        self.pending_timers -= 1
        self._idle_calls += 1
        if self._idle_calls > MOST_IDLE_CALLS:
            switching = self.power is not None and self.power.pending
            if not (self._submitting or self._events_pending or switching or any(self.registry.running())):
                raise self._deadlock(f"{MOST_IDLE_CALLS} calls of the scheduler in a row changed nothing")
            self._idle_calls = 0
        self.tell("REQUESTED_CALL", {})

    def _tell_submitted(self, job: LiveJob) -> None:
        data = {"job_id": job.job.id, "job": self._fresh(job.job.json)}
        if self.options.forward_profiles:
            data["profile"] = self._fresh(job.job.profile.json)
        self.tell("JOB_SUBMITTED", data)

    def _job_finished(self, job: LiveJob) -> None:
        self.registry.forget(job)
        self._mailbox.post(self._tell_completed, job, None, self._latency(job) if self.options.control_latency else 0.0)

    def _tell_completed(self, job: LiveJob) -> None:
        self.registry.unfinished -= 1
        data = {"job_id": job.job.id, "job_state": job.state, "return_code": job.return_code, "alloc": str(job.alloc)}
        self.tell("JOB_COMPLETED", data)

    def _tell_killed(self, progress: dict[str, dict[str, Any]]) -> None:
        self.tell("JOB_KILLED", {"job_ids": list(progress), "job_progress": self._fresh(progress)})

    def _job_said(self, job: LiveJob, message: Any) -> None:
        self._mailbox.post(self._tell_said, (job.job.id, message), latency=self._latency(job))

    def _tell_said(self, said: tuple[str, Any]) -> None:
        self.tell("FROM_JOB_MSG", {"job_id": said[0], "msg": self._fresh(said[1])})

    def _pstate_reached(self, hosts: ResourceSet, pstate: int) -> None:
        self._mailbox.post(self._tell_pstate, (str(hosts), str(pstate)))

    def _tell_pstate(self, reached: tuple[str, str]) -> None:
        self.tell("RESOURCE_STATE_CHANGED", {"resources": reached[0], "state": reached[1]})

    def _latency(self, job: LiveJob) -> float:
        """Return the time (s) that a message takes from a job's first host to the master."""
        if not self.options.control_latency or not job.alloc.size:
            return 0.0
        return self._network.latency(self._hosts[job.alloc.intervals[0][0]], self._master)

    def _deadlock(self, what: str) -> SimulationDeadlock:
        waiting = tuple(job.job.id for job in self.registry.with_state(SUBMITTED))
        running = tuple(job.job.id for job in self.registry.with_state(RUNNING))
        parts = []
        if waiting:
            parts.append(f"{len(waiting)} jobs wait ({_some(waiting)})")
        if running:
            parts.append(
                f"{len(running)} jobs wait for a message or a change of state by the scheduler ({_some(running)})"
            )
        if not self.registration_finished:
            parts.append("the scheduler has not sent registration_finished")
        return SimulationDeadlock(
            f"at {self.agenda.now:g} s {what}: " + " and ".join(parts),
            waiting + running,
            remedy="mend the scheduler",
        )


def _first_hosts(hosts: list[Host], workloads: Sequence[Workload], options: Options) -> list[Host]:
    """Return the first compute hosts, as many as the options use. Raises UserError if there are fewer."""
    limits = [(options.mmax, "--mmax")] if options.mmax > 0 else []
    if options.mmax_workload and workloads:
        largest = max(workloads, key=lambda workload: workload.nb_res)
        limits.append((largest.nb_res, f"--mmax-workload ({largest.path}: nb_res)"))
    if not limits:
        return hosts
    limit, where = min(limits)
    if limit > len(hosts):
        expected = f"at most {len(hosts)}, as many as the platform has"
        raise UserError(f"asks for {limit} compute hosts", where=where, expected=expected)
    return hosts[:limit]


def rounded(value: float) -> float:
    """Return round(value, 6), in a third of its time if the value is the float nearest to a number of six decimals."""
    scaled = value * 1e6
    return value if scaled.is_integer() and scaled / 1e6 == value else round(value, 6)


def _copy(value: Any, rounding: bool) -> Any:
    """Return a copy that the scheduler may keep and change; rounding: to six decimals."""
    kind = type(value)
    if kind is dict:
        copy = value.copy()
        for key, part in value.items():
            if type(part) not in _ATOMS:
                copy[key] = _copy(part, rounding)
        return copy
    if kind is list:
        return [part if type(part) in _ATOMS else _copy(part, rounding) for part in value]
    return rounded(value) if kind is float and rounding else value


_ATOMS = frozenset((str, int, bool, type(None)))


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
