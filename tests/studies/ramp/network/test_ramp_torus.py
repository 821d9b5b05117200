"""The second pair of topology and rules of placement: what is by hand, and that the whole simulator runs on it."""

import numpy as np
import pytest
from small_graphs import chain, random_graph

from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.legacy import LegacySettings
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.network.torus import Torus, TorusPlacement
from schedlab.studies.ramp.placement import blocks as placement_rules
from schedlab.studies.ramp.placement.blocks import RampPlacement
from schedlab.studies.ramp.placement.managers import Manager
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import RampScenario
from schedlab.studies.ramp.simulator.cluster import Cluster
from schedlab.studies.ramp.simulator.jobs import Job, ListedJobs
from schedlab.studies.ramp.simulator.timing import JobTimes

TORUS = Torus((4, 4, 2), node_bandwidth=6e9, propagation_latency=1e-6, io_latency=1e-7)


def test_hops_go_the_shorter_way_around():
    assert TORUS.hops(np.array([0]), np.array([0])).tolist() == [0]
    names = {label: number for number, label in enumerate(TORUS.labels)}
    ends = [("0-0-0", "3-0-0", 1), ("0-0-0", "2-0-0", 2), ("0-0-0", "2-2-1", 5), ("1-3-0", "1-0-1", 2)]
    for source, destination, hops in ends:
        assert TORUS.hops(np.array([names[source]]), np.array([names[destination]])).tolist() == [hops]


def test_messages_take_hops_and_the_bandwidth_of_a_link():
    times = TORUS.one_to_one_times(np.array([0, 0, 0]), np.array([1, 20, 0]), np.array([1e9, 1e9, 1e9]))
    assert times == pytest.approx([1e-6 + 2e-7 + 1.0, 4e-6 + 2e-7 + 1.0, 0.0], rel=1e-12)


def test_a_ring_moves_the_message_twice_less_one_part():
    spread = TORUS.spread([0, 2, 4, 6])
    assert spread == (4, 2)  # four in a row whose ends meet: the farthest is two away
    assert TORUS.collective_time(spread, 4e9) == pytest.approx(6 * 1.0, rel=0.01)
    assert TORUS.collective_time((1, 0), 4e9) == 0.0


def test_blocks_are_boxes_over_the_edges_compact_ones_first():
    rules = TorusPlacement(TORUS)
    blocks = rules.blocks(4)
    assert blocks[0].servers == (0, 1, 2, 3)  # 1 x 2 x 2
    assert len({block.mask for block in blocks}) == len(blocks)
    across = {block.servers for block in blocks if {0, 6} <= set(block.servers)}
    assert across
    assert [degree for degree in range(1, 33) if rules.is_legal(degree)] == [1, 2, 4, 6, 8, 12, 16, 18, 24, 32]


def test_placements_that_are_moved_have_one_key():
    moved = [np.array([0, 1, 2]), np.array([8, 9, 10]), np.array([31, 30, 25])]
    keys = [TORUS.symmetry_key(servers) for servers in moved]
    assert keys[0] == keys[1]
    assert TORUS.symmetry_key(np.array([0, 1, 8])) not in keys


@pytest.mark.parametrize("rules", [TorusPlacement(TORUS), RampPlacement(Ramp(4, 4, 2))])
def test_kept_blocks_are_bounded_and_found_again(rules, monkeypatch):
    found = {degree: rules.blocks(degree) for degree in (2, 4, 8)}
    assert rules._blocks.weight >= sum(degree * len(blocks) for degree, blocks in found.items())
    monkeypatch.setattr(placement_rules, "MOST_BLOCKS_KEPT", 200)
    rules.blocks(16)
    assert rules._blocks.weight == 16 * len(rules.blocks(16))
    assert {degree: rules.blocks(degree) for degree in found} == found


@pytest.mark.parametrize("shape", [(4, 4, 2), (5, 3, 2)])
def test_what_a_key_stands_for_has_one_spread(shape):
    """Durations are kept by key, so that moving a block may change no time."""
    torus = Torus(shape)
    rules, spreads, seen = TorusPlacement(torus), {}, 0
    for degree in range(2, 19, 2):
        for block in rules.blocks(degree):
            spreads.setdefault(torus.symmetry_key(np.array(block.servers)), set()).add(torus.spread(block.servers))
            seen += 1
    assert len(spreads) < seen / 2
    assert [found for found in spreads.values() if len(found) > 1] == []


@pytest.mark.parametrize("name", ["para_max", "para_min", "random"])
def test_episodes_run_on_it(name):
    values = {
        "name": "torus",
        "seed": 3,
        "graphs": {"source": "generated"},
        "cluster": {"topology": "torus"},
        "management": {"illegal_degrees": "round_down"},
        "episodes": {"end": 30000.0, "test": 1},
    }
    problem = RampProblem(validate(RampScenario, values), (chain(2000.0, 3000.0, name="long"), random_graph(2)))
    outcome = problem.rollout(RULE_MAKERS[name]({}, problem, 0), problem.units("test")[0])
    assert 0 <= outcome.scores["blocking_rate"] < 1
    assert outcome.scores["speedup"] > 1


def test_either_topology_runs_under_either_rules():
    """Rules decide where a job lies, the topology how long it takes: blocks of RAMP on a torus, boxes of a torus on
    RAMP.
    """
    step = training_graph(chain(2.0, 3.0, activation=[4e8, 4e8]))
    ramp, found = Ramp(4, 4, 2, node_bandwidth=6e9), {}
    for topology in (ramp, TORUS):
        for rules in (RampPlacement(ramp), TorusPlacement(TORUS)):
            source = ListedJobs([Job(0, 0, step, 1, 1.0)], [0.0])
            cluster = Cluster(JobTimes(topology, LegacySettings()), rules, np.full(32, 80e9), source)
            cluster.taken = 0b1  # the first server is held
            plan = Manager().plan(cluster, cluster.queue[0], 6)
            cluster.step({0: plan})
            (done,) = cluster.record.completed
            found[topology.name, type(rules).__name__] = (plan.placement.mask, done.duration)
    masks, durations = ([pair[part] for pair in found.values()] for part in (0, 1))
    assert masks[:2] == masks[2:] and masks[0] != masks[1]
    assert durations[0] != durations[2] and durations[1] != durations[3]
    assert durations[0] != durations[1]  # on RAMP, where it is told how many racks a block touches


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"shape": (4, 0, 1)}, "torus"),
        ({"shape": (256, 256, 2)}, "torus"),
        ({"shape": (2, 2, 2), "node_bandwidth": 0.0}, "node_bandwidth"),
    ],
)
def test_what_is_no_torus_is_refused(values, message):
    with pytest.raises(UserError, match=message):
        Torus(**values)
