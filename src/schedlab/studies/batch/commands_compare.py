"""`schedlab batch compare`."""

from __future__ import annotations

import argparse
from pathlib import Path

from schedlab.config.errors import UserError


def add_compare_command(commands: argparse._SubParsersAction) -> None:
    """Add `compare`, which sets `run` to a function (arguments) -> exit status."""
    about = "compare a policy with others on the windows of every scenario that scores both, and print the ratios as CSV"
    parser = commands.add_parser("compare", help=about, description=about)
    parser.add_argument("scores", type=Path, nargs="+", metavar="SCORES.parquet", help="the scores of a scale, or of evaluations")
    parser.add_argument("--policy", required=True, metavar="NAME", help="the policy that is judged")
    parser.add_argument("--baseline", required=True, nargs="+", metavar="NAME", help="what it is judged against")
    parser.add_argument("--split", default="test", choices=("validation", "test"), help="which windows (default: test)")
    parser.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    import pandas as pd

    from schedlab.evaluation import tables
    from schedlab.studies.batch.window_comparison import comparisons

    for path in arguments.scores:
        if not path.exists():
            raise UserError("there is no such table", where=str(path), remedy="run snakemake first")
    scores = tables.join(tables.SCORES, [tables.read(tables.SCORES, path) for path in arguments.scores])
    rows = list(comparisons(scores, arguments.policy, tuple(arguments.baseline), arguments.split))
    print(pd.DataFrame(rows).round(4).to_csv(index=False), end="")
    return 0
