"""The rule `tried_pairs`, an oracle: at each decision it tries every pair on a copy of the run, and plays the best.

A pair starts its jobs in the copy, and the base pair continues the copy to the end of the workload. The pair whose copy
has the lowest mean bounded slowdown is played, or the base pair if none is better. This uses run times and arrivals,
which no policy knows. It is no bound either, since the base pair takes all later decisions of a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.runtime.compiled import compiled
from schedlab.config.schema import validate
from schedlab.studies.hetero.env.settings import PAIR_SEPARATOR
from schedlab.studies.hetero.kernels.cluster_kernel import KernelCluster, KernelJobs
from schedlab.studies.hetero.kernels.run_kernel import Run, copied, decide, new_run, slowdown, to_decision
from schedlab.studies.hetero.learners.compiled_episodes import CompiledEpisodes, CompiledJobs
from schedlab.studies.hetero.scenario import TriedPairsSettings

BETTER = 1e-9  # smaller relative differences of the mean bounded slowdown are rounding
SAME = 1e-3  # s; the simulator's dates differ from the trial's by less, and it may split ends at one date into two


class TriedPairs:
    """The oracle, which plays on each workload the pairs that were best in the trials. Raises UserError for a base pair
    that is no action of the scenario.
    """

    def __init__(self, settings: TriedPairsSettings, problem: Any) -> None:
        self.settings, self.problem = settings, problem
        selection = problem.scenario.decisions.selection
        if settings.base not in selection:
            what = f"no action of the scenario is {settings.base}"
            raise UserError(what, where="rule tried_pairs: base", expected="a pair of decisions.selection")
        job, core = settings.base.split(PAIR_SEPARATOR)
        ends = {"job": ("", core), "core": (job, ""), "both": ("", "")}[settings.vary]
        self.pairs = tuple(pair for pair in selection if _varies(pair, *ends))

    def reset(self, unit: Unit) -> None:
        """Try the pairs on the unit's workload."""
        kernel = CompiledEpisodes(self.problem.env(unit, unit.seed), "rule tried_pairs")
        numbers = [kernel.action_names.index(pair) for pair in self.pairs]
        threshold = self.problem.scenario.bounded_slowdown_threshold
        base = self.pairs.index(self.settings.base)
        unused = np.random.default_rng(0)  # the kernel needs a generator, but none of these pairs draws
        chosen, self.dates, self.run = best_by_trying(
            kernel.jobs, kernel.cluster, kernel.pairs[numbers], base, threshold, unused
        )
        self.slowdown = slowdown(self.run, kernel.jobs, threshold)
        self.actions, self._passed = [numbers[number] for number in chosen], 0

    def run_compiled(self, jobs: CompiledJobs) -> Run:
        """Return the run of the trials themselves, after `reset` for the same workload."""
        del jobs
        return self.run

    def act_at(self, now: float) -> int:
        """Return the action that the trials chose at a date (s), or at the last decision before it. Dates must not
        decrease from call to call.
        """
        ahead = self.dates[self._passed :]
        missed = int(np.searchsorted(ahead, now - SAME))
        self._passed += missed + int(missed < len(ahead) and ahead[missed] <= now + SAME)
        return self.actions[max(self._passed - 1, 0)]


def tried_pairs(params: Mapping[str, Any], problem: Any, seed: int) -> TriedPairs:
    """Return the rule. Raises UserError for a base pair that is no action of the scenario."""
    del seed
    return TriedPairs(validate(TriedPairsSettings, params), problem)


def _varies(pair: str, job: str, core: str) -> bool:
    """Return whether a pair draws no random number and has the given job and core policy ("": any)."""
    own_job, own_core = pair.split(PAIR_SEPARATOR)
    return "random" not in (own_job, own_core) and job in ("", own_job) and core in ("", own_core)


@compiled
def best_by_trying(
    jobs: KernelJobs, cluster: KernelCluster, pairs: np.ndarray, base: int, threshold: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, Run]:
    """Return the pair played at each decision (decisions,), as its place in `pairs` (actions, 2), the dates of the
    decisions (s), and the run.
    """
    run = new_run(cluster, len(jobs.time))
    chosen, dates = np.zeros(2 * len(jobs.time), np.int64), np.zeros(2 * len(jobs.time))
    decisions, now = 0, 0.0
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return chosen[:decisions], dates[:decisions], run
        best, lowest = base, outcome(copied(run), jobs, cluster, now, pairs[base], pairs[base], threshold, rng)
        for action in range(len(pairs)):
            reached = outcome(copied(run), jobs, cluster, now, pairs[action], pairs[base], threshold, rng)
            if reached < lowest * (1.0 - BETTER):
                best, lowest = action, reached
        chosen[decisions], dates[decisions] = best, now
        decisions += 1
        decide(run, jobs, cluster, now, pairs[best], rng)


@compiled
def outcome(
    run: Run,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    pair: np.ndarray,
    base: np.ndarray,
    threshold: float,
    rng: np.random.Generator,
) -> float:
    """Return the mean bounded slowdown of a run that plays `pair` at the decision due now and `base` afterwards."""
    decide(run, jobs, cluster, now, pair, rng)
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return slowdown(run, jobs, threshold)
        decide(run, jobs, cluster, now, base, rng)
