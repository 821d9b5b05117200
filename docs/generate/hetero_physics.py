"""What other physics change: mean scores of the rules in the scenarios physics-*, copied from a run at scale full.

    snakemake --cores 1 --config scale=full -- \
        results/full/hetero/physics-{step,proportional,fair,capped,failing}/evaluation/rules.parquet
    python docs/generate/hetero_physics.py [FOLDER]

FOLDER is results/full/hetero of the run. Writes docs/results/hetero_physics.csv.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from hetero_tables import PHYSICS
from table_parts import REPOSITORY

METRICS = ("mean_bounded_slowdown", "mean_turnaround", "unsuccessful", "lost")
TABLE = REPOSITORY / "docs/results/hetero_physics.csv"


def main(folder: Path) -> None:
    """Write the means over the test workloads by scenario and policy."""
    scores = pd.concat([pd.read_parquet(folder / name / "evaluation/rules.parquet") for name in PHYSICS])
    scores = scores[(scores["split"] == "test") & scores["metric"].isin(METRICS)]
    groups = scores.groupby(["scenario", "policy", "config_hash"])
    means = scores.pivot_table("value", ["scenario", "policy", "config_hash"], "metric")[list(METRICS)]
    means.insert(0, "workloads", groups["unit"].nunique())
    means.to_csv(TABLE, float_format="%.6g", lineterminator="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else REPOSITORY / "results/full/hetero")
