"""The execution of jobs: it steps through their profiles, computes their tasks, and ends them."""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from schedlab.batsim.errors import ProtocolError
from schedlab.batsim.files.profiles import Composed, Delay, Profile, Receive, Send, UsageTrace
from schedlab.batsim.resource_set import ResourceSet
from schedlab.batsim.simulator.agenda import Agenda, Turn, tolerance
from schedlab.batsim.simulator.energy import EnergyMeter
from schedlab.batsim.simulator.live_job import FAILED, KILLED, RUNNING, SUCCESS, WALLTIME_REACHED, LiveJob, Rank
from schedlab.batsim.simulator.machines import Machines
from schedlab.batsim.simulator.records import Records
from schedlab.batsim.simulator.task_building import TaskBuilder, is_void
from schedlab.batsim.simulator.tasks import Task, TaskPool

COARSE = 1000 * sys.float_info.epsilon  # differences below this share of a date have fewer than three exact digits
_KILLED_TASK, _STOPPED = -2, -1  # Batsim's return codes


class Execution:
    """The running jobs. `finished(job)` is called at the end of each job, `said(job, message)` for a message of a job
    to the scheduler; `profile_named(job, name)` returns a profile by its name.
    """

    def __init__(
        self,
        agenda: Agenda,
        machines: Machines,
        meter: EnergyMeter | None,
        pool: TaskPool,
        builder: TaskBuilder,
        records: Records,
    ) -> None:
        self._agenda, self._machines, self._meter = agenda, machines, meter
        self._pool, self._builder, self._records = pool, builder, records
        self.finished: Callable[[LiveJob], None] = lambda job: None
        self.said: Callable[[LiveJob, Any], None] = lambda job, message: None
        self.profile_named: Callable[[LiveJob, str], Profile] = lambda job, name: job.job.profile

    def start(self, job: LiveJob, alloc: ResourceSet) -> None:
        """Start a submitted job on hosts that may take it."""
        self.occupy(job, alloc)
        profile = job.job.profile
        if isinstance(profile, Delay):
            job.leaf, job.leaf_since = profile, job.start
            self._wait(job, profile.seconds)
        else:
            self._run(job, profile)

    def occupy(self, job: LiveJob, alloc: ResourceSet) -> None:
        """Mark a job as running and its hosts as occupied, without executing anything."""
        now = self._agenda.now
        job.state, job.alloc, job.start = RUNNING, alloc, now
        walltime = job.job.walltime
        if walltime > 0:
            job.deadline = now + walltime
        self._machines.start_job(alloc, now)
        self._records.job_started(job)

    def kill(self, job: LiveJob) -> dict[str, Any]:
        """End a running job; return its progress tree."""
        if job.leaf is None:  # the scheduler itself declared it running
            progress: dict[str, Any] = {"profile_name": job.job.profile.name, "progress": 0.0}
        else:
            progress = job.progress(self._agenda.now)
        self.end(job, KILLED, _STOPPED if job.task is None else _KILLED_TASK)
        return progress

    def end(self, job: LiveJob, state: str, return_code: int) -> None:
        """End a running job in a final state and call `finished`."""
        self.end_quietly(job, state, return_code)
        self.finished(job)

    def end_quietly(self, job: LiveJob, state: str, return_code: int) -> None:
        """End a running job in a final state without calling `finished`."""
        now = self._agenda.now
        if job.token and now - job.start < 1e-9 + COARSE * now and state != KILLED:
            self._records.job_too_short(job, now)
        job.token += 1
        if job.task is not None:
            self._drop_task(job)
        for rank in job.ranks or ():
            rank.token += 1
            self._drop_task(rank)
        job.state, job.return_code = state, return_code
        job.finish_at(now)
        job.frames = []
        self._machines.end_job(job.alloc, job.start, now)
        self._records.job_ended(job)

    def deliver(self, job: LiveJob, message: str) -> None:
        """Queue a message of the scheduler for a job; a waiting recv profile takes it at its next look."""
        if job.messages is None:
            job.messages = deque()
        job.messages.append(message)
        leaf = job.leaf
        if job.state == RUNNING and isinstance(leaf, Receive) and len(job.messages) == 1:
            waited = self._agenda.now - job.leaf_since
            looks = math.floor(waited / leaf.poll + 1e-9) + 1  # a look at this date came before the message
            self._plan(job, job.leaf_since + looks * leaf.poll, Turn.DELAY, self._look)

    def settle(self) -> None:
        """Compute the rates that have changed, and plan the ends of the tasks concerned."""
        self._plan_tasks(self._pool.settle(self._agenda.now))

    def change_speeds(self, hosts: Sequence[int] | np.ndarray, speeds: Sequence[float] | np.ndarray) -> None:
        """Set the speeds of hosts (flop/s) from now on."""
        self._plan_tasks(self._pool.change_speeds(hosts, speeds, self._agenda.now))

    def _run(self, job: LiveJob, profile: Profile) -> None:
        """Begin a profile, and those after it that take no time, until one takes time or the job ends."""
        current: Profile | None = profile
        while current is not None:
            if isinstance(current, Composed):
                first = (
                    len(current.parts) * current.repeat - 1 if is_void(current) else 0
                )  # if the parts do nothing, the last one is enough
                job.frames.append([current, first])
                current = current.parts[first % len(current.parts)]
                continue
            outcome = self._begin(job, current)
            current = self._next(job, outcome) if isinstance(outcome, int) else outcome

    def _begin(self, job: LiveJob, profile: Profile) -> int | Profile | None:
        """Begin a leaf. If it takes no time, return its return code or, for a recv profile, the profile that it runs;
        otherwise return None.
        """
        now = self._agenda.now
        job.leaf, job.leaf_since = profile, now
        if isinstance(profile, Delay):
            self._wait(job, profile.seconds)
            return None
        if isinstance(profile, Send):
            self.said(job, profile.message)
            if profile.seconds > 0:
                self._wait(job, profile.seconds)
                return None
            return profile.return_code
        if isinstance(profile, Receive):
            return self._receive(job, profile)
        if isinstance(profile, UsageTrace):
            return self._begin_ranks(job, profile)
        task = self._builder.build(job, profile)
        if task.is_empty:
            return profile.return_code
        task.owner = job
        job.task = task
        if task.latency > 0:
            self._plan(job, now + task.latency, Turn.TASK, self._work)
        else:
            self._work(job)
        return None

    def _begin_ranks(self, job: LiveJob, profile: UsageTrace) -> int | None:
        """Let each executor begin its trace; return the return code if none has work, otherwise None."""
        hosts = list(job.alloc) if job.executors is None else job.executors
        if len(set(hosts)) < len(profile.steps):
            what = f"job '{job.job.id}' has {len(profile.steps)} executors of a usage trace on {len(set(hosts))} hosts"
            raise ProtocolError(what, expected="a host for each")
        job.ranks = [Rank(job, host, steps) for host, steps in zip(hosts, profile.steps, strict=True)]
        begun = [self._next_step(rank) for rank in job.ranks]
        if not any(begun):
            job.ranks = None
            return profile.return_code
        job.token += 1
        if job.deadline < math.inf:
            self._agenda.at(job.deadline, Turn.SWITCH, self._out_of_time, job, job.token)  # after a last step's end
        return None

    def _next_step(self, rank: Rank) -> bool:
        """Let an executor begin its next step that takes time; return False if there is none."""
        while rank.steps:
            usage, flops = rank.steps.popleft()
            if flops > 0:
                rank.task = self._builder.share_of_cores(rank.host, usage, flops)
                rank.task.owner = rank
                self._start(rank.task)
                return True
        return False

    def _out_of_time(self, job: LiveJob) -> None:
        self.end(job, WALLTIME_REACHED, _STOPPED)

    def _next(self, job: LiveJob, code: int) -> Profile | None:
        """Return the profile after a leaf that ended with `code`. If there is none or the walltime is over, end the job
        and return None.
        """
        frames = job.frames
        while frames:
            frame = frames[-1]
            profile = frame[0]
            if code == 0:
                frame[1] += 1
                if isinstance(profile, Composed) and frame[1] < len(profile.parts) * profile.repeat:
                    if self._agenda.now >= job.deadline - tolerance(job.deadline):
                        self.end(job, WALLTIME_REACHED, _STOPPED)
                        return None
                    place: int = frame[1] % len(profile.parts)
                    return profile.parts[place]
                code = profile.return_code
            frames.pop()
        self.end(job, SUCCESS if code == 0 else FAILED, code)
        return None

    def _wait(self, job: LiveJob, seconds: float) -> None:
        """Plan the end of a delay. A job that consists of one delay as long as its walltime reaches the walltime; a
        sequence that ends at its walltime does not.
        """
        finish = job.leaf_since + seconds
        if job.frames:
            job.out_of_time = finish > job.deadline + tolerance(finish)
        else:
            job.out_of_time = 0 < job.job.walltime <= seconds
        self._plan(job, finish, Turn.DELAY, self._waited)

    def _waited(self, job: LiveJob) -> None:
        if job.out_of_time:
            self.end(job, WALLTIME_REACHED, _STOPPED)
        elif job.frames:
            self._continue(job)
        else:
            code = job.leaf.return_code
            self.end(job, SUCCESS if code == 0 else FAILED, code)

    def _continue(self, job: LiveJob) -> None:
        self._go_on(job, job.leaf.return_code)

    def _go_on(self, job: LiveJob, outcome: int | Profile | None) -> None:
        following = self._next(job, outcome) if isinstance(outcome, int) else outcome
        if following is not None:
            self._run(job, following)

    def _receive(self, job: LiveJob, profile: Receive) -> int | Profile | None:
        if job.messages:
            message = job.messages.popleft()
            outcome = profile.success if profile.pattern.fullmatch(message) else profile.failure
        elif profile.timeout:
            outcome = profile.timeout
        else:
            if job.deadline < math.inf:
                self._plan(job, job.deadline, Turn.DELAY, self._look)
            return None
        if not outcome:
            return profile.return_code
        job.frames.append([profile, 0])
        return self.profile_named(job, outcome)

    def _look(self, job: LiveJob) -> None:
        if self._expired(job) or not job.messages:
            self.end(job, WALLTIME_REACHED, _STOPPED)
            return
        self._go_on(job, self._receive(job, job.leaf))

    def _work(self, job: LiveJob) -> None:
        """Start a job's task, as its latency is over."""
        if job.task.latency > 0 and self._expired(job):
            self.end(job, WALLTIME_REACHED, _STOPPED)
            return
        self._start(job.task)

    def _start(self, task: Task) -> None:
        self._pool.start(task, self._agenda.now)
        if task.component is None:
            self._plan_tasks([task])
        else:
            task.owner.token += 1

    def _plan_tasks(self, tasks: list[Task]) -> None:
        for task in tasks:
            if self._meter is not None and len(task.hosts):
                self._use(task)
            self._plan(task.owner, task.finish, Turn.TASK, self._worked)

    def _worked(self, owner: Any) -> None:
        """Handle the end of a task or of its job's walltime."""
        now = self._agenda.now
        if owner.task.finish > now + tolerance(now):
            self.end(owner, WALLTIME_REACHED, _STOPPED)
            return
        self._drop_task(owner)
        if isinstance(owner, LiveJob):
            self._continue(owner)
        elif not self._next_step(owner) and all(rank.task is None for rank in owner.job.ranks):
            owner.job.ranks = None
            self._continue(owner.job)

    def _drop_task(self, owner: LiveJob | Rank) -> None:
        task = owner.task
        if task is None:
            return
        owner.task = None
        if self._pool.stop(task, self._agenda.now) and self._meter is not None and len(task.hosts):
            self._use(task)

    def _use(self, task: Task) -> None:
        """Report the current flop/s of a task's hosts to the meter."""
        now = self._agenda.now
        compute_hosts, flops = self._pool.load_of(task, len(self._machines.hosts))
        assert self._meter is not None
        self._meter.use(compute_hosts, flops, now)

    def _plan(self, job: Any, date: float, turn: int, action: Callable[[Any], None]) -> None:
        """Plan the next action on a job, at a date or at its walltime if that comes first; this cancels the action
        planned before.
        """
        job.token += 1
        date = min(date, job.deadline)
        if date < math.inf:
            self._agenda.at(date, turn, action, job, job.token)

    def _expired(self, job: LiveJob) -> bool:
        return self._agenda.now >= job.deadline - tolerance(job.deadline)
