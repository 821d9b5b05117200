"""`schedlab ramp graphs`: numbers, files and pictures of a set of graphs, or one paragraph and exit status 2."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from schedlab.cli.main import main
from schedlab.studies.ramp.graphs.files import read_graphs


@pytest.fixture(autouse=True)
def at_the_checkout(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)


def test_shipped_graphs_in_numbers(capsys) -> None:
    assert main(["ramp", "graphs", "shipped", "--steps", "50"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["alexnet", "gnmt", "resnet18", "squeezenet", "vgg16"]
    assert (found["resnet18"]["num_ops"], found["resnet18"]["max_cost_op"]) == (142, 1)
    assert found["resnet18"]["sequential_jct"] == pytest.approx(33605.88, abs=0.01)


def test_a_set_is_written_and_drawn_and_read_again(tmp_path: Path, capsys) -> None:
    out = tmp_path / "mine"
    assert main(["ramp", "graphs", "generated", "--out", str(out), "--pictures", str(tmp_path / "drawn")]) == 0
    first = json.loads(capsys.readouterr().out)
    assert [graph.name for graph in read_graphs(out)] == list(first) and len(first) == 16
    assert (tmp_path / "drawn.png").stat().st_size > 10_000
    assert "generated-0015" in (tmp_path / "drawn.txt").read_text()
    assert main(["ramp", "graphs", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_a_folder_is_read_by_its_name_alone_unless_a_set_has_that_name(
    repository: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    shutil.copytree(repository / "resources/graphs/a100", tmp_path / "mine")
    shutil.copytree(tmp_path / "mine", tmp_path / "generated")
    monkeypatch.chdir(tmp_path)
    conf = ["--conf", str(repository / "conf")]
    assert main(["ramp", "graphs", "mine", *conf]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["alexnet", "gnmt", "resnet18", "squeezenet", "vgg16"]
    assert main(["ramp", "graphs", "generated", *conf]) == 0
    assert "generated-0000" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tracd"], "'traced'"),
        (["shipped", "--steps", "0"], "--steps"),
        (["generated", "--out", "README.md"], "--out README.md"),
        (["tests/data/ramp/c02_chain_degree2.json"], "c02_chain_degree2.json"),
        (["tests/data"], "tests/data"),
    ],
)
def test_mistakes_are_one_paragraph(arguments: list[str], told: str, capsys) -> None:
    assert main(["ramp", "graphs", *arguments]) == 2
    out, err = capsys.readouterr()
    assert not out and told in err and "Traceback" not in err


def test_a_mistake_in_the_set_names_its_file(repository: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(repository / "conf", tmp_path / "conf")
    (tmp_path / "conf/graph/odd.yaml").write_text("name: odd\nsource: generated\ngenerator: {cout: 3}\n")
    assert main(["ramp", "graphs", "odd", "--conf", str(tmp_path / "conf")]) == 2
    assert "odd.yaml: generator.cout" in capsys.readouterr().err
