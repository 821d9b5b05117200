"""The sub-commands of `schedlab batch`."""

from __future__ import annotations

import argparse
import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.studies.batch.commands_compare import add_compare_command
from schedlab.studies.batch.commands_speed import add_speed_command

if TYPE_CHECKING:
    from schedlab.studies.batch.simulate import Schedule

log = logging.getLogger("schedlab.batch")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the commands, each of which sets `run` to a function (arguments) -> exit status."""
    add_compare_command(commands)
    about = "run a window of a trace under a rule and print all measures as one JSON document"
    parser = commands.add_parser("evaluate", help=about, description=about)
    parser.add_argument("--trace", required=True, metavar="FILE", help="trace in the Standard Workload Format, plain or gzip")
    parser.add_argument("--policy", required=True, metavar="NAME", help="a rule, such as fcfs, sjf, f1, planner, or learned:FILE")
    parser.add_argument(
        "--backfill", default="none", choices=("none", "legacy", "easy", "conservative"), help="none (default): the chosen job blocks"
    )
    parser.add_argument(
        "--backfill-order",
        default="default",
        choices=("default", "fcfs", "area", "rule"),
        help="which jobs are looked at first when they are backfilled (legacy, easy)",
    )
    parser.add_argument("--start", type=int, default=0, metavar="S", help="first job, counted from 0 after the cleaning (default: 0)")
    parser.add_argument("--jobs", type=int, metavar="N", help="jobs from there on (default: all)")
    parser.add_argument("--cleaning", default="default", choices=("default", "rlscheduler"), help="default, or what published numbers use")
    parser.add_argument("--processors", type=int, metavar="P", help="size of the machine where the header lacks it or is wrong")
    parser.add_argument("--kill", action="store_true", help="end jobs at their requested time")
    parser.add_argument("--warm-start", action="store_true", help="fill the machine with the jobs before the window")
    parser.add_argument("--seed", type=int, default=0, help="seed of the warm start (default: 0)")
    parser.add_argument("--starts", type=Path, metavar="OUT.csv", help="write job_id,start of each job")
    parser.set_defaults(run=_evaluate)
    add_speed_command(commands)


def _evaluate(arguments: argparse.Namespace) -> int:
    document, schedule = evaluate(arguments)
    if arguments.starts:
        _write_starts(arguments.starts, schedule)
        log.info("wrote %s", arguments.starts)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def evaluate(arguments: argparse.Namespace) -> tuple[dict[str, Any], Schedule]:
    """Return the document of `batch evaluate` and the schedule. Raises UserError."""
    from schedlab.config.seeds import generator
    from schedlab.studies.batch.jobs import jobs_of, machine_of, prefill, window
    from schedlab.studies.batch.metrics import measures
    from schedlab.studies.batch.simulate import require_order, simulate
    from schedlab.workloads.clean import CleaningSettings, clean
    from schedlab.workloads.swf import read_swf

    policy = _policy(arguments.policy)
    require_order(arguments.backfill, arguments.backfill_order, "--backfill-order")
    if arguments.processors is not None and not 0 < arguments.processors < 2**31:
        raise UserError(f"{arguments.processors} processors", where="--processors", expected="a whole number above 0")
    if arguments.seed < 0:
        raise UserError(f"seed {arguments.seed}", where="--seed", expected="a whole number from 0 on")
    trace = read_swf(arguments.trace).with_processors(arguments.processors)
    trace.machine_size()  # told before the cleaning asks for it
    cleaned, report = clean(trace, CleaningSettings(profile=arguments.cleaning))
    machine = machine_of(cleaned)
    jobs, out_of_order = jobs_of(cleaned, machine)
    chosen = window(jobs, machine, arguments.start, arguments.jobs)
    before = None
    if arguments.warm_start:
        before = prefill(jobs, machine, arguments.start, len(chosen), generator(arguments.seed, "batch", "prefill", arguments.start))
    order = arguments.backfill_order
    schedule = simulate(chosen, machine, policy, arguments.backfill, backfill_order=order, kill=arguments.kill, prefill=before)
    document = {
        "trace": str(arguments.trace),
        "policy": arguments.policy,
        "backfill": arguments.backfill,
        "backfill_order": order,
        "start": arguments.start,
        **measures(schedule, machine),
        "machine": {"nodes": machine.nodes, "processors": machine.processors},
        "kill": arguments.kill,
        "warm_start": {"jobs": len(before.start), "seed": arguments.seed} if before is not None else None,
        "cleaning": {"profile": arguments.cleaning, **report.values(), "out_of_order": out_of_order},
    }
    return document, schedule


def _policy(name: str) -> Any:
    """Return what simulates a policy of the command line: a rule's name, or what a file holds."""
    from schedlab.studies.batch.learned import PREFIX, load_priority
    from schedlab.studies.batch.rules import require_rule

    if name.startswith(PREFIX):
        return load_priority(name.removeprefix(PREFIX))
    if name != "planner":
        require_rule(name, "--policy")
    return name


def _write_starts(path: Path, schedule: Schedule) -> None:
    """Write the start times; whole seconds without a point."""
    from schedlab.config.files import write_text

    lines = [
        f"{job},{int(start) if start == int(start) else repr(start)}"
        for job, start in zip(schedule.jobs.job_id.tolist(), schedule.start.tolist(), strict=True)
    ]
    write_text(path, "\n".join(["job_id,start", *lines]) + "\n")
