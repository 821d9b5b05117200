"""Where shards go: first fit, memory, random places, shapers."""

import sys

import numpy as np
import pytest
from small_graphs import chain, random_graph

from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.network.topology import Ramp
from schedlab.studies.ramp.placement.blocks import InnerBlocks, RampPlacement, make_block
from schedlab.studies.ramp.placement.partitioning import partition
from schedlab.studies.ramp.placement.placers import (
    Room,
    _first_fit_by_degree,
    _first_fit_with_memory,
    first_fit,
    fits,
    place_at_random,
    placement_of,
    visit_order,
)

RULES = RampPlacement(Ramp(4, 4, 2))
PLENTY = np.full(32, 1e15)


def split_of(forward, degree):
    step = training_graph(forward)
    return partition(step, np.full(step.num_ops, degree))


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_short_cut_by_degree_is_first_fit_where_memory_never_decides(seed, inside):
    draws = np.random.default_rng(seed)
    step = training_graph(random_graph(seed, ops=12))
    split = partition(step, np.tile(draws.choice([1, 2, 4, 6, 8], step.num_forward), 2))
    taken = sum(1 << int(server) for server in draws.choice(32, 12, replace=False))
    room = Room(taken, PLENTY)
    inner = InnerBlocks(RULES) if inside else None
    short, long = (
        _first_fit_by_degree(split, RULES, room, inner),
        _first_fit_with_memory(split, RULES, room, forward_only=False, inner=inner),
    )
    assert (short is None) == (long is None)
    if short is not None:
        assert short.blocks == long.blocks
        assert short.mask == long.mask
        assert not short.mask & taken
        assert not inside or short.mask.bit_count() == split.max_degree


def test_ops_are_visited_as_their_last_parent_was():
    order = visit_order(training_graph(random_graph(3)))
    for op in order.ops:
        assert all(order.ops.index(parent) < order.ops.index(op) for parent in order.parents[op])


def test_whole_ops_take_the_first_free_server_beside_the_block():
    step = training_graph(chain(0.0, 1.0))
    split = partition(step, np.array([1, 4, 1, 4]))
    placement = first_fit(split, RULES, Room(0b1, PLENTY))
    assert placement.blocks[0].servers == (1,)
    assert placement.blocks[1].servers == (1, 3, 9, 11)


def test_whole_ops_inside_take_a_server_of_the_block():
    """Servers 0 and 2 are taken: the block is the first free one of degree 4, and server 1 the first of it."""
    step = training_graph(chain(0.0, 1.0))
    split = partition(step, np.array([1, 4, 1, 4]))
    placement = first_fit(split, RULES, Room(0b101, PLENTY), inner=InnerBlocks(RULES))
    assert placement.blocks[1].servers == (1, 3, 9, 11)
    assert placement.blocks[0].servers == placement.blocks[2].servers == (1,)
    assert placement.mask.bit_count() == 4
    tight = first_fit(split, RULES, Room(0b101, np.full(32, 1.0)), inner=InnerBlocks(RULES))
    assert tight is None


def test_ops_of_fewer_shards_inside_take_a_legal_block_of_the_largest_or_its_first_servers():
    """In the block of 2 groups, 2 racks and 2 servers there is one of degree 4 and none of degree 6."""
    step = training_graph(chain(1.0, 1.0, 1.0))
    split = partition(step, np.array([4, 6, 8] * 2))
    four, six, eight = first_fit(split, RULES, Room(0, PLENTY), inner=InnerBlocks(RULES)).blocks[:3]
    assert eight.servers == (0, 1, 2, 3, 8, 9, 10, 11)
    assert four.servers == (0, 2, 8, 10)
    assert four in RULES.blocks(4)
    assert six.servers == (0, 1, 2, 3, 8, 9)


def test_a_whole_job_inside_takes_the_first_free_server():
    step = training_graph(chain(0.0, 1.0))
    placement = first_fit(
        partition(step, np.ones(4, dtype=np.int64)), RULES, Room(0b1, PLENTY), inner=InnerBlocks(RULES)
    )
    assert {block.servers for block in placement.blocks} == {(1,)}


def test_whole_ops_inside_go_on_to_the_next_server_of_the_block_where_memory_ends():
    """Whole ops of 20 GB (both passes) beside shards of 20 GB: a server of 50 GB holds one of each, and no third."""
    forward = chain(0.0, 0.0, 1.0, activation=np.array([10e9, 10e9, 40e9]), parameter=np.zeros(3))
    split = partition(training_graph(forward), np.array([1, 1, 4, 1, 1, 4]))
    placement = first_fit(split, RULES, Room(0, np.full(32, 50e9)), inner=InnerBlocks(RULES))
    assert placement.blocks[2].servers == (0, 2, 8, 10)
    assert (placement.blocks[0].servers, placement.blocks[1].servers) == ((0,), (2,))
    beyond = first_fit(split, RULES, Room(0, np.full(32, 35e9)), inner=InnerBlocks(RULES))
    assert (beyond.blocks[0].servers, beyond.blocks[1].servers) == ((1,), (3,))  # none of the block has room


def test_both_passes_reserve_memory():
    split = split_of(chain(1.0, activation=[50e9], parameter=[0.0]), 1)
    room = Room(0, np.full(32, 80e9))
    assert first_fit(split, RULES, room) is None  # 50 GB forward and 50 GB backward
    assert first_fit(split, RULES, Room(0, np.full(32, 100e9))) is not None


def test_a_job_that_the_published_placer_puts_where_it_does_not_fit_is_not_placed():
    split = split_of(chain(1.0, activation=[50e9], parameter=[0.0]), 1)
    assert _first_fit_with_memory(split, RULES, Room(0, np.full(32, 80e9)), forward_only=True) is not None
    assert first_fit(split, RULES, Room(0, np.full(32, 80e9)), forward_only=True) is None


def test_ops_go_on_to_other_servers_where_memory_ends():
    split = split_of(chain(1.0, 1.0, 1.0, activation=[20e9] * 3, parameter=[0.0] * 3), 1)
    placement = first_fit(split, RULES, Room(0, np.full(32, 80e9)))
    assert [block.servers for block in placement.blocks[:3]] == [(0,), (0,), (1,)]
    assert fits(split, placement, np.full(32, 80e9))


def test_keys_are_short_and_tell_servers_order_and_ranks_apart():
    """Of 2 ops, and of 2,424 shards: what is kept for a placement must weigh less than its durations."""
    blocks = [make_block((0, 1)), make_block((2,))]
    others = [
        placement_of(blocks),
        placement_of([make_block((0,)), make_block((1, 2))]),
        placement_of(blocks, order=(0, 1, 2)),
        placement_of(blocks, ranks=(0, 1, 2)),
        placement_of([make_block(tuple(range(16)))] * 150, ranks=tuple(range(2400))),
    ]
    assert len({placement.key for placement in others}) == len(others)
    assert placement_of(blocks).key == others[0].key
    assert {sys.getsizeof(placement.key) for placement in others} == {sys.getsizeof(others[0].key)} and sys.getsizeof(
        others[0].key
    ) < 100


def test_no_block_no_placement():
    assert first_fit(split_of(chain(1.0), 10), RULES, Room(0, PLENTY)) is None
    assert first_fit(split_of(chain(1.0), 2), RULES, Room((1 << 32) - 1, PLENTY)) is None


def test_random_places_are_free_have_memory_and_hang_from_the_seed():
    split = split_of(chain(1.0, 2.0, activation=[20e9] * 2), 2)
    taken, memory = 0xFFFF, np.full(32, 80e9)
    found = [place_at_random(split, Room(taken, memory), np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert found[0].blocks == found[1].blocks != found[2].blocks
    assert not any(placement.mask & taken for placement in found)
    assert all(fits(split, placement, memory) for placement in found)
    for activations in ([90e9], [30e9] * 3):  # too much for one server at once, and one after the other
        split = split_of(chain(*[1.0] * len(activations), activation=activations), 1)
        assert place_at_random(split, Room(0xFFFFFFFE, memory), np.random.default_rng(0)) is None


def test_the_blocks_of_the_largest_cluster_that_the_pages_speak_of_are_searched_once():
    rules = RampPlacement(Ramp(16, 16, 16))
    first = {degree: rules.blocks(degree) for degree in range(2, 17, 2)}
    assert all(rules.blocks(degree) is found for degree, found in first.items())
