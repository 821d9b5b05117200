"""The arguments of the sub-commands, whose functions are imported only when they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from schedlab.config.contract import Subcommands
from schedlab.studies.ramp.scenario import BETAS

ROOM = "schedlab.studies.ramp.commands"
DESCRIPTION = """Read, trace or draw a set of graphs and print their numbers as one JSON document: times in the unit
of the files (ms for traced and drawn graphs), sizes in bytes. Errors in files are reported with line and field."""


def add_commands(commands: Subcommands) -> None:
    """Add the commands, each of which names its function (arguments) -> exit status in `run`."""
    about = "simulate a recorded run of the published system again and print it as one JSON document"
    add = _command(commands, "replay", about, "schedlab.studies.ramp.compat.replay:print_replay")
    what = "recorded run (schema ramp-truth/1); its results are not needed"
    add("case", type=Path, metavar="CASE.json", help=what)
    add("--compat", action="store_true", help="mode reference: as published, defects included")
    about = "run a baseline in the published setting and print its episode statistics as one JSON document"
    add = _command(commands, "episode", about, f"{ROOM}.episode:print_episode")
    what = "para_max, para_min, random, sequential, sip_ml_8, fixed_4, ..."
    add("--policy", required=True, metavar="NAME", help=what)
    what = "distribution of beta, a job's limit as a share of its sequential time (default: A)"
    add("--beta", default="A", type=str.upper, choices=sorted(BETAS), help=what)
    add("--seed", type=int, default=0, metavar="K", help="seed of all draws (default: 0)")
    what = "graph files (default: graphs/ of SCHEDLAB_DATA, else the shipped ones)"
    add("--graphs", type=Path, metavar="DIR", help=what)
    what = "time between arrivals, s (default: 1000)"
    add("--interarrival", type=float, default=1000.0, metavar="S", help=what)
    add("--end", type=float, default=1e6, metavar="S", help="length of the episode, s (default: 1e6)")
    what = "unit of the times in graph files (default, as published: s)"
    add("--time-unit", choices=("s", "ms"), default="s", help=what)
    what = "valid actions: degrees with a legal block and enough free workers (default), or those with a free block"
    add("--mask", choices=("degrees", "blocks"), default="degrees", help=what)
    add("--compat", action="store_true", help="mode reference: as published, defects included")
    add("--summary", action="store_true", help="leave out the lists of completed and blocked jobs")
    add("--steps", type=Path, metavar="OUT.parquet", help="write the statistics of each cluster step")
    add("--jobs", type=Path, metavar="OUT.parquet", help="write the outcome of each job")
    about = "graphs of training jobs in numbers, as files, as a picture"
    add = _command(commands, "graphs", about, f"{ROOM}.graphs:print_graphs", DESCRIPTION)
    add("set", metavar="SET", help="a file of conf/graph/, or a folder, archive or file of graphs")
    what = "training steps of the sequential time (default: 1)"
    add("--steps", type=int, default=1, metavar="K", help=what)
    add("--out", type=Path, metavar="FOLDER", help="write the graphs there as PipeDream's text")
    add("--pictures", metavar="PREFIX", help="write PREFIX.svg, .pdf, .png and the caption as PREFIX.txt")
    add("--conf", default="conf", metavar="DIR", help="configuration folder (default: ./conf)")


def _command(commands: Subcommands, name: str, about: str, run: str, description: str = "") -> Callable[..., object]:
    """Add a command that runs the function named `run`; returns the method that adds its arguments."""
    parser = commands.add_parser(name, help=about, description=description or about)
    parser.set_defaults(run=run)
    return parser.add_argument
