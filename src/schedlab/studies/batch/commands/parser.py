"""The sub-commands of `schedlab batch`."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import write_text
from schedlab.studies.batch.commands.compare import add_compare_command
from schedlab.studies.batch.commands.latency import add_latency_command
from schedlab.studies.batch.commands.speed import add_speed_command
from schedlab.studies.batch.commands.trace_window import add_window_arguments, read_window
from schedlab.studies.batch.learners.learned import named_policy
from schedlab.studies.batch.metrics import measures, usage

if TYPE_CHECKING:
    from schedlab.studies.batch.simulator.simulate import Schedule

log = logging.getLogger("schedlab.batch")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the commands, each of which sets `run` to a function (arguments) -> exit status."""
    add_compare_command(commands)
    about = "run a window of a trace under one policy or several and print all measures as one JSON document"
    parser = commands.add_parser("evaluate", help=about, description=about)
    add_window_arguments(parser)
    what = "a rule, such as fcfs, sjf, f1, planner, or learned:FILE; several are run one after the other"
    parser.add_argument("--policy", required=True, nargs="+", metavar="NAME", help=what)
    parser.add_argument("--starts", type=Path, metavar="OUT.csv", help="write job_id,start of each job (one policy)")
    parser.add_argument(
        "--usage", type=Path, metavar="OUT.csv", help="write time,procs: the processors busy from then on (one policy)"
    )
    parser.set_defaults(run=_evaluate)
    add_latency_command(commands)
    add_speed_command(commands)


def _evaluate(arguments: argparse.Namespace) -> int:
    written = (
        ("--starts", "start times", arguments.starts, _write_starts),
        ("--usage", "the usage", arguments.usage, _write_usage),
    )
    for option, what, path, _ in written:
        if path and len(arguments.policy) > 1:
            raise UserError(
                f"{what} of {len(arguments.policy)} policies", where=option, expected="one policy (--policy)"
            )
    document, schedules = evaluate(arguments)
    for _, _, path, write in written:
        if path:
            write(path, schedules[0])
            log.info("wrote %s", path)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def evaluate(arguments: argparse.Namespace) -> tuple[dict[str, Any], list[Schedule]]:
    """Return the document of `batch evaluate` and the schedule of each policy. Raises UserError.

    The measures of one policy stand in the document itself, those of several under `policies`, in the order in which
    they are named.
    """
    found = read_window(arguments)
    machine = found.problem.machine
    policies = [
        named_policy(name, found.problem) for name in arguments.policy
    ]  # a wrong name is told before anything runs
    schedules = [found.problem.run(policy, found.unit) for policy in policies]
    scored = [
        {"policy": name, **measures(schedule, machine)}
        for name, schedule in zip(arguments.policy, schedules, strict=True)
    ]
    document = {
        "trace": str(arguments.trace),
        "backfill": arguments.backfill,
        "backfill_order": arguments.backfill_order,
        "start": arguments.start,
        **(scored[0] if len(scored) == 1 else {"policies": scored}),
        "machine": {"nodes": machine.nodes, "processors": machine.processors},
        "kill": arguments.kill,
        "warm_start": {"jobs": found.prefilled, "seed": arguments.seed} if arguments.warm_start else None,
        "cleaning": dict(found.cleaning),
    }
    return document, schedules


def _write_starts(path: Path, schedule: Schedule) -> None:
    """Write the start times; whole seconds without a point."""
    _write_rows(
        path,
        "job_id,start",
        [[job, _seconds(start)] for job, start in zip(schedule.jobs.job_id, schedule.start, strict=True)],
    )


def _write_usage(path: Path, schedule: Schedule) -> None:
    """Write the resource usage curve; whole seconds without a point."""
    curve = usage(schedule)
    _write_rows(
        path, "time,procs", [[_seconds(time), procs] for time, procs in zip(curve["time"], curve["procs"], strict=True)]
    )


def _seconds(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _write_rows(path: Path, header: str, rows: list[list[object]]) -> None:
    write_text(path, "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
