"""The rule `clairvoyant`, an oracle: look-ahead that knows all run times and arrivals, and may wait.

The rule with a reserve (`ReserveRule`) runs the workload with many values of its settings, where jobs request the time
that they take; the values of the best run are used from then on. At each decision, every option of `choice_kernel`
(start one of the first waiting jobs, or wait) is tried on a copy that this rule continues to the end, and the best is
taken. If no option is better than the rule's decision, the rule decides. So the score is never worse than the rule's
best in hindsight: a policy improvement by rollout (Bertsekas, Tsitsiklis and Wu 1997). It is no bound, since a search
further ahead might find a better run.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.runtime.compiled import compiled
from schedlab.config.schema import validate
from schedlab.studies.hetero.kernels.choice_kernel import (
    WAIT,
    KernelScorer,
    carry_out,
    empty_scorer,
    find_options,
    no_options,
)
from schedlab.studies.hetero.kernels.cluster_kernel import CORE_CODES, JOB_CODES, WAITING, KernelCluster, KernelJobs
from schedlab.studies.hetero.kernels.run_kernel import Run, copied, new_run, slowdown, to_decision
from schedlab.studies.hetero.kernels.scheduler_kernel import run_reserve, start_with_reserve
from schedlab.studies.hetero.learners.compiled_episodes import CompiledJobs
from schedlab.studies.hetero.learners.oracle_settings import ClairvoyantSettings

BETTER = 1e-12  # smaller differences of the mean bounded slowdown are rounding
BY_RULE = -2  # replaces the number of an option


class Clairvoyant:
    """The oracle, which plays units on the compiled kernel alone."""

    def __init__(self, settings: ClairvoyantSettings, problem: Any) -> None:
        if problem.scenario.simulator != "compiled":
            what, expected = "the oracle runs on the compiled kernel alone", "simulator: compiled"
            raise UserError(what, where="rule clairvoyant", expected=expected)
        self.settings, self._threshold = settings, problem.scenario.bounded_slowdown_threshold

    def reset(self, unit: Unit) -> None:
        """Do nothing."""

    def run_compiled(self, jobs: CompiledJobs) -> Run:
        """Return the run of a workload."""
        known, settings, size = with_true_times(jobs.jobs), self.settings, jobs.cluster.size.sum()
        values = product(settings.longest, settings.free, settings.cores)
        rules = np.array([(longest, round(free * size), CORE_CODES[cores]) for longest, free, cores in values])
        scorer = empty_scorer(settings.window, settings.cores)
        return run_clairvoyant(known, jobs.cluster, scorer, rules, self._threshold)


def clairvoyant(params: Mapping[str, Any], problem: Any, seed: int) -> Clairvoyant:
    """Return the rule. Raises UserError if the compiled kernel does not simulate the scenario."""
    del seed
    return Clairvoyant(validate(ClairvoyantSettings, params), problem)


def with_true_times(jobs: KernelJobs) -> KernelJobs:
    """Return the jobs with their true run times and work as the requested ones."""
    time, keys = jobs.time * jobs.flops / jobs.asked, jobs.keys.copy()
    keys[JOB_CODES["shortest"]], keys[JOB_CODES["saf"]] = time, time * jobs.cores
    return jobs._replace(time=time, asked=jobs.flops.astype(float), keys=keys)


@compiled
def run_clairvoyant(
    jobs: KernelJobs, cluster: KernelCluster, scorer: KernelScorer, rules: np.ndarray, threshold: float
) -> Run:
    """Return the run of the best of several rules with a reserve, improved by look-ahead.

    rules  (rules, 3): longest time (s), reserve (cores) and code of the core policy
    """
    best, lowest = rules[0], np.inf
    for rule in rules:
        run = run_reserve(jobs, cluster, rule[0], int(rule[1]), int(rule[2]), scorer.unused)
        reached = slowdown(run, jobs, threshold)
        if reached < lowest - BETTER:
            best, lowest = rule, reached
    run, now, options = new_run(cluster, len(jobs.time)), 0.0, no_options(scorer)
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return run
        while run.state.counts[WAITING]:
            lowest, taken = continued(copied(run), jobs, cluster, now, best, threshold, scorer, True), BY_RULE
            count = find_options(options, scorer, run.state, jobs, cluster, now)
            for number in range(count):
                copy, (job, code) = copied(run), options.chosen[number]
                if job != WAIT:
                    carry_out(copy, jobs, cluster, now, scorer, job, code)
                reached = continued(copy, jobs, cluster, now, best, threshold, scorer, job != WAIT)
                if reached < lowest - BETTER:
                    lowest, taken = reached, number
            if taken == BY_RULE:
                start_with_reserve(run, jobs, cluster, now, best[0], int(best[1]), int(best[2]), scorer.unused)
                break
            job, code = options.chosen[taken]
            if job == WAIT:
                break
            carry_out(run, jobs, cluster, now, scorer, job, code)


@compiled
def continued(
    run: Run,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    rule: np.ndarray,
    threshold: float,
    scorer: KernelScorer,
    due: bool,
) -> float:
    """Continue a run to its end with the rule with a reserve; return the mean bounded slowdown.

    due  whether a decision is due now, before time passes
    """
    while True:
        if due:
            start_with_reserve(run, jobs, cluster, now, rule[0], int(rule[1]), int(rule[2]), scorer.unused)
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return slowdown(run, jobs, threshold)
