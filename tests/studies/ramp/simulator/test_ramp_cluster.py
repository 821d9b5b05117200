"""The cluster from event to event: what is mounted, blocked and counted, and when it ends."""

import math
from dataclasses import replace

import numpy as np
import pytest
from small_graphs import chain, cluster_of, graph, run_to_end

from schedlab.config.errors import UserError
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.legacy import PUBLISHED, LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import RampPlacement
from schedlab.studies.ramp.placement.managers import Manager, random_degrees
from schedlab.studies.ramp.placement.partitioning import partition
from schedlab.studies.ramp.simulator.cluster import Cluster, ClusterLimits
from schedlab.studies.ramp.simulator.jobs import QUEUE_FULL, REJECTED, TOO_SLOW, Job, ListedJobs
from schedlab.studies.ramp.simulator.timing import JobTimes

HEAVY = training_graph(chain(2.0, 3.0, activation=[50e9, 50e9]))


def plan(degree, manager=None):
    return lambda cluster, job: (manager or Manager()).plan(cluster, job, degree)


def test_jobs_run_side_by_side_for_as_long_as_they_take():
    cluster = cluster_of([0.0, 1.0, 2.0])
    run_to_end(cluster, plan(1))
    assert [(done.running.job.index, done.running.started, done.time) for done in cluster.record.completed] == [
        (0, 0, 10),
        (1, 1, 11),
        (2, 2, 12),
    ]
    found = cluster.statistics()
    assert (found["blocking_rate"], found["acceptance_rate"], found["num_jobs_arrived"]) == (0, 1, 3)
    assert found["job_completion_time_speedup"] == [1.0] * 3
    assert [step["mean_num_jobs_running"] for step in cluster.record.steps] == [1, 2, 3, 2, 1]
    assert cluster.mounted_workers == 0


def test_a_job_that_nobody_plans_is_rejected_and_each_cause_is_kept():
    cluster = cluster_of([0.0, 1.0, 2.0])
    cluster.step({})
    cluster.step({1: "op_placement"})
    cluster.step({2: Manager().plan(cluster, cluster.queue[0], 1)})
    assert [(blocked.job.index, blocked.cause, blocked.time) for blocked in cluster.record.blocked] == [
        (0, REJECTED, 0),
        (1, "op_placement", 1),
    ]
    assert cluster.done


def test_a_limit_that_is_met_exactly_is_met():
    for beta, blocked in ((1.0, 0), (0.999, 1)):
        cluster = cluster_of([0.0], beta=beta)
        run_to_end(cluster, plan(1))
        assert [one.cause for one in cluster.record.blocked] == [TOO_SLOW] * blocked
        assert cluster.mounted_workers == 0


@pytest.mark.parametrize("legacy", [PUBLISHED, LegacySettings()])
def test_a_job_whose_collectives_never_end_is_blocked(legacy):
    rack = Ramp(1, 1, 4)  # one group has one wavelength, and each of four servers talks to three others
    source = ListedJobs([Job(0, 0, training_graph(chain(2.0, 3.0)), 1, 1.0)], [0.0], math.inf)
    cluster = Cluster(JobTimes(rack, legacy), RampPlacement(rack), np.full(4, 80e9), source)
    run_to_end(cluster, plan(4))
    (blocked,) = cluster.record.blocked
    assert (blocked.cause, blocked.running.duration) == (TOO_SLOW, math.inf)
    assert cluster.mounted_workers == 0 and cluster.statistics()["blocking_rate"] == 1


def test_a_full_cluster_places_nothing_more():
    cluster = cluster_of([0.0, 1.0])
    run_to_end(cluster, plan(8))
    assert [done.running.job.index for done in cluster.record.completed] == [0]
    assert [(blocked.job.index, blocked.cause) for blocked in cluster.record.blocked] == [(1, "op_placement")]


@pytest.mark.parametrize(
    ("forward", "degree"),
    [
        (chain(1.0, activation=[50e9]), 1),
        (chain(1.0, activation=[90e9]), 1),
        (chain(1.0, activation=[90e9], parameter=[0.0]), 2),
    ],
)
def test_a_job_that_no_memory_holds_is_blocked_at_its_placement(forward, degree):
    for legacy in (PUBLISHED, LegacySettings()):  # the published system stops with an error that names nothing of this
        cluster = cluster_of([0.0], forward, legacy=legacy)
        run_to_end(cluster, plan(degree))
        assert [blocked.cause for blocked in cluster.record.blocked] == ["op_placement"]


def test_a_queue_of_no_length_blocks_what_arrives():
    cluster = cluster_of([0.0, 5.0], queue_capacity=0)
    run_to_end(cluster, plan(1))
    assert [(blocked.cause, blocked.time) for blocked in cluster.record.blocked] == [(QUEUE_FULL, 0), (QUEUE_FULL, 5)]


def test_arrivals_at_one_time_are_decided_one_after_the_other():
    cluster = cluster_of([0.0, 0.0, 0.0])
    run_to_end(cluster, plan(1))
    assert [done.time for done in cluster.record.completed] == [10, 10, 10]


def test_jobs_that_still_run_at_the_end_are_blocked_only_as_published():
    for legacy, rate in ((PUBLISHED, 1.0), (LegacySettings(), 0.0)):
        cluster = cluster_of([0.0, 1.0], legacy=legacy, end=5.0)
        run_to_end(cluster, plan(1))
        assert cluster.time == 5.0
        assert cluster.statistics()["blocking_rate"] == rate


def test_time_stands_still_after_a_last_rejection_but_runs_away_as_published():
    for legacy, end in ((PUBLISHED, math.inf), (LegacySettings(), 0.0)):
        cluster = cluster_of([0.0], legacy=legacy)
        cluster.step({})
        assert cluster.done
        assert cluster.time == end
        assert cluster.statistics()["mean_compute_throughput"] == 0


def test_what_is_asked_for_over_the_gap_to_the_next_arrival():
    cluster = cluster_of([0.0, 4.0], later=6.0, end=5.5)
    run_to_end(cluster, plan(1))
    demand = cluster.running[0].job.demand
    assert cluster.statistics()["mean_load_rate"] == pytest.approx((demand / 4 + demand / 2) / 2)


def test_information_is_processed_in_proportion_to_time():
    cluster = cluster_of([0.0, 4.0])
    run_to_end(cluster, plan(2))
    found = cluster.statistics()
    split = cluster.record.completed[0].running.plan.split
    assert found["compute_info_processed"] == pytest.approx(2 * split.total_memory)
    assert found["demand_dep_info_processed"] == pytest.approx(2 * split.graph.total_dep_size)
    assert found["mean_demand_total_throughput"] == pytest.approx(found["demand_total_info_processed"] / cluster.time)


def test_plans_that_cannot_be_are_refused():
    cluster = cluster_of([0.0, 1.0])
    with pytest.raises(UserError, match="job 7"):
        cluster.step({7: "op_placement"})
    first = Manager().plan(cluster, cluster.queue[0], 1)
    cluster.step({0: first})
    with pytest.raises(UserError, match="worker"):
        cluster.step({1: first})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda first, free: first, ".*worker"),
        (lambda first, free: replace(free, channels=frozenset({(1, 0)})), ".*channel"),
        (lambda first, free: replace(free, split=partition(HEAVY, np.ones(4, dtype=np.int64))), ".*memory"),
    ],
)
def test_a_plan_that_is_refused_changes_nothing(wrong, message):
    cluster = cluster_of([0.0, 1.0])
    first = Manager().plan(cluster, cluster.queue[0], 1)
    cluster.step({0: replace(first, channels=frozenset({(1, 0)}))})
    free = Manager().plan(cluster, cluster.queue[0], 1)
    waiting, taken, steps = list(cluster.queue), cluster.taken, len(cluster.record.steps)
    with pytest.raises(UserError, match=f"job 1 {message}"):
        cluster.step({1: wrong(first, free)})
    assert (cluster.queue, cluster.taken, len(cluster.record.steps)) == (waiting, taken, steps)
    cluster.step({1: free})
    assert [running.job.index for running in cluster.running] == [1]
    assert [done.running.job.index for done in cluster.record.completed] == [0]


@pytest.mark.parametrize(("shaper", "servers"), [("none", 3), ("first_fit", 2), ("random", 2)])
def test_a_shaped_job_stays_in_its_block(shaper, servers):
    """Its whole op takes the first free server, which is none of the first free block of two."""
    cluster = cluster_of([0.0], chain(0.0, 2.0))
    cluster.taken = 0b10000
    placed = Manager(shaper=shaper, random=np.random.default_rng(1)).plan(cluster, cluster.queue[0], 2)
    assert placed.placement.mask.bit_count() == servers


def test_a_shaper_finds_no_block_in_a_full_cluster():
    cluster = cluster_of([0.0])
    cluster.taken = 0xFF
    assert Manager(shaper="first_fit").plan(cluster, cluster.queue[0], 2) == "op_placement"


def test_random_degrees_can_be_partitioned():
    step = training_graph(graph([], [1.0] * 40))
    ours = random_degrees(step, 16, np.random.default_rng(0))
    assert set(ours.tolist()) <= {1, *range(2, 17, 2)}
    assert (ours[:40] == ours[40:]).all()


@pytest.mark.parametrize(
    ("limits", "message"), [({"queue_capacity": -1}, "queue_capacity"), ({"end": 0.0}, "max_simulation_time")]
)
def test_limits_that_cannot_be_are_refused(limits, message):
    with pytest.raises(UserError, match=message):
        ClusterLimits(**limits)


@pytest.mark.parametrize(("beta", "steps", "message"), [(0.0, 1, "beta"), (1.1, 1, "beta"), (0.5, 0, "job 0")])
def test_jobs_that_cannot_be_are_refused(beta, steps, message):
    with pytest.raises(UserError, match=message):
        Job(0, 0, training_graph(chain(1.0)), steps, beta)


def test_jobs_show_themselves_in_a_line():
    """In a session or a failed assertion: what a job is, not the arrays of its graph."""
    cluster = cluster_of([0.0, 0.0], graph([(op, op + 1) for op in range(1, 40)], [1.0] * 40, name="long"))
    cluster.step({})  # the first is rejected
    run_to_end(cluster, plan(2))
    shown = [*cluster.record.blocked, *cluster.record.completed, cluster.record.completed[0].running]
    assert {type(one).__name__ for one in shown} == {"BlockedJob", "CompletedJob", "RunningJob"}
    for one in shown:
        assert "long" in repr(one) and len(repr(one)) < 400, repr(one)
    assert len(repr(cluster.record.completed[0].running.plan)) < 200
