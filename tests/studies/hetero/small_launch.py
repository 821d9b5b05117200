"""Options files of HDeepRM, agents and launches in a folder of their own."""

from __future__ import annotations

import csv
import json
import textwrap
from pathlib import Path
from typing import Any

from small_hetero import SELECTION

from schedlab.cli.main import main

LEARN = {"type": "LEARNING", "run": "train", "hidden": 16, "lr": 0.005, "gamma": 0.99}


def options(agent: dict[str, Any] | None = None, **env: Any) -> dict[str, Any]:
    """The thesis' learning case in the form of version 0.3; keywords change `env`, None leaves a key out."""
    chosen: list[dict[str, list[str]]] = []
    for job, core in (pair.split("-") for pair in SELECTION):
        if chosen and job in chosen[-1]:
            chosen[-1][job].append(core)
        else:
            chosen.append({job: [core]})
    whole = {
        "objective": "makespan",
        "actions": {"selection": chosen, "void": False},
        "observation": "minimal",
        "queue_sensitivity": 0.05,
    }
    return {
        "seed": 19021285,
        "nb_resources": 4,
        "nb_jobs": 2,
        "workload_file_path": "",
        "platform_file_path": "learning",
        "pybatsim": {
            "log_level": "WARNING",
            "env": {key: value for key, value in (whole | env).items() if value is not None},
            "agent": dict(LEARN if agent is None else agent),
        },
    }


def pair(name: str, **env: Any) -> dict[str, Any]:
    """A CLASSIC agent in the form of version 0.2."""
    return options({"type": "CLASSIC", "policy_pair": name}, actions=None, **env)


def write_case(
    folder: Path,
    values: dict[str, Any],
    jobs: list[dict[str, Any]] | None = None,
    profile: dict[str, Any] | None = None,
) -> None:
    """Write options.json and custom.json (two jobs that conflict, unless other ones are given) into a folder."""
    whole = {"type": "parallel_homogeneous", "com": 0, "req_time": 5, "mem": 8000, "mem_bw": 24} | (profile or {})
    jobs = jobs or [{}, {}]
    listed = [{"id": number, "subtime": 0, "res": 1, "profile": "p"} | job for number, job in enumerate(jobs)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(values))
    (folder / "custom.json").write_text(json.dumps({"nb_res": 4, "jobs": listed, "profiles": {"p": whole}}))


def run_launch(*arguments: str) -> int:
    """`schedlab hetero launch options.json -cw custom.json ...` in the working directory."""
    return main(["hetero", "launch", "options.json", "-cw", "custom.json", *arguments])


def schedule(folder: Path = Path()) -> dict[str, float]:
    """The row of out_schedule.csv by column."""
    with (folder / "out_schedule.csv").open() as file:
        row = next(csv.DictReader(file))
    return {name: float(value) for name, value in row.items() if name != "batsim_version"}


def numbers(path: str) -> list[float]:
    """The numbers in a log."""
    return [float(line) for line in Path(path).read_text().splitlines()]


def write_agent(text: str, name: str = "mine.py") -> str:
    """Write an agent's file; returns its name."""
    Path(name).write_text(textwrap.dedent(text))
    return name


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of all files in a folder by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
