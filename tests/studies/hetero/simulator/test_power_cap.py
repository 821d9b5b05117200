"""A cap on the power of the cluster. `learning` by hand: cores 0 and 1 have 40 W and 4.0 Gflop/s, cores 2 and 3 have
50 W and 4.4 Gflop/s; 25 % of the power if free beside a busy core, 5 % if the whole processor is free.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import episode
from small_hetero import first, managed_scenario, prepared

from schedlab.config.contract import PolicySpec
from schedlab.config.errors import UserError
from schedlab.stages.policies import make_rule
from schedlab.studies.hetero.env.settings import ALL_PAIRS
from schedlab.studies.hetero.simulator.episode import play
from schedlab.studies.hetero.simulator.resources import BACKFILLING
from schedlab.studies.hetero.study import STUDY

FASTEST = "first-high_gflops"
MILD = {"bw": 8}


def jobs_of(jobs: list[dict], cap: float | None, pair: str = FASTEST):
    """The jobs by identifier, and the run."""
    run, found = episode(jobs, physics={"power_cap": cap}, selection=(pair,), void=False), {}
    run.simulation.records.job_listener = lambda job: found.update({job.job.id.partition("!")[2]: job})
    play(run)
    return found, run


def test_a_start_waits_until_the_cap_allows_it():
    # one busy core of processor 1: 50 + 12.5 + 2 x 2 = 66.5 W; both: 104 W; one more on processor 0: 150 W
    found, run = jobs_of([MILD] * 3, 149.0)
    alone = 21 / 4.4
    assert [found[name].start for name in "012"] == pytest.approx([0, 0, alone])
    assert found["2"].finish == pytest.approx(2 * alone)
    assert run.system.model.overuse.power == [0.0] and not run.system.model.overuse.core
    assert found["2"].start > 0 and jobs_of([MILD] * 3, 150.0)[0]["2"].start == 0


def test_a_job_that_might_exceed_the_cap_alone_is_rejected():
    # two cores of different processors: 50 + 12.5 + 40 + 10 = 112.5 W, whatever cores a policy would choose
    assert jobs_of([MILD, MILD | {"res": 2}], 112.0)[0]["1"].state == "REJECTED"
    assert jobs_of([MILD, MILD | {"res": 2}], 112.5)[0]["1"].state == "COMPLETED_SUCCESSFULLY"


def test_a_job_behind_one_that_lacks_power_may_be_backfilled():
    """At 1 s job 1 would take the cluster from 66.5 to 150 W (140 W allowed); job 2, of one core, leads to 104 W."""
    jobs = [MILD, MILD | {"res": 2, "subtime": 1}, MILD | {"time": 1, "subtime": 1}]
    assert jobs_of(jobs, 140.0)[0]["2"].start > 1
    found = jobs_of(jobs, 140.0, "easy_first-high_gflops")[0]
    assert found["2"].start == 1 and found["1"].start > 1


def test_a_policy_of_a_user_cannot_start_above_the_cap():
    run = episode([MILD] * 3, physics={"power_cap": 149.0}, selection=(FASTEST,), void=False)
    assert run.advance()
    waiting = run.system.queue.in_order("first", run.system.random)
    with pytest.raises(UserError, match=r"physics\.power_cap"):
        for job, core in zip(waiting, (2, 3, 0), strict=True):
            run.system.start(job, [core])


listed = st.lists(
    st.fixed_dictionaries(
        {"subtime": st.integers(0, 30), "res": st.integers(1, 4), "time": st.integers(1, 9), "bw": st.integers(0, 24)}
    ),
    min_size=1,
    max_size=8,
)
PAIRS = (*ALL_PAIRS, *(f"{job}-high_mem" for job in BACKFILLING))


@settings(max_examples=25, deadline=None)
@given(listed, st.floats(66.5, 190.0), st.integers(0, 3))
def test_power_stays_below_the_cap_and_every_job_ends_or_is_rejected(jobs, cap, seed):
    physics = {"power_cap": cap, "mean_time_to_failure": 50.0, "mean_time_to_repair": 5.0}
    run = episode([job | {"mem": 100} for job in jobs], None, seed, physics, selection=PAIRS, void=False)
    rng, model = np.random.default_rng(seed), run.system.model
    while run.advance():
        run.decide(int(rng.integers(len(PAIRS))))
        assert model.power <= cap * (1 + 1e-9)
    rejected = sum(model.exceeds_cap_alone(job) for job in run.system.arrived)
    assert not rejected and run.scores()["nb_jobs_success"] + run.system.rejected == len(jobs)


def test_schedulers_meet_the_cap_as_their_pairs_do(tmp_path):
    pytest.importorskip("batsim")
    problem = prepared(managed_scenario(40, physics={"power_cap": 330.0}), tmp_path)

    def jobs(target: str, **params):
        rule = make_rule(STUDY, PolicySpec("rule", "rule", target, params), problem, 0)
        return problem.rollout(rule, first(problem)).details

    scheduled = jobs("fcfs")
    assert "power" in set(scheduled["refusals"]["lacking"])
    assert scheduled["jobs"].equals(jobs("first-lowest")["jobs"])
    assert jobs("easy", cores="low_power")["jobs"]["success"].sum() > 20
    assert jobs("reserve")["jobs"]["success"].sum() > 20
