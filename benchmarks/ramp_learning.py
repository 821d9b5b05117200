"""What do policies block on the scenarios of the ramp study? One CSV from the tables of a run of the workflow.

    python benchmarks/ramp_learning.py results/full/ramp --scenarios published_a published_b published_c published_d [--out FILE.csv]

A line for each policy: its mean blocking rate over seeds and test episodes with its interval (two-level bootstrap over seeds and episodes,
as in summaries; empty where there are too few), and the mean of each seed. Learned policies lose the scenario that ends their names.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from schedlab.config.seeds import generator
from schedlab.config.settings import StatisticsSettings
from schedlab.evaluation.statistics import estimate, sample


def blocking(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the lines of the CSV from scores of one metric (as evaluations write them)."""
    lines = []
    for (scenario, policy), rows in scores.groupby(["scenario", "policy"], sort=True):
        found = sample(rows)
        value = estimate(found, StatisticsSettings(), generator(0, "ramp learning", scenario, policy))
        lines.append(
            {
                "scenario": scenario,
                "policy": policy.removesuffix("-" + scenario.replace("_", "-")),
                "seeds": value.seeds,
                "episodes": value.units,
                "blocking_rate": value.value,
                "low": value.ci_low,
                "high": value.ci_high,
                "by_seed": " ".join(f"{mean:.4f}" for mean in found.values.mean(axis=1)),
                "config_hash": rows["config_hash"].iloc[0],
            }
        )
    return pd.DataFrame(lines).sort_values(["scenario", "blocking_rate", "policy"], ignore_index=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scenarios", nargs="+", required=True)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    files = [file for name in given.scenarios for file in sorted((given.folder / name / "evaluation").glob("*.parquet"))]
    table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    made = blocking(table[(table["metric"] == "blocking_rate") & (table["split"] == "test")])
    made.to_csv(given.out or sys.stdout, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
