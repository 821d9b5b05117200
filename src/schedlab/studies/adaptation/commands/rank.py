"""The command `schedlab adaptation rank`: the ranking of the sequences of a simulation table as a JSON document."""

from __future__ import annotations

import argparse
import json

from schedlab.studies.adaptation.simulator.ranking import ranking
from schedlab.studies.adaptation.simulator.table import METRICS, read_simulations


def add_rank_command(commands: argparse._SubParsersAction) -> None:
    """Add `rank TABLE` to a parser's sub-commands; its `run(arguments)` prints one JSON document and returns the exit
    status.
    """
    parser = commands.add_parser(
        "rank", help="rank the sequences of a simulation table", description=ranking.__doc__.splitlines()[0]
    )
    parser.add_argument("table", metavar="TABLE", help="the published CSV, or a table of ours (CSV or Parquet)")
    parser.add_argument(
        "--metric", default="test_accuracy", help=f"one of {', '.join(METRICS)} (default: test_accuracy)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the ranking of the table named on the command line as JSON."""
    table = read_simulations(arguments.table)
    print(json.dumps(ranking(table, arguments.metric, str(arguments.table)), indent=2))
    return 0
