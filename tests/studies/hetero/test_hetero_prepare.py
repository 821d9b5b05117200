"""The prepare rules: platform, workloads, their bytes, and what scenarios share."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from small_hetero import part, prepared, scenario

from schedlab.config.errors import UserError
from schedlab.platforms.hierarchy import read_hierarchy
from schedlab.studies.hetero import prepare
from schedlab.studies.hetero.prepare import extract_workload

TRACE = Path(__file__).parents[2] / "data/batch/lab-128.swf.gz"  # 1,500 jobs


def from_trace(count: int, **replicates: int):
    workload = {**part("workload/kth.yaml"), "file": str(TRACE), "trim": {"count": count}}
    return scenario(workload=workload, replicates=replicates)


def workloads(folder: Path) -> dict[str, dict]:
    with zipfile.ZipFile(folder / "workloads.zip") as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_every_replicate_gets_a_workload_that_fits_the_platform(tmp_path):
    prepared(scenario(replicates={"train": 1, "validation": 1, "test": 2}), tmp_path)
    cores = read_hierarchy(tmp_path / "resources.json").cores
    made = workloads(tmp_path)
    assert list(made) == ["test-00.json", "test-01.json", "train-00.json", "validation-00.json"]
    assert len({json.dumps(workload) for workload in made.values()}) == 4
    for workload in made.values():
        assert workload["nb_res"] == cores == 48
        assert len(workload["jobs"]) == 10 and all(1 <= job["res"] <= 48 for job in workload["jobs"])
        assert all(job["walltime"] > 0 for job in workload["jobs"])
    assert json.loads((tmp_path / "report.json").read_text())["test-00"]["conversion"]["written"] == 10


def test_the_same_settings_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        prepared(scenario(replicates={"validation": 1, "test": 1}), tmp_path / name)
    for name in ("platform.xml", "resources.json", "workloads.zip", "report.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_pieces_of_a_trace_are_the_trace_cut_up(tmp_path):
    """So they share no job, and those of the test come last."""
    prepared(from_trace(290, train=2, validation=1, test=2), tmp_path / "pieces")
    prepared(from_trace(5 * 290), tmp_path / "whole")
    pieces, whole = workloads(tmp_path / "pieces"), workloads(tmp_path / "whole")["test-00.json"]
    jobs = [
        job
        for name in ("train-00", "train-01", "validation-00", "test-00", "test-01")
        for job in pieces[f"{name}.json"]["jobs"]
    ]
    assert [(job["res"], job["walltime"]) for job in jobs] == [(job["res"], job["walltime"]) for job in whole["jobs"]]
    assert all(workload["jobs"][0]["subtime"] == 0 for workload in pieces.values())


def test_a_trace_that_ends_too_early_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"292 of 400 jobs.*replicates"):
        prepared(from_trace(400, train=1, validation=1, test=2), tmp_path)


def test_jobs_that_are_left_out_are_counted_in_the_log(tmp_path, caplog):
    workload = part("workload/lublin.yaml")
    workload["lublin"] |= {"processors": 48, "jobs": 40}
    workload["batsim"] |= {"missing_memory": [100_000_000]}  # MB a core: no node has so much
    with pytest.raises(UserError, match=r"too_large 40"):
        prepared(scenario(workload=workload), tmp_path)
    workload["batsim"] |= {"missing_memory": [100, 100_000_000]}
    prepared(scenario(workload=workload), tmp_path)
    assert re.search(r"test-00: (\d+) of 40 jobs taken; \{'too_large': (\d+)\}", caplog.text)
    assert "workload.batsim.infeasible: clip" in caplog.text


def test_scenarios_of_one_platform_and_workload_share_their_inputs():
    here, there = (
        prepare.parts(scenario(name=name, rules=rules)) for name, rules in (("a", ["fcfs"]), ("b", ["easy"]))
    )
    assert here == there and all(entry.shared for entry in here.values())
    other = prepare.parts(scenario(platform=part("platform/alike.yaml")))
    assert other["trim_workload"].values != here["trim_workload"].values  # the work of a job hangs from the mean speed


def test_the_files_that_a_platform_rests_on_count():
    def files(platform):
        return prepare.parts(scenario(platform=platform))["generate_platform"].files

    assert files(part("platform/trio.yaml")) == ()
    shipped = files(part("platform/gaia.yaml"))
    assert "resources/platforms/gaia.json" in shipped and all((TRACE.parents[3] / name).is_file() for name in shipped)
    assert "mine/cluster.json" in files({"file": "mine/cluster.json"})
    assert "mine/nodes.json" in files({"file": "gaia", "libraries": {"nodes": "mine/nodes.json"}})


def test_a_workload_that_is_not_there_is_refused(tmp_path):
    prepared(scenario(), tmp_path)
    with pytest.raises(UserError, match=r"workloads\.zip: .*'test-07'"):
        extract_workload(tmp_path / "workloads.zip", "test-07", tmp_path)
    (tmp_path / "broken.zip").write_bytes(b"PK no")
    with pytest.raises(UserError, match=r"broken\.zip: "):
        extract_workload(tmp_path / "broken.zip", "test-00", tmp_path)


def test_the_problem_part_makes_the_scenario_again():
    settings = scenario(bounded_slowdown_threshold=60.0)
    values = {
        "name": "small",
        "mode": "default",
        "seed": 1,
        **prepare.problem_values(settings),
        "upstream": {"trim_workload": "0"},
    }
    assert prepare.scenario_of(values) == settings.model_copy(update={"rules": ()})
