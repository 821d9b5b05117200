"""The rule `look_ahead`: at each decision it tries every option on copies of the run, which hold only known facts, and
takes the best.

Options are those of `choice_kernel`: start one of the first waiting jobs, or wait. A pair continues each copy to its
end, and jobs take the time that they request. Without futures, a copy has no later jobs; with futures, each copy
continues with the later jobs of another draw of the workload, which requires the distribution of arrivals to be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from schedlab.config.contract import Unit
from schedlab.config.errors import UserError
from schedlab.config.runtime.compiled import compiled
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.studies.hetero.kernels.choice_kernel import (
    WAIT,
    Options,
    carry_out,
    empty_scorer,
    find_options,
    no_options,
)
from schedlab.studies.hetero.kernels.cluster_kernel import SUBMITTED, WAITING, KernelCluster, KernelJobs
from schedlab.studies.hetero.kernels.run_kernel import Run, new_run, to_decision
from schedlab.studies.hetero.kernels.trial_kernel import Trials, try_options
from schedlab.studies.hetero.learners.compiled_episodes import CompiledJobs, pair_codes
from schedlab.studies.hetero.learners.drawn_workloads import DrawnWorkloads
from schedlab.studies.hetero.scenario import LookAheadSettings


class LookAhead:
    """The rule, which plays units on the compiled kernel alone. Raises UserError if the compiled kernel does not
    simulate the scenario.
    """

    def __init__(self, settings: LookAheadSettings, problem: Any, seed: int) -> None:
        self.settings, self.problem, self._seed = settings, problem, seed
        if problem.scenario.simulator != "compiled":
            what, expected = "look-ahead runs on the compiled kernel alone", "simulator: compiled"
            raise UserError(what, where="rule look_ahead", expected=expected)
        self._drawn = DrawnWorkloads(problem, "futures") if settings.futures else None
        self._unit_seed = 0

    def reset(self, unit: Unit) -> None:
        """Store the seed of the unit's futures."""
        self._unit_seed = derive_seed(unit.seed, "futures", self._seed)

    def run_compiled(self, jobs: CompiledJobs) -> Run:
        """Return the run of a workload."""
        settings = self.settings
        futures = [jobs.jobs]
        if self._drawn is not None:
            count, size = settings.futures, len(jobs.jobs.time)
            drawn = (self._drawn.jobs(derive_seed(self._unit_seed, number)) for number in range(4 * count))
            futures = [each for each in drawn if len(each.time) >= size][:count]
        pool = stacked(futures, len(jobs.jobs.time))
        scorer, threshold = (
            empty_scorer(settings.window, settings.cores),
            self.problem.scenario.bounded_slowdown_threshold,
        )
        trials = Trials(scorer, pair_codes((settings.base,))[0], threshold, len(scorer.cores) * scorer.window, 0.0, 0)
        return run_look_ahead(jobs.jobs, jobs.cluster, trials, pool, self._drawn is None)


def look_ahead(params: Mapping[str, Any], problem: Any, seed: int) -> LookAhead:
    """Return the rule. Raises UserError if the compiled kernel does not simulate the scenario."""
    return LookAhead(validate(LookAheadSettings, params), problem, seed)


def stacked(futures: list[KernelJobs], size: int) -> np.ndarray:
    """Return the first `size` jobs of workloads, (futures, 8, size): date of submission (s), requested time (s), cores,
    memory (kB), bandwidth (kB/s), requested flop, true flop, area (s).
    """
    each = [
        [one.submitted, one.time, one.cores, one.memory, one.bandwidth, one.asked, one.flops, one.time * one.cores]
        for one in futures
    ]
    return np.stack([np.stack([np.asarray(row[:size], float) for row in rows]) for rows in each])


@compiled
def run_look_ahead(jobs: KernelJobs, cluster: KernelCluster, trials: Trials, pool: np.ndarray, known_only: bool) -> Run:
    """Return the run that takes, at each decision, the option with the lowest mean bounded slowdown over the copies.

    pool        (futures, 8, jobs) as `stacked` returns it
    known_only  whether copies have no jobs besides those submitted so far
    """
    run, now, options = new_run(cluster, len(jobs.time)), 0.0, no_options(trials.scorer)
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return run
        while run.state.counts[WAITING]:
            count = find_options(options, trials.scorer, run.state, jobs, cluster, now)
            if not count:
                break
            total = np.zeros(count)
            size = run.state.counts[SUBMITTED] if known_only else len(jobs.time)
            for future in pool[: len(pool) if count > 1 else 0]:
                add_trial(total, run, jobs, cluster, now, trials, options, future[:, :size])
            job, code = options.chosen[np.argmin(total)]
            if job == WAIT:
                break
            carry_out(run, jobs, cluster, now, trials.scorer, job, code)


@compiled
def add_trial(
    total: np.ndarray,
    run: Run,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    trials: Trials,
    options: Options,
    drawn: np.ndarray,
) -> None:
    """Add the mean bounded slowdown that follows each option to `total` (options,).

    drawn  (8, jobs), as from `stacked`: the workload whose later jobs the copies have
    """
    size = drawn.shape[1]
    seen = as_known(jobs, drawn, run.state.counts[SUBMITTED], now)
    values = np.full(len(total), np.nan)
    try_options(Run(run.state, run.started[:size], run.ended[:size]), seen, cluster, now, trials, options, values)
    total += values


@compiled
def as_known(jobs: KernelJobs, drawn: np.ndarray, came: int, now: float) -> KernelJobs:
    """Return the jobs submitted so far, with the requested work as the true one, and the later jobs of `drawn` (8,
    jobs).
    """
    size, later = drawn.shape[1], drawn[:, came:]
    dates = np.maximum(jobs.submitted[came - 1] + later[0] - drawn[0, came - 1], now)
    keys = np.zeros((len(jobs.keys), size))
    keys[:, :came] = jobs.keys[:, :came]
    keys[0, came:], keys[1, came:], keys[2, came:] = np.arange(came, size), later[1], later[2]
    keys[3, came:], keys[4, came:], keys[5, came:] = later[3], later[4], later[7]
    return KernelJobs(
        np.concatenate((jobs.submitted[:came].astype(np.float64), dates)),
        np.concatenate((jobs.time[:came], later[1])),
        np.concatenate((jobs.cores[:came], later[2].astype(np.int64))),
        np.concatenate((jobs.memory[:came], later[3].astype(np.int64))),
        np.concatenate((jobs.bandwidth[:came], later[4].astype(np.int64))),
        np.concatenate((jobs.asked[:came], later[5])),
        np.concatenate((jobs.asked[:came], later[6])),
        keys,
        jobs.limits,
    )
