"""A scenario with its graphs: its episodes are simulated under policies and scored."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from schedlab.config.contract import Outcome, Policy, Split, Unit
from schedlab.config.seeds import derive_seed
from schedlab.studies.ramp.env.env import RampEnv
from schedlab.studies.ramp.graphs.graph import ForwardGraph
from schedlab.studies.ramp.learners.afterstate.values import make_outlook
from schedlab.studies.ramp.lp_bound import LpBound
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.cluster import Cluster
from schedlab.studies.ramp.simulator.compiled import compiled_tables
from schedlab.studies.ramp.simulator.job_tables import job_table
from schedlab.studies.ramp.simulator.simulation import Simulation

if TYPE_CHECKING:
    import gymnasium as gym

    from schedlab.studies.ramp.learners.afterstate.kernel import Outlook
    from schedlab.studies.ramp.simulator.compiled_kernel import Tables


@runtime_checkable
class ClusterPolicy(Protocol):
    """A policy that reads the simulation instead of an observation.

    It returns a degree, or 0 to reject the job; or a pair of a degree and one of `simulation.free_blocks(degree)`. If
    it returns no block, first fit chooses it.
    """

    def reset(self, unit: Unit) -> None: ...

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int | tuple[int, int]: ...


class RampProblem:
    """The problem of a scenario (contract.Problem). A unit is an episode. Each is a separate block, because the draws
    of episodes are independent.
    """

    def __init__(self, scenario: RampScenario, graphs: Sequence[ForwardGraph]) -> None:
        self.scenario, self.graphs = scenario, graphs

    @cached_property
    def simulation(self) -> Simulation:
        """The simulation in which episodes run, one after the other."""
        return Simulation(self.scenario, self.graphs)

    @cached_property
    def compiled(self) -> tuple[Tables, Outlook]:
        """Tables and outlook of the compiled cluster. Raises UserError if it does not support the scenario."""
        tables = compiled_tables(self.simulation.twin())
        return tables, make_outlook(tables, self.simulation.pool.mean_gap)

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the episodes of a split."""
        count = getattr(self.scenario.episodes, split)
        seed, names = self.scenario.seed, [f"{split}-{number:03d}" for number in range(count)]
        return [
            Unit(name, "episode", split, name, derive_seed(seed, "ramp", name), {"number": number})
            for number, name in enumerate(names)
        ]

    def env(self, unit: Unit, seed: int) -> gym.Env:
        """Return an environment that repeats an episode; for a training unit, every reset draws a new one."""
        simulation = self.simulation.twin()
        return RampEnv(simulation, seed=seed, fixed_episode=None if unit.split == "train" else unit.seed)

    def rollout(self, policy: Policy | ClusterPolicy | LpBound, unit: Unit) -> Outcome:
        """Run an episode under a policy and score it. Means over jobs are left out if there is no such job.

        A ClusterPolicy gets the simulation and the mask; any other policy gets the observation (Simulation.observation)
        and the mask. LpBound is not simulated and has a single score. Raises UserError for an invalid action.
        """
        if isinstance(policy, LpBound):
            return Outcome(policy.scores(unit))
        policy.reset(unit)
        simulation = self.simulation
        simulation.reset(unit.seed)
        while simulation.waiting is not None:
            mask = simulation.mask()
            if isinstance(policy, ClusterPolicy):
                action: int | tuple[int, int] = policy.decide(simulation, mask)
            else:
                action = int(policy.act(simulation.observation(), mask.astype(bool)))
            degree, block = action if isinstance(action, tuple) else (action, None)
            simulation.act(degree, mask, block)
        return Outcome(_scores(simulation.cluster), details={"jobs": job_table(simulation.cluster, simulation.decided)})


def _scores(cluster: Cluster) -> dict[str, float]:
    found = cluster.statistics()
    scores = {
        "blocking_rate": found["blocking_rate"],
        "demand_throughput": found["mean_demand_total_throughput"],
        "mounted_workers": found["mean_num_mounted_workers"],
        "utilisation": found["mean_mounted_worker_utilisation_frac"],
    }
    if cluster.record.completed:
        scores["speedup"] = float(np.mean(found["job_completion_time_speedup"]))
        scores["jct"] = float(np.mean(found["job_completion_time"]))
    return {name: float(value) for name, value in scores.items()}
