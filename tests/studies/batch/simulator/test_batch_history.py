"""The order from history against a plain statement of it, and the bound on waits."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log

import numpy as np
import pytest
from small_jobs import jobs_from

from oracles.batch_plain import textbook_starts
from schedlab.config.errors import UserError
from schedlab.studies.batch.compat.nan_order import Cluster
from schedlab.studies.batch.jobs import Jobs, Machine, Prefill
from schedlab.studies.batch.simulator.cluster import columns_of, occupy, running_of
from schedlab.studies.batch.simulator.history import (
    PARAMETERS,
    PRIOR,
    START,
    TERMS,
    HistoryPriority,
    history_priority,
    history_scores,
    memory_of,
    predicted,
)
from schedlab.studies.batch.simulator.predictions import Past
from schedlab.studies.batch.simulator.simulate import simulate

MACHINE = Machine(8, 8)
HOUR = 3600.0


def drawn(seed: int, count: int = 60) -> Jobs:
    """Jobs of four users, one of them unknown, whose times are real numbers, so that no two scores are equal by
    chance.
    """
    rng = np.random.default_rng(seed)
    submit, run = np.cumsum(rng.exponential(100.0, count)), rng.exponential(400.0, count) + 5.0
    requested = rng.choice([300.0, 900.0, 3600.0], count) + run * (rng.random(count) < 0.3)
    rows = zip(submit, run, requested, rng.integers(1, 7, count), strict=True)
    return replace(jobs_from(list(rows), MACHINE), user=rng.integers(-1, 3, count))


class PlainHistory:
    """The score (job, clock) as the module states it, with all sums made anew from the jobs that have ended."""

    def __init__(self, values: np.ndarray, jobs: Jobs) -> None:
        self.values, self.jobs = dict(zip(PARAMETERS, values.tolist(), strict=True)), jobs

    def alike(self, job: int, other: int) -> list[bool]:
        """Whether two jobs share a group, by level."""
        jobs = self.jobs
        near = round(2 * np.log2(jobs.requested[job])) == round(2 * np.log2(jobs.requested[other]))
        user = jobs.user[job] >= 0 and jobs.user[job] == jobs.user[other]
        request = user and int(jobs.requested[job]) == int(jobs.requested[other])
        return [True, near, user, request, request and jobs.procs[job] == jobs.procs[other]]

    def predicted(self, job: int, ended: list[int], outlived: list[tuple[int, float]]) -> np.ndarray:
        """The three predictions; ended jobs in the order in which they count, outlived: (job, ln of its ratio)."""
        values, jobs, means = self.values, self.jobs, np.array(PRIOR)
        for level, keep in enumerate([0.999, 0.99, *[values["keep"]] * 3]):
            number, sums = 0.0, np.zeros(3)
            for other in ended:
                if self.alike(job, other)[level]:
                    ratio = jobs.run[other] / jobs.requested[other]
                    cost = max(jobs.requested[other], 10.0) / max(jobs.run[other], 10.0)
                    number, sums = keep * number + 1.0, keep * sums + [log(ratio), min(ratio, 1.5), cost]
            for other, ln in outlived:
                if self.alike(job, other)[level]:
                    request = jobs.requested[other]
                    cost = max(request, 10.0) / max(exp(ln) * request, 10.0)
                    number, sums = (
                        number + values["siblings"],
                        sums + values["siblings"] * np.array([ln, exp(ln), cost]),
                    )
            trust = list(values.values())[level]
            means = (sums + trust * means) / (number + trust)
        return means

    def score(self, job: int, clock: float, predicted: np.ndarray) -> float:
        """The weighted sum."""
        values, jobs = self.values, self.jobs
        log_ratio, ratio, cost = predicted
        request, wait = jobs.requested[job], clock - jobs.submit[job]
        each = cost / max(request, 10.0)
        terms = {
            "log_mean_run": log(ratio * request),
            "log_run": log_ratio + log(request),
            "log_nodes": log(jobs.nodes[job]),
            "log_cost": -log(each),
            "log_slowdown": -log(1.0 + wait * each),
            "log_wait": -log(1.0 + wait / HOUR),
            "share": jobs.nodes[job] / MACHINE.nodes,
            "log_request": log(request),
        }
        assert list(terms) == list(TERMS)
        return sum(values[name] * term for name, term in terms.items())


VALUES = START * 1.3
VALUES[5], VALUES[6] = 0.7, 0.0  # keep; no siblings
VALUES[8:] = [0.4, 0.3, 0.8, 0.6, 0.5, 0.2, 0.3, 0.1]


@pytest.mark.parametrize("seed", range(4))
def test_it_starts_jobs_when_the_plain_statement_does(seed):
    jobs = drawn(seed)
    cluster, plain = Cluster(jobs, MACHINE), PlainHistory(VALUES, jobs)

    def score(job: int, clock: float) -> float:
        starts = [np.nan if start is None else float(start) for start in cluster.start[: len(jobs)]]
        begun = [other for other, start in enumerate(starts) if start <= clock]
        ends = sorted((starts[other] + jobs.run[other], starts[other], other) for other in begun)
        ended = [other for end, _, other in ends if end <= clock]
        return plain.score(job, clock, plain.predicted(job, ended, []))

    assert simulate(jobs, MACHINE, HistoryPriority(VALUES), "easy").start.tolist() == textbook_starts(
        jobs, MACHINE, score, "easy", cluster=cluster
    )


def test_what_ended_in_the_log_is_known_when_a_window_begins():
    jobs = drawn(9)
    past = Past(jobs, jobs.submit + jobs.run)
    policy = HistoryPriority(VALUES).at(past, 40, 20)
    ended = sorted((job for job in range(60) if past.ended[job] <= jobs.submit[40]), key=lambda job: past.ended[job])
    assert len(ended) > 20
    memory, plain = memory_of(policy, jobs.take(slice(40, 60)), MACHINE), PlainHistory(VALUES, jobs)
    for place in range(20):
        np.testing.assert_allclose(predicted(memory, place), plain.predicted(40 + place, ended, []), rtol=1e-12)


def test_a_running_job_that_outlives_its_prediction_counts_and_is_forgotten_afterwards():
    """Job 0 runs for 300 s of its 1000; half as long again gives ln 0.45, more than the -2 that was predicted."""
    jobs = replace(jobs_from([(0, 900, 1000, 2), (1, 5, 1000, 2), (2, 5, 1000, 8)], MACHINE), user=np.zeros(3, int))
    values = VALUES.copy()
    values[6:8] = 2.0, 1.5
    columns = columns_of(jobs, Prefill(jobs.take(slice(0, 0)), np.empty(0)))
    running = running_of(columns, Prefill(jobs.take(slice(0, 0)), np.empty(0)), MACHINE, track=False)
    occupy(running, columns, 0, 0.0)
    memory, plain, scores = memory_of(HistoryPriority(values), jobs, MACHINE), PlainHistory(values, jobs), np.zeros(3)
    waiting = np.array([1, 2])
    for expected, outlived in ((-2.0, [(0, log(0.45))]), (-0.5, [])):
        memory.expected[0] = expected
        history_scores(columns, memory, running, waiting, 300.0, scores)
        for job in waiting:
            found = plain.score(job, 300.0, plain.predicted(job, [], outlived))
            assert scores[job] == pytest.approx(found, rel=1e-12)
        assert not memory.open.any()


def test_a_job_that_has_waited_too_long_comes_first():
    """By hand: job 2 needs the whole machine and is overtaken for ever by small jobs, until it has waited 50 s."""
    rows = [(0, 10, 10, 4), (1, 10, 10, 8), *((9 * number + 2, 10, 10, 4) for number in range(40))]
    jobs = jobs_from(rows, MACHINE)
    late = simulate(jobs, MACHINE, "smallest", "easy").start[1]
    bounded = simulate(jobs, MACHINE, "smallest", "easy", most_wait=50.0)
    assert late > 300 and 51 < bounded.start[1] <= 71
    for mode in ("conservative", "easy_predicted", "easy_learned"):
        assert (simulate(jobs, MACHINE, "smallest", mode, most_wait=50.0).start - jobs.submit).max() < 100


@pytest.mark.parametrize("rule", ["fcfs", "smallest_area", "wfp3"])
def test_a_bound_that_no_job_reaches_changes_nothing(rule):
    jobs = drawn(5)
    free, bounded = (simulate(jobs, MACHINE, rule, "easy", most_wait=bound).start for bound in (np.inf, 1e9))
    np.testing.assert_array_equal(free, bounded)


def test_parameters_that_are_none_are_refused():
    for values in (START[:-1], np.where(np.arange(16) == 3, -1.0, START), np.full(16, np.nan)):
        with pytest.raises(UserError, match="16 finite numbers"):
            HistoryPriority(values)
    assert history_priority(log_slowdown=1.0).values[8:].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
