"""Numbers of job graphs, graphs drawn at random, and degrees from a quantum."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from schedlab.config.errors import UserErrors
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.files import pipedream_text
from schedlab.studies.ramp.graphs.generator import generated_graph, generated_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, TrainingGraph, training_graph
from schedlab.studies.ramp.graphs.settings import GeneratorSettings, GraphSettings
from schedlab.studies.ramp.graphs.statistics import statistics, statistics_table
from schedlab.studies.ramp.placement.partitioning import forward_degrees, round_down

LEGAL = (1, 2, 4, 6, 8, 16)  # of 4 x 4 x 2 servers up to 16


@pytest.fixture(scope="module")
def chain() -> ForwardGraph:
    """The chain of the recorded case c02."""
    case = json.loads((Path(__file__).parents[3] / "data/ramp/c02_chain_degree2.json").read_text())
    ids, kinds, *columns = zip(*case["inputs"]["graphs"]["chain"]["ops"], strict=True)
    return ForwardGraph("chain", ids, kinds, *columns, case["inputs"]["graphs"]["chain"]["edges"])


def test_numbers_of_a_recorded_graph(chain: ForwardGraph) -> None:
    found = statistics(training_graph(chain))
    assert (found["num_ops"], found["num_deps"], found["step_time"], found["depth"]) == (8, 7, 20.5, 8)
    assert (found["max_cost"], found["max_cost_op"]) == (8.0, 7), "op 7 is the mate of op 2"
    assert (found["total_memory"], found["max_memory"], found["max_memory_op"]) == (186e6, 33e6, 2)
    assert (found["max_throughput"], found["max_throughput_op"]) == (32e6, 3), (
        "the input costs nothing and has no throughput"
    )
    assert (found["total_dep_size"], found["max_dep_size"], found["max_dep"]) == (148e6, 32e6, (2, 3))
    assert (found["mean_cost"], found["median_cost"], found["median_memory"]) == (20.5 / 8, 1.75, 28e6)


def test_the_table_has_sequential_times(chain: ForwardGraph) -> None:
    table = statistics_table([training_graph(chain), training_graph(chain, seconds_per_unit=0.001)], training_steps=2)
    assert table["sequential_jct"].tolist() == pytest.approx([41.0, 0.041])


def drawn(**values) -> tuple[ForwardGraph, ...]:
    return generated_graphs(validate(GeneratorSettings, values), seed=3)


def test_a_generated_graph_is_told_by_seed_and_number_alone() -> None:
    graphs = drawn(count=4)
    assert [graph.name for graph in graphs] == [f"generated-{number:04d}" for number in range(4)]
    assert [pipedream_text(graph) for graph in drawn(count=2, first=2)] == [
        pipedream_text(graph) for graph in graphs[2:]
    ]
    other = generated_graph(GeneratorSettings(), 4, 0)
    assert pipedream_text(other) != pipedream_text(graphs[0])


def test_scales_of_generated_graphs_fill_their_range_evenly_in_the_logarithm() -> None:
    graphs = drawn(count=300, spread=1.0, forms=["chain"])
    for column, low, high in (("forward_cost", 0.1, 100.0), ("activation", 1e6, 1e9), ("parameter", 1e4, 1e8)):
        scales = np.log([getattr(graph, column).max() for graph in graphs])
        assert np.log(low) - 1e-3 <= scales.min() and scales.max() <= np.log(high) + 1e-3
        share = (scales - np.log(low)) / np.log(high / low)
        assert np.allclose(np.quantile(share, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.08)


@pytest.mark.parametrize("form", ["chain", "residual", "branching", "mixed"])
def test_generated_graphs_end_at_their_highest_op_and_have_their_form(form: str) -> None:
    for graph in drawn(count=10, forms=[form]):
        sources, sinks = ({op for op in graph.ids.tolist() if op not in graph.edges[:, side]} for side in (1, 0))
        assert (sources, sinks) == ({1}, {graph.num_ops})
        widest = np.bincount(graph.edges[:, 1]).max()
        assert {"chain": widest == 1, "residual": widest == 2, "branching": 2 <= widest <= 4, "mixed": widest <= 4}[
            form
        ]
        layers = graph.parameter > 0
        assert np.allclose(graph.backward_cost, np.where(layers, 2, 1) * graph.forward_cost, atol=2e-6)


def test_sequential_time_does_not_tell_the_form_of_a_generated_job() -> None:
    table = statistics_table([training_graph(graph) for graph in drawn(count=200)])
    assert abs(np.corrcoef(np.log(table["step_time"]), np.log(table["total_memory"]))[0, 1]) < 0.3


DEVICE = {"name": "simple", "gpu": "of this test", "peak_flops": 1e12, "memory_bandwidth": 1e11}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"generator": {"compute": {"low": 2.0, "high": 1.0}}, "source": "generated"}, "compute"),
        ({"generator": {"least_blocks": 9}, "source": "generated"}, "least_blocks"),
        ({"source": "traced", "models": [{"model": "resnet18"}]}, "device"),
        ({"source": "traced", "device": DEVICE}, "models"),
        ({"source": "generated", "device": DEVICE}, "device"),
        ({"source": "files"}, "path"),
        ({"source": "traced", "models": [{"model": "alexnt"}]}, "'alexnet'"),
        ({"source": "generated", "path": "graphs"}, "path"),
    ],
)
def test_settings_that_cannot_be_are_told(values: dict, told: str) -> None:
    with pytest.raises(UserErrors, match=told):
        validate(GraphSettings, values)


def test_degrees_follow_the_rule_of_the_quantum() -> None:
    """Section 6: k = max(1, min(2 ceil(ceil(f/q)/2), a))."""
    assert forward_degrees(np.array([0.0, 0.01, 0.011, 0.02, 0.021, 0.09, 5.0]), 0.01, 16).tolist() == [
        1,
        2,
        2,
        2,
        4,
        10,
        16,
    ]
    assert forward_degrees(np.array([0.0, 5.0]), 0.01, 1).tolist() == [1, 1]


def illegal(graph: TrainingGraph, quantum: float) -> bool:
    return not set(forward_degrees(graph.cost[: graph.num_forward], quantum, 16).tolist()) <= set(LEGAL)


def test_degrees_can_be_rounded_down_instead() -> None:
    assert round_down(np.array([1, 2, 10, 14, 16, 5]), LEGAL).tolist() == [1, 2, 8, 8, 16, 4]


def test_generated_graphs_do_have_degrees_without_a_block() -> None:
    """The trap that rounding down is for: without it some job of a pool cannot be placed at 16."""
    graphs = [training_graph(graph, 1e-3) for graph in drawn(count=30, compute={"low": 0.05, "high": 5.0})]
    assert sum(illegal(graph, 1e-5) for graph in graphs) >= 10
