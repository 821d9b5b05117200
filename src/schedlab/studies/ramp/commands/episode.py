"""`schedlab ramp episode`: one episode of the published setting under a baseline."""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedlab.config.errors import UserError
from schedlab.config.files import check_output_files, write_table
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.graphs.prepare import find_graphs
from schedlab.studies.ramp.rules import PARAMETRIC, is_possible, rule_named
from schedlab.studies.ramp.scenario import ON_SHIPPED, SHIPPED, published_scenario
from schedlab.studies.ramp.simulator.job_tables import job_table, step_table
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

log = logging.getLogger("schedlab.ramp")


def print_episode(arguments: argparse.Namespace) -> int:
    """Print the document of an episode, one key per line."""
    document = plain(episode(arguments))
    if arguments.summary:
        document = {key: value for key, value in document.items() if not key.startswith(("job_", "jobs_"))}
    lines = (f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in document.items())
    print("{\n" + ",\n".join(lines) + "\n}")  # a line for each key: a list may hold a thousand jobs
    return 0


def episode(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the document of `ramp episode`. Raises UserError."""
    check_output_files({"--steps": arguments.steps, "--jobs": arguments.jobs})
    rule = rule_named(arguments.policy, "--policy")
    for option in ("--seed", "--interarrival", "--end"):
        value = getattr(arguments, option[2:])
        if not 0 <= value < 2**63 or (value == 0 and option != "--seed"):
            least = "0 or more" if option == "--seed" else "a finite number above 0"
            raise UserError(f"{value} is out of range", where=option, expected=f"{least} and below 9.2e18")
    shipped = find_graphs(SHIPPED)
    folder = arguments.graphs or _graphs_of_data() or shipped
    on_shipped = folder.resolve() == shipped.resolve() and not arguments.compat
    management = (ON_SHIPPED["management"] if on_shipped else {}) | {"mask": arguments.mask}
    jobs = {"interarrival": {"kind": "fixed", "value": arguments.interarrival}, "time_unit": arguments.time_unit}
    scenario = published_scenario(
        arguments.beta, arguments.compat, jobs=jobs, episodes={"end": arguments.end}, management=management
    )
    graphs = read_graphs(folder)
    simulation = Simulation(scenario, graphs)
    _require_degree(arguments.policy, simulation.degrees)
    found = run_episode(simulation, rule, arguments.seed)
    if arguments.steps is not None:
        write_table(arguments.steps, step_table(simulation.cluster))
    if arguments.jobs is not None:
        write_table(arguments.jobs, job_table(simulation.cluster, simulation.decided))
    names = [graph.name for graph in graphs]  # not the folder, which is another on each machine
    return {"policy": arguments.policy, "beta": arguments.beta, "seed": arguments.seed, "graphs": names} | found


def _require_degree(policy: str, degrees: list[int]) -> None:
    """Raise UserError for fixed_<degree> and sip_ml_<cap> where no block has this size."""
    head, _, degree = policy.lower().rpartition("_")
    if head not in PARAMETRIC or is_possible(head, int(degree), degrees):
        return
    what = f"no job can be split {degree} ways on this cluster"
    raise UserError(what, where="--policy", expected=f"one of {', '.join(f'{head}_{number}' for number in degrees)}")


def _graphs_of_data() -> Path | None:
    data = os.environ.get("SCHEDLAB_DATA")
    if not data:
        return None
    folder = Path(data, "graphs")
    if folder.is_dir():
        return folder
    log.warning("SCHEDLAB_DATA has no folder %s; the shipped graphs are taken", folder)
    return None


def plain(value: Any) -> Any:
    """Return a value as JSON can hold it: infinities as the string "inf", numpy's numbers as Python's."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
