"""`schedlab batch compare`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from schedlab.config.errors import UserError
from schedlab.evaluation import tables
from schedlab.studies.batch.figures.comparison import comparisons

if TYPE_CHECKING:
    import pandas as pd


def add_compare_command(commands: argparse._SubParsersAction) -> None:
    """Add `compare`, which sets `run` to a function (arguments) -> exit status."""
    about = (
        "compare a policy with others on the windows of every scenario that scores both, and print the ratios as CSV"
    )
    parser = commands.add_parser("compare", help=about, description=about)
    parser.add_argument(
        "scores", type=Path, nargs="+", metavar="SCORES.parquet", help="the scores of a scale, or of evaluations"
    )
    parser.add_argument("--policy", required=True, metavar="NAME", help="the policy that is judged")
    parser.add_argument("--baseline", required=True, nargs="+", metavar="NAME", help="what it is judged against")
    parser.add_argument("--split", default="test", choices=("validation", "test"), help="which windows (default: test)")
    parser.set_defaults(run=_compare)


def _compare(arguments: argparse.Namespace) -> int:
    import pandas as pd

    scores = tables.join(tables.SCORES, [_scores(path) for path in arguments.scores])
    rows = list(comparisons(scores, arguments.policy, tuple(arguments.baseline), arguments.split))
    print(pd.DataFrame(rows).round(4).to_csv(index=False), end="")
    return 0


def _scores(path: Path) -> pd.DataFrame:
    """Return a table of scores. Raises UserError where there is none."""
    if not path.is_file():
        raise UserError("there is no such table", where=str(path), remedy="run snakemake first")
    try:
        return tables.read(tables.SCORES, path)
    except ValueError:
        expected = "results/SCALE/batch/scores.parquet, or a scenario's evaluation/rules.parquet or learned.parquet"
        raise UserError("is no table of scores", where=str(path), expected=expected) from None
