"""Files of graphs: PipeDream's text, cost graphs, folders and archives; every mistake names its line."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedlab.config.errors import UserError
from schedlab.studies.ramp.graphs.cost import parse_cost_graph
from schedlab.studies.ramp.graphs.files import parse_pipedream, pipedream_text, read_graph, read_graphs, write_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph

COST_GRAPH = (Path(__file__).parents[3] / "data/graphs/cost_graph.pbtxt").read_text()
COSTS = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"
SMALL = "\n".join(
    [
        f"node2 -- Conv2d(3, 64, kernel_size=(11, 11)) -- {COSTS.format(4.5, 8.0, 32.0, 1.0)}",
        f"node1 -- Input -- {COSTS.format(0.0, 0.0, '[4.0; 2.0]', 0.0)} -- stage_id=0",
        "\tnode1 -- node2",
        "",
    ]
)
# published: ops and deps of a training step, sequential time of 50 steps, largest cost, memory, depth
PUBLISHED = {
    "alexnet": (46, 47, 36061.15, 635.9, 3.0462e9, 1.9834e8, 44),
    "gnmt": (96, 117, 4470.80, 15.9, 2.3684e9, 3.2695e8, 30),
    "resnet18": (142, 159, 36668.35, 473.6, 1.7259e10, 8.221e8, 60),
    "squeezenet1_0": (136, 153, 38000.15, 474.6, 2.4963e10, 1.1680e9, 102),
    "vgg16": (82, 83, 34525.35, 113.3, 3.0625e10, 1.6443e9, 80),
}


def op(number: int, forward: object = 1.0, activation: object = 4.0) -> str:
    return f"node{number} -- Op -- {COSTS.format(forward, 2.0, activation, 0.0)}"


def same(first: ForwardGraph, second: ForwardGraph) -> bool:
    arrays = ("ids", "forward_cost", "backward_cost", "activation", "parameter", "edges")
    sizes = (first.edge_size is None) == (second.edge_size is None)
    sizes = sizes and (first.edge_size is None or np.array_equal(first.edge_size, second.edge_size))
    return (
        sizes
        and first.kinds == second.kinds
        and all(np.array_equal(getattr(first, name), getattr(second, name)) for name in arrays)
    )


def test_ops_stand_in_the_order_of_the_file_and_lists_are_sums() -> None:
    graph = parse_pipedream(SMALL, "small", "small.txt")
    assert graph.ids.tolist() == [2, 1]
    assert graph.kinds == ("Conv2d", "Input")
    assert graph.forward_cost.tolist() == [4.5, 0.0] and graph.backward_cost.tolist() == [8.0, 0.0]
    assert graph.activation.tolist() == [32.0, 6.0] and graph.parameter.tolist() == [1.0, 0.0]
    assert graph.edges.tolist() == [[1, 2]] and graph.edge_size is None


def test_a_file_is_called_by_its_stem_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "vgg").mkdir()
    for file in ("b.txt", "a.txt", ".hidden.txt", "notes.md", "vgg/graph.txt", "vgg/other.txt"):
        (tmp_path / file).write_text(SMALL)
    assert [graph.name for graph in read_graphs(tmp_path)] == ["a", "b", "vgg"]
    assert [graph.name for graph in read_graphs(tmp_path, max_files=2)] == ["a", "b"]
    assert read_graph(tmp_path / "vgg/graph.txt").name == "vgg"


def test_what_is_written_is_read_again_with_the_same_bytes(tmp_path: Path) -> None:
    values = json.loads((Path(__file__).parents[3] / "data/ramp/graph_resnet_like_12_blocks.json").read_text())
    graphs = []
    for name, entry in values.items():
        ids, kinds, forward, backward, activation, parameter = zip(*entry["ops"], strict=True)
        graphs.append(
            ForwardGraph(
                name,
                ids,
                [kind.partition("(")[0] for kind in kinds],
                forward,
                backward,
                activation,
                parameter,
                entry["edges"],
            )
        )
    graphs.append(parse_cost_graph(COST_GRAPH, "cost", "cost.pbtxt"))
    write_graphs(tmp_path / "graphs.zip", graphs)
    again = read_graphs(tmp_path / "graphs.zip")
    assert [graph.name for graph in again] == sorted(graph.name for graph in graphs)
    assert all(
        same(first, second) for first, second in zip(sorted(graphs, key=lambda graph: graph.name), again, strict=True)
    )
    write_graphs(tmp_path / "twice.zip", reversed(again))
    assert (tmp_path / "graphs.zip").read_bytes() == (tmp_path / "twice.zip").read_bytes()


@pytest.mark.parametrize("name", PUBLISHED)
def test_graphs_of_the_experiments_have_the_published_numbers(shared_data: Path, name: str) -> None:
    ops, deps, sequential, cost, memory, largest, depth = PUBLISHED[name]
    graph = training_graph(read_graph(shared_data / f"graphs/{name}.txt"), join_sinks=False)
    assert (graph.num_ops, len(graph.edges), graph.depth.max()) == (ops, deps, depth)
    assert 50 * graph.step_time == pytest.approx(sequential, abs=0.005)
    assert graph.cost.max() == pytest.approx(cost, abs=0.05)
    assert graph.memory.sum() == pytest.approx(memory, rel=5e-5)
    assert graph.memory.max() == pytest.approx(largest, rel=5e-4)


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("", "", "op"),
        ("node1", 1, "field"),
        (f"{op(1)}\n\nnodex -- Op -- {COSTS}", 3, "'nodex'"),
        ("node1 -- node", 1, "'node'"),
        ("node1 -- Op -- forward_compute_time=1.0", 1, "field 3"),
        (op(1).replace("activation_size", "activation"), 1, "activation_size"),
        *(
            (op(1, forward=value), 1, "forward_compute_time")
            for value in (-1.0, "nan", "1_0", "9e999", "1e308", "[1.0]")
        ),
        *((op(1, activation=value), 1, "activation_size") for value in ("[1.0; x]", "[]", "x", "[1e308; 1.0]")),
        (f"{op(1)}\n{op(1)}", 2, "op 1"),
        (f"{op(1)}\n{op(3)}", 2, "op 3"),
        (op(0), 1, "op 0"),
        (f"{op(1)}\n\tnode1 -- node2", 2, "op 2"),
        (f"{op(1)}\n{op(2)}\nnode1 -- node2\nnode1 -- node2", 4, "1 -> 2"),
        (f"{op(1)}\nnode1 -- node1", 2, "ops 1"),
        (f"{op(1)}\n{op(2)}\nnode2 -- node1\nnode1 -- node2", 4, "ops 1, 2"),
        (f"{op(1)}\n{op(2)}\nnode1 -- node2 -- size=x", 3, "size"),
    ],
)
def test_a_malformed_text_names_line_and_field(text: str, line: int | str, named: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_pipedream(text, "g", "g.txt")
    assert refused.value.where == f"g.txt{line and f':{line}'}" and named in refused.value.what


def test_a_cost_graph_becomes_a_forward_pass_that_ends_at_its_highest_id() -> None:
    graph = parse_cost_graph(COST_GRAPH, "cost", "cost.pbtxt", backward_factor=2.0)
    assert graph.ids.tolist() == [1, 4, 2, 3]
    assert graph.kinds == ("_SOURCE", "_SINK", "Conv2D", "Relu")
    assert graph.forward_cost.tolist() == [0, 0, 12, 3] and graph.backward_cost.tolist() == [0, 0, 24, 6]
    assert graph.activation.tolist() == [0, 0, 1000, 50] and graph.parameter.tolist() == [0, 0, 64, 0]
    sizes = {tuple(edge): size for edge, size in zip(graph.edges.tolist(), graph.edge_size.tolist(), strict=True)}
    assert sizes[3, 4] == sizes[2, 4] == sizes[1, 3] == 0, "control edges carry nothing, and the source has no output"
    assert sizes[2, 3] in (100, 900)
    assert training_graph(graph).num_ops == 8


def test_which_output_an_edge_carries_is_drawn_by_the_name_unless_the_file_says() -> None:
    drawn = {parse_cost_graph(COST_GRAPH, f"graph {number}", "x").edge_size.max() for number in range(20)}
    assert drawn == {100, 900}
    again = [parse_cost_graph(COST_GRAPH, "one name", "x").edge_size.tolist() for _ in range(2)]
    assert again[0] == again[1]
    ported = COST_GRAPH.replace("preceding_node: 4", "preceding_node: 4 preceding_port: 1").replace(
        "input_info { }", ""
    )
    assert {parse_cost_graph(ported, f"graph {number}", "x").edge_size.max() for number in range(5)} == {900}


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        ("", "", "node"),
        ("node {", 1, "message"),
        ('node { name: "a\n" }', 1, '"a'),
        ("\nnode: 3", 2, "node"),
        ("node { id }", 1, "id"),
        ("node { id: }", 1, "id"),
        ("node { id: [1, ", 1, "list"),
        ("node { id: [1, { ] }", 1, "list"),
        ("}", 1, "'}'"),
        ('node { name: "a" }', 1, "'a'"),
        ("node { id: 1 }\nnode { id: 1 }", 2, "id 1"),
        ("node { id: 1.5 }", 1, "id"),
        ("node { id: { } }", 1, "id"),
        ("node { id: 1 compute_cost: -2 }", 1, "compute_cost"),
        ("node { id: 1 compute_cost: nan }", 1, "compute_cost"),
        ("node { id: 1 output_info { size: -1 } }", 1, "size"),
        ("node { id: 1 control_input: 9 }", 1, "node 9"),
        (
            "node { id: 1 output_info { } } node { id: 2 input_info { preceding_node: 1 preceding_port: 1 } }",
            1,
            "output 1",
        ),
        ("node { id: 1 control_input: 2 }\nnode { id: 2 control_input: 1 }", 1, "1, 2"),
    ],
)
def test_a_malformed_cost_graph_names_its_line(text: str, line: int | str, named: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_cost_graph(text, "g", "g.pbtxt")
    assert refused.value.where == f"g.pbtxt{line and f':{line}'}" and named in refused.value.what


def test_places_without_graphs_are_told(tmp_path: Path) -> None:
    def refused(path: Path) -> str:
        with pytest.raises(UserError) as error:
            read_graphs(path)
        return str(error.value)

    assert str(tmp_path) in refused(tmp_path) and "nowhere" in refused(tmp_path / "nowhere")
    for name, content in {"g.csv": SMALL.encode(), "g.txt": b"\xff", "g.zip": b"PK"}.items():
        (tmp_path / name).write_bytes(content)
        assert name in refused(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("a.txt", "node1")
    assert "bad.zip/a.txt:1" in refused(tmp_path / "bad.zip")
    for name in ("twice/a.txt", "twice/a.pbtxt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SMALL if name.endswith(".txt") else COST_GRAPH)
    assert "'a'" in refused(tmp_path / "twice")


PIECES = [
    "node1",
    "node2",
    "node999999999999",
    " -- ",
    "\t",
    "\n",
    "\r\n",
    "Op(",
    op(1),
    op(2),
    "node1 -- node2",
    "size=1",
    "=",
    ", ",
    "[1; 2]",
    "nan",
    "é",
]
TOKENS = [
    "node",
    "{",
    "}",
    "<",
    ">",
    ":",
    "[",
    "]",
    "name",
    '"a"',
    "'",
    '"',
    "\\",
    "id",
    "1",
    "2",
    "-1",
    "input_info",
    "preceding_node",
]
TOKENS += [
    "preceding_port",
    "output_info",
    "size",
    "control_input",
    "compute_cost",
    "1e400",
    "#",
    "\n",
    " ",
    ",",
    "é",
    "_SOURCE",
    "node { id: 1 }",
]


@pytest.mark.slow
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=12).map("".join)))
def test_no_text_breaks_the_reader_of_pipedream(text: str) -> None:
    try:
        graph = parse_pipedream(text, "fuzz", "fuzz.txt")
    except UserError as error:
        assert str(error).startswith("fuzz.txt")
    else:
        assert same(parse_pipedream(pipedream_text(graph), "fuzz", "again"), graph)


@pytest.mark.slow
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join)))
def test_no_text_breaks_the_reader_of_cost_graphs(text: str) -> None:
    try:
        graph = parse_cost_graph(text, "fuzz", "fuzz.pbtxt")
    except UserError as error:
        assert str(error).startswith("fuzz.pbtxt")
    else:
        assert graph.num_ops > 0
