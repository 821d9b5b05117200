"""The embedded simulator and a Batsim binary on random inputs; without a binary, on a stand-in and on recorded runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from conformance.batsim_cases import CASES, FOLDER, replay
from conformance.differential import Deviation, binary, compare, deviations, draw
from schedlab.batsim.running import Inputs
from schedlab.config.errors import UserError

BINARY = binary()
needs_binary = pytest.mark.skipif(
    BINARY is None, reason="no Batsim binary: name one of Batsim 3.1 to 4.2 in SCHEDLAB_BATSIM, or put it on PATH"
)
STAND_IN = """#!/bin/sh
case "$*" in
--version) echo v4.2.1 ;;
*) exec {python} -c 'import sys; from schedlab.cli.main import batsim; sys.exit(batsim())' "$@" {more} ;;
esac
"""


def check(found: list[Deviation]) -> None:
    """Print all deviations; fail where the cause of one is unknown."""
    print(*found, sep="\n")
    assert not [str(deviation) for deviation in found if not deviation.cause]


@needs_binary
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_inputs_on_a_batsim_binary(seed: int, tmp_path: Path) -> None:
    inputs, scheduler = draw(seed, tmp_path)
    check(compare(inputs, scheduler, str(BINARY)))


@needs_binary
@pytest.mark.parametrize("case", ["01_delay_fcfs", "03_easy_backfill_walltimes"])
def test_recorded_inputs_on_a_batsim_binary(case: str, tmp_path: Path) -> None:
    folder = FOLDER / case
    scheduler = json.loads((folder / "case.json").read_text())["scheduler"]
    inputs = Inputs(folder / "platform.xml", (folder / "workload.json",), str(tmp_path / "ours"))
    check(compare(inputs, scheduler, str(BINARY)))
    check(deviations(tmp_path / "other", folder / "out"))


def stand_in(folder: Path, more: str = "") -> str:
    """A program that passes for a Batsim and is our command in a process of its own."""
    path = folder / "batsim"
    path.write_text(STAND_IN.format(python=sys.executable, more=more))
    path.chmod(0o755)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_inputs_on_our_command_in_the_place_of_a_binary(seed: int, tmp_path: Path) -> None:
    inputs, scheduler = draw(seed, tmp_path)
    assert compare(inputs, scheduler, stand_in(tmp_path)) == []


@pytest.mark.slow
def test_a_simulator_that_differs_is_found_out(tmp_path: Path) -> None:
    """Here one that uses one host only."""
    inputs, scheduler = draw(3, tmp_path)
    found = compare(inputs, scheduler, stand_in(tmp_path, "--mmax 1"))
    assert any(not deviation.cause and deviation.place.startswith("jobs, w0!") for deviation in found)


@pytest.mark.parametrize("name", [case.name for case in CASES if (case / "out_jobs.csv").exists()])
def test_recorded_runs_show_no_deviation(name: str, tmp_path: Path) -> None:
    case = FOLDER / name
    replay(case, tmp_path / "out")
    assert deviations(tmp_path / "out", case / "out") == []


def test_a_binary_that_is_named_and_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCHEDLAB_BATSIM", "no-such-batsim")
    with pytest.raises(UserError, match="no-such-batsim"):
        binary()


@pytest.mark.parametrize(
    ("ours", "other", "places"),
    [
        ("3.000000", "3.000001", []),
        ("3.000000", "3.001000", ["jobs, w0!1, finish_time"]),
        ("3.000000", "4.000000", ["jobs, w0!1, finish_time"]),
        ("3.000000", "", ["jobs, w0!1, finish_time"]),
    ],
)
def test_values_are_compared_with_their_tolerance(ours: str, other: str, places: list[str], tmp_path: Path) -> None:
    for prefix, value in (("a", ours), ("b", other)):
        (tmp_path / f"{prefix}_jobs.csv").write_text(f"job_id,workload_name,finish_time\n1,w0,{value}\n")
        (tmp_path / f"{prefix}_schedule.csv").write_text("makespan,nb_jobs\n3.0,1\n")
    found = deviations(tmp_path / "a", tmp_path / "b")
    assert [deviation.place for deviation in found] == places
    assert [bool(deviation.cause) for deviation in found] == ([other == "3.001000"] if places else [])
