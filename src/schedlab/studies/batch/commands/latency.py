"""`schedlab batch latency`: the CPU time of a decision of each policy, printed and recorded."""

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
from schedlab.studies.batch.commands.evaluate import TraceWindow, read_window
from schedlab.studies.batch.commands.policies import PREFIX, named_policy

if TYPE_CHECKING:
    from schedlab.studies.batch.problem import AnyPolicy

log = logging.getLogger("schedlab.batch")


def latency(arguments: argparse.Namespace) -> int:
    """Print the CPU time of a decision of each policy, and record it if requested; return the exit status."""
    if arguments.out and arguments.out.exists():
        raise UserError("the file is there already", where=str(arguments.out), remedy="name another file with --out")
    if not 1 <= arguments.repeats <= 1000:
        raise UserError(f"{arguments.repeats} repeats", where="--repeats", expected="a number from 1 to 1000")
    labels = arguments.labels or arguments.policy
    if len(labels) != len(arguments.policy):
        what = f"{len(labels)} labels for {len(arguments.policy)} policies"
        raise UserError(what, where="--labels", expected="one for each")
    window = read_window(arguments)
    if any(name.startswith(PREFIX) for name in arguments.policy):
        use_one_thread()
    # All names first: a wrong one is reported before anything is measured.
    policies = [named_policy(name, window.problem) for name in arguments.policy]
    rows = []
    for label, policy in zip(labels, policies, strict=True):
        times = microseconds(window, policy, arguments.repeats)
        median = round(statistics.median(times), 3)
        rows.append({"policy": label, "us_per_decision": [round(each, 3) for each in times], "median": median})
        log.info("%s: %.1f us a decision", label, median)
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


def microseconds(window: TraceWindow, policy: AnyPolicy, repeats: int) -> list[float]:
    """Return the CPU time of a decision in each repeat, in microseconds."""
    found = []
    window.problem.run(policy, window.unit)
    for _ in range(repeats):
        begin = time.process_time()
        window.problem.run(policy, window.unit)
        found.append(1e6 * (time.process_time() - begin) / window.problem.scenario.windows.length)
    return found
