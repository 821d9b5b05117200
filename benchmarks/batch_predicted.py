"""Predicting without learning: bases of the rollouts, not searched for, over the predictions that rollouts have, beside rules by requests.

    snakemake --cores 1 --config scale=full -- results/full/batch/{sdsc_sp2,hpc2n}{,_easy}/evaluation/rules.parquet
    python benchmarks/batch_predicted.py results/full/batch [--out FILE.csv]

Mean bounded slowdown on the test windows, and on those of the validation part, by which one would have to choose.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from schedlab.evaluation import tables

REPOSITORY = Path(__file__).resolve().parents[1]
SCENARIOS = ("sdsc_sp2", "hpc2n", "sdsc_sp2_easy", "hpc2n_easy")
SHOWN = (
    "sjf",
    "f1",
    "smallest_area",
    "planner",
    "shortest_predicted",
    "f1_predicted",
    "smallest_area_predicted",
    "costly_per_area_predicted",
)


def main() -> None:
    """Write a row a scenario and rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="results of the study at a scale, such as results/full/batch")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "docs/results/batch_predicted.csv", help="where the rows go")
    arguments = parser.parse_args()
    rows = []
    for scenario in SCENARIOS:
        scores = tables.read(tables.SCORES, arguments.folder / scenario / "evaluation/rules.parquet")
        means = scores[scores["metric"] == "avg_bsld"].pivot_table(index="policy", columns="split", values="value")
        windows = scores[(scores["split"] == "test")]["unit"].nunique()
        rows += [{"scenario": scenario, "rule": rule, "windows": windows, **means.loc[rule]} for rule in SHOWN]
    pd.DataFrame(rows).to_csv(arguments.out, index=False, float_format="%.10g")


if __name__ == "__main__":
    main()
