"""The sub-commands of `schedlab ramp`."""

from __future__ import annotations

import argparse
import json
import logging
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.files import write_table, write_text
from schedlab.config.readers import option_names
from schedlab.config.records import ConfigurationFolder, RecordCache
from schedlab.config.schema import validate
from schedlab.config.settings import ThemeSettings
from schedlab.figures import save, theme
from schedlab.studies.ramp.compat.published import BETAS, ON_SHIPPED, SHIPPED, published_scenario
from schedlab.studies.ramp.compat.replay import replay
from schedlab.studies.ramp.figures.graphs import drawing_of
from schedlab.studies.ramp.graphs.files import pipedream_text, read_graphs
from schedlab.studies.ramp.graphs.graph import training_graph
from schedlab.studies.ramp.graphs.prepare import find_graphs, make_graphs
from schedlab.studies.ramp.graphs.settings import GraphSettings
from schedlab.studies.ramp.graphs.statistics import statistics_table
from schedlab.studies.ramp.rules import PARAMETRIC, is_possible, rule_named
from schedlab.studies.ramp.simulator.job_tables import job_table, step_table
from schedlab.studies.ramp.simulator.simulation import Simulation, run_episode

if TYPE_CHECKING:
    from schedlab.studies.ramp.graphs.graph import ForwardGraph
    from schedlab.studies.ramp.graphs.settings import GraphSettings

log = logging.getLogger("schedlab.ramp")
GROUP = "graph"
_DESCRIPTION = """Read, trace or draw a set of graphs and print their numbers as one JSON document: times in the unit of the files
(ms where we make them), sizes in bytes. Files that are no graphs are told with their line and field."""


def add_graphs_command(commands: argparse._SubParsersAction) -> None:
    """Add `graphs SET [--steps K] [--out FOLDER] [--pictures PREFIX]` to a parser's sub-commands."""
    parser = commands.add_parser(
        "graphs", help="graphs of training jobs in numbers, as files, as a picture", description=_DESCRIPTION
    )
    parser.add_argument("set", metavar="SET", help="a file of conf/graph/, or a folder, archive or file of graphs")
    parser.add_argument(
        "--steps", type=int, default=1, metavar="K", help="training steps of the sequential time (default: 1)"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write the graphs there as PipeDream's text")
    parser.add_argument(
        "--pictures", metavar="PREFIX", help="write PREFIX.svg, .pdf, .png and the caption as PREFIX.txt"
    )
    parser.add_argument("--conf", default="conf", metavar="DIR", help="configuration folder (default: ./conf)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the numbers of a set of graphs, and write what is asked for. Raises UserError."""
    if not 1 <= arguments.steps < 2**31:
        raise UserError(f"{arguments.steps} training steps", where="--steps", expected="a number from 1 on")
    graphs = _graphs(arguments.set, arguments.conf)
    steps = [training_graph(graph) for graph in graphs]
    if arguments.out:
        _write(graphs, arguments.out)
    if arguments.pictures:
        with theme.applied(ThemeSettings()):
            for path in save.save(drawing_of(steps, f"The graphs of {arguments.set}."), arguments.pictures):
                log.info("wrote %s", path)
    rows = json.loads(statistics_table(steps, arguments.steps).to_json(orient="records", double_precision=15))
    print(json.dumps({row.pop("name"): row for row in rows}, indent=2))
    return 0


def graph_settings(name: str, folder: str) -> GraphSettings:
    """Return conf/graph/<name>.yaml with all it builds on, typed. Raises UserErrors."""
    known = option_names(Path(folder) / GROUP)
    if name not in known:
        remedy = did_you_mean(name, known)
        raise UserError(
            f"there is no set of graphs '{name}'",
            where="SET",
            expected=f"a file of {folder}/{GROUP}, or a path",
            remedy=remedy,
        )
    conf = ConfigurationFolder(Path(folder), "small", RecordCache(None))
    if f"{GROUP}/{name}.yaml" in conf.layout.broken:
        raise UserErrors(conf.errors)
    composed = conf.composer.compose(GROUP, name)
    return validate(GraphSettings, composed.values, composed.locate)


def _graphs(name: str, folder: str) -> tuple[ForwardGraph, ...]:
    place = find_graphs(name)
    a_path = "/" in name or place.suffix or name not in option_names(Path(folder) / GROUP)
    return read_graphs(place) if a_path and place.exists() else make_graphs(graph_settings(name, folder))


def _write(graphs: tuple[ForwardGraph, ...], folder: Path) -> None:
    for graph in graphs:
        try:
            write_text(folder / f"{graph.name}.txt", pipedream_text(graph))
        except OSError as error:
            raise UserError(
                f"cannot be written: {error.strerror}", where=f"--out {folder}", expected="a folder"
            ) from None
        log.info("wrote %s", folder / f"{graph.name}.txt")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the commands, each of which sets `run` to a function (arguments) -> exit status."""
    about = "simulate a recorded run of the published system again and print it as one JSON document"
    parser = commands.add_parser("replay", help=about, description=about)
    parser.add_argument(
        "case", type=Path, metavar="CASE.json", help="recorded run (schema ramp-truth/1); its results are not needed"
    )
    parser.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    parser.set_defaults(run=_replay)
    about = "run a baseline in the published setting and print its episode statistics as one JSON document"
    parser = commands.add_parser("episode", help=about, description=about)
    parser.add_argument(
        "--policy", required=True, metavar="NAME", help="para_max, para_min, random, sequential, sip_ml_8, fixed_4, ..."
    )
    parser.add_argument(
        "--beta",
        default="A",
        type=str.upper,
        choices=sorted(BETAS),
        help="distribution of the acceptable share (default: A)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="K", help="seed of all draws (default: 0)")
    parser.add_argument(
        "--graphs",
        type=Path,
        metavar="DIR",
        help="graph files (default: graphs/ of SCHEDLAB_DATA, else the shipped ones)",
    )
    parser.add_argument(
        "--interarrival", type=float, default=1000.0, metavar="S", help="time between arrivals, s (default: 1000)"
    )
    parser.add_argument("--end", type=float, default=1e6, metavar="S", help="length of the episode, s (default: 1e6)")
    parser.add_argument(
        "--time-unit",
        choices=("s", "ms"),
        default="s",
        help="what a 1 in a graph's times is (default, as published: s)",
    )
    masks = "valid actions: degrees with a legal block and enough free workers (default), or those with a free block"
    parser.add_argument("--mask", choices=("degrees", "blocks"), default="degrees", help=masks)
    parser.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    parser.add_argument("--summary", action="store_true", help="leave out the lists of completed and blocked jobs")
    parser.add_argument("--steps", type=Path, metavar="OUT.parquet", help="write the statistics of each cluster step")
    parser.add_argument("--jobs", type=Path, metavar="OUT.parquet", help="write what became of each job")
    parser.set_defaults(run=_episode)
    add_graphs_command(commands)


def _replay(arguments: argparse.Namespace) -> int:
    document = plain(replay(arguments.case, arguments.compat))
    print(json.dumps(document, allow_nan=False))
    if document["error"] is None:
        return 0
    print(
        f"error: {arguments.case}: {document['error']['message']}", file=sys.stderr
    )  # the document tells what came before
    return 2


def _episode(arguments: argparse.Namespace) -> int:

    document = plain(episode(arguments))
    if arguments.summary:
        document = {key: value for key, value in document.items() if not key.startswith(("job_", "jobs_"))}
    lines = (f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in document.items())
    print("{\n" + ",\n".join(lines) + "\n}")  # a line for each key: a list may hold a thousand jobs
    return 0


def episode(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the document of `ramp episode`. Raises UserError."""
    rule = rule_named(arguments.policy, "--policy")
    for option, value in (
        ("--seed", arguments.seed),
        ("--interarrival", arguments.interarrival),
        ("--end", arguments.end),
    ):
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
    """Raise UserError for fixed_<degree> and sip_ml_<cap> where no block takes so many shards: they would run as
    another, or block all.
    """
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
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
