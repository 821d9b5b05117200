"""Rules that share memory bandwidth, worked out by hand: cores 2 and 3 of `learning` have 4.4 Gflop/s and 32 GB/s."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_clusters import episode
from small_hetero import managed_scenario, prepared

from schedlab.config.errors import UserError
from schedlab.studies.hetero.env.options import plain_options
from schedlab.studies.hetero.learners.compiled_episodes import CompiledEpisodes
from schedlab.studies.hetero.learners.drawn_workloads import DrawnWorkloads
from schedlab.studies.hetero.simulator.episode import play
from schedlab.studies.hetero.simulator.physics import FAIR, PROPORTIONAL, bandwidth_shares

FASTEST = "first-high_gflops"


def ends(jobs: list[dict], bandwidth: str) -> tuple[list[float], float]:
    """When each job ends (s), in the order of the ends, and the energy (J)."""
    run, found = episode(jobs, physics={"bandwidth": bandwidth}, selection=(FASTEST,), void=False), []
    run.simulation.records.job_listener = lambda job: found.append(job.finish)
    return found, play(run)["consumed_joules"]


@pytest.mark.parametrize("bandwidth", [PROPORTIONAL, FAIR])
def test_two_equal_jobs_share_what_their_processor_has(bandwidth):
    # 24 + 24 of 32 GB/s: both run at 2/3 of 4.4 Gflop/s, so 21 Gflop take 7.159 s instead of 6.364 s at 75 %
    assert ends([{}, {}], bandwidth)[0] == pytest.approx([21 / (4.4 * 2 / 3)] * 2)
    assert ends([{}, {}], "step")[0] == pytest.approx([21 / (4.4 * 0.75)] * 2)


def test_proportional_shares_slow_a_job_that_requests_little_as_much_as_one_that_requests_much():
    # 8 + 32 of 32 GB/s: both run at 80 %
    assert ends([{"bw": 8}, {"bw": 32}], PROPORTIONAL)[0] == pytest.approx([21 / (4.4 * 0.8)] * 2)


def test_fair_shares_leave_a_job_that_requests_little_at_full_speed():
    # 8 of 32 GB/s go to the first job, which is bound by computing, and 24 to the other, which runs at 24/32 = 75 %
    # until the first ends after 21/4.4 s; 15.75 of its 21 Gflop are done then, and the rest runs at full speed
    alone = 21 / 4.4
    found, energy = ends([{"bw": 8}, {"bw": 32}], FAIR)
    assert found == pytest.approx([alone, alone + (21 - 15.75) / 4.4])
    # power does not depend on the speed: 50 W a busy core, 12.5 W its free neighbour, 2 x 2 W the idle processor
    assert energy == pytest.approx(alone * (50 + 50 + 4) + (21 - 15.75) / 4.4 * (50 + 12.5 + 4))


@pytest.mark.parametrize("bandwidth", [PROPORTIONAL, FAIR])
def test_a_job_that_requests_no_bandwidth_is_never_slowed(bandwidth):
    assert min(ends([{"bw": 0}, {"bw": 64}], bandwidth)[0]) == pytest.approx(21 / 4.4)


def test_a_job_on_two_processors_is_as_fast_as_its_slowest_core():
    # the first job has both cores of 4.4 Gflop/s, whose 36 + 36 of 32 GB/s leave 4/9, and one of 4.0 Gflop/s beside the
    # second job, whose 36 + 12 of 32 GB/s leave 2/3
    jobs = [{"res": 3, "bw": 36}, {"bw": 12}]
    slow = 4.4 * 32 / 72
    assert ends(jobs, PROPORTIONAL)[0][1] == pytest.approx(21 / slow)


def test_options_foresee_the_shares():
    run = episode([{}, {}], physics={"bandwidth": PROPORTIONAL}, selection=(FASTEST,), void=False)
    assert run.advance()
    first, second = run.system.queue.in_order("first", run.system.random)
    run.system.start(first, [2])
    run.system.refresh()
    model, both = run.system.model, np.array([0, 1])
    assert model.shares_with(second, both, np.array([1, 1])) == pytest.approx([1, 2 / 3])
    assert len(plain_options(run.system, 2, ("high_gflops",))) == 2


def test_the_environment_takes_physics_by_keys():
    name = "schedlab.environments:schedlab/Hetero-v0"
    env = gymnasium.make(name, physics={"bandwidth": "fair"}, settings={"void": False})
    env.reset(seed=0)
    *_, info = env.step(list(env.unwrapped.action_names).index("first-high_gflops"))
    assert info["scores"]["makespan"] == pytest.approx(21 / (4.4 * 2 / 3))
    with pytest.raises(UserError, match=r"physics\.bandwith"):
        gymnasium.make(name, physics={"bandwith": "fair"})


listed = st.lists(
    st.fixed_dictionaries(
        {"subtime": st.integers(0, 9), "res": st.integers(1, 4), "time": st.integers(1, 9), "bw": st.integers(0, 16)}
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@given(listed)
def test_without_an_excess_all_rules_are_the_same(jobs):
    wanted = ends(jobs, "step")
    assert [ends(jobs, rule) for rule in (PROPORTIONAL, FAIR)] == [wanted, wanted]


@settings(max_examples=10, deadline=None)
@given(listed)
def test_by_default_orders_contain_nothing_new(jobs):
    run = episode([job | {"bw": 2 * job["bw"]} for job in jobs], selection=(FASTEST,), void=False)
    answer, sent = run.simulation.answer, []
    run.simulation.answer = lambda message: (sent.extend(message["events"]), answer(message))
    play(run)
    assert {event["type"] for event in sent} <= {"EXECUTE_JOB", "REJECT_JOB", "SET_RESOURCE_STATE"}
    assert not any("share" in event["data"] for event in sent)


demands = st.lists(st.integers(0, 40), min_size=1, max_size=12).map(lambda listed: np.array(listed, float))


@given(demands, st.integers(1, 200))
def test_shares_use_the_bandwidth_and_no_more(demand, capacity):
    for rule in (PROPORTIONAL, FAIR):
        share = bandwidth_shares(rule, demand, capacity)
        assert ((share > 0) & (share <= 1)).all() and (share[demand == 0] == 1).all()
        assert (share * demand).sum() == pytest.approx(min(capacity, demand.sum()))
    slower = [bandwidth_shares(rule, demand, capacity)[demand > 0] for rule in (PROPORTIONAL, FAIR)]
    assert np.ptp(slower[0]) == pytest.approx(0) if len(slower[0]) else True
    order = np.argsort(demand[demand > 0], kind="stable")
    assert (np.diff(slower[1][order]) <= 1e-12).all()


def test_learners_on_the_compiled_kernel_refuse_other_physics(tmp_path):
    decisions = {"observation": "heads", "time_weighted": True, "void": False}
    physics = {"bandwidth": FAIR}
    problem = prepared(managed_scenario(4, replicates={"train": 1}, decisions=decisions, physics=physics), tmp_path)
    with pytest.raises(UserError, match=r"physics\.bandwidth"):
        CompiledEpisodes(problem.env(problem.units("train")[0], 0))
    with pytest.raises(UserError, match=r"learner .*physics\.bandwidth"):
        DrawnWorkloads(problem, "learner")
