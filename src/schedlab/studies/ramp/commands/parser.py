"""The arguments of the sub-commands; what they run is imported once it is run."""

from __future__ import annotations

from pathlib import Path

from schedlab.config.contract import Subcommands
from schedlab.studies.ramp.scenario import BETAS

ROOM = "schedlab.studies.ramp.commands"
DESCRIPTION = """Read, trace or draw a set of graphs and print their numbers as one JSON document: times in the unit
of the files (ms where we make them), sizes in bytes. Files that are no graphs are told with their line and field."""


def add_commands(commands: Subcommands) -> None:
    """Add the commands, each of which names its function (arguments) -> exit status in `run`."""
    about = "simulate a recorded run of the published system again and print it as one JSON document"
    parser = commands.add_parser("replay", help=about, description=about)
    parser.add_argument(
        "case", type=Path, metavar="CASE.json", help="recorded run (schema ramp-truth/1); its results are not needed"
    )
    parser.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    parser.set_defaults(run="schedlab.studies.ramp.compat.replay:print_replay")
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
    parser.set_defaults(run=f"{ROOM}.episode:print_episode")
    _add_graphs_command(commands)


def _add_graphs_command(commands: Subcommands) -> None:
    parser = commands.add_parser(
        "graphs", help="graphs of training jobs in numbers, as files, as a picture", description=DESCRIPTION
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
    parser.set_defaults(run=f"{ROOM}.graphs:print_graphs")
