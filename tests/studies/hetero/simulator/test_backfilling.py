"""Pairs with EASY backfilling: jobs overtake the first one that does not fit if they do not delay it."""

from __future__ import annotations

import pandas as pd
import pytest
from small_clusters import cluster, episode
from small_hetero import first, managed_scenario, prepared

from schedlab.config.contract import PolicySpec
from schedlab.stages.policies import make_rule
from schedlab.studies.hetero.simulator.backfilling import reserve
from schedlab.studies.hetero.simulator.resources import BACKFILLING, JOB_POLICIES, MORE_ORDERS
from schedlab.studies.hetero.study import STUDY

QUIET = {"mem": 0, "bw": 0}


def starts(jobs: list[dict], pair: str, **settings) -> dict[str, float]:
    """When each job starts (s) on `learning`: cores 0 and 1 at 4.0 Gflop/s, 2 and 3 at 4.4, 32 GB in all."""
    run, found = episode([QUIET | job for job in jobs], selection=(pair,), void=False, **settings), {}
    while run.advance():
        run.decide(0)
        for job in run.system.model.running:
            found.setdefault(job.partition("!")[2], run.now)
    return found


LONG = {"res": 3, "time": 10}  # 42 Gflop each on 3 cores: 10.5 s at 4 Gflop/s
WIDE = {"res": 4, "subtime": 1}


def test_a_job_that_ends_before_the_reservation_overtakes_and_a_longer_one_does_not():
    jobs = [LONG, WIDE, {"time": 8, "subtime": 2}, {"time": 12, "subtime": 2}]  # the core left: at 4.0 Gflop/s
    assert starts(jobs, "first-high_gflops")["2"] > 10
    found = starts(jobs, "easy_first-high_gflops")
    assert found["2"] == 2 and found["1"] == pytest.approx(10.5) and found["3"] > found["1"]


def test_how_long_a_job_takes_depends_on_the_core_that_it_would_get():
    """At 3 s the first job finds its cores in 7.5 s; 7.6 s of work take 7.98 s at 4.0 and 7.25 s at 4.4 Gflop/s."""
    for core, overtakes in (("low_power", True), ("high_gflops", False)):
        jobs = [LONG, WIDE, {"time": 7.6, "subtime": 3}]
        found = starts(jobs, f"easy_first-{core}")  # low_power takes cores 0, 1, 2 and leaves one at 4.4
        assert (found["2"] == 3) == overtakes


def test_a_long_job_overtakes_on_cores_that_the_first_job_leaves():
    found = starts([LONG, {"res": 2, "subtime": 1}, {"time": 100, "subtime": 2}], "easy_first-high_gflops")
    assert found["2"] == 2 and found["1"] == pytest.approx(10.5)


def test_two_long_jobs_do_not_take_the_same_room():
    jobs = [{"res": 2, "time": 10}, {"res": 3, "subtime": 1}, *[{"time": 100, "subtime": 2}] * 2]
    found = starts(jobs, "easy_first-high_gflops")
    assert found["2"] == 2 and found["1"] < found["3"]


def test_memory_is_reserved_as_cores_are():
    """20 of 32 GB are taken for 10 s and then wanted by the next job: 12 GB may be held for long, 13 GB not."""
    jobs = [{"time": 10, "mem": 20_000}, {"subtime": 1, "mem": 20_000}]
    jobs += [{"time": 100, "subtime": 2, "mem": memory} for memory in (13_000, 12_000)]
    found = starts(jobs, "easy_first-high_gflops")
    assert found["3"] == 2 < found["1"] < found["2"]


def test_the_order_behind_the_first_job_is_that_of_the_policy():
    jobs = [LONG, WIDE, {"time": 8, "subtime": 1}, {"time": 6, "subtime": 1}, {"time": 5, "res": 3, "subtime": 1}]
    assert starts(jobs, "easy_first-high_gflops")["2"] == 1
    assert starts(jobs, "easy_saf-high_gflops")["3"] == 1


def test_a_reservation_without_a_date_holds_nobody_up():
    model = episode([QUIET], cluster()).system.model
    run = episode([QUIET | {"res": 4}, QUIET], selection=("easy_first-lowest",), void=False)
    assert run.advance()
    job = run.system.queue.head("first")
    job.cores = 5
    assert reserve(model, job).wait == float("inf")


@pytest.mark.parametrize(
    ("priority", "job_policy"),
    [("fcfs", "first"), ("sjf", "shortest"), ("smallest", "smallest"), ("smallest_area", "saf")],
)
def test_the_scheduler_easy_is_such_a_pair_where_cores_are_alike(tmp_path, priority, job_policy):
    """Equal cores, ample memory and bandwidth, walltimes as requested: both expect the same ends."""
    pytest.importorskip("batsim")
    base = managed_scenario(60)
    platform, workload = (getattr(base, name).model_dump(mode="json") for name in ("platform", "workload"))
    platform["synthetic"] |= {"memory": [1024.0], "mem_bw": [4096.0, 4096.0], "clock_rate": [2.0, 2.0]}
    workload["batsim"]["walltime"] = "requested"
    workload["lublin"]["load"] = 2.0
    problem = prepared(managed_scenario(platform=platform, workload=workload), tmp_path)

    def jobs(target: str, **params) -> pd.DataFrame:
        rule = make_rule(STUDY, PolicySpec("rule", "rule", target, params), problem, 0)
        return problem.rollout(rule, first(problem)).details["jobs"]

    scheduled = jobs("easy", priority=priority, cores="lowest")
    pd.testing.assert_frame_equal(jobs(f"easy_{job_policy}-lowest"), scheduled)
    # behind the smallest job that does not fit nothing fits
    assert jobs(f"{job_policy}-lowest").equals(scheduled) == (job_policy == "smallest")


def test_every_job_policy_backfills_and_random_ones_draw_by_the_seed():
    assert list(BACKFILLING.values()) == [*JOB_POLICIES, *MORE_ORDERS]
    jobs = [{"res": 1 + number % 4, "time": 3 + number % 5, "subtime": number // 4} for number in range(30)]
    for policy in BACKFILLING:
        found = starts(jobs, f"{policy}-high_mem_bw", seed=1)
        assert len(found) == 30 and found == starts(jobs, f"{policy}-high_mem_bw", seed=1)
    assert starts(jobs, "easy_random-random", seed=1) != starts(jobs, "easy_random-random", seed=2)
