"""Models traced into graphs: published sizes, the roofline, and the same bytes each time."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.graphs.settings import DeviceSettings

pytest.importorskip("torch")

import torch
from torch import nn

from schedlab.studies.ramp.graphs.models import MODELS
from schedlab.studies.ramp.graphs.trace import graph_of, trace, traced_ops

DEVICE = DeviceSettings(name="simple", gpu="of this test", peak_flops=1e12, memory_bandwidth=1e11)
MILLIONS = {
    "alexnet": 61.10,
    "vgg16": 138.36,
    "resnet18": 11.69,
    "resnet50": 25.56,
    "squeezenet": 1.25,
}  # parameters, from the papers' code
PRODUCTS = {
    "alexnet": 0.714e9,
    "vgg16": 15.47e9,
    "resnet18": 1.814e9,
    "resnet50": 4.09e9,
    "squeezenet": 0.82e9,
}  # for one picture
PUBLISHED = {  # ops, deps, total memory, largest memory, depth
    "alexnet": (46, 47, 3.0462e9, 1.9834e8, 44),
    "vgg16": (82, 83, 3.0625e10, 1.6443e9, 80),
    "resnet18": (142, 159, 1.7259e10, 8.221e8, 60),
    "squeezenet": (136, 153, 2.4963e10, 1.1680e9, 102),
}


@pytest.fixture(scope="module")
def shipped(repository: Path) -> dict[str, ForwardGraph]:
    """What tracing gives for an A100 (test_ramp_graphs.py holds the files to it)."""
    return {graph.name: graph for graph in read_graphs(repository / "resources/graphs/a100")}


class Small(nn.Module):
    """One op of each kind of cost."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.relu, self.table = nn.Linear(100, 300, bias=False), nn.ReLU(), nn.Embedding(1000, 100)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        rows = self.table(words)
        return self.relu(self.linear(rows)).view(rows.size(0), -1)


def small():
    model, words = Small().to("meta"), torch.zeros(50, dtype=torch.long, device="meta")
    return graph_of("small", traced_ops(model, (words,)), DEVICE)


def test_an_op_takes_the_longer_of_its_arithmetic_and_its_memory() -> None:
    graph = small()
    assert graph.kinds == ("Input", "Embedding", "Linear", "ReLU", "Size", "View")
    rows, products = 50 * 100 * 4, 50 * 300 * 4
    expected = {
        "Input": 0,
        "Embedding": (50 * 8 + 2 * rows) / 1e11,  # of the table only the rows that are asked for
        "Linear": max(2 * 50 * 100 * 300 / 1e12, (rows + 100 * 300 * 4 + products) / 1e11),
        "ReLU": 2 * products / 1e11,
        "Size": 0,
        "View": 0,
    }
    assert graph.forward_cost.tolist() == pytest.approx([1000 * seconds for seconds in expected.values()], abs=1e-6)
    factors = [
        back / there if there else 0 for there, back in zip(graph.forward_cost, graph.backward_cost, strict=True)
    ]
    assert factors == pytest.approx([0, 2, 2, 1, 0, 0], abs=1e-2)
    assert graph.activation.tolist() == [400, rows, products, products, 4, products]
    assert graph.parameter.tolist() == [0, 400_000, 120_000, 0, 0, 0]
    assert graph.edges.tolist() == [[1, 2], [2, 3], [3, 4], [2, 5], [4, 6], [5, 6]]


@pytest.mark.parametrize("name", sorted(MILLIONS))
def test_models_have_the_parameters_and_products_of_their_papers(name: str) -> None:
    graph = trace(
        name, 1, DeviceSettings(name="arithmetic", gpu="memory is free", peak_flops=2e12, memory_bandwidth=1e30)
    )
    assert graph.parameter.sum() / 4e6 == pytest.approx(MILLIONS[name], abs=0.006)
    assert graph.forward_cost.sum() * 1e9 == pytest.approx(PRODUCTS[name], rel=0.015)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_graphs_have_the_size_of_the_published_ones(shipped: dict[str, ForwardGraph], name: str) -> None:
    ops, deps, memory, largest, depth = PUBLISHED[name]
    graph = training_graph(shipped[name])
    assert (graph.num_ops, len(graph.edges), graph.depth.max()) == (ops, deps, depth)
    assert graph.memory.sum() == pytest.approx(memory, rel=1e-4)
    assert graph.memory.max() == pytest.approx(largest, rel=1e-3)


def test_the_translator_is_about_as_large_as_the_published_one(shipped: dict[str, ForwardGraph]) -> None:
    graph = training_graph(shipped["gnmt"])
    assert graph.num_ops == 96 and 105 <= len(graph.edges) <= 120
    assert graph.memory.max() == pytest.approx(3.2695e8, rel=1e-3)
    assert 1 < graph.memory.sum() / 2.3684e9 < 2


@pytest.mark.parametrize("name", sorted(MODELS))
def test_a_graph_leads_from_its_inputs_to_their_mates(shipped: dict[str, ForwardGraph], name: str) -> None:
    graph = training_graph(shipped[name] if name in shipped else trace(name, 2, DEVICE))
    sources = set(range(graph.num_ops)) - set(graph.edges[:, 1].tolist())
    assert {graph.kinds[op] for op in sources} == {"Input"}
    assert set(range(graph.num_ops)) - set(graph.edges[:, 0].tolist()) == {graph.num_forward + op for op in sources}


def test_time_and_memory_grow_with_the_batch() -> None:
    small, large = (trace("resnet18", batch, DEVICE) for batch in (8, 64))
    assert math.isclose(large.activation[0], 8 * small.activation[0])
    assert 6 < large.forward_cost.sum() / small.forward_cost.sum() <= 8
