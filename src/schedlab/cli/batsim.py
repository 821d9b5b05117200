"""`batsim`, also `schedlab sim batsim`: runs the embedded simulator with the command line of Batsim 4.2.

`OPTIONS` contains all of its options. The parser and the table in docs/reference/batsim_options.md are made from it.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schedlab
from schedlab.cli.options import time_limit
from schedlab.cli.sim import attempt
from schedlab.config.contract import Subcommands
from schedlab.config.errors import UserError

if TYPE_CHECKING:
    from schedlab.batsim.backends.backend import Backend
    from schedlab.batsim.running import Inputs

log = logging.getLogger(__name__)
BATSIM_VERSION, SIMGRID_VERSION = "4.2.1", "3.32"  # the simulated versions
VERBOSITIES = ("quiet", "network-only", "information", "debug")
CANNOT_CHANGE_RESULTS = (
    *("contexts/", "cpu/optim", "debug/", "exception/", "host/model:ptask_L07", "maxmin/", "network/optim"),
    *("path:", "precision/", "smpi/", "surf/precision", "tracing"),
)
"""Beginnings of SimGrid options that the embedded simulator may ignore."""


@dataclass(frozen=True)
class Option:
    """An option: its `flags`, the names of its `values` (none: a switch) and its effect here.

    many      it may be given several times
    instead   the command ends with this sentence, which states what is possible instead
    """

    flags: tuple[str, ...]
    does: str
    values: tuple[str, ...] = ()
    default: str | None = None
    many: bool = False
    instead: str = ""
    keywords: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        """The name of its value among the parsed arguments."""
        return next(flag for flag in self.flags if flag.startswith("--"))[2:].replace("-", "_")


_NO_WORKFLOW = (
    "write the tasks as jobs in JSON, and use a scheduler that starts a job when those that it needs have ended"
)
_NO_REDIS = "profiles and jobs are sent in the messages: start the scheduler without Redis"
OPTIONS: dict[str, tuple[Option, ...]] = {
    "Input": (
        Option(("-p", "--platform"), "platform in XML", ("FILE",), keywords=(("required", True),)),
        Option(("-w", "--workload"), "workload in JSON; they are named w0, w1, ...", ("FILE",), many=True),
        Option(("-W", "--workflow"), "workflow in XML", ("FILE",), many=True, instead=_NO_WORKFLOW),
        Option(
            ("--WS", "--workflow-start"), "the same, from a date on", ("FILE", "START"), many=True, instead=_NO_WORKFLOW
        ),
        Option(("--events",), "external events, one JSON object per line", ("FILE",), many=True),
    ),
    "Most common": (
        Option(("-m", "--master-host"), "the host that computes nothing", ("NAME",), "master_host"),
        Option(
            ("-r", "--add-role-to-hosts"),
            "give hosts a role: master, storage or compute_node",
            ("HOST[,HOST...]:ROLE",),
            many=True,
        ),
        Option(("-E", "--energy"), "power states and energy, with their output files"),
    ),
    "Execution context": (
        Option(
            ("-s", "--socket-endpoint"),
            "where the scheduler binds its REP socket, tcp or ipc",
            ("ENDPOINT",),
            "tcp://localhost:28000",
        ),
        Option(("--enable-redis",), "talk to the scheduler through Redis", instead=_NO_REDIS),
        Option(("--redis-hostname",), "is ignored without --enable-redis", ("HOST",), "127.0.0.1"),
        Option(("--redis-port",), "is ignored without --enable-redis", ("PORT",), "6379"),
        Option(("--redis-prefix",), "is ignored without --enable-redis", ("PREFIX",), "default"),
    ),
    "Output": (
        Option(("-e", "--export"), "writes PREFIX_jobs.csv, PREFIX_schedule.csv and so on", ("PREFIX",), "out"),
        Option(("--disable-schedule-tracing",), "no PREFIX_schedule.trace (Paje)"),
        Option(("--disable-machine-state-tracing",), "no PREFIX_machine_states.csv"),
    ),
    "Platform size": (
        Option(("--mmax",), "use only the first N compute hosts; 0 or less: all", ("N",), "0"),
        Option(("--mmax-workload",), "use as many compute hosts as the largest nb_res of the workloads"),
    ),
    "Jobs": (
        Option(("--forward-profiles-on-submission",), "send the profile with each JOB_SUBMITTED"),
        Option(("--enable-dynamic-jobs",), "the scheduler may register jobs and profiles"),
        Option(("--acknowledge-dynamic-jobs",), "answer each registration by JOB_SUBMITTED"),
        Option(
            ("--enable-profile-reuse",), "keep profiles after their last job has ended; needs --enable-dynamic-jobs"
        ),
    ),
    "Verbosity": (
        Option(
            ("-v", "--verbosity"),
            "network-only, information and debug log each message with the scheduler, quiet none",
            ("LEVEL",),
            "information",
            keywords=(("choices", VERBOSITIES),),
        ),
        Option(("-q", "--quiet"), "the same as --verbosity quiet"),
    ),
    "Workflows": (
        Option(("--workflow-jobs-limit",), "is ignored without --workflow", ("N",), "0"),
        Option(("--ignore-beyond-last-workflow",), "is ignored without --workflow"),
    ),
    "Other": (
        Option(("--dump-execution-context",), "print endpoint and output prefix as one JSON object, and exit"),
        Option(("--enable-compute-sharing",), "allow several jobs on one host"),
        Option(("--disable-storage-sharing",), "a storage host may be in the allocation of one job at a time"),
        Option(
            ("--no-sched",),
            "no scheduler: jobs run one by one on the first hosts, in the order of submission, none before its time",
        ),
        Option(("--sched-cfg",), "text for the scheduler, sent in the first message", ("TEXT",)),
        Option(("--sched-cfg-file",), "file with such a text", ("FILE",)),
        Option(
            ("--sg-cfg",),
            "is ignored; an option that would change what SimGrid simulates is an error",
            ("NAME:VALUE",),
            many=True,
        ),
        Option(("--sg-log",), "is ignored, because SimGrid is not used", ("SETTING",), many=True),
        Option(("--forward-unknown-events",), "pass external events of unknown types to the scheduler"),
    ),
    "Not in Batsim": (
        Option(("--embedded-scheduler",), "a PyBatsim scheduler in this process", ("NAME|FILE.py[:CLASS]",)),
        Option(("--embedded-options",), "its options, a JSON object", ("JSON",), "{}"),
        Option(
            ("--scheduler-limit",),
            "seconds for each answer of the scheduler, its start included; 0: none",
            ("S",),
            "60",
            keywords=(("type", time_limit),),
        ),
    ),
}


def add_batsim_command(commands: Subcommands) -> None:
    """Add `schedlab sim batsim`."""
    summary = "the command line of Batsim 4.2 (also the command `batsim`)"
    parser = commands.add_parser("batsim", prog="batsim", help=summary, description=summary)
    for title, options in OPTIONS.items():
        group = parser.add_argument_group(title)
        for option in options:
            keywords: dict[str, Any] = {"action": "append", "default": []} if option.many else {}
            if not option.values:
                keywords["action"] = "store_true"
            elif len(option.values) > 1:
                keywords |= {"nargs": len(option.values), "metavar": option.values}
            else:
                keywords["metavar"] = option.values[0]
            if option.default is not None:
                keywords["default"] = option.default
            group.add_argument(*option.flags, help=_help(option), **keywords, **dict(option.keywords))
    version = f"{BATSIM_VERSION} (schedlab {schedlab.__version__}, embedded simulator)"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("--simgrid-version", action="version", version=f"{SIMGRID_VERSION} (as simulated by schedlab)")
    parser.set_defaults(run=run)


def _help(option: Option) -> str:
    default = f" (default: {option.default})" if option.default is not None else ""
    return f"not available; {option.instead}" if option.instead else option.does + default


def run(arguments: argparse.Namespace) -> int:
    """Simulate like Batsim; return the exit status. Raises UserError for wrong or unavailable options."""
    for option in (option for options in OPTIONS.values() for option in options):
        if option.instead and getattr(arguments, option.name):
            raise UserError("is not available", where="/".join(option.flags), remedy=option.instead)
    if arguments.dump_execution_context:
        print(json.dumps(_execution_context(arguments), separators=(",", ":")))
        return 0
    if status := _missing_files(arguments):
        return status
    inputs, converse = _inputs(arguments), _scheduler(arguments)
    quiet = arguments.quiet or arguments.verbosity == "quiet"

    def work() -> None:
        from schedlab.batsim.batsim_like import simulate_like_batsim

        simulate_like_batsim(inputs, converse, None if quiet or arguments.no_sched else log.info)

    return attempt(work)


def _missing_files(arguments: argparse.Namespace) -> int:
    """Print every input file that is missing or a folder; return the sum of Batsim's exit statuses (1 platform, 2
    others).
    """
    status = 0
    kinds = (
        ("Platform", 1, [arguments.platform]),
        ("Workload", 2, arguments.workload),
        ("Events", 2, arguments.events),
    )
    for kind, number, names in kinds:
        for name in names:
            if Path(name).is_dir() or not Path(name).exists():
                why = "it is a folder" if Path(name).is_dir() else "there is no such file"
                print(f"error: {kind} file '{name}' cannot be read: {why}.", file=sys.stderr)
                status |= number
    return status


def _execution_context(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "socket_endpoint": arguments.socket_endpoint,
        "redis_enabled": False,
        "redis_hostname": arguments.redis_hostname,
        "redis_port": int(arguments.redis_port) if arguments.redis_port.isdecimal() else arguments.redis_port,
        "redis_prefix": arguments.redis_prefix,
        "export_prefix": arguments.export,
        "external_scheduler": not (arguments.no_sched or arguments.embedded_scheduler),
    }


def _inputs(arguments: argparse.Namespace) -> Inputs:
    from schedlab.batsim.running import Inputs
    from schedlab.batsim.simulator.options import Options
    from schedlab.config.readers import read_text

    if arguments.enable_profile_reuse and not arguments.enable_dynamic_jobs:
        raise UserError("needs --enable-dynamic-jobs", where="--enable-profile-reuse")
    if arguments.sched_cfg is not None and arguments.sched_cfg_file is not None:
        raise UserError("excludes --sched-cfg-file", where="--sched-cfg", expected="one of them")
    if not re.fullmatch(r"-?\d{1,9}", arguments.mmax, re.ASCII):
        raise UserError(f"'{arguments.mmax}' is no number of hosts", where="--mmax")
    for setting in arguments.sg_cfg:
        if not setting.startswith(CANNOT_CHANGE_RESULTS):
            expected = "one that changes no result, such as " + ", ".join(CANNOT_CHANGE_RESULTS[:6])
            remedy = "leave it out, or use a real Batsim (schedlab sim run --backend batsim)"
            raise UserError(
                f"'{setting}' changes what SimGrid simulates", where="--sg-cfg", expected=expected, remedy=remedy
            )
    roles = _roles(arguments.add_role_to_hosts)
    if (role := roles.get(arguments.master_host, "master")) != "master":
        raise UserError(
            f"gives the master host '{arguments.master_host}' the role {role}",
            where="--add-role-to-hosts",
            expected="one host that is the master",
            remedy="name another one by --master-host NAME",
        )
    configuration = arguments.sched_cfg or ""
    if arguments.sched_cfg_file is not None:
        configuration = read_text(arguments.sched_cfg_file, "the scheduler's configuration")
    options = Options(
        energy=arguments.energy,
        events_files=tuple(arguments.events),
        forward_unknown_events=arguments.forward_unknown_events,
        dynamic_jobs=arguments.enable_dynamic_jobs,
        acknowledge_dynamic_jobs=arguments.acknowledge_dynamic_jobs,
        profile_reuse=arguments.enable_profile_reuse,
        forward_profiles=arguments.forward_profiles_on_submission,
        compute_sharing=arguments.enable_compute_sharing,
        storage_sharing=not arguments.disable_storage_sharing,
        mmax=max(0, int(arguments.mmax)),
        mmax_workload=arguments.mmax_workload,
        master_host=arguments.master_host,
        roles=roles,
        control_latency=not arguments.no_sched,
        scheduler_config=configuration,
    )
    workloads = tuple(map(Path, arguments.workload))
    return Inputs(
        Path(arguments.platform),
        workloads,
        arguments.export,
        options,
        machine_states=not arguments.disable_machine_state_tracing,
        trace=not arguments.disable_schedule_tracing,
    )


def _roles(texts: Sequence[str]) -> dict[str, str]:
    roles: dict[str, str] = {}
    for text in texts:
        hosts, colon, role = text.partition(":")
        names = hosts.split(",")
        if not colon or ":" in role or not role or not all(names):
            raise UserError(f"'{text}' gives no role", where="--add-role-to-hosts", expected="HOST[,HOST...]:ROLE")
        roles |= dict.fromkeys(names, role)  # if a host has several roles, the last one counts, as in Batsim
    return roles


def _scheduler(arguments: argparse.Namespace) -> Callable[[Backend], None]:
    """Return the function that talks to the simulator until its end."""
    from schedlab.batsim import batsim_like
    from schedlab.config.readers import parse_json

    if arguments.no_sched and arguments.embedded_scheduler:
        raise UserError("excludes --no-sched", where="--embedded-scheduler", expected="one of them")
    if arguments.no_sched:
        return batsim_like.one_by_one
    if arguments.embedded_scheduler:
        options = parse_json(arguments.embedded_options, "--embedded-options", "a JSON object")
        name, limit = arguments.embedded_scheduler, arguments.scheduler_limit
        return batsim_like.in_this_process(name, options, arguments.export, limit)
    return batsim_like.at_socket(arguments.socket_endpoint, arguments.scheduler_limit)
