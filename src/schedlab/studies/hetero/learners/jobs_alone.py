"""The rule `alone`, a bound: each job starts when it is submitted, on the fastest cores that could hold it, as if no
other job were there.

No schedule has a lower slowdown, wait, turnaround time or makespan: a job cannot start before its submission, nor run
faster than on the cores whose slowest one is as fast as possible. It is no policy, since it ignores that jobs compete
for cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.schema import NoSettings, validate
from schedlab.studies.hetero.kernels.cluster_kernel import HIGH_GFLOPS, free_state, take_cores
from schedlab.studies.hetero.kernels.run_kernel import Run
from schedlab.studies.hetero.learners.compiled_episodes import CompiledJobs


class JobsAlone:
    """The bound, computed from the compiled kernel's form of the jobs alone."""

    def __init__(self, problem: Any) -> None:
        if problem.scenario.simulator != "compiled":
            what, expected = "the bound is computed on the compiled kernel's jobs alone", "simulator: compiled"
            raise UserError(what, where="rule alone", expected=expected)

    def reset(self, unit: Unit) -> None:
        """Do nothing."""

    def run_compiled(self, jobs: CompiledJobs) -> Run:
        """Return a run whose dates no schedule undercuts."""
        each, cluster, unused = jobs.jobs, jobs.cluster, np.random.default_rng(0)
        state = free_state(cluster, len(each.time))
        for job in range(len(each.time)):
            take_cores(state, each, cluster, HIGH_GFLOPS, job, unused)  # the fastest that have the memory
        speed = np.where(state.taken > 0, cluster.speed, np.inf).min(axis=1)
        started = each.submitted.astype(float)
        return Run(state, started, started + each.flops / speed)


def jobs_alone(params: Mapping[str, Any], problem: Any, seed: int) -> JobsAlone:
    """Return the bound. Raises UserError if the compiled kernel does not simulate the scenario."""
    del seed
    validate(NoSettings, params)
    return JobsAlone(problem)
