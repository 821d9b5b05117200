"""Short runs of the same script, data and machine are measured once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from schedlab.studies.cloud.live.baseline import measure
from schedlab.studies.cloud.live.run import LiveRequest, LiveRun
from schedlab.studies.cloud.model.allocation import Allocation, ResourceConfig
from schedlab.studies.cloud.optimize import reuse
from schedlab.studies.cloud.optimize.reuse import LOG, MEASUREMENT, Measuring, key_of

MOST = ResourceConfig(gpu_count_min=0, gpu_count_max=0, cpu_count_min=1, cpu_count_max=2, memory_min=4, memory_max=4)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of runs, each of which takes as many seconds as runs came before it; one core breaks its limit."""
    folders: list[Path] = []

    def run_script(request: LiveRequest, folder: Path) -> LiveRun:
        folders.append(folder)
        folder.mkdir(parents=True)
        (folder / "checkpoint").write_text("weights")
        table = pd.DataFrame({"epoch_time": [1.0, 0.5], "throughput": [10.0, 20.0], "batch_size": 8, "dataset": "x"})
        how = "done" if request.allocation.cpu_count > 1 else "memory"
        return LiveRun(request, how, table, float(len(folders)), 0.25, folder / "checkpoint", "", folder)

    monkeypatch.setattr(reuse, "run_script", run_script)
    return folders


@pytest.fixture
def request_of(tmp_path: Path) -> LiveRequest:
    script = tmp_path / "code/train.py"
    script.parent.mkdir()
    script.write_text("import helper\n")
    (script.parent / "helper.py").write_text("size = 1\n")
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.bin").write_bytes(b"1")
    return LiveRequest(script, Allocation(0, 2, 4), 5, prices=MOST, dataset_path=data)


def measured(request: LiveRequest, work: Path, number: int, again: bool = False) -> tuple[list[LiveRun], Measuring]:
    measuring = Measuring(work, again)
    samples, probes = measure(request, 2, 2, False, work / f"{number:03d}/runs", measuring)
    return [*samples, *probes], measuring


def test_a_second_call_takes_the_runs_of_the_first(ran, request_of, tmp_path):
    first, measuring = measured(request_of, tmp_path / "work", 1)
    assert len(ran) == 3 and len(first) == 2 and measuring.reused == []  # the probe on one core is left out
    second, measuring = measured(request_of, tmp_path / "work", 2)
    assert len(ran) == 4 and [run.folder for run in measuring.reused] == [run.folder for run in first]
    for old, new in zip(first, second, strict=True):
        assert new.table.equals(old.table) and (new.seconds, new.overhead) == (old.seconds, old.overhead)
        assert new.checkpoint == old.checkpoint and new.request == old.request
    measured(request_of, tmp_path / "work", 3, again=True)
    assert len(ran) == 7


def test_a_change_of_script_neighbour_data_or_allocation_is_measured(request_of, monkeypatch):
    keys = {key_of(request_of)}
    assert key_of(replace(request_of)) in keys
    for change in (
        lambda: request_of.script.write_text("import helper, os\n"),
        lambda: (request_of.script.parent / "helper.py").write_text("size = 2\n"),
        lambda: (request_of.dataset_path / "b.bin").write_bytes(b"2"),
    ):
        change()
        keys.add(key_of(request_of))
    for values in ({"allocation": Allocation(0, 1, 4)}, {"batch": 16}, {"seed": 1}, {"command": ("python", "x.py")}):
        keys.add(key_of(replace(request_of, **values)))
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    keys.add(key_of(request_of))
    assert len(keys) == 9


@pytest.mark.parametrize("damage", ["table", "values", "checkpoint"])
def test_what_is_damaged_or_gone_is_measured_again(ran, request_of, tmp_path, damage):
    (run, *_), _ = measured(request_of, tmp_path / "work", 1)
    if damage == "table":
        (run.folder / LOG).write_bytes(b"no table")
    elif damage == "values":
        (run.folder / MEASUREMENT).write_text("{")
    else:
        run.checkpoint.unlink()
    _, measuring = measured(request_of, tmp_path / "work", 2)
    assert len(measuring.reused) == 1 and len(ran) == 5
