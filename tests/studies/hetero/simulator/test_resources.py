"""The resource model: what is taken comes back, rules hold at every moment, and plain statements give the same."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schedlab.platforms.generate import hierarchy_of
from schedlab.platforms.hierarchy import Hierarchy
from schedlab.platforms.settings import PlatformSettings, SyntheticSettings
from schedlab.studies.hetero.env.observation import Observer
from schedlab.studies.hetero.simulator import resources
from schedlab.studies.hetero.simulator.core_policies import ALL_CORE_POLICIES, CORE_POLICIES
from schedlab.studies.hetero.simulator.resources import ALL_ORDERS, COLUMNS, JobQueue, JobRequest, ResourceModel

LIMITS = {"max_time": 100.0, "max_core": 8.0, "max_mem": 4000.0, "max_mem_bw": 24.0}


def hierarchy(seed: int = 3) -> Hierarchy:
    """Nodes of three kinds, each with one to three processors of one to four cores."""
    made = SyntheticSettings(
        seed=seed,
        nodes=(5, 5),
        kinds=3,
        processors=(1, 3),
        cores=(1, 4),
        mem_bw=(20.0, 40.0),
        clusters=2,
        memory=(1.0, 2.0),
    )
    return hierarchy_of(PlatformSettings(synthetic=made))


HIERARCHIES = [hierarchy(seed) for seed in range(4)]
requests = st.tuples(
    st.integers(1, 12), st.sampled_from([0, 100, 700, 1999]), st.sampled_from([0, 4, 12, 24]), st.integers(1, 90)
)
moves = st.lists(st.one_of(requests, st.integers(0, 5)), max_size=30)
policies = st.sampled_from([*ALL_CORE_POLICIES])


def request(cores: int, memory: int, bandwidth: int, time: float, order: int = 0) -> JobRequest:
    """A job of so many cores, MB and GB/s each, and seconds at 1 Gflop/s."""
    return JobRequest(str(order), order, float(order), time, cores, memory * 1000, bandwidth * 1_000_000, time * 1e9)


def carry_out(model: ResourceModel, moves: list, policy: str, seen=lambda: None) -> None:
    """Start jobs that fit, end running ones (a number), one second apart, and look after each."""
    rng, orders = np.random.default_rng(0), count()
    for second, move in enumerate(moves):
        model.advance(float(second))
        if isinstance(move, tuple):
            job = request(*move, order=next(orders))
            if not model.lacks(job):
                model.take(job, ALL_CORE_POLICIES[policy](model, job, rng))
        elif model.running:
            model.give_back(sorted(model.running)[move % len(model.running)])
        seen()


def statement_of_core_policy(model: ResourceModel, job: JobRequest, policy: str) -> list[int]:
    """Return the cores that a policy other than random takes, by its plain rule: sort, take the first, look again."""
    memory, bandwidth = list(model.free_memory), list(model.free_bandwidth)
    free = [len(cores) for cores in model.free_cores]
    left = [core for cores in model.free_cores for core in cores]
    taken: list[int] = []
    keys = {
        "high_gflops": lambda processor: -model.gflops_per_core[processor],
        "low_power": lambda processor: model.power_per_core[processor],
        "pack_cores": lambda processor: free[processor] - model.size[processor],
        "lowest": lambda processor: processor,
        "high_cores": lambda processor: -free[processor],
        "high_mem_bw": lambda processor: -bandwidth[processor],
        "high_mem": lambda processor: -memory[model.node_of[processor]],
    }
    while len(taken) < job.cores:
        eligible = [core for core in left if memory[model.node_of[model.processor_of[core]]] >= job.memory]
        core = sorted(eligible, key=lambda core: keys[policy](model.processor_of[core]))[0]
        processor = model.processor_of[core]
        left.remove(core)
        taken.append(core)
        memory[model.node_of[processor]] -= job.memory
        bandwidth[processor] -= job.bandwidth
        free[processor] -= 1
    return taken


def statement_of_states(model: ResourceModel) -> tuple[list[int], list[float], list[int]]:
    """pstates of cores, memory left of nodes (kB), bandwidth left of processors (kB/s), from the running jobs."""
    memory, bandwidth, busy = list(model.memory), list(model.bandwidth), set()
    for placement in model.running.values():
        for core in placement.cores.tolist():
            busy.add(core)
            memory[model.node_of[model.processor_of[core]]] -= placement.job.memory
            bandwidth[model.processor_of[core]] -= placement.job.bandwidth
    occupied = {model.processor_of[core] for core in busy}
    states = []
    for core, processor in enumerate(model.processor_of):
        if core in busy:
            states.append(1 if bandwidth[processor] < 0 else 0)
        else:
            states.append(2 if processor in occupied else 3)
    return states, memory, bandwidth


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(HIERARCHIES), moves, policies)
def test_states_follow_from_the_running_jobs(hierarchy, moves, policy):
    model = ResourceModel(hierarchy)

    def look():
        model.refresh()
        states, memory, bandwidth = statement_of_states(model)
        assert model.pstate.tolist() == states
        assert model.free_memory == memory and min(memory) >= 0
        assert model.free_bandwidth == bandwidth
        speeds = [hierarchy.gflops[core] * (1, 0.75, 0, 0)[state] for core, state in enumerate(states)]
        powers = [hierarchy.power[core] * (1, 1, 0.25, 0.05)[state] for core, state in enumerate(states)]
        assert model.gflops == pytest.approx(sum(speeds))
        assert model.power == pytest.approx(sum(powers))
        assert model.busy_cores == sum(state < 2 for state in states) == int((model.served > 0).sum())
        for placement in model.running.values():
            assert model._rate[placement.slot] == pytest.approx(min(speeds[core] for core in placement.cores))

    carry_out(model, moves, policy, look)
    for job in list(model.running):
        model.give_back(job)
    model.refresh()
    assert model.free_memory == model.memory and model.free_bandwidth == model.bandwidth
    assert set(model.pstate.tolist()) == {resources.IDLE}
    assert [core for cores in model.free_cores for core in cores] == list(range(hierarchy.cores))
    assert not model.overuse.open


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(HIERARCHIES), moves, policies, requests)
def test_core_policies_do_what_their_plain_rule_says(hierarchy, moves, policy, wanted):
    model = ResourceModel(hierarchy)
    carry_out(model, moves, policy)
    job = request(*wanted, order=99)
    nodes = zip(model.free_in_node, model.free_memory, strict=True)
    room = sum(min(free, left // job.memory if job.memory else free) for free, left in nodes)
    expected = "core" if job.cores > model.free_in_all else "memory" if job.cores > room else ""
    assert model.lacks(job) == expected
    if not expected and policy != "random":
        found = ALL_CORE_POLICIES[policy](model, job, np.random.default_rng(0))
        assert found == statement_of_core_policy(model, job, policy)


def test_random_takes_each_eligible_core_equally_often():
    model, rng = ResourceModel(HIERARCHIES[0]), np.random.default_rng(1)
    job = request(1, 100, 4, 5)
    taken = np.bincount(
        [CORE_POLICIES["random"](model, job, rng)[0] for _ in range(4000)], minlength=model.hierarchy.cores
    )
    expected = 4000 / model.hierarchy.cores
    assert np.abs(taken - expected).max() < 6 * np.sqrt(expected)


@pytest.mark.parametrize(("policy", "processor"), [("high_cores", 1), ("pack_cores", 0)])
def test_high_cores_prefers_free_processors_and_pack_cores_full_ones(policy, processor):
    learning = hierarchy_of(PlatformSettings(file="learning"))
    model = ResourceModel(learning)
    model.take(request(1, 0, 4, 5), [0])
    chosen = ALL_CORE_POLICIES[policy](model, request(1, 0, 4, 5, 1), np.random.default_rng(0))
    assert model.processor_of[chosen[0]] == processor


def test_rest_of_a_job_is_what_its_slowest_core_has_not_done():
    model = ResourceModel(hierarchy_of(PlatformSettings(file="learning")))
    slow = JobRequest("a", 0, 0.0, 5.0, 2, 0, 24_000_000, 20e9)
    model.take(slow, [1, 2])  # 4 and 4.4 Gflop/s
    model.refresh()
    model.advance(1.0)
    assert model.remaining()[model.served[1]] == pytest.approx(1 - 4 / 20)
    model.take(
        JobRequest("b", 1, 1.0, 5.0, 1, 0, 24_000_000, 20e9), [3]
    )  # over-subscribes the second processor: 3.3 Gflop/s
    model.refresh()
    model.advance(2.0)
    assert model.remaining()[model.served[2]] == pytest.approx(1 - 7.3 / 20)
    assert model.remaining()[model.served[0]] == 0.0
    model.advance(50.0)
    assert model.remaining()[model.served[2]] == 0.0  # it was asked for less than it needs


def test_remaining_of_the_original_never_moves():
    model = ResourceModel(hierarchy_of(PlatformSettings(file="learning")), flops_scale=1e-9)
    model.take(request(1, 0, 4, 5), [0])
    model.refresh()
    model.advance(1.0)
    assert 1 - 1e-8 < model.remaining()[model.served[0]] < 1


def observation_from_scratch(
    model: ResourceModel, queue: JobQueue, kind: str, last: int, sensitivity: float
) -> list[float]:
    """The observation vector, stated in plain Python (docs/reference/hetero_model.md)."""
    found = []
    states = statement_of_states(model)[0]
    for node, inside in enumerate(model.processors_of if kind != "minimal" else []):
        found.append(model.free_memory[node] / model.memory[node])
        for processor in inside:
            found.append(max(0, model.free_bandwidth[processor]) / model.bandwidth[processor])
            for core in range(model.hierarchy.cores) if kind == "normal" else []:
                if model.processor_of[core] == processor:
                    rest = 0.0
                    if model.served[core]:
                        rest = float(model.remaining()[model.served[core]])
                    found += [(1, 0.75, 0, 0)[states[core]], (1, 1, 0.25, 0.05)[states[core]], rest]
    jobs = list(queue._jobs.values())
    for column, limit in zip(COLUMNS, (100.0, 8.0, 4_000_000.0, 24_000_000.0), strict=True):
        values = [getattr(job, column) / limit for job in jobs]
        found += np.minimum(np.percentile(values, [0, 25, 50, 75, 100]), 1).tolist() if values else [0] * 5
    if not min(len(jobs), last):
        return [*found, 1.0 if jobs else 0.0 if last else 0.5]
    growth = (len(jobs) - last) / min(len(jobs), last)
    return [*found, float(np.clip((growth + sensitivity) / (2 * sensitivity), 0, 1))]


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(HIERARCHIES),
    moves,
    policies,
    st.sampled_from(["normal", "small", "minimal"]),
    st.lists(requests, max_size=9),
)
def test_observations_are_those_made_from_scratch(hierarchy, moves, policy, kind, waiting):
    model, queue, before = ResourceModel(hierarchy), JobQueue(), [0]
    observer = Observer(model, kind, LIMITS, 0.4)
    pending = [request(*wanted, order=100 + number) for number, wanted in enumerate(waiting)]

    def look():
        if pending and not len(queue) % 3:
            queue.add(pending.pop())
        elif len(queue):
            queue.remove(queue.first("shortest", np.random.default_rng(0)))
        observer.touch(model.refresh())
        if model.now % 2:
            found = observer.observe(queue)
            assert found.dtype == np.float32 and found.shape == (observer.size,)
            assert found == pytest.approx(
                np.array(observation_from_scratch(model, queue, kind, before[0], 0.4)), abs=1e-6
            )
            before[0] = len(queue)

    carry_out(model, moves, policy, look)


@pytest.mark.parametrize(("kind", "size"), [("normal", 7356), ("small", 516), ("minimal", 21)])
def test_sizes_on_gaia(kind, size):
    model = ResourceModel(hierarchy_of(PlatformSettings(file="gaia")))
    assert Observer(model, kind, LIMITS, 0.05).size == size


@settings(max_examples=40, deadline=None)
@given(st.lists(requests, min_size=1, max_size=20))
def test_job_policies_take_the_smallest_and_keep_the_order_of_equals(waiting):
    queue, jobs = JobQueue(), [request(*wanted, order=number) for number, wanted in enumerate(waiting)]
    for job in jobs:
        queue.add(job)
    for policy, column in ALL_ORDERS.items():
        assert queue.first(policy, np.random.default_rng(0)) is min(jobs, key=lambda job: getattr(job, column))
    assert queue.first("random", np.random.default_rng(0)) in jobs


@settings(max_examples=40, deadline=None)
@given(st.lists(requests, min_size=1, max_size=20))
def test_quartiles_of_the_queue_are_those_of_numpy(waiting):
    queue, jobs = JobQueue(), [request(*wanted, order=number) for number, wanted in enumerate(waiting)]
    assert queue.quartiles("time") == [0.0] * 5
    for job in jobs:
        queue.add(job)
    for column in COLUMNS:
        expected = np.quantile([getattr(job, column) for job in jobs], [0, 0.25, 0.5, 0.75, 1])
        assert queue.quartiles(column) == pytest.approx(expected)


def test_overuse_is_logged_by_resource():
    log = resources.Overuse(core=[1.0], memory=[2.0])
    log.open[1] = 3.0
    log.close(1, 5.0)
    log.open[0] = 6.0
    spans = {"0": {"state": True, "values": [[6.0, 1.0]]}, "1": {"state": False, "values": [[3.0, 2.0]]}}
    assert log.values(2, 7.0) == {"core": [1.0], "mem": [2.0], "mem_bw": {"nb_procs": 2, "procs": spans}}
