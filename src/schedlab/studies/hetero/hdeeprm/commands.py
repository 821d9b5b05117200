"""The sub-commands of `schedlab hetero`: HDeepRM's launcher and its tools. What a command needs is imported when it
runs.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.batsim.errors import ProtocolError, SimulationDeadlock
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.runtime.termination import STATUS, Terminated, unwinding
from schedlab.config.settings import ThemeSettings
from schedlab.figures import save, theme
from schedlab.studies.hetero.hdeeprm.figures import COLUMNS, KINDS, draw_comparison
from schedlab.studies.hetero.hdeeprm.launch import Launch, launch
from schedlab.studies.hetero.hdeeprm.run_files import job_statistic, read_schedule

if TYPE_CHECKING:
    from schedlab.config.contract import Drawing

log = logging.getLogger("schedlab.hetero.launch")
ENDINGS = (".svg", ".pdf", ".png")


def add_tool_commands(commands: argparse._SubParsersAction) -> None:
    """Add metrics, visual and jobstat."""
    about = "two runs side by side, from their out_schedule.csv: eight bars each for energy, makespan, slowdown, turnaround, waiting"
    metrics = commands.add_parser("metrics", help=about, description=about)
    metrics.add_argument("first", type=Path, metavar="A/out_schedule.csv")
    metrics.add_argument("second", type=Path, metavar="B/out_schedule.csv")
    metrics.add_argument("-n1", "--name1", metavar="NAME", help="what the first run is called (default: its folder)")
    metrics.add_argument("-n2", "--name2", metavar="NAME", help="what the second run is called (default: its folder)")
    _add_save(metrics, "metrics.svg")
    metrics.set_defaults(run=_metrics)

    about = "a picture of what a launch left in the working directory"
    visual = commands.add_parser("visual", help=about, description=about)
    kinds = "queue_size, utilization, lifecycle, gantt, gantt_no_label, core_bubbles, mem_bubbles, mem_bw_overutilization, losses, rewards"
    visual.add_argument("kind", metavar="KIND", help=f"{kinds} or action_preferences")
    _add_save(visual, "KIND.svg")
    visual.set_defaults(run=_visual)

    about = "a statistic over the jobs of a workload file"
    jobstat = commands.add_parser("jobstat", help=about, description=about)
    jobstat.add_argument("workload", type=Path, metavar="WORKLOAD.json")
    jobstat.add_argument(
        "field", metavar="FIELD", help="req_time (s), size (cores), mem (MB per core) or mem_bw (GB/s per core)"
    )
    jobstat.add_argument("statistic", metavar="STATISTIC", help="min, max, mean, median, p95 or p99")
    jobstat.set_defaults(run=_jobstat)


def _add_save(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "-s", "--save", type=Path, metavar="FILE", help=f"file to write, .svg, .pdf or .png (default: {default})"
    )


def _metrics(arguments: argparse.Namespace) -> int:
    paths = (arguments.first, arguments.second)
    target = _target(arguments.save, "metrics")
    rows = [read_schedule(path, list(COLUMNS)) for path in paths]
    folders = [path.resolve().parent.name for path in paths]
    defaults = folders if folders[0] != folders[1] else ["first", "second"]
    names = [arguments.name1 or defaults[0], arguments.name2 or defaults[1]]
    _draw(lambda: draw_comparison(rows, names), target)
    return 0


def _visual(arguments: argparse.Namespace) -> int:
    if arguments.kind not in KINDS:
        raise UserError(
            f"unknown picture '{arguments.kind}'", where="visual", remedy=did_you_mean(arguments.kind, KINDS)
        )
    target = _target(arguments.save, arguments.kind)
    _draw(lambda: KINDS[arguments.kind](Path()), target)
    return 0


def _target(save: Path | None, name: str) -> Path:
    """The file to write. Raises UserError for an ending that is no form of a picture."""
    path = save or Path(f"{name}.svg")
    if not path.suffix:
        path = path.with_name(f"{path.name}.svg")
    if path.suffix not in ENDINGS:
        raise UserError(
            f"'{path}' has the ending {path.suffix}", where="-s", expected="a name that ends in " + ", ".join(ENDINGS)
        )
    return path


def _draw(draw: Callable[[], Drawing], target: Path) -> None:
    """Draw in the house's look, write the file, print what is seen."""
    with theme.applied(ThemeSettings()):
        drawing = draw()
        save.save_as(drawing, [target])
    print(drawing.caption)
    log.info("wrote %s", target)


def _jobstat(arguments: argparse.Namespace) -> int:
    print(f"{job_statistic(arguments.workload, arguments.field, arguments.statistic):.12g}")
    return 0


LAUNCH = "run HDeepRM's options.json on the embedded simulator; what comes out is written into the working directory"


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add launch, metrics, visual and jobstat; each sets `run` to a function (arguments) -> exit status."""
    _add_launch(commands)
    add_tool_commands(commands)


def _add_launch(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("launch", help=LAUNCH, description=LAUNCH)
    parser.add_argument("options", type=Path, metavar="options.json", help="in the form of HDeepRM 0.3 or 0.2")
    parser.add_argument(
        "-a", "--agent", metavar="AGENT.py", help="file of a LEARNING agent, or an example: reinforce, actor_critic"
    )
    parser.add_argument("-im", "--inmodel", type=Path, metavar="IN.pt", help="model to go on from")
    parser.add_argument("-om", "--outmodel", type=Path, metavar="OUT.pt", help="model to write")
    parser.add_argument(
        "-cw", "--customworkload", type=Path, metavar="CUSTOM.json", help="workload of Batsim instead of a trace"
    )
    parser.add_argument(
        "-nr", "--nbruns", type=_count, default=1, metavar="N", help="episodes, one after the other (default: 1)"
    )
    parser.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    limit = "to read an agent's file, and for one call of its methods, in s; 0: none (default: 60)"
    parser.add_argument("--agent-limit", type=_seconds, default=60.0, metavar="S", help=limit)
    parser.set_defaults(run=_launch)


def _launch(arguments: argparse.Namespace) -> int:
    given = Launch(
        arguments.options,
        arguments.agent,
        arguments.inmodel,
        arguments.outmodel,
        arguments.customworkload,
        arguments.nbruns,
        arguments.compat,
        arguments.agent_limit or None,
    )
    try:
        with unwinding():
            for finished in launch(given, Path.cwd()):
                loss = "" if finished.loss is None else f", loss {finished.loss:.6g}"
                scores = finished.scores
                said = f"makespan {scores['makespan']:.6f} s, energy {scores['consumed_joules']:.3f} J, rewards {finished.reward:.6g}{loss}"
                print(f"episode {finished.number}: {said}", flush=True)
    except (ProtocolError, SimulationDeadlock, *_agent_failures()) as failure:
        print("\n".join(f"error: {line}" for line in str(failure).splitlines()), file=sys.stderr)
        print(
            "finished episodes are kept; of the one that failed there are partial_*.csv and insights.log",
            file=sys.stderr,
        )
        return 1
    except Terminated:
        return STATUS
    log.info("wrote out_jobs.csv, out_schedule.csv and others")
    return 0


def _agent_failures() -> tuple[type[Exception], ...]:
    """AgentFailed, where an agent was loaded at all: its module imports torch."""
    module = sys.modules.get("schedlab.studies.hetero.hdeeprm.user_agent")
    return (module.AgentFailed,) if module else ()


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise ValueError
    return seconds
