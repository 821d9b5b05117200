"""`schedlab sim`: runs a scheduler with the embedded simulator or a real Batsim, or lets the simulator wait at a
socket.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.cli.options import time_limit
from schedlab.config.contract import Subcommands
from schedlab.config.errors import UserError
from schedlab.termination import STATUS, Terminated, unwinding

if TYPE_CHECKING:
    from schedlab.batsim.running import Inputs

log = logging.getLogger(__name__)
SUMMARY = (
    ("jobs", "nb_jobs"),
    ("finished", "nb_jobs_finished"),
    ("successful", "nb_jobs_success"),
    ("killed", "nb_jobs_killed"),
    ("rejected", "nb_jobs_rejected"),
    ("makespan", "makespan"),
    ("mean_waiting_time", "mean_waiting_time"),
    ("max_waiting_time", "max_waiting_time"),
    ("mean_turnaround_time", "mean_turnaround_time"),
    ("mean_slowdown", "mean_slowdown"),
)


def add_sim_commands(groups: Subcommands) -> Subcommands:
    """Add `schedlab sim` with its commands `run` and `serve`; return the object to which more commands can be added."""
    summary = "simulate batch queues as Batsim does: run, serve, batsim"
    sim = groups.add_parser("sim", help=summary, description=summary)
    commands = sim.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run a scheduler on a workload and a platform")
    _add_inputs(run)
    run.add_argument(
        "--scheduler", required=True, metavar="NAME", help="one of ours, of PyBatsim's package, or FILE.py[:CLASS]"
    )
    run.add_argument("--options", default="{}", metavar="JSON", help="the scheduler's options, a JSON object")
    run.add_argument(
        "--backend",
        choices=("embedded", "batsim"),
        default="embedded",
        help="embedded simulator (default) or a real Batsim",
    )
    run.add_argument(
        "--batsim", default="batsim", metavar="FILE", help="the binary for --backend batsim (default: batsim on PATH)"
    )
    run.add_argument(
        "--simulator-limit",
        type=time_limit,
        default=60.0,
        metavar="S",
        help="time limit for each message of a real Batsim, in s; 0: none",
    )
    run.add_argument("--quiet", action="store_true", help="discard the scheduler's output and logs")
    run.add_argument(
        "--traceback", action="store_true", help="if the scheduler raises an error, show the calls that led to it"
    )
    run.set_defaults(run=_run)

    serve = commands.add_parser("serve", help="connect the simulator to a scheduler in any language by a ZeroMQ socket")
    _add_inputs(serve)
    serve.add_argument(
        "--endpoint",
        default="tcp://localhost:28000",
        help="where the scheduler binds its REP socket (default: %(default)s)",
    )
    serve.add_argument(
        "--bind", action="store_true", help="bind the endpoint here, and let the scheduler connect its REP socket to it"
    )
    serve.add_argument("--anywhere", action="store_true", help="allow an endpoint that other machines can reach")
    serve.set_defaults(run=_serve, traceback=False)
    return commands


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-w", "--workload", action="append", required=True, metavar="FILE", help="workload in JSON; may be repeated"
    )
    parser.add_argument("-p", "--platform", required=True, metavar="FILE", help="platform in XML")
    parser.add_argument(
        "--export", default="out", metavar="PREFIX", help="writes PREFIX_jobs.csv and so on (default: out)"
    )
    parser.add_argument("--messages", metavar="FILE", help="write all messages to this file, one JSON object per line")
    parser.add_argument("--energy", action="store_true", help="power states and energy, with their output files")
    parser.add_argument(
        "--events", action="append", default=[], metavar="FILE", help="external events, one JSON object per line"
    )
    parser.add_argument(
        "--forward-unknown-events", action="store_true", help="pass external events of unknown types to the scheduler"
    )
    parser.add_argument("--dynamic-jobs", action="store_true", help="the scheduler may register jobs and profiles")
    parser.add_argument("--ack-dynamic-jobs", action="store_true", help="answer each registration by JOB_SUBMITTED")
    parser.add_argument(
        "--profile-reuse",
        action="store_true",
        help="keep profiles after their last job has ended, for later dynamic jobs",
    )
    parser.add_argument("--forward-profiles", action="store_true", help="send the profile with each submission")
    parser.add_argument("--compute-sharing", action="store_true", help="allow several jobs on one host")
    parser.add_argument(
        "--mmax", type=_hosts, default=0, metavar="N", help="use the first N compute hosts only; 0: all (default)"
    )
    parser.add_argument(
        "--mmax-workload", action="store_true", help="use as many compute hosts as the workloads' largest nb_res"
    )
    parser.add_argument(
        "--master-host",
        default="master_host",
        metavar="NAME",
        help="the host that computes nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--network", choices=("simulate", "ignore"), default="simulate", help="ignore: communication takes no time"
    )
    parser.add_argument(
        "--control-latency", action="store_true", help="delay messages about ended jobs by the network's latency"
    )
    parser.add_argument(
        "--scheduler-limit",
        type=time_limit,
        default=60.0,
        metavar="S",
        help="time limit for each answer, in s; 0: none (default: 60)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from schedlab.batsim.running import Limits, simulate

    options = _scheduler_options(arguments.options)

    def work() -> dict[str, float]:
        with _scheduler_output(arguments.quiet):
            return simulate(
                _inputs(arguments),
                arguments.scheduler,
                options,
                backend=arguments.backend,
                binary=arguments.batsim,
                messages=arguments.messages,
                limits=Limits(arguments.scheduler_limit, arguments.simulator_limit),
            )

    return _summarised(work, arguments)


@contextlib.contextmanager
def _scheduler_output(quiet: bool) -> Iterator[None]:
    """Redirect the output of a scheduler to standard error, because our results are printed to standard output. quiet:
    discard it, and standard error as well.
    """
    with contextlib.ExitStack() as stack:
        if quiet:
            nowhere = stack.enter_context(Path(os.devnull).open("w"))
            stack.enter_context(contextlib.redirect_stderr(nowhere))
        stack.enter_context(contextlib.redirect_stdout(nowhere if quiet else sys.stderr))
        yield


def _serve(arguments: argparse.Namespace) -> int:
    from schedlab.batsim.backends.backend import recorded
    from schedlab.batsim.backends.json_socket import JsonSocket, serve
    from schedlab.batsim.running import open_backend, read_summary, warn_of

    def work() -> dict[str, float]:
        with (
            open_backend("embedded", _inputs(arguments)) as simulation,
            JsonSocket("REQ", arguments.endpoint, bind=arguments.bind, anywhere=arguments.anywhere) as socket,
            recorded(simulation, arguments.messages) as conversation,
        ):
            log.info(
                "%s %s",
                "waiting for a scheduler to connect to" if arguments.bind else "waiting for a scheduler at",
                socket.endpoint,
            )
            serve(conversation, socket, arguments.scheduler_limit)
        row = read_summary(arguments.export)
        warn_of(row, simulation)
        return row

    return _summarised(work, arguments)


def _summarised(work: Callable[[], dict[str, float]], arguments: argparse.Namespace) -> int:
    """Do the work and print its summary; return the exit status."""
    row: dict[str, float] = {}
    if status := attempt(lambda: row.update(work()), arguments.traceback):
        return status
    log.info(
        "wrote %s_jobs.csv, %s_schedule.csv and others; below, times in s, energy in J",
        arguments.export,
        arguments.export,
    )
    for name, column in SUMMARY:
        value = row[column]
        if name.startswith("mean_"):  # Batsim's mean counts a rejected job as 0; ours is over the jobs that ran
            value = value * row["nb_jobs"] / row["nb_jobs_finished"] if row["nb_jobs_finished"] else math.nan
        print(f"{name}: {value:.6f}".rstrip("0").rstrip("."))
    if arguments.energy:
        print(f"consumed_joules: {row['consumed_joules']:.6f}")
    return 0


def attempt(work: Callable[[], None], show_traceback: bool = False) -> int:
    """Call the function; return 0, 1 if it fails, or 143 if SIGTERM ends it (and the processes that it started)."""
    from schedlab.batsim.backends.pybatsim_bus import SchedulerFailed
    from schedlab.batsim.backends.real_batsim import BatsimFailed
    from schedlab.batsim.errors import ProtocolError, SimulationDeadlock

    try:
        with unwinding():
            work()
    except (SchedulerFailed, ProtocolError, SimulationDeadlock, BatsimFailed) as failure:
        if show_traceback and failure.__cause__ is not None:
            traceback.print_exception(failure.__cause__, file=sys.stderr)
        print("\n".join(f"error: {line}" for line in str(failure).splitlines()), file=sys.stderr)
        return 1
    except Terminated:
        return STATUS
    return 0


def _inputs(arguments: argparse.Namespace) -> Inputs:
    from schedlab.batsim.running import Inputs
    from schedlab.batsim.simulator.options import Options

    options = Options(
        energy=arguments.energy,
        events_files=tuple(arguments.events),
        forward_unknown_events=arguments.forward_unknown_events,
        dynamic_jobs=arguments.dynamic_jobs,
        acknowledge_dynamic_jobs=arguments.ack_dynamic_jobs,
        profile_reuse=arguments.profile_reuse,
        forward_profiles=arguments.forward_profiles,
        compute_sharing=arguments.compute_sharing,
        mmax=arguments.mmax,
        mmax_workload=arguments.mmax_workload,
        master_host=arguments.master_host,
        network=arguments.network,
        control_latency=arguments.control_latency,
    )
    return Inputs(Path(arguments.platform), tuple(Path(file) for file in arguments.workload), arguments.export, options)


def _scheduler_options(text: str) -> dict[str, Any]:
    from schedlab.config.readers import parse_json

    expected = 'an object such as \'{"priority": "sjf"}\''
    options = parse_json(text, "--options", expected)
    if not isinstance(options, dict):
        raise UserError("no JSON object", where="--options", expected=expected)
    return options


def _hosts(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of hosts")
    return int(text)
