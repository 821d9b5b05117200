"""Platform files of HDeepRM and type libraries of a user's own, given to a launch or lying beside the platform."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from small_launch import LEARN, options, pair, run_launch, schedule, write_case

from schedlab.cli.main import main
from schedlab.platforms.generate import find_hierarchy

KINDS = ("network", "node", "processor")
PROCESSOR = {"cores": 4, "clock_rate": 2.0, "mem_bw": 50, "power": 40, "dpflops_per_cycle": 2}
OWN = {
    "network": {"_doc": {"0": "mine"}, "Mine": {"bandwidth": "10Gbps"}},
    "node": {"Mine": {"processors": [{"type": "Mine", "number": 1}], "memory": {"capacity": 16}}},
    "processor": {"Mine": PROCESSOR},
}
LINKS = {"type": "Mine", "latency": "0us"}
PLATFORM = {
    "clusters": [{"id": "one", "nodes": [{"type": "Mine", "number": 1}], "local_links": LINKS}],
    "global_links": LINKS,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with options that name sub/platform.json, and a workload of two jobs of 5 s on one core."""
    monkeypatch.chdir(tmp_path)
    write_case(tmp_path, {**pair("first-high_flops"), "platform_file_path": "sub/platform.json"})
    Path("sub").mkdir()
    write("sub/platform.json", PLATFORM)
    return tmp_path


def write(path: str, values: object) -> str:
    Path(path).write_text(json.dumps(values))
    return path


def write_libraries(folder: str, **changes: object) -> list[str]:
    """Write <folder>/<kind>_types.json; returns the options that name them."""
    return [
        word
        for kind in KINDS
        for word in (f"--{kind}s", write(f"{folder}/{kind}_types.json", changes.get(kind, OWN[kind])))
    ]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("beside", [True, False], ids=["beside the platform", "given"])
def test_types_of_a_users_own(beside):
    arguments = write_libraries("sub" if beside else ".")
    assert run_launch(*([] if beside else arguments)) == 0
    assert json.loads(Path("resources.json").read_text())["clusters"][0]["nodes"][0]["type"] == "Mine"
    assert schedule()["makespan"] == pytest.approx(5)  # 48 of 50 GB/s: two jobs fit on one processor


@pytest.mark.usefixtures("folder")
def test_a_folder_of_types():
    Path("own types").mkdir()
    memory = {"type": "DDR9", "capacity": 16}
    write_libraries("own types", node={"Mine": {**OWN["node"]["Mine"], "memory": memory}})
    write("own types/memory_types.json", {"DDR9": {"latency": "104ns"}})
    assert run_launch("--types", "own types") == 0
    assert schedule()["makespan"] == pytest.approx(5)
    slower = write("slower.json", {"Mine": {**PROCESSOR, "mem_bw": 40}})
    assert run_launch("--types", "own types", "--processors", slower) == 0
    assert schedule()["makespan"] == pytest.approx(5 / 0.75)


@pytest.mark.usefixtures("folder")
def test_a_folder_without_types_is_refused(capsys):
    Path("empty").mkdir()
    write_libraries("sub")
    for folder in ("empty", "missing", "options.json"):
        assert run_launch("--types", folder) == 2
        assert f"--types {folder}" in capsys.readouterr().err
    Path("empty/memory_types.json").write_text("{")
    assert run_launch("--types", "empty") == 2
    assert "memory_types.json" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_given_libraries_count_before_those_beside_the_platform():
    write_libraries("sub", processor={"Mine": {**PROCESSOR, "mem_bw": 40}})
    given = write("faster.json", OWN["processor"])
    assert run_launch() == 0
    assert schedule()["makespan"] == pytest.approx(5 / 0.75)
    assert run_launch("--processors", given) == 0  # and inputs made from other types are not used again
    assert schedule()["makespan"] == pytest.approx(5)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("kind", "values", "where", "near"),
    [
        ("node", {"Mien": OWN["node"]["Mine"]}, "sub/platform.json: clusters.0.nodes.0.type", "'Mien'"),
        ("network", {"Mien": {"bandwidth": "1Gbps"}}, "sub/platform.json: clusters.0.local_links.type", "'Mien'"),
        ("processor", {"Mien": PROCESSOR}, "node_types.json: Mine: processors.0.type", "'Mien'"),
        ("processor", {"Mine": {**PROCESSOR, "cores": 0}}, "processor_types.json: Mine: cores", ""),
        ("processor", {"Mine": {**PROCESSOR, "mem_bw": "fast"}}, "processor_types.json: Mine: mem_bw", ""),
        ("processor", {"Mine": {**PROCESSOR, "core": 4}}, "processor_types.json: Mine: core", "'cores'"),
        ("node", [1], "node_types.json", ""),
        ("node", {"Mine": {**OWN["node"]["Mine"], "memory": {"capacity": -1}}}, "Mine: memory.capacity", ""),
    ],
)
def test_a_mistake_in_a_library_names_file_key_and_the_nearest_name(capsys, kind, values, where, near):
    assert run_launch(*write_libraries(".", **{kind: values})) == 2
    said = capsys.readouterr().err
    assert where in said and near in said and "Traceback" not in said


@pytest.mark.usefixtures("folder")
def test_a_library_that_is_not_there(capsys):
    assert run_launch("--nodes", "none.json") == 2
    assert "--nodes" in capsys.readouterr().err


@pytest.fixture(scope="module")
def published() -> Path:
    """HDeepRM's own files, by version."""
    path = Path(os.environ.get("SCHEDLAB_DATA", "")) / "cases/hdeeprm"
    if not os.environ.get("SCHEDLAB_DATA") or not path.is_dir():
        pytest.skip("SCHEDLAB_DATA has no cases/hdeeprm")
    return path


TOTALS = {"das2": 144, "gaia": 2280, "ricc": 8192, "pik": 2560, "mc2": 10002, "metacentrum2": 10002, "learning": 4}


def test_the_published_platform_files_are_read_as_they_are(published):
    files = sorted(published.glob("*/platform_examples/*.json"))
    assert {path.stem for path in files} == set(TOTALS)
    for path in files:
        assert find_hierarchy(str(path)).cores == TOTALS[path.stem], path


def test_the_published_platforms_are_the_shipped_ones(published):
    for path in sorted(published.glob("v0.3.1b1/platform_examples/*.json")):
        theirs, ours = (find_hierarchy(name).totals() for name in (str(path), path.stem))
        names = {key: theirs[key] for key in ("node_types", "processor_types")}  # ours have short names
        assert theirs == ours | names, path


@pytest.mark.parametrize("version", ["v0.2.1b0", "v0.3.1b1"])
def test_the_published_libraries_are_read_as_they_are(published, tmp_path, version):
    data = published / version / "hdeeprm/data"
    arguments = [word for kind in KINDS for word in (f"--{kind}s", str(data / f"{kind}_types.json"))]
    platform = published / version / "platform_examples/gaia.json"
    assert main(["platform", "generate", str(platform), str(tmp_path / "gaia.xml"), *arguments]) == 0


def test_the_published_learning_case_runs_where_it_lies(published, tmp_path, monkeypatch):
    there = published / "after_v0.3.1b1"
    for path in there.rglob("*.json"):
        copy = tmp_path / path.relative_to(there)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path / "thesis_experiments/learning")
    custom = ["-cw", "../../workload_examples/learning.json"]
    assert main(["hetero", "launch", "options.json", *custom, "-a", "reinforce", "-om", "model.pt", "-nr", "3"]) == 0
    assert len(Path("losses.log").read_text().split()) == 3
    assert schedule()["makespan"] in (pytest.approx(7), pytest.approx(5.25), pytest.approx(6.3636, abs=1e-4))


@pytest.mark.parametrize("case", ["primer/gaia", "primer/mc2", "consequences/gaia"])
def test_the_published_options_run_on_a_trace_of_that_name(published, tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    trace = "".join(
        f"{n} {20 * n} -1 -1 {n % 9 + 1} -1 -1 {n % 9 + 1} 600 {2**20} 1 1 1 1 1 1 -1 -1\n" for n in range(50)
    )
    Path("any.swf").write_text(trace)
    for path in sorted((published / "v0.3.1b1/thesis_experiments" / case).glob("*/options.json")):
        values = json.loads(path.read_text())
        platform = published / "v0.3.1b1/platform_examples" / Path(values["platform_file_path"]).name
        write("options.json", {**values, "workload_file_path": "any.swf", "platform_file_path": str(platform)})
        assert main(["hetero", "launch", "options.json"]) == 0
        assert schedule()["nb_jobs_success"] == 50


CLASSIC = {"policy_pair": "shortest-high_flops"}
README = {  # agent, env: 0.1 gave no type
    "0.1": (CLASSIC, {"objective": "avg_utilization"}),
    "0.2": ({"type": "CLASSIC", **CLASSIC}, {"objective": "avg_utilization"}),
    "0.2 learning": ({**LEARN, "hidden": 128, "lr": 0.001}, {"queue_sensitivity": 0.01}),
    "0.1 learning": ({key: value for key, value in LEARN.items() if key != "type"}, {"queue_sensitivity": 0.01}),
}


@pytest.mark.parametrize("example", README)
def test_the_examples_of_the_readme(tmp_path, monkeypatch, example):
    """A classic agent, and one that learns with all 37 actions; the platform by HDeepRM's node types."""
    monkeypatch.chdir(tmp_path)
    links = {"type": "InfiniBand QDR", "latency": "0us"}
    nodes = [{"type": "Bullx B500-0", "number": 2}, {"type": "Dell R720", "number": 1}]
    write("my_platform.json", {"clusters": [{"id": "c", "nodes": nodes, "local_links": links}], "global_links": links})
    Path("my.swf").write_text("".join(f"{n} {n} -1 -1 4 -1 -1 4 600 1024 1 1 1 1 1 1 -1 -1\n" for n in range(20)))
    agent, env = README[example]
    values = options(agent, **({"actions": None, "observation": None} | env))
    files = {"workload_file_path": "my.swf", "platform_file_path": "my_platform.json"}
    write("options.json", values | files | {"nb_jobs": 10000, "nb_resources": 40})
    learns = "run" in agent
    arguments = ["-a", "reinforce", "-om", "model.pt"] if learns else []
    assert main(["hetero", "launch", "options.json", *arguments]) == 0
    assert schedule()["nb_jobs_success"] == 20
    assert len(json.loads(Path("actions.json").read_text())["actions"]) == (37 if learns else 1)
    assert Path("losses.log").is_file() == learns
