"""The cluster: jobs arrive one by one, are mounted (placed on workers) or blocked, and run for exactly the duration
that the look-ahead computes.

Jobs do not share workers or channels. The end of a job is therefore known when it starts, and time advances from event
to event. See docs/reference/ramp_model.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.studies.ramp.placement.blocks import PlacementRules
from schedlab.studies.ramp.placement.partitioning import Partition
from schedlab.studies.ramp.placement.placers import Channel, Placement, Room, fits, open_links
from schedlab.studies.ramp.simulator.jobs import CUT_OFF, NO_CHANNEL, QUEUE_FULL, REJECTED, TOO_SLOW, Job, JobSource
from schedlab.studies.ramp.simulator.lookahead import Lookahead
from schedlab.studies.ramp.simulator.statistics import (
    BlockedJob,
    CompletedJob,
    EpisodeRecord,
    Rates,
    episode_statistics,
    step_statistics,
)
from schedlab.studies.ramp.simulator.timing import JobTimes, Timing

DUE = 1e-7  # s; an event that is nearer than this counts as reached


@dataclass(frozen=True, eq=False)
class JobPlan:
    """The plan of a job: its shards, their servers, and the order of shards on a server (`placement.ranks`).

    channels  channels that it uses; None: the first free one of each link, if jobs may share servers
    """

    split: Partition
    placement: Placement
    channels: frozenset[Channel] | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class RunningJob:
    """A mounted job.

    started, duration            s
    communication, computation   s in all training steps
    utilisation                  share of its workers' time in which they compute
    channels                     channels that it occupies; recorded only if its plan names them or jobs may share
                                 servers
    """

    job: Job
    plan: JobPlan = field(repr=False)
    timing: Timing = field(repr=False)
    lookahead: Lookahead = field(repr=False)
    started: float
    duration: float
    communication: float
    computation: float
    utilisation: float
    rates: Rates = field(repr=False)
    channels: frozenset[Channel] = field(default=frozenset(), repr=False)


@dataclass(frozen=True)
class ClusterLimits:
    """Capacity of the queue (jobs) and end of the simulation (s)."""

    queue_capacity: int = 10
    end: float = math.inf

    def __post_init__(self) -> None:
        """Raise UserError for invalid limits."""
        if self.queue_capacity < 0:
            raise UserError(f"a queue of {self.queue_capacity} jobs", where="queue_capacity", expected="at least 0")
        if not self.end > 0:
            what = f"the simulation ends at {self.end} s"
            raise UserError(what, where="max_simulation_time", expected="a time above 0")


class Cluster:
    """The simulated cluster. The caller decides on the jobs in `queue` and calls `step` until `done`.

    memory          float64[workers], bytes of each worker
    blocks_running  whether jobs that run at the end count as blocked
    """

    def __init__(
        self,
        times: JobTimes,
        rules: PlacementRules,
        memory: np.ndarray,
        source: JobSource,
        limits: ClusterLimits | None = None,
    ) -> None:
        self.times, self.rules, self.memory = times, rules, np.asarray(memory, dtype=np.float64)
        legacy = times.legacy
        self.blocks_running, self._endless_last_step = legacy.running_jobs_blocked, legacy.endless_last_step
        self._busy_of_one_step = legacy.utilisation_of_one_step
        self.limits = limits or ClusterLimits()
        self.num_workers = times.topology.num_workers
        if self.memory.shape != (self.num_workers,):
            what = f"{self.memory.size} memory sizes for {self.num_workers} workers"
            raise UserError(what, where="device", expected="one for each server")
        self._source = source
        self.reset(source)

    def reset(self, source: JobSource) -> None:
        """Empty the cluster and let the first job of a source arrive at time 0. Raises UserError without a job."""
        self._source = source
        self.time = 0.0
        self.queue: list[Job] = []
        self.running: list[RunningJob] = []
        self.taken = 0  # bits of the workers that jobs hold
        self.held: set[Channel] = set()  # channels that jobs hold
        self.mounted_before = 0  # workers that were mounted in the last tick
        self.record = EpisodeRecord()
        self.outcome: RunningJob | BlockedJob | None = None  # of the most recent decision
        self._left: list[float] = []
        self._arrive()

    @property
    def mounted_workers(self) -> int:
        """Number of workers with a job."""
        return self.taken.bit_count()

    def free_workers(self) -> np.ndarray:
        """Return int64[n]: the numbers of the workers without a job, in order."""
        return np.array([worker for worker in range(self.num_workers) if not self.taken >> worker & 1], dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether the end is reached, or no job waits, runs or will arrive."""
        return self.time >= self.limits.end or not (self.queue or self.running or math.isfinite(self.next_arrival))

    def room(self) -> Room:
        """Return the free servers and their memory for a placer."""
        return Room(self.taken, self.memory, links=open_links(self.times.topology, self.held))

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the episode so far."""
        return episode_statistics(self.record, self.time)

    def step(self, decisions: Mapping[int, JobPlan | str]) -> dict[str, Any]:
        """Block or mount the waiting jobs, advance to the next event or the end; return the step's statistics.

        decisions  by job index: a plan, or the cause for which the job is blocked; a waiting job that is not named is
                   rejected
        Raises UserError for a job that does not wait, and for a plan that takes workers or channels of others or
        exceeds memory; the cluster is then unchanged.
        """
        blocked_before, arrived_before = len(self.record.blocked), self.record.arrived
        completed_before = len(self.record.completed)
        if unknown := set(decisions) - {job.index for job in self.queue}:
            raise UserError(f"job {min(unknown)} does not wait", where="action", expected="jobs of the queue")
        outcomes = self._outcomes(decisions)
        self.queue = []
        for outcome in outcomes:
            self._apply(outcome)
        tick = self._next_event()
        found = step_statistics(self.running, self.num_workers, self.time, tick)
        self.mounted_before = self.mounted_workers
        self._advance(tick)
        found |= {
            "step_counter": len(self.record.steps),
            "num_jobs_arrived": self.record.arrived - arrived_before,
            "num_jobs_completed": len(self.record.completed) - completed_before,
            "num_jobs_blocked": len(self.record.blocked) - blocked_before,
            "job_queue_length": len(self.queue),
        }
        self.record.steps.append(found)
        return found

    def free_channels(self, plan: JobPlan, held: Set[Channel]) -> frozenset[Channel] | None:
        """Return the first free channel of each link over which a plan sends (first fit); None if a link has none.

        If each server has one worker, jobs never use the same pair of servers, and each pair has separate channels (in
        RAMP; on a torus by assumption, see torus.py). Then no channel has to be chosen, and the result is empty.
        """
        if self.times.topology.workers == 1:
            return frozenset()
        traffic, numbers = self.times.traffic(plan.split, plan.placement), range(self.times.topology.channels)
        links = np.unique(traffic.link[traffic.remote]).tolist()
        found = [next(((link, number) for number in numbers if (link, number) not in held), None) for link in links]
        free = frozenset(channel for channel in found if channel is not None)
        return free if len(free) == len(links) else None

    def _outcomes(self, decisions: Mapping[int, JobPlan | str]) -> list[RunningJob | BlockedJob]:
        """Return the outcome of each waiting job without changing the cluster, so that an invalid plan loses no job."""
        taken, held, found = self.taken, set(self.held), []
        for job in self.queue:
            outcome = self._outcome(job, decisions.get(job.index, REJECTED), taken, held)
            if isinstance(outcome, RunningJob):
                taken |= outcome.plan.placement.mask
                held |= outcome.channels
            found.append(outcome)
        return found

    def _outcome(self, job: Job, decision: JobPlan | str, taken: int, held: Set[Channel]) -> RunningJob | BlockedJob:
        if isinstance(decision, str):
            return BlockedJob(job, decision, self.time)
        if decision.placement.mask & taken:
            what = f"job {job.index} takes a worker of another job"
            raise UserError(what, where="action", expected="workers of one job only")
        if not fits(decision.split, decision.placement, self.memory):
            what = f"job {job.index} exceeds the memory of a worker"
            raise UserError(what, where="action", expected="shards that fit, of both passes")
        channels = self.free_channels(decision, held) if decision.channels is None else decision.channels
        if channels is None:
            return BlockedJob(job, NO_CHANNEL, self.time)
        if channels & held:
            what = f"job {job.index} takes a channel of another job"
            raise UserError(what, where="action", expected="channels of one job only")
        timing, lookahead = self.times.lookahead(decision.split, decision.placement)
        running = self._running(job, decision, timing, lookahead, channels)
        return BlockedJob(job, TOO_SLOW, self.time, running) if running.duration > job.time_limit else running

    def _apply(self, outcome: RunningJob | BlockedJob) -> None:
        self.outcome = outcome
        if isinstance(outcome, BlockedJob):
            self.record.blocked.append(outcome)
            return
        self.taken |= outcome.plan.placement.mask
        self.held |= outcome.channels
        self.running.append(outcome)
        self._left.append(outcome.duration)

    def _running(
        self, job: Job, plan: JobPlan, timing: Timing, lookahead: Lookahead, channels: frozenset[Channel]
    ) -> RunningJob:
        duration = job.steps * lookahead.time
        communication, computation = job.steps * lookahead.communication, job.steps * lookahead.computation
        busy_steps = 1 if self._busy_of_one_step else job.steps
        utilisation = busy_steps * lookahead.busy / timing.workers / duration if duration else 0.0
        split, graph = plan.split, job.graph
        information = (
            split.total_memory,
            split.total_dep_size,
            timing.flow_size,
            split.total_memory + split.total_dep_size,
            graph.total_memory,
            graph.total_dep_size,
            graph.total_memory + graph.total_dep_size,
        )
        per = 1 / duration if duration else 0.0
        processed = tuple(amount * per for amount in information)
        mounted = timing.channels if plan.channels is None else len(plan.channels)
        rates = Rates(processed, computation * per, communication * per, utilisation, timing.workers, mounted)
        return RunningJob(
            job, plan, timing, lookahead, self.time, duration, communication, computation, utilisation, rates, channels
        )

    def _next_event(self) -> float:
        """Return the seconds to the next event or to the end; 0 if there will be no event (published: infinity)."""
        tick = min([self.next_arrival - self.time, self.limits.end - self.time, *self._left])
        if math.isinf(tick) and not self._endless_last_step:
            return 0.0
        return max(tick, 0.0)

    def _advance(self, tick: float) -> None:
        self.time += tick
        self._left = [left - tick for left in self._left]
        if min(self._left, default=math.inf) <= DUE:
            self._complete()
        if self.next_arrival - self.time <= DUE:
            self._arrive()
        if self.done and self.running and self.blocks_running:
            for running in self.running:
                self.record.blocked.append(BlockedJob(running.job, CUT_OFF, self.time, running))
            self.running, self._left, self.taken, self.held = [], [], 0, set()

    def _complete(self) -> None:
        still, left = [], []
        for running, seconds in zip(self.running, self._left, strict=True):
            if seconds <= DUE:
                self.record.completed.append(CompletedJob(running, self.time))
                self.taken &= ~running.plan.placement.mask
                self.held -= running.channels
            else:
                still.append(running)
                left.append(seconds)
        self.running, self._left = still, left

    def _arrive(self) -> None:
        job = self._source.draw(self.record.arrived)
        self.next_arrival = self._source.next_arrival(self.time)
        gap = self.next_arrival - self.time
        self.record.load_rates.append(job.demand / gap if gap > 0 else math.inf)
        if len(self.queue) >= self.limits.queue_capacity:
            self.record.blocked.append(BlockedJob(job, QUEUE_FULL, self.time))
        else:
            self.queue.append(job)
