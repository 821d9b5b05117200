"""The sub-commands of `schedlab cloud`. What a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from schedlab.config.errors import UserError
from schedlab.config.runtime.job_log import one_thread
from schedlab.studies.cloud.live.commands import add_live_commands
from schedlab.studies.cloud.model.fit_report import fit_report, print_report
from schedlab.studies.cloud.slamorl.case_files import replay


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the commands, each of which sets `run` to a function (arguments) -> exit status."""
    about = "answer a case file (its kind by its name: actions, change, cost, reward, similarity, sla) and print it as one JSON document"
    parser = commands.add_parser("replay", help=about, description=about)
    parser.add_argument(
        "file", type=Path, metavar="FILE.json", help="cases; the similarity's logs lie beside it as similarity_logs.csv"
    )
    parser.add_argument("--compat", action="store_true", help="as the published program computes it, defects included")
    parser.set_defaults(run=_replay)
    about = "fit the performance model to logs and print parameters, number of rows and median relative error of the step time"
    parser = commands.add_parser("fit", help=about, description=about)
    parser.add_argument(
        "logs", type=Path, nargs="+", metavar="LOG.csv", help="training logs, or tables of measured placements"
    )
    parser.add_argument(
        "--gpus-per-node", type=int, default=4, metavar="G", help="of training logs, which name no nodes (default: 4)"
    )
    parser.add_argument(
        "--leave-out", action="store_true", help="also fit without each placement in turn and predict it"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document (default)")
    form.add_argument("--text", action="store_true", help="lines of text with units instead")
    parser.set_defaults(run=_fit)
    add_live_commands(commands)


def _replay(arguments: argparse.Namespace) -> int:
    print(json.dumps(replay(arguments.file, arguments.compat), indent=1, allow_nan=False))
    return 0


def _fit(arguments: argparse.Namespace) -> int:
    one_thread()  # before NumPy is loaded: the optimiser's small matrices are ten times slower on several threads

    if arguments.gpus_per_node < 1:
        raise UserError(f"{arguments.gpus_per_node} GPUs", where="--gpus-per-node", expected="1 or more")
    print_report(fit_report(arguments.logs, arguments.gpus_per_node, arguments.leave_out), as_json=not arguments.text)
    return 0
