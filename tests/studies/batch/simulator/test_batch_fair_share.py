"""Slurm's multifactor priority, against a plain statement of it and by hand."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest
from small_jobs import jobs_from

from oracles.batch_plain import run_rule, textbook_starts
from schedlab.studies.batch.compat.nan_order import BlockingSimulation, Cluster
from schedlab.studies.batch.jobs import Jobs, Machine
from schedlab.studies.batch.rules import SlurmSettings
from schedlab.studies.batch.simulator.fair_share import SlurmPriority
from schedlab.studies.batch.simulator.predictions import Past
from schedlab.studies.batch.simulator.simulate import simulate

DAY = 86400.0
MACHINE = Machine(16, 16)


def drawn(seed: int, count: int = 60) -> Jobs:
    """Jobs of four users whose times are real numbers, so that no two scores are equal by chance."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(0.05 * DAY, count))
    run = rng.exponential(0.3 * DAY, count) + 1.0
    rows = zip(submit, run, run * rng.uniform(1, 3, count), rng.integers(1, 13, count), strict=True)
    return replace(jobs_from(list(rows), MACHINE), user=rng.integers(-1, 3, count))


def plain_score(values: SlurmSettings, jobs: Jobs, cluster: Cluster):
    """The score (job, clock): each factor as Slurm's documentation states it, the usage summed over all jobs."""
    users, half_life = sorted(set(jobs.user.tolist())), values.half_life * DAY

    def used(user: int, clock: float) -> float:
        total = 0.0
        for job in range(len(jobs)):
            begin = cluster.start[job]
            if jobs.user[job] == user and begin is not None and not np.isnan(begin) and begin < clock:
                end = min(begin + jobs.run[job], clock)
                weighted = 0.5 ** ((clock - end) / half_life) - 0.5 ** ((clock - begin) / half_life)
                total += float(jobs.procs[job]) * half_life / log(2) * weighted
        return total

    def score(job: int, clock: float) -> float:
        usage = {user: used(user, clock) for user in users}
        everything = sum(usage.values())
        part = usage[int(jobs.user[job])] / everything if everything else 0.0
        share = int(jobs.procs[job]) / MACHINE.processors
        priority = values.age_weight * min((clock - jobs.submit[job]) / (values.max_age * DAY), 1.0)
        priority += values.size_weight * (1.0 - share if values.favor_small else share)
        return -(priority + values.share_weight * 2.0 ** (-part * len(users)))

    return score


SETTINGS = [
    SlurmSettings(),
    SlurmSettings(favor_small=True, size_weight=5000, max_age=1.0),
    SlurmSettings(half_life=0.5, share_weight=1000),
]


@pytest.mark.parametrize("values", SETTINGS)
@pytest.mark.parametrize("seed", range(4))
def test_it_starts_jobs_when_the_plain_statement_does(values, seed):
    jobs = drawn(seed)
    for mode in ("easy", "conservative"):
        cluster = Cluster(jobs, MACHINE, None)
        plain = textbook_starts(jobs, MACHINE, plain_score(values, jobs, cluster), mode, cluster=cluster)
        assert simulate(jobs, MACHINE, SlurmPriority(values), mode).start.tolist() == plain
    blocking = BlockingSimulation(jobs, MACHINE, backfill=False)
    plain = run_rule(blocking, plain_score(values, jobs, blocking))
    assert simulate(jobs, MACHINE, SlurmPriority(values)).start.tolist() == plain


def test_the_user_who_used_less_comes_first():
    """At 200 both jobs wait for the whole machine: user 1 has used it for 100 s, user 2 not at all."""
    jobs = jobs_from([(0, 100, 100, 16), (0, 100, 100, 16), (1, 50, 50, 16), (2, 50, 50, 16)], MACHINE)
    jobs = replace(jobs, user=np.array([1, 3, 1, 2]))
    assert simulate(jobs, MACHINE, SlurmPriority(SlurmSettings()), "easy").start.tolist() == [0, 100, 250, 200]


def test_what_the_log_shows_before_the_window_counts():
    """User 1 ran 16 processors for the 100 s until the window; user 2 ran as long, a half-life before that."""
    values = SlurmSettings(half_life=100 / DAY)
    rows = [(0, 100, 100, 16), (100, 100, 100, 16), (200, 50, 50, 16), (200, 50, 50, 16)]
    jobs = replace(jobs_from(rows, MACHINE), user=np.array([2, 1, 1, 2]))
    past = Past(jobs, np.array([100.0, 200.0, np.nan, np.nan]))
    policy = SlurmPriority(values).at(past, 2, 2)
    assert policy.usage is not None
    area = 16 * 100 / log(2)  # of a half-life, all of it decayed by up to one half
    np.testing.assert_allclose(policy.usage.used, [area * 0.5, area * 0.25])
    assert simulate(jobs.take(slice(2, 4)), MACHINE, policy, "easy").start.tolist() == [250, 200]


def test_a_log_without_waits_shows_no_usage():
    jobs = drawn(1)
    policy = SlurmPriority(SlurmSettings()).at(Past(jobs, np.full(len(jobs), np.nan)), 10, 50)
    assert policy.usage is not None and policy.usage.used.tolist() == [0.0] * 4
    assert not np.isnan(simulate(jobs.take(slice(10, 60)), MACHINE, policy, "easy").start).any()
