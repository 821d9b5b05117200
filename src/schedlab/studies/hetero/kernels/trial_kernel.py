"""Compiled trials of the options of a decision on copies of a run; each copy continues to the end of the workload."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from schedlab.config.runtime.compiled import compiled
from schedlab.studies.hetero.kernels.choice_kernel import (
    OWN,
    SHARED,
    WAIT,
    KernelScorer,
    Options,
    carry_out,
    choose,
    find_options,
    go_on,
    no_options,
    scores_of,
)
from schedlab.studies.hetero.kernels.cluster_kernel import WAITING, KernelCluster, KernelJobs
from schedlab.studies.hetero.kernels.run_kernel import Run, copied, decide, new_run, slowdown, to_decision
from schedlab.studies.hetero.kernels.scheduler_kernel import start_with_reserve

NO_PAIR, RESERVE = -1, -2  # replace the code of a job policy: copies continue by scores, or by the rule with a reserve


class Trials(NamedTuple):
    """Settings of the trials.

    scorer     defines the options and their scores
    pair       (2,): codes of the pair that continues copies; NO_PAIR: copies take the option with the highest score;
               RESERVE and the code of a core policy: the rule with a reserve continues them
    threshold  lower bound on run times in the bounded slowdown, s
    most       maximum number of options tried besides waiting, those with the highest scores
    longest    requested time up to which the rule with a reserve starts a job anyway, s
    reserve    number of cores that this rule keeps free
    """

    scorer: KernelScorer
    pair: np.ndarray
    threshold: float
    most: int
    longest: float
    reserve: int


@compiled
def try_options(
    run: Run,
    jobs: KernelJobs,
    cluster: KernelCluster,
    now: float,
    trials: Trials,
    options: Options,
    values: np.ndarray,
) -> int:
    """Replace each NaN in `values` (options,) by the mean bounded slowdown that follows the option; return the number
    of decisions taken in the copies.
    """
    decisions, scorer = 0, trials.scorer
    ahead, made = no_options(scorer), np.empty(len(options.own))
    for number in range(len(values)):
        if not np.isnan(values[number]):
            continue
        copy = copied(run)
        job, code = options.chosen[number]
        if job != WAIT:
            carry_out(copy, jobs, cluster, now, scorer, job, code)
        if trials.pair[0] != NO_PAIR:
            decisions += go_on_by_rule(copy, jobs, cluster, now, trials, job != WAIT)
        else:
            if job != WAIT:
                decisions += choose(copy, jobs, cluster, now, scorer, ahead, made)
            decisions += go_on(copy, jobs, cluster, now, scorer)
        values[number] = slowdown(copy, jobs, trials.threshold)
    return decisions


@compiled
def go_on_by_rule(run: Run, jobs: KernelJobs, cluster: KernelCluster, now: float, trials: Trials, due: bool) -> int:
    """Continue a run to its end with the pair or the rule with a reserve; return the number of decisions.

    due  whether a decision is due now, before time passes
    """
    decisions = 0
    while True:
        if due:
            if trials.pair[0] == RESERVE:
                longest, reserve, code = trials.longest, trials.reserve, trials.pair[1]
                start_with_reserve(run, jobs, cluster, now, longest, reserve, code, trials.scorer.unused)
            else:
                decide(run, jobs, cluster, now, trials.pair, trials.scorer.unused)
            decisions += 1
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return decisions


@compiled
def play_with_trials(
    jobs: KernelJobs, cluster: KernelCluster, trials: Trials, tried: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, int]:
    """Play an episode and try the options of some of its decisions. If a pair or the rule with a reserve continues the
    copies, a decision with trials takes the best option; all other decisions take the option with the highest score.

    tried  (decisions,): whether options are tried at each decision with several options
    Returns numbers (tried, options, SHARED + OWN), number of options (tried,), values (tried, options; infinite if not
    tried), the mean bounded slowdown, and the number of decisions.
    """
    scorer, run, now = trials.scorer, new_run(cluster, len(jobs.time)), 0.0
    options = no_options(scorer)
    most, made = len(options.own), np.empty(len(options.own))
    rows, counts = np.zeros((tried.sum(), most, SHARED + OWN), np.float32), np.zeros(tried.sum(), np.int64)
    values = np.full((tried.sum(), most), np.inf)
    decisions = kept = place = 0
    while True:
        due, now = to_decision(run, jobs, cluster, now)
        if not due:
            return rows[:kept], counts[:kept], values[:kept], slowdown(run, jobs, trials.threshold), decisions
        while run.state.counts[WAITING]:
            count = find_options(options, scorer, run.state, jobs, cluster, now)
            if not count:
                break
            scores_of(options, count, scorer, made)
            best = np.argmax(made[:count])
            decisions += 1
            if count > 1 and place < len(tried):
                if tried[place]:
                    rows[kept, :count, :SHARED] = options.shared
                    rows[kept, :count, SHARED:] = options.own[:count]
                    counts[kept] = count
                    values[kept, np.argsort(-made[:count])[: trials.most]] = np.nan
                    if options.chosen[0, 0] == WAIT:
                        values[kept, 0] = np.nan
                    decisions += try_options(run, jobs, cluster, now, trials, options, values[kept, :count])
                    if trials.pair[0] != NO_PAIR:
                        best = np.argmin(values[kept, :count])
                    kept += 1
                place += 1
            job, code = options.chosen[best]
            if job == WAIT:
                break
            carry_out(run, jobs, cluster, now, scorer, job, code)
