"""The graphs of a scenario from their settings: traced, drawn, read; what the prepare rule writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from schedlab.config.errors import UserError
from schedlab.config.schema import merged, validate
from schedlab.studies.ramp.graphs.files import pipedream_text, read_graph, read_graphs
from schedlab.studies.ramp.graphs.prepare import graph_part, graph_requirements, make_graphs, trace_graphs
from schedlab.studies.ramp.graphs.settings import DeviceSettings, GraphSettings

GENERATED = {"source": "generated", "generator": {"count": 3}, "seed": 5}


@pytest.fixture(scope="module")
def a100(repository: Path) -> dict:
    return yaml.safe_load((repository / "conf/gpu/a100.yaml").read_text())


def test_devices_are_typed(repository: Path) -> None:
    for name in ("a100", "v100"):
        device = validate(DeviceSettings, yaml.safe_load((repository / f"conf/gpu/{name}.yaml").read_text()))
        assert device.name == name


def test_shipped_graphs_are_what_tracing_gives(repository: Path, a100: dict) -> None:
    pytest.importorskip("torch")
    values = yaml.safe_load((repository / "conf/graph/traced.yaml").read_text())
    del values["defaults"]
    traced = make_graphs(validate(GraphSettings, {**values, "device": a100}))
    shipped = make_graphs(validate(GraphSettings, {"source": "files", "path": "resources/graphs/a100"}))
    assert (
        [graph.name for graph in shipped]
        == [graph.name for graph in traced]
        == sorted(entry["model"] for entry in values["models"])
    )
    assert [pipedream_text(graph) for graph in shipped] == [pipedream_text(graph) for graph in traced]


@pytest.mark.parametrize("name", ["alexnet", "resnet18", "squeezenet", "vgg16"])
def test_shipped_graphs_are_like_the_published_ones_op_by_op(shared_data: Path, name: str) -> None:
    """The same ops with the same activations; times in about the same order, as PipeDream measured and we reckon."""
    from scipy.stats import spearmanr

    (ours,) = make_graphs(validate(GraphSettings, {"source": "files", "path": "resources/graphs/a100", "only": [name]}))
    (file,) = (shared_data / "graphs").glob(f"{name}*.txt")
    theirs = read_graph(file)
    order = np.argsort(theirs.ids)
    assert ours.kinds == tuple(theirs.kinds[place] for place in order)
    assert {tuple(edge) for edge in ours.edges.tolist()} == {tuple(edge) for edge in theirs.edges.tolist()}
    assert np.allclose(ours.activation, theirs.activation[order], rtol=1e-3)
    assert np.allclose(ours.parameter, theirs.parameter[order], rtol=1e-3)
    for costs in ("forward_cost", "backward_cost"):
        measured, reckoned = getattr(theirs, costs)[order][1:], getattr(ours, costs)[1:]
        both = (measured > 0) & (reckoned > 0)
        assert both.sum() >= 18 and spearmanr(measured[both], reckoned[both]).statistic > 0.75


def test_batches_can_be_chosen(a100: dict) -> None:
    pytest.importorskip("torch")
    (graph,) = make_graphs(validate(GraphSettings, {"models": [{"model": "alexnet", "batch": 2}], "device": a100}))
    assert graph.activation[0] == 2 * 3 * 224 * 224 * 4 and graph.forward_cost[0] == 0


def test_reading_a_batch_takes_the_time_of_the_input_alone(a100: dict) -> None:
    pytest.importorskip("torch")
    values = {"models": [{"model": "alexnet", "batch": 2}], "device": a100}
    (without,), (read,) = (
        make_graphs(validate(GraphSettings, {**values, **more})) for more in ({}, {"reading_rate": 1e6})
    )
    assert (
        read.forward_cost[0] == pytest.approx(2 * 3 * 224 * 224 * 4 / 1e6 * 1e3, abs=1e-6)
        and read.backward_cost[0] == 0
    )
    assert np.array_equal(read.forward_cost[1:], without.forward_cost[1:])


def test_a_missing_torch_is_told_with_another_way(monkeypatch: pytest.MonkeyPatch, a100: dict) -> None:
    monkeypatch.setitem(sys.modules, "schedlab.studies.ramp.graphs.models", None)
    with pytest.raises(UserError, match=r"torch.*path: resources/graphs/a100"):
        make_graphs(validate(GraphSettings, {"models": [{"model": "alexnet"}], "device": a100}))


def test_graphs_can_be_picked_by_name() -> None:
    assert [
        graph.name for graph in make_graphs(validate(GraphSettings, merged(GENERATED, {"only": ["generated-0002"]})))
    ] == ["generated-0002"]
    with pytest.raises(UserError, match=r"'generated-0009'.*'generated-000\d'"):
        make_graphs(validate(GraphSettings, merged(GENERATED, {"only": ["generated-0009"]})))


def test_the_prepare_rule_writes_graphs_and_their_numbers(tmp_path: Path) -> None:
    settings = validate(GraphSettings, GENERATED)
    part = graph_part(settings)
    assert part.shared and not part.files and not graph_requirements(settings)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"results_version": 1, **part.values}))
    for turn in ("a", "b"):
        trace_graphs(tmp_path / "config.yaml", tmp_path / f"{turn}.zip", tmp_path / f"{turn}.json")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    report = json.loads((tmp_path / "a.json").read_text())
    graphs = read_graphs(tmp_path / "a.zip")
    assert sorted(report["graphs"]) == [graph.name for graph in graphs] and len(graphs) == 3
    assert report["graphs"]["generated-0000"]["num_ops"] == 2 * graphs[0].num_ops


def test_files_are_required_unless_we_ship_them(tmp_path: Path) -> None:
    given = validate(GraphSettings, {"source": "files", "path": "graphs", "max_files": 2, "name": "pipedream"})
    (need,) = graph_requirements(given)
    assert need.path == Path("graphs") and "pipedream" in need.name
    assert graph_part(given).files == ("graphs",)
    assert not graph_requirements(validate(GraphSettings, {"source": "files", "path": "resources/graphs/a100"}))
    with pytest.raises(UserError, match="none"):
        make_graphs(validate(GraphSettings, {"source": "files", "path": str(tmp_path / "none")}))


def test_files_of_others_are_found_in_the_folder_of_data(shared_data: Path) -> None:
    graphs = make_graphs(validate(GraphSettings, {"source": "files", "path": "graphs"}))
    assert [graph.name for graph in graphs] == sorted(path.stem for path in (shared_data / "graphs").glob("*.txt"))
