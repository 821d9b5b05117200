"""One scenario with its platform and workloads: each replicate is simulated under a scheduler and scored."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from schedlab.batsim.options import Options
from schedlab.batsim.results import read_energy, read_jobs
from schedlab.batsim.running import Inputs, simulate
from schedlab.config.contract import Metric, Outcome, Split, Unit
from schedlab.evaluation.job_metrics import JOB_METRICS, job_metrics, load_over_time
from schedlab.studies.hetero.archive import extract_workload
from schedlab.studies.hetero.replicates import units
from schedlab.studies.hetero.rules import SchedulerRule
from schedlab.studies.hetero.settings import HeteroScenario

METRICS = (
    *JOB_METRICS,
    Metric("energy", "J", "lower", label="energy"),
    Metric("energy_delay_product", "J s", "lower", label="energy-delay product"),
)


class HeteroProblem:
    """Implements the contract's Problem. Units are the replicates of the workload.

    platform   XML of the platform        workloads   archive of the replicates' workload files
    """

    def __init__(self, scenario: HeteroScenario, platform: Path, workloads: Path) -> None:
        self.scenario, self._platform, self._workloads = scenario, Path(platform), Path(workloads)

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the replicates of a split."""
        return [unit for unit in units(self.scenario.workload, self.scenario.replicates) if unit.split == split]

    def env(self, unit: Unit, seed: int) -> None:
        """There is nothing to step: schedulers decide in conversation with the simulator."""
        del unit, seed

    def rollout(self, policy: SchedulerRule, unit: Unit) -> Outcome:
        """Simulate a replicate under a scheduler from the first submission to the last end.

        The energy is that of all hosts; the energy-delay product is energy times makespan.
        Raises SchedulerFailed, ProtocolError, SimulationDeadlock, BatsimFailed where the simulation fails.
        """
        policy.reset(unit)
        scenario = self.scenario
        with tempfile.TemporaryDirectory(prefix="schedlab-") as folder:
            workload = extract_workload(self._workloads, unit.id, folder)
            prefix = f"{folder}/out"
            options = Options(energy=scenario.energy, network=scenario.network)
            inputs = Inputs(self._platform, (workload,), prefix, options)
            row = simulate(inputs, policy.scheduler, dict(policy.options), backend=scenario.simulator, binary=scenario.batsim)
            jobs = read_jobs(prefix)
            energy = read_energy(prefix) if scenario.energy else None
        scores = job_metrics(jobs, int(row["nb_computing_machines"]), scenario.bounded_slowdown_threshold)
        details = {"jobs": jobs, "load": load_over_time(jobs)}
        if energy is not None:
            scores |= _energy_scores(row, scores)
            details["energy"] = energy
        return Outcome(scores, details=details)


def _energy_scores(row: Mapping[str, float], scores: Mapping[str, float]) -> dict[str, float]:
    if "makespan" not in scores:
        return {}
    energy = row["consumed_joules"]
    return {"energy": energy, "energy_delay_product": energy * scores["makespan"]}
