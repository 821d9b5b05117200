"""Degrees, shards, their deps and sizes; the recorded rules of sizes are held by the replays."""

import json
from pathlib import Path

import numpy as np
import pytest
from small_graphs import chain, graph, random_graph

from schedlab.config.errors import UserError
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.placement.partitioning import (
    check_degrees,
    degrees_of,
    partition,
    quantum_degrees,
    shard_suffix,
)


def test_degrees_follow_the_quantum_and_mates_follow_their_ops():
    step = training_graph(chain(0.0, 0.01, 0.011, 0.041, 5.0))
    assert quantum_degrees(step, 16, 0.01).tolist() == [1, 2, 2, 6, 16] * 2


def test_degrees_without_a_block_are_rounded_down_where_that_is_asked_for():
    step = training_graph(chain(0.1, 0.13, 5.0))
    assert quantum_degrees(step, 16, 0.01, legal=(1, 2, 4, 6, 8, 16)).tolist() == [8, 8, 16] * 2


def test_the_job_that_speed_is_told_of_has_the_published_size():
    """A job of 174 ops, split at most 16 ways as in the published setting."""
    values = json.loads((Path(__file__).parents[3] / "data/ramp/graph_resnet_like_12_blocks.json").read_text())[
        "resnet_like_12_blocks"
    ]
    ids, kinds, *numbers = zip(*values["ops"], strict=True)
    step = training_graph(ForwardGraph("resnet_like", ids, kinds, *numbers, values["edges"]))
    split = partition(step, quantum_degrees(step, 16, 0.01))
    assert (step.num_ops, split.max_degree, split.num_shards, split.num_deps) == (174, 16, 2424, 51_152)


def test_an_action_that_is_odd_is_refused():
    with pytest.raises(UserError, match="op 3: 5"):
        quantum_degrees(training_graph(chain(0.01, 0.01, 5.0)), 5, 0.01)


@pytest.mark.parametrize(
    ("degrees", "message"), [([1, 3, 1, 3], "op 2"), ([2, 2, 2, 4], "mate"), ([1, 1], "4 ops"), ([0] * 4, "op 1")]
)
def test_degrees_that_cannot_be_are_refused(degrees, message):
    with pytest.raises(UserError, match=message):
        check_degrees(training_graph(chain(1.0, 1.0)), degrees)


def test_degrees_by_name_reach_the_mate():
    step = training_graph(chain(1.0, 1.0))
    assert degrees_of(step, {1: 4}).tolist() == [4, 1, 4, 1]
    assert degrees_of(step, {4: 4}).tolist() == [4, 1, 4, 1]
    with pytest.raises(UserError, match="op 9"):
        degrees_of(step, {9: 2})


def test_more_shards_than_letters_have_names_of_two():
    assert [shard_suffix(number) for number in (0, 25, 26, 27, 51, 52)] == ["a", "z", "aa", "ab", "az", "ba"]
    split = partition(training_graph(chain(1.0, 1.0)), np.array([28, 1, 28, 1]))
    assert len(set(split.shard_names)) == split.num_shards == 58
    assert "1ab" in split.shard_names


@pytest.mark.parametrize("seed", range(6))
def test_shards_and_deps_add_up(seed):
    step = training_graph(random_graph(seed))
    degrees = np.tile(np.random.default_rng(seed).choice([1, 2, 4, 6], step.num_forward), 2)
    split = partition(step, degrees)
    assert split.cost.sum() == pytest.approx(step.cost.sum())
    assert split.memory.sum() == pytest.approx(step.memory.sum())
    expected = sum(int(degrees[u] * degrees[v]) for u, v in step.edges)
    synchronised = sum(int(k * (k - 1)) for k in degrees[step.num_forward :])
    assert (split.num_deps, int(split.mutual.sum())) == (expected + synchronised, synchronised)
    assert split.dep_size[~split.mutual].sum() == pytest.approx(step.dep_size.sum())  # parts of what the whole op sends
    pairs = set(zip(split.dep_source.tolist(), split.dep_destination.tolist(), strict=True))
    assert len(pairs) == split.num_deps
    for dep in np.flatnonzero(split.mutual):
        assert (split.dep_destination[dep], split.dep_source[dep]) in pairs


@pytest.mark.parametrize("seed", range(3))
def test_bundles_say_where_their_deps_lie(seed):
    step = training_graph(random_graph(seed))
    split = partition(step, np.tile(np.random.default_rng(seed).choice([1, 2, 4], step.num_forward), 2))
    seen = []
    for op in range(step.num_ops):
        for bundle in split.outgoing[op]:
            deps = split.deps(bundle)
            seen += deps.reshape(-1).tolist()
            assert (split.shard_op[split.dep_source[deps]] == op).all()
            assert (split.shard_op[split.dep_destination[deps]] == bundle.destination).all()
    assert sorted(seen) == list(range(split.num_deps))


def test_published_sizes_are_memory_and_the_childs_where_it_was_split_first():
    step = training_graph(graph([(1, 2)], [1.0, 1.0], activation=[8.0, 80.0], parameter=[100.0, 1000.0]))
    split = partition(step, np.array([2, 4, 2, 4]), sizes_from_memory=True)
    sizes = {(step.ids[b.source], step.ids[b.destination]): b.size for bundles in split.outgoing for b in bundles}
    assert sizes == {(1, 2): 108 / 8, (2, 3): 1080 / 16, (3, 4): 108 / 8, (3, 3): 1080 / 4, (4, 4): 108 / 2}


def test_repaired_sizes_are_activations_and_gradients_of_parameters():
    step = training_graph(graph([(1, 2)], [1.0, 1.0], activation=[8.0, 80.0], parameter=[100.0, 1000.0]))
    split = partition(step, np.array([2, 4, 2, 4]))
    sizes = {(step.ids[b.source], step.ids[b.destination]): b.size for bundles in split.outgoing for b in bundles}
    assert sizes == {(1, 2): 8 / 8, (2, 3): 80 / 16, (3, 4): 80 / 8, (3, 3): 1000 / 4, (4, 4): 100 / 2}
