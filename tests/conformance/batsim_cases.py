"""Recorded runs of Batsim 4.2.1 (tests/data/batsim): their options, their conversations, and how to replay them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from schedlab.batsim.files.outputs import Outputs
from schedlab.batsim.files.workload import read_workload
from schedlab.batsim.simulator.options import Options
from schedlab.batsim.simulator.simulation import Simulation
from schedlab.platforms.batsim_xml import read_platform

FOLDER = Path(__file__).resolve().parent.parent / "data" / "batsim"
CASES = sorted(path.parent for path in FOLDER.glob("*/case.json"))
_FLAGS = {
    "-E": "energy",
    "--enable-compute-sharing": "compute_sharing",
    "--enable-dynamic-jobs": "dynamic_jobs",
    "--acknowledge-dynamic-jobs": "acknowledge_dynamic_jobs",
    "--enable-profile-reuse": "profile_reuse",
    "--forward-unknown-events": "forward_unknown_events",
}


def options_of(case: Path) -> Options:
    """Return the options of a recorded run, read from its Batsim arguments."""
    options = Options(control_latency=True)
    arguments = iter(json.loads((case / "case.json").read_text())["batsim_args"])
    for argument in arguments:
        change = {"events_files": (case / next(arguments),)} if argument == "--events" else {_FLAGS[argument]: True}
        options = replace(options, **change)
    return options


def conversation(case: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Return what Batsim said and what the scheduler answered, message by message."""
    lines = [json.loads(line) for line in (case / "protocol.jsonl").read_text().splitlines()]
    assert [line["dir"] for line in lines] == ["batsim->sched", "sched->batsim"] * (len(lines) // 2)
    return ((said["msg"], answered["msg"]) for said, answered in zip(lines[::2], lines[1::2], strict=True))


def simulation_of(case: Path, outputs: Outputs | None = None, **changes: Any) -> Simulation:
    """Return the embedded simulator on the inputs of a recorded run."""
    workloads = [read_workload(path, f"w{index}") for index, path in enumerate(sorted(case.glob("workload*.json")))]
    return Simulation(read_platform(case / "platform.xml"), workloads, replace(options_of(case), **changes), outputs)


def replay(case: Path, prefix: Path | None = None) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Answer as the recorded scheduler did; return (ours, Batsim's) messages. The simulation must end where Batsim's
    did.
    """
    messages = []
    with nullcontext() if prefix is None else Outputs(prefix) as outputs:
        simulation = simulation_of(case, outputs)
        for said, answered in conversation(case):
            ours = simulation.next_message()
            assert ours is not None, f"Batsim went on at {said['now']}"
            messages.append((ours, said))
            simulation.answer(answered)
        assert simulation.next_message() is None
    return messages


def read_output(prefix: Path, name: str) -> pd.DataFrame:
    """Return an output file; empty cells stay empty texts."""
    return pd.read_csv(f"{prefix}_{name}.csv", keep_default_na=False)
