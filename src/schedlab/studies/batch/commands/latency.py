"""The command `schedlab batch latency`: what a decision of each policy costs, printed and recorded."""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import write_json
from schedlab.config.runtime.provenance import environment
from schedlab.learning.seeding import use_one_thread
from schedlab.studies.batch.commands.trace_window import TraceWindow, add_window_arguments, read_window
from schedlab.studies.batch.learners.learned import PREFIX, named_policy

if TYPE_CHECKING:
    from schedlab.config.contract import Policy

log = logging.getLogger("schedlab.batch")
_DESCRIPTION = """Measure what a decision of each policy costs on a window of a trace: CPU time of the whole window, simulator and view
included, over its jobs. One thread; each policy runs once before, so that nothing is compiled or loaded. Close other programs first."""


def add_latency_command(commands: argparse._SubParsersAction) -> None:
    """Add `latency`, which sets `run` to a function (arguments) -> exit status."""
    parser = commands.add_parser(
        "latency", help="measure what a decision of each policy costs", description=_DESCRIPTION
    )
    add_window_arguments(parser)
    parser.add_argument("--policy", required=True, nargs="+", metavar="NAME", help="rules, planner, or learned:FILE")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="timed runs of each policy (default: 5)")
    parser.add_argument(
        "--labels", nargs="+", metavar="NAME", help="what figures call the policies, one each (default: their names)"
    )
    parser.add_argument("--name", default="this machine", help="what figures call the machine")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="also record it, as in resources/measured/decision_latency/"
    )
    parser.set_defaults(run=_latency)


def _latency(arguments: argparse.Namespace) -> int:
    if arguments.out and arguments.out.exists():
        raise UserError("the file is there already", where=str(arguments.out), remedy="name another file with --out")
    if not 1 <= arguments.repeats <= 1000:
        raise UserError(f"{arguments.repeats} repeats", where="--repeats", expected="a number from 1 to 1000")
    labels = arguments.labels or arguments.policy
    if len(labels) != len(arguments.policy):
        raise UserError(
            f"{len(labels)} labels for {len(arguments.policy)} policies", where="--labels", expected="one for each"
        )
    window = read_window(arguments)
    if any(name.startswith(PREFIX) for name in arguments.policy):
        use_one_thread()
    policies = [
        named_policy(name, window.problem) for name in arguments.policy
    ]  # a wrong name is told before anything is measured
    rows = []
    for label, policy in zip(labels, policies, strict=True):
        times = microseconds(window, policy, arguments.repeats)
        rows.append(
            {
                "policy": label,
                "us_per_decision": [round(each, 3) for each in times],
                "median": round(statistics.median(times), 3),
            }
        )
        log.info("%s: %.1f us a decision", label, rows[-1]["median"])
    how: dict[str, Any] = {name: getattr(arguments, name) for name in ("backfill", "start", "kill", "warm_start")}
    document = {
        "name": arguments.name,
        "measured": rows,
        "trace": Path(arguments.trace).name,
        "jobs": window.problem.scenario.windows.length,
        **how,
        "date": datetime.now(UTC).date().isoformat(),
        **environment(),
    }
    if arguments.out:
        write_json(arguments.out, document)
        log.info("wrote %s", arguments.out)
    print(json.dumps(document, indent=2, allow_nan=False))
    return 0


def microseconds(window: TraceWindow, policy: Policy, repeats: int) -> list[float]:
    """Return the CPU time of a decision in each repeat, in microseconds."""
    found = []
    window.problem.run(policy, window.unit)
    for _ in range(repeats):
        begin = time.process_time()
        window.problem.run(policy, window.unit)
        found.append(1e6 * (time.process_time() - begin) / window.problem.scenario.windows.length)
    return found
