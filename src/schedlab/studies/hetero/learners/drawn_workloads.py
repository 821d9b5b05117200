"""Workloads drawn in addition to the units of a problem, for learners that draw one per episode and for look-ahead."""

from __future__ import annotations

from typing import Any

from schedlab.batsim.files.workload import parse_workload
from schedlab.config.errors import UserError
from schedlab.studies.hetero.kernels.cluster_kernel import KernelCluster, KernelJobs
from schedlab.studies.hetero.learners.compiled_episodes import CompiledJobs
from schedlab.studies.hetero.simulator.episode import Jobs
from schedlab.studies.hetero.simulator.physics import require_hdeeprm
from schedlab.workloads.batsim_file import batsim_text
from schedlab.workloads.prepare import make_batsim

NO_LIMITS = {"max_time": 1.0, "max_mem_bw": 1.0}  # of observations that nothing reads


class DrawnWorkloads:
    """Draws workloads with a problem's settings and given seeds. Raises UserError for a trace or a file, which cannot
    be drawn, and for physics that the compiled kernel does not have.
    """

    def __init__(self, problem: Any, where: str) -> None:
        self._problem, self._where = problem, where
        require_hdeeprm(problem.scenario.physics, f"{where} plays", f"scenario {problem.scenario.name}")
        if problem.scenario.workload.source != "lublin":
            what, expected = "only a model's workloads can be drawn", "workload.source: lublin"
            raise UserError(what, where=f"scenario {problem.scenario.name}: {where}", expected=expected)

    def jobs(self, seed: int) -> KernelJobs:
        """Return the workload of a seed."""
        return self._made(seed).jobs

    def cluster(self) -> KernelCluster:
        """Return the problem's cluster."""
        return self._made(0).cluster

    def _made(self, seed: int) -> CompiledJobs:
        settings, hierarchy = self._problem.scenario.workload, self._problem.cluster.hierarchy
        drawn, _ = make_batsim(settings.model_copy(update={"seed": seed}), hierarchy)
        workload = parse_workload(batsim_text(drawn), "w0", "drawn workload")
        return CompiledJobs(hierarchy, Jobs(workload, NO_LIMITS), self._where)
