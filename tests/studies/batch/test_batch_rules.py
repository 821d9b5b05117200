"""The scores of the rules, against their formulas written out; ties; names."""

from __future__ import annotations

from math import inf, log2, log10, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import jobs_from

from schedlab.config.errors import UserError
from schedlab.studies.batch.jobs import Machine
from schedlab.studies.batch.rules import RULES, priority
from schedlab.studies.batch.simulator.simulate import simulate

FORMULAS = {
    "fcfs": lambda s, r, n, t: s,
    "sjf": lambda s, r, n, t: r,
    "ljf": lambda s, r, n, t: -r,
    "smallest": lambda s, r, n, t: n,
    "largest": lambda s, r, n, t: -n,
    "smallest_area": lambda s, r, n, t: r * n,
    "f1": lambda s, r, n, t: log10(r) * n + 870 * log10(s if s > 0 else 0.1),
    "f2": lambda s, r, n, t: sqrt(r) * n + 25600 * (log10(s) if s > 0 else -inf),
    "f3": lambda s, r, n, t: r * n + 6860000 * (log10(s) if s > 0 else -inf),
    "f4": lambda s, r, n, t: r * sqrt(n) + 530000 * (log10(s) if s > 0 else -inf),
    "wfp3": lambda s, r, n, t: -(((t - s) / r) ** 3) * n,
    "unicep": lambda s, r, n, t: -(t - s) / (log2(max(n, 2)) * r),
    "lxf": lambda s, r, n, t: -((t - s + r) / r - 1),
    "wfp3_legacy": lambda s, r, n, t: -(((-1 - s) / r) ** 3) * n,
    "unicep_legacy": lambda s, r, n, t: -((-1 - s) + 1e-15) / (log2(n + 1e-15) * r),
}
MACHINE = Machine(128, 128)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(RULES)),
    st.integers(0, 10**8),
    st.integers(1, 10**6),
    st.integers(1, 128),
    st.integers(0, 10**6),
)
def test_scores(rule: str, submit: int, requested: int, procs: int, wait: int) -> None:
    jobs = jobs_from([(submit, 1, requested, procs)], MACHINE)
    expected = FORMULAS[rule](submit, requested, procs, submit + wait)
    assert priority(rule, jobs).at(0, submit + wait) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_jobs_without_a_requested_time_get_a_score(rule: str) -> None:
    jobs = jobs_from([(10, 5, requested, procs) for requested in (-1, 0, 7) for procs in (1, 2, 64)], MACHINE)
    scores = priority(rule, jobs)
    assert not np.isnan([scores.at(job, 20.0) for job in range(len(jobs))]).any()
    assert not np.isnan(simulate(jobs, MACHINE, rule).start).any()


def test_the_published_order_of_f2_without_a_requested_time_is_that_of_one_list_sorted_again_and_again() -> None:
    rng, differ = np.random.default_rng(2), 0
    for _ in range(40):
        requested = np.where(rng.random(12) < 0.2, -1, rng.integers(1, 100, 12))
        rows = [
            (1, 5, int(time), int(procs)) for time, procs in zip(requested, rng.integers(65, 129, 12), strict=True)
        ]  # one at a time
        jobs, (first, second, *queue) = jobs_from(rows, MACHINE), range(12)
        scores = [sqrt(time) * procs if time > 0 else nan for _, _, time, procs in rows]  # log10(1) is 0
        waiting, afresh, order = list(queue), [], [first, second]  # the second is drawn alone
        while queue:
            queue.sort(key=scores.__getitem__)
            order.append(queue.pop(0))
            afresh.append(min(waiting, key=sorted(waiting, key=scores.__getitem__).index))
            waiting.remove(afresh[-1])
        assert np.argsort(simulate(jobs, MACHINE, "f2").start).tolist() == order
        counted = [sqrt(max(time, 0)) * procs for _, _, time, procs in rows]
        for backfill in ("easy", "conservative"):
            assert (
                np.argsort(simulate(jobs, MACHINE, "f2", backfill).start).tolist()
                == np.argsort(counted, kind="stable").tolist()
            )
        differ += afresh != order[2:]
    assert differ


@pytest.mark.parametrize("rule", sorted(RULES))
def test_ties_go_to_the_earlier_job(rule: str) -> None:
    jobs = jobs_from([(5, 3, 3, 128)] * 4, MACHINE)
    for backfill in ("none", "legacy", "easy", "conservative"):
        assert simulate(jobs, MACHINE, rule, backfill).start.tolist() == [5, 8, 11, 14]


def test_an_unknown_rule_names_the_nearest_one() -> None:
    with pytest.raises(UserError, match="wfp3"):
        priority("wpf3", jobs_from([(0, 1, 1, 1)]))
