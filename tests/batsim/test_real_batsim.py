"""The driver of a real Batsim, with a stand-in binary that speaks recorded conversations."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.batsim_cases import FOLDER
from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed, run_pybatsim
from schedlab.batsim.backends.real_batsim import (
    BatsimFailed,
    RealBatsim,
    command_line_options,
)
from schedlab.batsim.errors import SimulationDeadlock
from schedlab.batsim.scheduler_loading import load_scheduler
from schedlab.batsim.simulator.options import Options
from schedlab.config.errors import UserError


@dataclass
class StandIn:
    """A stand-in binary and how it was called."""

    path: Path
    case: Path
    call_file: Path

    def call(self):
        return json.loads(self.call_file.read_text())

    def run(self, folder, options=None, seconds=10.0, scheduler="easyBackfill", **limits):
        case = self.case
        with RealBatsim(
            str(self.path),
            case / "platform.xml",
            [case / "workload.json"],
            options or Options(),
            str(folder / "run"),
            seconds,
        ) as backend:
            return run_pybatsim(backend, load_scheduler(scheduler), **limits)


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    case = FOLDER / "03_easy_backfill_walltimes"
    path = tmp_path / "bin" / "batsim"
    path.parent.mkdir()
    script = Path(__file__).with_name("stand_in_batsim.py")
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("STAND_IN_CASE", str(case))
    monkeypatch.setenv("STAND_IN_CALL", str(tmp_path / "call.json"))
    return StandIn(path, case, tmp_path / "call.json")


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "zombie" not in Path(f"/proc/{pid}/status").read_text() if Path("/proc").exists() else True


def test_a_scheduler_runs_on_a_batsim_process_as_on_the_embedded_simulator(stand_in, tmp_path):
    batsim = stand_in.run(tmp_path / "results")
    assert batsim.nb_jobs_submitted == 60
    assert sorted(file.name for file in (tmp_path / "results").iterdir()) == [
        "run_jobs.csv",
        "run_machine_states.csv",
        "run_schedule.csv",
    ]
    assert (tmp_path / "results" / "run_jobs.csv").read_bytes() == (stand_in.case / "out_jobs.csv").read_bytes()
    assert not is_alive(stand_in.call()["pid"])


def test_the_options_reach_the_binary(stand_in, tmp_path):
    options = Options(
        energy=True,
        events_files=(stand_in.case / "workload.json",),
        roles={"a": "storage"},
        storage_sharing=False,
        forward_unknown_events=True,
        dynamic_jobs=True,
        acknowledge_dynamic_jobs=True,
        profile_reuse=True,
        forward_profiles=True,
        compute_sharing=True,
        mmax=12,
        mmax_workload=True,
        master_host="boss",
        scheduler_config="text",
    )
    stand_in.run(tmp_path, options)
    arguments = stand_in.call()["arguments"]
    assert arguments["s"].startswith("tcp://127.0.0.1:")
    assert (arguments["m"], arguments["mmax"], arguments["sched_cfg"]) == ("boss", "12", "text")
    assert arguments["events"] == str(stand_in.case / "workload.json")
    assert all(value for value in arguments.values()), arguments


def test_by_default_no_option_is_set():
    assert command_line_options(Options()) == ["--disable-schedule-tracing", "-m", "master_host"]


def test_a_network_to_be_ignored_is_refused():
    with pytest.raises(UserError, match="a real Batsim cannot ignore the network"):
        command_line_options(Options(network="ignore"))


def test_a_missing_binary_is_told():
    with pytest.raises(UserError, match=r"no program 'no-such-batsim'.*--backend embedded"):
        RealBatsim("no-such-batsim", "p", ["w"], Options(), "out")


@pytest.mark.parametrize("version", ["v5.0.0", "3.0.0", "2.0"])
def test_a_version_with_another_protocol_is_refused(stand_in, tmp_path, monkeypatch, version):
    monkeypatch.setenv("STAND_IN_VERSION", version)
    with pytest.raises(UserError, match=f"is Batsim {version.removeprefix('v')}, which speaks another protocol"):
        stand_in.run(tmp_path)
    assert not stand_in.call_file.exists()


@pytest.mark.parametrize("version", ["3.1.0", "v4.0.0", "batsim 4.1.0", "v4.2.1", "commit abc"])
def test_a_version_of_the_protocol_is_taken(stand_in, tmp_path, monkeypatch, version):
    monkeypatch.setenv("STAND_IN_VERSION", version)
    assert stand_in.run(tmp_path).nb_jobs_completed > 0


@pytest.mark.parametrize(
    ("mode", "error", "message"),
    [
        ("silent", BatsimFailed, "said nothing for 1 s"),
        ("dies", BatsimFailed, r"(?s)ended with signal SIGABRT in the middle.*Batsim's last words"),
        ("garbage", BatsimFailed, "speaks another protocol: not a JSON message"),
        ("odd_events", BatsimFailed, "speaks another protocol: .*JOB_SUBMITTED"),
        ("deadlock", SimulationDeadlock, "jobs wait"),
        ("fails_at_end", BatsimFailed, "ended with status 3 after the simulation"),
        ("no_files", BatsimFailed, "wrote no output file"),
    ],
)
def test_a_batsim_that_fails_is_told_and_leaves_nothing(stand_in, tmp_path, monkeypatch, mode, error, message):
    monkeypatch.setenv("STAND_IN_MODE", mode)
    with pytest.raises(error, match=message):
        stand_in.run(tmp_path / "results", seconds=1.0)
    assert list((tmp_path / "results").iterdir()) == []
    assert not is_alive(stand_in.call()["pid"])


def test_a_batsim_that_does_not_want_to_end_is_ended_with_its_children(stand_in, tmp_path, monkeypatch):
    monkeypatch.setenv("STAND_IN_MODE", "with_child")
    monkeypatch.setattr("schedlab.batsim.backends.real_batsim.SECONDS_TO_END", 0.3)
    with pytest.raises(BatsimFailed, match="said nothing"):
        stand_in.run(tmp_path, seconds=1.0)
    call = stand_in.call()
    wait_until(lambda: not is_alive(call["pid"]) and not is_alive(call["child"]))


def test_a_scheduler_that_fails_ends_the_batsim_process_too(stand_in, tmp_path):
    file = tmp_path / "raises.py"
    file.write_text("from batsim.batsim import BatsimScheduler\nclass Raises(BatsimScheduler):\n    pass\n")
    with pytest.raises(SchedulerFailed, match="NotImplementedError"):
        stand_in.run(tmp_path, scheduler=str(file))
    assert not is_alive(stand_in.call()["pid"])


def wait_until(holds, seconds=5.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
