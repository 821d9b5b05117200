"""One scenario with its workload: windows of jobs, each run under a rule and scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from schedlab.config.contract import Metric, Outcome, RuleMaker, Split, Unit
from schedlab.config.schema import NoSettings, validate
from schedlab.studies.batch.jobs import jobs_of, machine_of, prefill, window
from schedlab.studies.batch.metrics import job_table, measures
from schedlab.studies.batch.rules import RULES, require_rule
from schedlab.studies.batch.settings import BatchScenario
from schedlab.studies.batch.simulate import simulate
from schedlab.studies.batch.windows import first_job, require_test_windows, window_units
from schedlab.workloads.trace import Trace

METRICS = (
    Metric("avg_bsld", "-", "lower", headline=True, label="mean bounded slowdown"),
    Metric("log_bsld", "-", "lower", label="mean logarithm of the bounded slowdown"),
    Metric("median_bsld", "-", "lower", label="median bounded slowdown"),
    Metric("p90_bsld", "-", "lower", label="90th percentile of the bounded slowdown"),
    Metric("p99_bsld", "-", "lower", label="99th percentile of the bounded slowdown"),
    Metric("max_bsld", "-", "lower", label="largest bounded slowdown"),
    Metric("avg_wait", "s", "lower", label="mean wait"),
    Metric("max_wait", "s", "lower", label="longest wait"),
    Metric("avg_turnaround", "s", "lower", label="mean turnaround"),
    Metric("util_to_last_start", "-", "higher", label="utilisation up to the last start"),
    Metric("util_makespan", "-", "higher", label="utilisation"),
    Metric("user_bsld_max", "-", "lower", label="mean bounded slowdown of the worst-off user"),
    Metric("jain_users", "-", "higher", label="fairness over users"),
)


@dataclass(frozen=True)
class RulePolicy:
    """A priority rule by name; whole windows are simulated under it at once, so nothing asks it to act."""

    rule: str

    def reset(self, unit: Unit) -> None:
        """Keep nothing from one window to the next."""


def rule_maker(name: str) -> RuleMaker:
    """Return the maker of a rule without values of its own."""
    require_rule(name)

    def make(params: Mapping[str, Any], problem: Any, seed: int) -> RulePolicy:
        del problem, seed
        validate(NoSettings, params)
        return RulePolicy(name)

    return make


RULE_MAKERS = {name: rule_maker(name) for name in RULES}


class BatchProblem:
    """Implements the contract's Problem. Units are windows of the workload."""

    def __init__(self, scenario: BatchScenario, trace: Trace) -> None:
        self.scenario, self.machine = scenario, machine_of(trace)
        self.jobs, _ = jobs_of(trace, self.machine)
        require_test_windows(len(self.jobs), scenario.windows, scenario.name)

    def units(self, split: Split) -> Sequence[Unit]:
        """Return the windows of a part."""
        return window_units(len(self.jobs), self.scenario.windows, split, self.scenario.seed)

    def env(self, unit: Unit, seed: int) -> None:
        """There is nothing to step yet: rules run whole windows."""
        del unit, seed

    def rollout(self, policy: RulePolicy, unit: Unit) -> Outcome:
        """Run a window under a rule. A measure that has no denominator is left out."""
        policy.reset(unit)
        scenario, start = self.scenario, first_job(unit)
        chosen = window(self.jobs, self.machine, start, scenario.windows.length)
        before = None
        if scenario.warm_start:
            before = prefill(self.jobs, self.machine, start, len(chosen), np.random.default_rng(unit.seed))
        schedule = simulate(chosen, self.machine, policy.rule, scenario.backfill, kill=scenario.kill, prefill=before)
        table = job_table(schedule)
        found = {**measures(schedule, self.machine), "log_bsld": float(np.log(table["bsld"]).mean())}
        scores = {metric.name: found[metric.name] for metric in METRICS if found[metric.name] is not None}
        return Outcome(scores, details={"jobs": table})
