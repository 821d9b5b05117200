"""Servers with several workers: what stays within one takes no time, and jobs that share servers need channels of
their own.
"""

import itertools

import numpy as np
import pytest
from small_graphs import chain, random_graph, run_to_end

from schedlab.config.errors import UserError
from schedlab.studies.ramp.compat.actions import action_of
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import RampPlacement, make_block
from schedlab.studies.ramp.placement.managers import Manager
from schedlab.studies.ramp.placement.placers import Room, _first_fit_with_memory, first_fit, placement_of
from schedlab.studies.ramp.rules import RULES
from schedlab.studies.ramp.scenario import ON_SHIPPED, SHIPPED, published_scenario
from schedlab.studies.ramp.simulator.cluster import Cluster, JobPlan
from schedlab.studies.ramp.simulator.jobs import Job, ListedJobs
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode
from schedlab.studies.ramp.simulator.timing import JobTimes


def cluster_of(topology, arrivals, forward):
    step = training_graph(forward)
    jobs = [Job(number, number, step, 1, 1.0) for number in range(len(arrivals))]
    times = JobTimes(topology, LegacySettings())
    return Cluster(times, RampPlacement(topology), np.full(topology.num_workers, 80e9), ListedJobs(jobs, arrivals))


def planner(degree):
    return lambda cluster, job: Manager().plan(cluster, job, degree)


def test_workers_are_places_of_their_racks_and_have_names():
    topology = Ramp(1, 1, 2, workers=2)
    assert (topology.num_servers, topology.num_workers) == (2, 4)
    assert topology.worker_labels == ("0-0-0-0", "0-0-0-1", "0-0-1-0", "0-0-1-1")
    assert [block.servers for block in RampPlacement(topology).blocks(2)] == [(0, 1), (1, 2), (2, 3)]


def test_shards_on_one_server_exchange_in_no_time():
    cluster = cluster_of(Ramp(1, 1, 2, node_bandwidth=1e6, workers=2), [0.0], chain(2.0, 3.0))
    run_to_end(cluster, planner(2))
    running = cluster.record.completed[0].running
    assert running.duration == pytest.approx(5.0)
    assert (running.communication, running.timing.channels, running.timing.workers) == (0.0, 0, 2)


def test_two_workers_of_a_server_run_two_jobs():
    cluster = cluster_of(Ramp(1, 1, 1, workers=2), [0.0, 0.0, 0.0], chain(2.0, 3.0))
    run_to_end(cluster, planner(1))
    assert [done.time for done in cluster.record.completed] == [10.0, 10.0]
    assert [blocked.cause for blocked in cluster.record.blocked] == ["op_placement"]


@pytest.mark.parametrize(("channels", "causes"), [(1, ["dep_placement"]), (2, [])])
def test_jobs_that_share_servers_need_a_channel_each(channels, causes):
    """Both jobs lie across the two servers, on a worker of each."""
    cluster = cluster_of(Ramp(2, 1, 1, channels=channels, workers=2), [0.0, 0.0, 50.0], chain(2.0, 3.0))

    def across(cluster, job):
        split = cluster.times.split_by_quantum(job.graph, 2, 0.01)
        return JobPlan(split, placement_of([make_block((job.index % 2, 2 + job.index % 2))] * split.graph.num_ops))

    run_to_end(cluster, across)
    assert [blocked.cause for blocked in cluster.record.blocked] == causes
    assert cluster.record.completed[-1].running.job.index == 2  # a channel is free again when its job is done


@pytest.mark.parametrize(("channels", "cause"), [(1, "dep_placement"), (2, None)])
def test_five_actions_take_the_first_channel_that_no_job_holds(channels, cause):
    cluster = cluster_of(Ramp(2, 1, 1, channels=channels, workers=2), [0.0, 1.0, 50.0], chain(2.0, 3.0))
    named = []
    for worker in (0, 1):
        job = cluster.queue[0]
        split = cluster.times.split_by_quantum(job.graph, 2, 0.01)
        plan = JobPlan(split, placement_of([make_block((worker, 2 + worker))] * split.graph.num_ops))
        action = action_of(cluster, {job.index: plan}, named=True)
        assert action.cause(job.index) == (cause if worker else None)
        named.append(
            {name for taken in action.dep_placement.channels.get(job.index, {}).values() for name in taken or ()}
        )
        cluster.step(action.decisions(cluster))
    assert [name[-1] for name in sorted(named[0])] == ["0", "0"]
    assert [name[-1] for name in sorted(named[1])] == ["1"] * (0 if cause else 2)
    assert [blocked.cause for blocked in cluster.record.blocked] == ([cause] if cause else [])
    assert len(cluster.held) == 2 * len(cluster.running)


def test_a_channel_that_a_running_job_holds_is_refused():
    """Names, where a dep takes the channel that the first job has, of the two that there are."""
    cluster = cluster_of(Ramp(2, 1, 1, channels=2, workers=2), [0.0, 1.0], chain(2.0, 3.0))
    first, second = (
        JobPlan(split, placement_of([make_block((worker, 2 + worker))] * split.graph.num_ops))
        for split in [cluster.times.split_by_quantum(cluster.queue[0].graph, 2, 0.01)]
        for worker in (0, 1)
    )
    action = action_of(cluster, {1: second})  # the cluster is empty yet: it names the first channels
    cluster.step(action_of(cluster, {0: first}).decisions(cluster))
    with pytest.raises(UserError, match=r"job 1: .*src_0-0-0_dst_1-0-0_channel_0"):
        action.decisions(cluster)


def test_a_place_on_one_server_is_not_one_across_two():
    topology = Ramp(2, 1, 1, workers=2)
    keys = {topology.symmetry_key(np.array(places)) for places in ([0, 1], [2, 3])}
    assert len(keys) == 1
    assert topology.symmetry_key(np.array([0, 2])) not in keys
    assert topology.symmetry_key(np.array([0, 0])) not in keys


def held_at_random(cluster, draws):
    """Some links, each way, with all their channels."""
    topology = cluster.times.topology
    pairs = [
        (one, other) for one in range(topology.num_servers) for other in range(topology.num_servers) if one != other
    ]
    links = [one * topology.num_servers + other for one, other in pairs if draws.random() < 0.3]
    return {(link, channel) for link in links for channel in range(topology.channels)}


@pytest.mark.parametrize("seed", range(12))
def test_first_fit_takes_blocks_with_free_channels_where_there_are_any(seed):
    """Against every choice of a free block for each degree, asked one by one which channels it would take."""
    draws = np.random.default_rng(seed)
    cluster = cluster_of(Ramp(2, 2, 1, workers=2, channels=1 + seed % 2), [0.0], random_graph(seed, ops=5))
    cluster.held = held_at_random(cluster, draws)
    cluster.taken = 1 << int(draws.integers(8))
    degrees = np.tile(draws.choice([1, 2, 4], 5), 2)
    split = cluster.times.split(cluster.queue[0].graph, degrees)
    free = [
        [block for block in cluster.rules.blocks(one) if not block.mask & cluster.taken]
        for one in split.distinct_degrees
    ]
    choices = [dict(zip(split.distinct_degrees, blocks, strict=True)) for blocks in itertools.product(*free)]
    plans = [JobPlan(split, placement_of([chosen[degree] for degree in split.degree_list])) for chosen in choices]
    possible = {plan.placement.mask for plan in plans if cluster.free_channels(plan, cluster.held) is not None}
    found = first_fit(split, cluster.rules, cluster.room())
    assert (found is None) == (not possible)
    planned = Manager().place(cluster, split)
    if found is None:
        assert planned == ("dep_placement" if plans else "op_placement")
    else:
        assert found.mask == planned.placement.mask in possible


@pytest.mark.parametrize("seed", range(12))
def test_op_by_op_every_block_has_its_channels_too(seed):
    """The way that is taken where memory decides."""
    draws = np.random.default_rng(seed)
    cluster = cluster_of(Ramp(3, 3, 1, workers=2), [0.0], random_graph(seed, ops=6))
    split = cluster.times.split(cluster.queue[0].graph, np.tile(draws.choice([1, 2], 6), 2))
    cluster.held = held_at_random(cluster, draws)
    found = _first_fit_with_memory(split, cluster.rules, cluster.room(), forward_only=False)
    blind = _first_fit_with_memory(split, cluster.rules, Room(0, cluster.memory), forward_only=False)
    assert found is None or cluster.free_channels(JobPlan(split, found), cluster.held) is not None
    assert found is not None or cluster.free_channels(JobPlan(split, blind), cluster.held) is None


@pytest.mark.parametrize("rule", ["fixed_4"])
def test_a_second_worker_a_server_blocks_no_more_jobs_than_one(rule):
    """Whole episodes under the manager and the mask that knows the free blocks: what it allows is placed."""
    graphs, found = read_graphs(find_graphs(SHIPPED)), []
    for workers in (1, 2):
        management = ON_SHIPPED["management"] | {"mask": "blocks"}
        scenario = published_scenario(
            "A", False, management=management, cluster={"workers": workers}, episodes={"end": 1.5e5}
        )
        simulation = Simulation(scenario, graphs)
        found.append(run_episode(simulation, RULES[rule], 0)["blocking_rate"])
        assert not {"op_placement", "dep_placement"} & {blocked.cause for blocked in simulation.cluster.record.blocked}
        assert bool(simulation.cluster.held) == (workers == 2)  # jobs that may share servers hold channels
    assert found[1] <= found[0]
