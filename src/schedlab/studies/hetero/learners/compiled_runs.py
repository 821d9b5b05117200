"""Runs of policies on the compiled kernel, about fifty times as fast as the embedded simulator; scenarios choose it by
`simulator: compiled`.

The dates equal those of the embedded simulator up to its rounding, which the tests check. The embedded simulator runs
the policies that the kernel does not support.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from schedlab.batsim.schedulers.priorities import PRIORITIES
from schedlab.config.contract import Unit
from schedlab.config.seeds import derive_seed
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR
from schedlab.studies.hetero.kernels.backfill_kernel import PAIR_CODES
from schedlab.studies.hetero.kernels.cluster_kernel import CORE_CODES
from schedlab.studies.hetero.kernels.run_kernel import Run, run_pair
from schedlab.studies.hetero.kernels.scheduler_kernel import run_easy, run_reserve
from schedlab.studies.hetero.learners.compiled_episodes import CompiledJobs
from schedlab.studies.hetero.rules import PairRule, ReserveRule, SchedulerRule
from schedlab.studies.hetero.simulator.decisions import random_policies

RANDOM = "random"  # not compiled for schedulers, whose core policies draw from another stream than pairs


class CompiledRuns:
    """Plays policies on the units of a problem. Raises UserError for jobs that do more than compute."""

    def __init__(self, problem: Any) -> None:
        self._problem = problem
        self._jobs: dict[str, CompiledJobs] = {}

    def jobs(self, unit: Unit) -> CompiledJobs:
        """Return a unit's jobs and the cluster in the kernel's form."""
        if unit.id not in self._jobs:
            problem = self._problem
            where = f"scenario {problem.scenario.name}: simulator"
            self._jobs[unit.id] = CompiledJobs(problem.cluster.hierarchy, problem.jobs(unit), where)
        return self._jobs[unit.id]

    def scores(self, policy: Any, unit: Unit) -> dict[str, float] | None:
        """Return the scores of a policy on a unit, by name; None if the kernel does not support the policy."""
        jobs = self.jobs(unit)
        run = self._run(policy, unit, jobs)
        return None if run is None else jobs.scores(run, self._problem.scenario.bounded_slowdown_threshold)

    def _run(self, policy: Any, unit: Unit, jobs: CompiledJobs) -> Run | None:
        if hasattr(policy, "run_compiled"):
            return policy.run_compiled(jobs)
        rng = random_policies(derive_seed(unit.seed, "episode", getattr(policy, "seed", 0)))
        if isinstance(policy, PairRule):
            job, core = policy.pair.split(PAIR_SEPARATOR)
            if core not in CORE_CODES:
                return None
            return run_pair(jobs.jobs, jobs.cluster, np.array([PAIR_CODES[job], CORE_CODES[core]]), rng)
        if isinstance(policy, ReserveRule):
            reserve = policy.reserved(jobs.cluster.size.sum())
            return run_reserve(jobs.jobs, jobs.cluster, policy.longest, reserve, CORE_CODES[policy.cores], rng)
        if isinstance(policy, SchedulerRule) and policy.scheduler == "easy":
            return self._run_easy(policy, jobs, rng)
        return None

    def _run_easy(self, policy: SchedulerRule, jobs: CompiledJobs, rng: np.random.Generator) -> Run | None:
        priority = PRIORITIES[policy.options.get("priority", "fcfs")]
        if priority.ages or policy.cores not in CORE_CODES or policy.cores == RANDOM or (jobs.walltime <= 0).any():
            return None
        cores, submitted = jobs.jobs.cores.astype(float), jobs.jobs.submitted.astype(float)
        score = np.asarray(priority.score(cores, jobs.walltime, submitted, 0.0), float)
        run, holds = run_easy(jobs.jobs, jobs.cluster, jobs.walltime, score, CORE_CODES[policy.cores], rng)
        return run if holds else None
