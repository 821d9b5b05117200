"""One scenario with its platform and workloads: it runs each replicate under a policy and scores the run."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from schedlab.batsim.backends.backend import Backend
from schedlab.batsim.backends.pybatsim_bus import run_pybatsim
from schedlab.batsim.files.outputs import Outputs
from schedlab.batsim.files.workload import parse_workload
from schedlab.batsim.running import Inputs, Limits, open_backend, simulate
from schedlab.batsim.simulator.options import Options
from schedlab.config.contract import Outcome, Split, Unit
from schedlab.config.plugins import load_object
from schedlab.config.seeds import derive_seed
from schedlab.evaluation.job_metrics import JOB_METRICS
from schedlab.platforms.batsim_xml import read_platform
from schedlab.platforms.hierarchy import read_hierarchy
from schedlab.studies.hetero.env.env import HeteroEnv
from schedlab.studies.hetero.env.settings import DecisionSettings
from schedlab.studies.hetero.outcomes import METRICS, decisions_table, outcome
from schedlab.studies.hetero.prepare import extract_workload
from schedlab.studies.hetero.rules import PairRule, ReserveRule, SchedulerRule
from schedlab.studies.hetero.scenario import HeteroScenario, units
from schedlab.studies.hetero.simulator.decisions import DecisionSystem
from schedlab.studies.hetero.simulator.episode import Cluster, Episode, Jobs
from schedlab.studies.hetero.simulator.managed_cores import ManagedCores
from schedlab.studies.hetero.simulator.physics import Physics
from schedlab.workloads.batsim_file import BatsimWorkload, batsim_text, job_limits, read_batsim

OF_DATES = (*(metric.name for metric in JOB_METRICS), "infeasible")  # scores that the compiled kernel computes, too
NO_LIMITS = {"max_time": 1.0, "max_core": 1.0, "max_mem": 1.0, "max_mem_bw": 1.0}  # of observations that nothing reads


class HeteroProblem:
    """The contract's Problem, made from a platform (XML and JSON) and an archive of the workloads."""

    metrics = METRICS

    def __init__(self, scenario: HeteroScenario, platform: Path, resources: Path, workloads: Path) -> None:
        self.scenario, self._platform, self._resources = scenario, Path(platform), Path(resources)
        self._workloads = Path(workloads)
        self._read: dict[str, BatsimWorkload] = {}
        self._jobs: dict[str, Jobs] = {}
        self._scores: dict[tuple[PairRule | ReserveRule, str], Mapping[str, float]] = {}

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the replicates of a split."""
        return [unit for unit in units(self.scenario.workload, self.scenario.replicates) if unit.split == split]

    @cached_property
    def cluster(self) -> Cluster:
        """The platform, in the forms of the resource model and of the simulator."""
        return Cluster(read_hierarchy(self._resources), read_platform(self._platform))

    def jobs(self, unit: Unit) -> Jobs:
        """Return the jobs of a unit. Raises UserError for profiles without memory and memory bandwidth.

        Observations are scaled by the limits of all training workloads. In mode reference, as in HDeepRM, and without
        training workloads, they are scaled by the limits of the unit's workload.
        """
        if unit.id not in self._jobs:
            read = self._workload(unit)
            workload = parse_workload(batsim_text(read), "w0", f"workload {unit.id}")
            self._jobs[unit.id] = Jobs(workload, self._limits(unit))
        return self._jobs[unit.id]

    def env(self, unit: Unit, seed: int) -> HeteroEnv | None:
        """Return the environment on one unit; None if the platform has no pstates to manage."""
        if not self.scenario.platform.pstates.managed:
            return None
        physics = self.scenario.physics
        return HeteroEnv(self.cluster, (self.jobs(unit),), self.scenario.decisions, seed, physics=physics)

    def rollout(self, policy: Any, unit: Unit) -> Outcome:
        """Run a replicate under a policy from the first submission to the last end, and score it.

        A scheduler exchanges messages with the simulator; if the platform's pstates are managed, they pass through the
        resource model. Other policies return an action at each decision. Raises SchedulerFailed, ProtocolError,
        SimulationDeadlock or BatsimFailed if the simulation fails.
        """
        policy.reset(unit)
        if self.scenario.simulator == "compiled" and (scores := self._compiled.scores(policy, unit)) is not None:
            made = Outcome(scores)
            self._note(policy, unit, made)
            return made
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            kind = self._schedule if isinstance(policy, SchedulerRule) else self._decide
            made = kind(policy, unit, folder)
        if self.scenario.simulator == "compiled":
            made = Outcome({name: made.scores[name] for name in OF_DATES if name in made.scores})
        self._note(policy, unit, made)
        return made

    def score(self, policy: PairRule | ReserveRule, unit: Unit, metric: str) -> float:
        """Return a rule's score in a metric on a unit; each rule is simulated only once on a unit."""
        key = (policy, unit.id)
        scores = self._scores[key] if key in self._scores else self.rollout(policy, unit).scores
        return scores[metric]

    @cached_property
    def _compiled(self) -> Any:
        return load_object("schedlab.studies.hetero.learners.compiled_runs:CompiledRuns")(self)

    def _note(self, policy: Any, unit: Unit, made: Outcome) -> None:
        if isinstance(policy, PairRule | ReserveRule):
            self._scores[policy, unit.id] = made.scores

    def _schedule(self, policy: SchedulerRule, unit: Unit, folder: str) -> Outcome:
        """Run a scheduler."""
        scenario, inputs = self.scenario, self._inputs(unit, folder)
        system, between = None, None
        if scenario.platform.pstates.managed:
            settings = DecisionSettings(observation="minimal", legacy=scenario.decisions.legacy)
            seed = derive_seed(unit.seed, "episode", policy.seed)
            system = DecisionSystem(self.cluster.hierarchy, NO_LIMITS, settings, seed, self._physics(unit))

            def between(backend: Backend) -> Backend:
                return ManagedCores(backend, system, policy.cores, derive_seed(unit.seed, policy.seed))

        kind, binary, options = self._backend, scenario.batsim, dict(policy.options)
        limits = Limits(scheduler=scenario.scheduler_limit or None)
        with _quiet():
            simulate(inputs, policy.scheduler, options, backend=kind, binary=binary, between=between, limits=limits)
        return outcome(inputs.prefix, scenario.bounded_slowdown_threshold, scenario.energy, system)

    def _decide(self, policy: Any, unit: Unit, folder: str) -> Outcome:
        """Run a policy of the decision system."""
        settings = self.scenario.decisions
        if isinstance(policy, PairRule):
            settings = policy.decisions(settings)
        inputs, seed = self._inputs(unit, folder), derive_seed(unit.seed, "episode", getattr(policy, "seed", 0))
        if self._backend == "embedded":
            with Outputs(inputs.prefix) as outputs:
                episode = Episode(self.cluster, self.jobs(unit), settings, seed, outputs, self._physics(unit))
                while episode.advance():
                    episode.decide_by(lambda system: _act(policy, system))
            system = episode.system
        else:
            system = DecisionSystem(self.cluster.hierarchy, self.jobs(unit).limits, settings, seed)
            with open_backend("batsim", inputs, binary=self.scenario.batsim) as backend:
                door = load_object("schedlab.studies.hetero.simulator.decision_scheduler:DecisionScheduler")
                scheduler = door(system, lambda system: _act(policy, system))
                run_pybatsim(backend, scheduler)
        made = outcome(inputs.prefix, self.scenario.bounded_slowdown_threshold, self.scenario.energy, system)
        if settings.actions > 1:
            details = {**made.details, "decisions": decisions_table(system, settings.names)}
            made = replace(made, details=details)
        return made

    def _physics(self, unit: Unit) -> Physics:
        """Return the physics of a unit: what is drawn is the same for all policies."""
        return Physics(self.scenario.physics, unit.seed)

    @property
    def _backend(self) -> Literal["embedded", "batsim"]:
        return "batsim" if self.scenario.simulator == "batsim" else "embedded"

    def _inputs(self, unit: Unit, folder: str) -> Inputs:
        energy = self.scenario.energy or self.scenario.platform.pstates.managed
        options = Options(energy=energy, network=self.scenario.network, **self._physics(unit).options)
        return Inputs(self._platform, (extract_workload(self._workloads, unit.id, folder),), f"{folder}/out", options)

    def _workload(self, unit: Unit) -> BatsimWorkload:
        if unit.id not in self._read:
            with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
                self._read[unit.id] = read_batsim(extract_workload(self._workloads, unit.id, folder))
        return self._read[unit.id]

    def _limits(self, unit: Unit) -> dict[str, float]:
        learned_on = () if self.scenario.mode == "reference" else self.units("train")
        read = [self._workload(each) for each in learned_on or (unit,)]
        jobs, profiles = [], dict[str, Any]()
        for number, one in enumerate(read):
            jobs += [{**job, "profile": f"{number} {job['profile']}"} for job in one.jobs]
            profiles |= {f"{number} {name}": profile for name, profile in one.profiles.items()}
        whole = BatsimWorkload(read[0].nb_res, jobs, profiles)
        return job_limits(whole, legacy_zero_limits=self.scenario.workload.batsim.legacy_zero_limits)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard a scheduler's prints and logs below warnings, which are megabytes for a few workloads."""
    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        logging.disable(before)


def _act(policy: Any, system: DecisionSystem) -> None:
    """Have a policy decide. A policy with `decide` starts jobs itself; a fixed pair needs no observation, and the
    oracle of tried pairs needs only the current date.
    """
    if hasattr(policy, "decide"):
        system.act_by(policy.decide)
    elif isinstance(policy, PairRule):
        system.act(0)
    elif hasattr(policy, "act_at"):
        system.act(policy.act_at(system.model.now))
    else:
        system.act(int(policy.act(system.observe(), system.masks())))
