"""One run of a workload, stepped from decision to decision on the embedded simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedlab.batsim.files.outputs import Outputs
from schedlab.batsim.files.workload import Workload, parse_workload
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.platforms.batsim_xml import parse_platform
from schedlab.platforms.generate import hierarchy_of, platform_xml
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.platforms.platform import Platform
from schedlab.platforms.settings import PlatformSettings
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.simulator.decisions import (
    DecisionSystem,
    History,
    Orders,
    failure_events,
    intervals,
    protocol_event,
    pstate_events,
)
from schedlab.studies.hetero.simulator.physics import HDEEPRM, Physics
from schedlab.workloads.batsim_file import BatsimWorkload, batsim_text, job_limits, set_work


@dataclass(frozen=True)
class Cluster:
    """A platform in the forms of the resource model and of the simulator."""

    hierarchy: Hierarchy
    platform: Platform


@dataclass(frozen=True)
class Jobs:
    """A workload in the simulator's form, and the limits by which observations are scaled."""

    workload: Workload
    limits: Mapping[str, float]


def make_cluster(settings: PlatformSettings) -> Cluster:
    """Return the cluster that platform settings describe. Raises UserError(s)."""
    hierarchy = hierarchy_of(settings)
    return Cluster(hierarchy, parse_platform(platform_xml(hierarchy, settings), f"platform {hierarchy.name}"))


def make_jobs(workload: BatsimWorkload, limits: Mapping[str, float] | None = None) -> Jobs:
    """Return the jobs of a workload; limits: those of the training workload; None: those of this workload. Raises
    UserError(s) for jobs that cannot be read.
    """
    return Jobs(parse_workload(batsim_text(workload), "w0", "workload"), limits or job_limits(workload))


# HDeepRM's learning case (docs/reference/hetero_model.md): two equal jobs whose memory bandwidths together exceed that
# of a processor. Calculated by hand, the jobs end at 6.3636 s if both run on the faster processor, at 7 s if both run
# on the one of lower power, and at 5.25 s if each runs on another processor.
def learning_workload(reference_speed: float) -> BatsimWorkload:
    """Return the two jobs of the learning case; reference_speed: mean speed of the platform's cores, Gflop/s."""
    profile = {"type": "parallel_homogeneous", "com": 0, "req_time": 5, "mem": 8000, "mem_bw": 24}
    jobs = [{"id": number, "subtime": 0, "res": 1, "profile": "conflict"} for number in range(2)]
    return set_work(BatsimWorkload(4, jobs, {"conflict": profile}), reference_speed)


def learning_case() -> tuple[Cluster, Jobs]:
    """Return the platform of two processors and the two jobs of the learning case."""
    cluster = make_cluster(PlatformSettings(name="learning", file="learning"))
    return cluster, make_jobs(learning_workload(cluster.hierarchy.reference_speed))


class Episode:
    """A run of a workload: `advance` continues to the next decision and `decide` makes it, in turn until `advance`
    returns False.

    outputs  Batsim's output files, which the caller closes; None: no files
    physics  physics of the cluster other than HDeepRM's
    Raises SimulationDeadlock and ProtocolError as the simulator does, and UserError for jobs of another platform.
    """

    def __init__(
        self,
        cluster: Cluster,
        jobs: Jobs,
        settings: DecisionSettings,
        seed: int,
        outputs: Outputs | None = None,
        physics: Physics = HDEEPRM,
    ) -> None:
        self.system = DecisionSystem(cluster.hierarchy, jobs.limits, settings, seed, physics)
        self.simulation = Simulation(
            cluster.platform, [jobs.workload], Options(energy=True, **physics.options), outputs
        )
        self.now = 0.0

    def advance(self) -> bool:
        """Continue until a decision is due; return False at the end of the simulation."""
        while not self.system.due:
            message = self.simulation.next_message()
            if message is None:
                break
            self.now = message["now"]
            self.system.take(message)
            if not self.system.due:
                self._answer()
        return self.system.due

    def decide(self, action: int) -> None:
        """Carry out an action; if another one is due at the same date, the simulator waits for it."""
        self.decide_by(lambda system: system.act(action))

    def decide_by(self, act: Callable[[DecisionSystem], None]) -> None:
        """Let a function make the decision that is due."""
        act(self.system)
        if not self.system.due:
            self._answer()

    def observe(self) -> np.ndarray:
        """Return the observation of the decision that is due."""
        return self.system.observe()

    @property
    def history(self) -> History:
        """The decisions so far."""
        return self.system.history

    def overuse(self) -> dict[str, Any]:
        """Return the content of overutilizations.json so far."""
        return self.system.model.overuse.values(len(self.system.model.busy), self.now)

    def scores(self) -> dict[str, float]:
        """Return the totals of Batsim's _schedule.csv so far, with the number of jobs that can never fit."""
        return {**self.simulation.schedule(), "infeasible_jobs": float(self.system.rejected)}

    def _answer(self) -> None:
        self.simulation.answer({"now": self.now, "events": _events(self.system.orders(), self.now)})


def _events(orders: Orders, now: float) -> list[dict[str, Any]]:
    """Return orders as events of Batsim's protocol: starts before pstates, all at one date."""
    events = failure_events(orders, now)
    events += [protocol_event(now, "REJECT_JOB", job_id=job) for job in orders.reject]
    events += [protocol_event(now, "EXECUTE_JOB", job_id=job, alloc=intervals(hosts)) for job, hosts in orders.start]
    return events + pstate_events(orders, now)


def play(episode: Episode, action: int = 0) -> dict[str, float]:
    """Run an episode to its end with one action (in HDeepRM: a CLASSIC agent); return its scores."""
    while episode.advance():
        episode.decide(action)
    return episode.scores()
