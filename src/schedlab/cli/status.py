"""`schedlab status`: how far the last run of the workflow in a directory has come."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.readers import read_json
from schedlab.config.runtime.progress import duration
from schedlab.config.runtime.run_lock import is_held_elsewhere

STATUS, RUN_LOCK = Path(".schedlab/status.json"), Path(".schedlab/run.lock")


def add_status_command(commands: Any) -> None:
    """Add the command to the parser."""
    about = "how far the last run of the workflow in this directory has come"
    parser = commands.add_parser("status", help=about, description=about)
    parser.add_argument("--directory", type=Path, default=Path(), metavar="DIR", help="working directory of the run")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the state of a run; the exit status is 1 where jobs failed or it was stopped. Raises UserError where none
    was started.
    """
    values = state(arguments.directory)
    print(json.dumps(values, indent=1) if arguments.json else text(values))
    return int(bool(values["failed"]) or values["state"] == "stopped")


def state(directory: Path) -> dict[str, Any]:
    """Return the state of the last run: `running`, `finished` or `stopped`, and what the console knew of its jobs."""
    file = directory / STATUS
    if not file.exists():
        remedy = "start one by `snakemake --cores all`, or name its folder by --directory"
        raise UserError("no run was started here", where=str(directory.resolve()), remedy=remedy)
    found = read_json(file, "the state of a run")
    passed = max(0.0, time.time() - found.pop("written"))
    if is_held_elsewhere(directory / RUN_LOCK):
        running = [{**job, "seconds": job["seconds"] + passed} for job in found["running"]]
        left = found["seconds_left"]
        return {"state": "running", **found, "running": running, "seconds_left": left and max(0.0, left - passed)}
    name = "finished" if found["done"] >= found["total"] else "stopped"
    return {"state": name, **found, "running": [], "seconds_left": None}


def text(values: dict[str, Any]) -> str:
    """Return the state as lines."""
    left = values["seconds_left"]
    first = f"{values['state']}: {values['done']} of {values['total']} jobs done"
    lines = [first if left is None else f"{first}, about {duration(left)} left"]
    lines += [f"  running  {job['job']}, {duration(job['seconds'])}" for job in values["running"]]
    lines += [f"  failed   {job['job']}" + "".join(f", see {file}" for file in job["logs"]) for job in values["failed"]]
    if values["state"] == "stopped":
        lines.append("the same command as before goes on from here")
    return "\n".join(lines)
