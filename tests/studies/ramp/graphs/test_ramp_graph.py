"""The training-step graph made by mirroring, and what a forward graph refuses."""

import numpy as np
import pytest

from schedlab.config.errors import UserError
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph


def forward(ids=(1, 2, 3), edges=((1, 2), (2, 3)), cost=None, **changed):
    count = len(ids)
    values = {
        "name": "small",
        "ids": ids,
        "kinds": ("Conv2d",) * count,
        "forward_cost": range(1, count + 1) if cost is None else cost,
        "backward_cost": [2.0] * count,
        "activation": [10.0 * op for op in ids],
        "parameter": [1.0] * count,
        "edges": edges,
    }
    return ForwardGraph(**(values | changed))


def test_mates_follow_in_file_order_and_edges_are_grouped_by_source():
    graph = training_graph(forward(ids=(2, 1, 3), edges=((1, 2), (1, 3), (2, 3))))
    assert graph.ids.tolist() == [2, 1, 3, 5, 6, 4]
    named = [(int(graph.ids[u]), int(graph.ids[v])) for u, v in graph.edges]
    assert named == [(2, 3), (1, 2), (1, 3), (3, 4), (5, 6), (4, 6), (4, 5)]
    assert graph.dep_size.tolist() == [20.0, 10.0, 10.0, 30.0, 20.0, 30.0, 30.0]
    assert graph.memory.tolist() == [21.0, 11.0, 31.0] * 2


def test_an_edge_and_its_mirror_have_the_size_that_the_graph_says():
    graph = training_graph(forward(edges=((1, 3), (1, 2), (2, 3)), edge_size=(0.0, 7.0, 8.0)))
    sizes = {
        (int(graph.ids[u]), int(graph.ids[v])): size
        for (u, v), size in zip(graph.edges, graph.dep_size.tolist(), strict=True)
    }
    assert sizes == {(1, 3): 0, (1, 2): 7, (2, 3): 8, (3, 4): 30, (4, 6): 0, (5, 6): 7, (4, 5): 8}


def test_costs_are_scaled_to_seconds():
    graph = training_graph(forward(), seconds_per_unit=1e-3)
    assert graph.cost.tolist() == [0.001, 0.002, 0.003, 0.002, 0.002, 0.002]
    assert graph.step_time == pytest.approx(0.012)


def test_depth_counts_ops_from_the_first_source_and_is_zero_where_it_does_not_lead():
    branches = forward(ids=(1, 2, 3, 4), edges=((1, 2), (2, 3), (2, 4)))
    graph = training_graph(branches, join_sinks=False)
    assert dict(zip(graph.ids.tolist(), graph.depth.tolist(), strict=True)) == {
        1: 1,
        2: 2,
        3: 3,
        4: 3,
        8: 6,
        7: 5,
        6: 0,
        5: 4,
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ids": (1, 2, 4)}, "4"),
        ({"ids": (1, 2, 2)}, "2"),
        ({"edges": ((1, 2), (2, 3), (3, 2))}, "ops 2, 3"),
        ({"edges": ((1, 2), (1, 2))}, "1 -> 2"),
        ({"edges": ((1, 9),)}, "1 -> 9"),
        ({"cost": (1.0, -1.0, 1.0)}, "forward_cost"),
        ({"activation": (1.0, np.nan, 1.0)}, "activation"),
        ({"kinds": ("A",)}, "kinds"),
        ({"ids": (), "edges": ()}, "ops"),
        ({"edge_size": (1.0,)}, "2 edges"),
        ({"edge_size": (1.0, -1.0)}, "an edge's size"),
        ({"edge_size": (1.0, np.nan)}, "an edge's size"),
    ],
)
def test_a_graph_that_cannot_be_simulated_is_refused(changed, message):
    with pytest.raises(UserError, match=message) as error:
        forward(**changed)
    assert "graph 'small'" in str(error.value)


def test_a_job_of_no_length_is_refused():
    """Its speed-up, and the shards that its limit asks for, are 0 over 0."""
    with pytest.raises(UserError, match="graph 'small'"):
        training_graph(forward(cost=(0.0, 0.0, 0.0), backward_cost=[0.0] * 3))
    assert training_graph(forward(cost=(0.0, 0.0, 0.0))).step_time == 6.0


def test_each_sink_is_followed_by_its_mate_unless_as_published():
    branches = forward(ids=(1, 2, 3, 4), edges=((1, 2), (2, 3), (2, 4)))
    edges = [
        {(int(graph.ids[u]), int(graph.ids[v])) for u, v in graph.edges}
        for graph in (training_graph(branches), training_graph(branches, join_sinks=False))
    ]
    assert edges[0] - edges[1] == {(3, 6)}
