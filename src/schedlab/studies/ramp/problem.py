"""One scenario with its graphs: episodes of arrivals, each run under a policy and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from schedlab.config.contract import Metric, Outcome, Policy, RuleMaker, Split, Unit
from schedlab.config.schema import NoSettings, Settings, setting, validate
from schedlab.config.seeds import derive_seed, generator
from schedlab.studies.ramp.cluster import Cluster
from schedlab.studies.ramp.graph import ForwardGraph
from schedlab.studies.ramp.job_tables import job_table
from schedlab.studies.ramp.lp_bound import LpBound
from schedlab.studies.ramp.rules import RULES, Decision, Rule, capped, fixed
from schedlab.studies.ramp.settings import LARGEST_DEGREE, RampScenario
from schedlab.studies.ramp.simulation import Simulation

if TYPE_CHECKING:
    import gymnasium as gym

    from schedlab.studies.ramp.afterstate_kernel import Outlook
    from schedlab.studies.ramp.fast_kernel import Tables

METRICS = (
    Metric("blocking_rate", "-", "lower", headline=True, label="blocking rate"),
    Metric("speedup", "-", "higher", label="mean speed-up of completed jobs"),
    Metric("jct", "s", "lower", label="mean completion time of completed jobs"),
    Metric("demand_throughput", "bytes/s", "higher", label="demand throughput"),
    Metric("mounted_workers", "workers", "higher", label="mean number of mounted workers per step"),
    Metric("utilisation", "-", "higher", label="mean utilisation of mounted workers per step"),
)


class CapSettings(Settings):
    """The rule `sip_ml`."""

    cap: int = setting(16, doc="most shards of an op", ge=1, le=LARGEST_DEGREE)


class FixedSettings(Settings):
    """The rule `fixed`."""

    degree: int = setting(doc="shards of an op, or as far below as is valid", ge=1, le=LARGEST_DEGREE)


@dataclass
class RulePolicy:
    """A rule that reads the job and the mask; what it draws hangs from its seed and the unit's."""

    rule: Rule
    seed: int

    def reset(self, unit: Unit) -> None:
        """Begin the random stream of an episode."""
        self.random = generator(self.seed, "ramp", "rule", unit.seed)

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int:
        """Return the number of shards for the waiting job; 0 rejects it."""
        return self.rule(Decision(simulation.waiting, mask, self.random))


@runtime_checkable
class ClusterPolicy(Protocol):
    """A policy that looks at the simulation itself instead of an observation."""

    def reset(self, unit: Unit) -> None: ...

    def decide(self, simulation: Simulation, mask: np.ndarray) -> int: ...


def _plain_rule(name: str, params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
    del problem
    validate(NoSettings, params)
    return RulePolicy(RULES[name], seed)


def _capped(params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
    del problem
    return RulePolicy(capped(validate(CapSettings, params).cap), seed)


def _fixed(params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
    del problem
    return RulePolicy(fixed(validate(FixedSettings, params).degree), seed)


def _bound(params: Mapping[str, Any], problem: Any, seed: int) -> LpBound:
    del seed
    validate(NoSettings, params)
    return LpBound(problem)


RULE_MAKERS: dict[str, RuleMaker] = {name: partial(_plain_rule, name) for name in RULES if name != "sip_ml" and "fixed_" not in name}
RULE_MAKERS |= {"sip_ml": _capped, "fixed": _fixed, "lp_bound": _bound}
RULE_SETTINGS: dict[str, type[Settings]] = {"sip_ml": CapSettings, "fixed": FixedSettings}


class RampProblem:
    """Implements the contract's Problem. Units are episodes; each is a block of its own, for their draws are independent."""

    def __init__(self, scenario: RampScenario, graphs: Sequence[ForwardGraph]) -> None:
        self.scenario, self.graphs = scenario, graphs

    @cached_property
    def simulation(self) -> Simulation:
        """The cluster that episodes run on, one after the other."""
        return Simulation(self.scenario, self.graphs)

    @cached_property
    def fast(self) -> tuple[Tables, Outlook]:
        """Tables and outlook of the compiled cluster. Raises UserError where it cannot play the scenario."""
        from schedlab.studies.ramp.afterstate import make_outlook
        from schedlab.studies.ramp.fast import fast_tables

        tables = fast_tables(self.simulation.twin())
        return tables, make_outlook(tables, self.simulation.pool.mean_gap)

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the episodes of a split."""
        count = getattr(self.scenario.episodes, split)
        names = [f"{split}-{number:03d}" for number in range(count)]
        return [Unit(name, "episode", split, name, derive_seed(self.scenario.seed, "ramp", name)) for name in names]

    def env(self, unit: Unit, seed: int) -> gym.Env:
        """Return an environment that repeats an episode, but in training draws another at every reset."""
        from schedlab.studies.ramp.env import RampEnv

        simulation = self.simulation.twin()
        return RampEnv(simulation, seed=seed, fixed_episode=None if unit.split == "train" else unit.seed)

    def rollout(self, policy: Policy | LpBound, unit: Unit) -> Outcome:
        """Run an episode under a policy and score it. A measure without a denominator is left out.

        A ClusterPolicy gets the simulation and the mask, another policy the observation (Simulation.observation) and the mask. LpBound
        plays nothing and has a single score. Raises UserError for an action that is not valid.
        """
        if isinstance(policy, LpBound):
            return Outcome(policy.scores(unit))
        policy.reset(unit)
        simulation = self.simulation
        simulation.reset(unit.seed)
        while simulation.waiting is not None:
            mask = simulation.mask()
            if isinstance(policy, ClusterPolicy):
                action = policy.decide(simulation, mask)
            else:
                action = int(policy.act(simulation.observation(), mask.astype(bool)))
            simulation.act(action, mask)
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
