"""The sub-commands of `schedlab hetero`: HDeepRM's launcher and its tools. Their functions are given by name and
imported when they run.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.config.contract import Subcommands

ROOM = "schedlab.studies.hetero.hdeeprm"
KINDS = "queue_size, utilization, lifecycle, gantt, gantt_no_label, core_bubbles, mem_bubbles, mem_bw_overutilization"


def add_commands(commands: Subcommands) -> None:
    """Add launch, metrics, visual and jobstat; each sets `run` to the name of a function (arguments) -> exit status."""
    about = "run HDeepRM's options.json on the embedded simulator, and write the results into the working directory"
    launch = commands.add_parser("launch", help=about, description=about)
    about = "the same as -a, in the place where HDeepRM 0.2.0 had it"
    launch.add_argument("agent_first", nargs="?", metavar="AGENT.py", help=about)
    launch.add_argument("options", type=Path, metavar="options.json", help="options file of HDeepRM 0.3 or 0.2")
    about = "file of a LEARNING agent, or an example: reinforce, actor_critic"
    launch.add_argument("-a", "--agent", metavar="AGENT.py", help=about)
    launch.add_argument("-im", "--inmodel", type=Path, metavar="IN.pt", help="model to continue from")
    launch.add_argument("-om", "--outmodel", type=Path, metavar="OUT.pt", help="model to write")
    about = "workload of Batsim instead of a trace"
    launch.add_argument("-cw", "--customworkload", type=Path, metavar="CUSTOM.json", help=about)
    about = "episodes, one after the other (default: 1)"
    launch.add_argument("-nr", "--nbruns", type=_count, default=1, metavar="N", help=about)
    about = "folder with your own types: network_types.json, node_types.json, processor_types.json, memory_types.json, "
    about += "each if it exists (default: those in the platform's folder)"
    launch.add_argument("--types", type=Path, metavar="DIR", help=about)
    for what in ("networks", "nodes", "processors"):
        about = f"file with your own types of {what}, before that of --types"
        launch.add_argument(f"--{what}", metavar="JSON", help=about)
    launch.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    about = "to read an agent's file, and for one call of its methods, in s; 0: none (default: 60)"
    launch.add_argument("--agent-limit", type=_seconds, default=60.0, metavar="S", help=about)
    launch.set_defaults(run=f"{ROOM}.launch:run_launch")

    about = "compare two runs by their out_schedule.csv: "
    about += "eight bars each for energy, makespan, slowdown, turnaround, waiting"
    metrics = commands.add_parser("metrics", help=about, description=about)
    metrics.add_argument("first", type=Path, metavar="A/out_schedule.csv")
    metrics.add_argument("second", type=Path, metavar="B/out_schedule.csv")
    metrics.add_argument("-n1", "--name1", metavar="NAME", help="name of the first run (default: its folder)")
    metrics.add_argument("-n2", "--name2", metavar="NAME", help="name of the second run (default: its folder)")
    _add_save(metrics, "metrics.svg")
    metrics.set_defaults(run=f"{ROOM}.figures:run_metrics")

    about = "draw the results of a launch in the working directory"
    visual = commands.add_parser("visual", help=about, description=about)
    visual.add_argument("kind", metavar="KIND", help=f"{KINDS}, losses, rewards or action_preferences")
    _add_save(visual, "KIND.svg")
    visual.set_defaults(run=f"{ROOM}.figures:run_visual")

    about = "a statistic over the jobs of a workload file"
    jobstat = commands.add_parser("jobstat", help=about, description=about)
    jobstat.add_argument("workload", type=Path, metavar="WORKLOAD.json")
    about = "req_time (s), size (cores), mem (MB per core) or mem_bw (GB/s per core)"
    jobstat.add_argument("field", metavar="FIELD", help=about)
    jobstat.add_argument("statistic", metavar="STATISTIC", help="min, max, mean, median, p95 or p99")
    jobstat.set_defaults(run=f"{ROOM}.run_files:run_jobstat")


def _add_save(parser: argparse.ArgumentParser, default: str) -> None:
    about = f"file to write, .svg, .pdf or .png (default: {default})"
    parser.add_argument("-s", "--save", type=Path, metavar="FILE", help=about)


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError
    return seconds
