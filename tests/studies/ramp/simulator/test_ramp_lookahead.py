"""The compiled event loop against its statement in plain Python, and what durations must be by hand."""

import numpy as np
import pytest
from small_graphs import chain, graph, random_graph

from oracles.ramp_lookahead import plain_step
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.legacy import PUBLISHED, LegacySettings
from schedlab.studies.ramp.network.communication import CommunicationModel
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import RampPlacement, make_block
from schedlab.studies.ramp.placement.partitioning import partition, quantum_degrees
from schedlab.studies.ramp.placement.placers import Room, first_fit, place_at_random, placement_of, placement_order
from schedlab.studies.ramp.placement.ranks import srpt_dep_classes, srpt_dep_ranks, srpt_ranks
from schedlab.studies.ramp.simulator import lookahead
from schedlab.studies.ramp.simulator.lookahead import FlowRules, look_ahead
from schedlab.studies.ramp.simulator.timing import JobTimes

RULES = [
    FlowRules(mutual, ticks, contention) for mutual in (False, True) for ticks, contention in ((0, 0), (1, 0), (0, 1))
]
SLOW = Ramp(2, 2, 2, node_bandwidth=4e9)


def placed(forward, most, at_random=None, topology=SLOW):
    """A split job and its traffic on an empty cluster."""
    split = partition(training_graph(forward), quantum_degrees(training_graph(forward), most, 0.01))
    room = Room(0, np.full(topology.num_workers, 1e15))
    if at_random is None:
        placement = first_fit(split, RampPlacement(topology), room)
    else:
        placement = place_at_random(split, room, np.random.default_rng(at_random))
    server = JobTimes(topology, LegacySettings()).workers(split, placement)
    return split, CommunicationModel(topology).traffic(split, server)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("seed", range(8))
def test_the_kernel_does_what_plain_python_says(seed, rules):
    split, traffic = placed(random_graph(seed), most=(1, 2, 4, 8)[seed % 4], at_random=seed if seed > 3 else None)
    ranks = srpt_ranks(split.cost, traffic.worker, placement_order(split))
    compiled = look_ahead(split, traffic, ranks, rules=rules)
    sums, ticks = plain_step(split, traffic, ranks, rules)
    assert list(zip(compiled.active.tolist(), compiled.ticks.tolist(), strict=True)) == ticks
    assert [compiled.time, compiled.communication, compiled.computation, compiled.busy] == sums


def test_a_whole_job_takes_the_sum_of_its_costs():
    split, traffic = placed(chain(1.0, 2.0, 4.0), most=1)
    step = look_ahead(split, traffic, srpt_ranks(split.cost, traffic.worker, placement_order(split)))
    assert step.time == step.computation == step.busy == 14.0
    assert step.communication == 0.0


def test_shards_on_two_servers_wait_for_what_they_send_each_other():
    split, traffic = placed(chain(2.0, 2.0, activation=[8e6, 8e6], parameter=[0.0, 0.0]), most=2)
    step = look_ahead(split, traffic, srpt_ranks(split.cost, traffic.worker, placement_order(split)))
    assert step.computation == pytest.approx(4.0)
    assert step.communication == pytest.approx(
        sum(sorted(set(traffic.time[traffic.remote].tolist()))[-1:]) * 3, rel=1e-9
    )
    assert step.time == pytest.approx(step.computation + step.communication)


@pytest.mark.parametrize("first", [1, 2])
def test_of_equally_long_flows_on_a_link_the_one_that_started_first_ends_the_tick(first):
    """Two ops on one server send alike to the other, one after the other; which of them stands first in the graph
    must not matter.
    """
    costs = {first: 2.0, 3 - first: 3.0, 3: 12.0, 4: 10.0}  # the cheaper one runs, and sends, first
    branches = graph([(first, 4), (3 - first, 3)], [costs[op] for op in (1, 2, 3, 4)], [0.0] * 4, [16e9] * 4, [0.0] * 4)
    split = partition(training_graph(branches), np.ones(8, dtype=np.int64))
    servers = placement_of([make_block((server,)) for server in (0, 0, 1, 1) * 2])
    traffic = CommunicationModel(SLOW).traffic(split, JobTimes(SLOW, LegacySettings()).workers(split, servers))
    ranks = srpt_ranks(split.cost, traffic.worker, placement_order(split))
    found = look_ahead(split, traffic, ranks, rules=FlowRules(ticks_by_priority=True))
    sent = traffic.time[traffic.remote][0]
    assert 3.0 < sent < 10.0  # the second begins while the first is on its way
    assert found.time == pytest.approx(2.0 + sent + 10.0 + 12.0 + sent)  # forward, both ops that it leads to, and back


def test_equally_long_flows_end_ticks_as_most_orders_of_them_do(monkeypatch):
    """The published order of equals followed hashes. Against random orders: the rule here, the first dep first, and
    no ranks.
    """
    agree, told = {"here": 0, "first dep": 0, "no ranks": 0}, 0

    def time(split, traffic, ranks, classes=srpt_dep_classes, priority=True):
        monkeypatch.setattr(lookahead, "srpt_dep_classes", classes)
        return look_ahead(split, traffic, ranks, rules=FlowRules(True, priority)).time

    for seed in range(60):
        split, traffic = placed(random_graph(seed), most=(2, 4)[seed % 2], at_random=seed if seed % 3 else None)
        ranks = srpt_ranks(split.cost, traffic.worker, placement_order(split))
        ours = {"here": time(split, traffic, ranks), "first dep": time(split, traffic, ranks, srpt_dep_ranks)}
        ours["no ranks"] = time(split, traffic, ranks, priority=False)
        for order in range(3):
            shuffled = np.random.default_rng([seed, order]).random(split.num_deps)
            drawn = time(split, traffic, ranks, lambda times, last=shuffled: np.lexsort((last, -times)).argsort())
            told += len({round(drawn, 9), *(round(each, 9) for each in ours.values())}) > 1
            for rule, each in ours.items():
                agree[rule] += each == pytest.approx(drawn, rel=1e-12)
    assert told > 10
    assert agree["here"] >= agree["first dep"] and agree["here"] > agree["no ranks"], agree


def test_contention_makes_flows_of_one_link_wait():
    """Two branches of a whole op go to its two shards' server at once: together without contention, one after the
    other with it.
    """
    branches = graph([(1, 2), (1, 3), (2, 4), (3, 4)], [1.0, 0.0, 0.0, 1.0], activation=[4e9] * 4, parameter=[0.0] * 4)
    split, traffic = placed(branches, most=2)
    ranks = srpt_ranks(split.cost, traffic.worker, placement_order(split))
    free, waiting = (
        look_ahead(split, traffic, ranks, rules=FlowRules(contention=contention)) for contention in (False, True)
    )
    assert waiting.time > free.time * 1.2
    assert waiting.computation == pytest.approx(free.computation, rel=0.5)


def test_a_faster_device_shortens_its_shards():
    times = [
        JobTimes(SLOW, LegacySettings(), speed) for speed in (None, np.full(8, 2.0), np.r_[np.full(4, 2.0), np.ones(4)])
    ]
    graph_ = training_graph(chain(1.0, 1.0))
    durations = []
    for each in times:
        split = each.split_by_quantum(graph_, 1, 0.01)
        placement = first_fit(split, RampPlacement(SLOW), Room(0b00001111, np.full(8, 1e12)))
        durations.append(each.timing(split, placement).lookahead.time)
    assert durations == [4.0, 2.0, 4.0]


def test_durations_are_kept_by_placement_up_to_symmetry_and_by_nothing_less():
    times, rules = JobTimes(SLOW, LegacySettings()), RampPlacement(SLOW)
    split = times.split_by_quantum(training_graph(chain(1.0, 1.0)), 2, 0.01)
    memory = np.full(8, 1e12)
    first, second, inside = (first_fit(split, rules, Room(taken, memory)) for taken in (0b0, 0b00010001, 0b11110011))
    assert times.timing(split, first) is times.timing(split, second)
    assert times.timing(split, inside) is not times.timing(split, first)


def test_the_published_memo_forgets_the_placement_and_ours_does_not():
    durations = {}
    for memo in (True, False):
        legacy = LegacySettings(free_inside_racks=True, memo_by_degree=memo)
        topology = Ramp(2, 2, 2, node_bandwidth=4e9, free_inside_racks=True)
        times, rules, memory = JobTimes(topology, legacy), RampPlacement(topology), np.full(8, 1e12)
        split = times.split_by_quantum(training_graph(chain(1.0, 1.0, activation=[4e9] * 2)), 2, 0.01)
        placements = [first_fit(split, rules, Room(taken, memory)) for taken in (0, 0b11110000)]  # two groups; one rack
        durations[memo] = [times.lookahead(split, placement)[1].time for placement in placements]
    assert durations[True][0] == durations[True][1] == durations[False][0]
    assert durations[False][1] < durations[False][0]


def test_a_memo_that_is_switched_off_is_not_used():
    times = JobTimes(SLOW, PUBLISHED, reuse=False)
    split = times.split_by_quantum(training_graph(chain(1.0, 1.0)), 2, 0.01)
    times.lookahead(split, first_fit(split, RampPlacement(SLOW), Room(0, np.full(8, 1e12))))
    assert not times.lookahead_is_known(split)
