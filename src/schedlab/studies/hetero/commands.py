"""The sub-commands of `schedlab hetero`: HDeepRM's launcher and its tools. What a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from schedlab.config.termination import STATUS, Terminated, unwinding
from schedlab.studies.hetero.commands_tools import add_tool_commands

log = logging.getLogger("schedlab.hetero.launch")
LAUNCH = "run HDeepRM's options.json on the embedded simulator; what comes out is written into the working directory"


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add launch, metrics, visual and jobstat; each sets `run` to a function (arguments) -> exit status."""
    _add_launch(commands)
    add_tool_commands(commands)


def _add_launch(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("launch", help=LAUNCH, description=LAUNCH)
    parser.add_argument("options", type=Path, metavar="options.json", help="in the form of HDeepRM 0.3 or 0.2")
    parser.add_argument("-a", "--agent", metavar="AGENT.py", help="file of a LEARNING agent, or an example: reinforce, actor_critic")
    parser.add_argument("-im", "--inmodel", type=Path, metavar="IN.pt", help="model to go on from")
    parser.add_argument("-om", "--outmodel", type=Path, metavar="OUT.pt", help="model to write")
    parser.add_argument("-cw", "--customworkload", type=Path, metavar="CUSTOM.json", help="workload of Batsim instead of a trace")
    parser.add_argument("-nr", "--nbruns", type=_count, default=1, metavar="N", help="episodes, one after the other (default: 1)")
    parser.add_argument("--compat", action="store_true", help="mode reference: as published, defects included")
    limit = "to read an agent's file, and for one call of its methods, in s; 0: none (default: 60)"
    parser.add_argument("--agent-limit", type=_seconds, default=60.0, metavar="S", help=limit)
    parser.set_defaults(run=_launch)


def _launch(arguments: argparse.Namespace) -> int:
    from schedlab.batsim.errors import ProtocolError, SimulationDeadlock
    from schedlab.studies.hetero.launch import Launch, launch

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
        print("finished episodes are kept; of the one that failed there are partial_*.csv and insights.log", file=sys.stderr)
        return 1
    except Terminated:
        return STATUS
    log.info("wrote out_jobs.csv, out_schedule.csv and others")
    return 0


def _agent_failures() -> tuple[type[Exception], ...]:
    """AgentFailed, where an agent was loaded at all: its module imports torch."""
    module = sys.modules.get("schedlab.studies.hetero.user_agent")
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
